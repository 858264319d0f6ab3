"""The sets of the extreme benchmark, made once and kept under build/xmc/sets.

Each is a folder of four CSR matrices (train_x, train_y, test_x, test_y; .npz) and train.txt, the
training rows in the text format of the Extreme Classification Repository, which omikuji reads.

Generated sets have a seed of their own for each seed of the benchmark; real sets are what they are.
Rows are scaled to length one in all of them, once and for all tools.
"""

from __future__ import annotations

import json
import lzma
import os
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from xmc_synth import SIZES, generate

from discriminant.table.files.svmlight import read_xmc, write_xmc

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "build" / "xmc" / "sets"
REAL = Path(os.environ.get("DISCRIMINANT_DATA", ROOT.parent / "shared" / "data")) / "xmc"
MLDR = ("bibtex", "delicious", "rcv1sub1", "enron", "stackex_cs")
TEXTS = ("debian", "clinc150", "banking77")
NAMES = (*MLDR, *TEXTS, *SIZES)
PARTS = ("train_x", "train_y", "test_x", "test_y")


def folder_of(name: str, seed: int) -> Path:
    """The folder of a set, made if it is not there."""
    folder = KEPT / (f"{name}-{seed}" if name in SIZES else name)
    if not (folder / "made").exists():
        folder.mkdir(parents=True, exist_ok=True)
        parts = _made(name, seed)
        for part, matrix in zip(PARTS, parts, strict=True):
            sp.save_npz(folder / f"{part}.npz", matrix, compressed=False)
        write_xmc(folder / "train.txt", parts[0], parts[1])
        (folder / "made").touch()
    return folder


def load(folder: Path, part: str) -> sp.csr_matrix:
    """One of the four matrices."""
    return sp.csr_matrix(sp.load_npz(folder / f"{part}.npz"))


def _made(name, seed):
    if name in SIZES:
        return generate(SIZES[name], seed)
    if name in MLDR:
        return _mldr(name)
    return _of_texts(*{"debian": _debian, "clinc150": _clinc, "banking77": _banking}[name]())


def _mldr(name):
    from sklearn.preprocessing import normalize

    parts = []
    for which in ("train", "test"):
        read = read_xmc(REAL / "mldr" / f"{name}_{which}.txt.xz")
        parts += [normalize(read.features).astype(np.float32), read.labels.astype(np.float32)]
    return parts


def _of_texts(train, test):
    """TF-IDF of words; labels by their names, those of the training rows only."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    words = TfidfVectorizer(sublinear_tf=True, dtype=np.float32, token_pattern=r"(?u)\b\w+\b")
    train_x = words.fit_transform([text for text, _ in train])
    test_x = words.transform([text for text, _ in test])
    names = sorted({label for _, labels in train for label in labels})
    code = {label: k for k, label in enumerate(names)}
    return train_x, _indicator(train, code), test_x, _indicator(test, code)


def _indicator(rows, code):
    pairs = [(i, code[k]) for i, (_, labels) in enumerate(rows) for k in set(labels) if k in code]
    at = np.array(pairs).T
    y = sp.csr_matrix((np.ones(len(pairs), np.float32), tuple(at)), (len(rows), len(code)))
    y.sort_indices()
    return y


def _debian():
    return [_debian_rows(which) for which in ("train", "test")]


def _debian_rows(which):
    with lzma.open(REAL / "debian-depends" / f"{which}.tsv.xz", "rt") as lines:
        cells = [line.rstrip("\n").split("\t") for line in lines]
    return [(text, labels.split(",")) for labels, text in cells]


def _clinc():
    with lzma.open(REAL / "clinc150" / "data_full.json.xz", "rt") as text:
        parts = json.load(text)
    return [[(words, [label]) for words, label in parts[part]] for part in ("train", "test")]


def _banking():
    import csv

    found = []
    for which in ("train", "test"):
        with lzma.open(REAL / "banking77" / f"{which}.csv.xz", "rt", newline="") as lines:
            found.append([(row["text"], [row["category"]]) for row in csv.DictReader(lines)])
    return found
