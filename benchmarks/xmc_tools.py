"""The contenders of the extreme benchmark behind one face: train, save, load, best five labels.

A tool is imported in the worker that measures it and nowhere else; peers live in a venv of their
own. Each has the settings that its authors give as the default, or for the method that it is named
for. Everybody gets rows of length one, a bias, pruning at 0.1, beam 10 and five labels.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np

K, BEAM = 5, 10


class Omikuji:
    """Parabel (3 balanced binary trees), its default; or Bonsai (3 wide trees of depth 3).

    Reads a file; only what follows is timed. It answers one row a call.
    """

    package = "omikuji"

    def __init__(self, *, bonsai=False):
        self.bonsai = bonsai

    def open(self, folder, rows, labels, threads):
        from omikuji import _ThreadPoolHandle, ffi, lib

        self.pool = _ThreadPoolHandle(threads)
        path = ffi.new("char[]", str(folder / "train.txt").encode())
        self.set = ffi.gc(lib.load_omikuji_data_set(path, self.pool.ptr), lib.free_omikuji_data_set)

    def train(self, seed, threads, out):
        from omikuji import Model, lib

        settings = Model.default_hyper_param()
        if self.bonsai:
            settings.cluster_k, settings.cluster_balanced, settings.max_depth = 100, False, 3
        self.model = Model(lib.train_omikuji_model(self.set, settings, self.pool.ptr))

    def save(self, out):
        self.model.save(str(out))

    def load(self, out, threads):
        from omikuji import Model

        self.model = Model.load(str(out))
        self.model.init_prediction_thread_pool(threads)

    def ready(self, rows):
        """Rows as it takes them, outside the time."""
        ends = rows.indptr
        return [
            list(zip(rows.indices[a:b].tolist(), rows.data[a:b].tolist(), strict=True))
            for a, b in itertools.pairwise(ends)
        ]

    def best(self, ready):
        return [self.model.predict(row, beam_size=BEAM, top_k=K) for row in ready]

    def single(self, ready, i):
        return ready[i]

    def one(self, row):
        return self.model.predict(row, beam_size=BEAM, top_k=K)

    def codes(self, answers):
        return _padded([[label for label, _ in row] for row in answers])


class NapkinXC:
    """One probabilistic label tree, its defaults; with beam search, which its default is not."""

    package = "napkinxc"

    def open(self, folder, rows, labels, threads):
        import napkinxc.models  # noqa: F401 -- not in the time

        self.rows = rows
        ends = labels.indptr
        self.sets = [labels.indices[a:b].tolist() for a, b in itertools.pairwise(ends)]

    def train(self, seed, threads, out):
        from napkinxc.models import PLT

        self.model = PLT(str(out), threads=threads, seed=seed, verbose=0)
        self.model.fit(self.rows, self.sets)

    def save(self, out):
        """Written while it trains."""

    def load(self, out, threads):
        from napkinxc.models import PLT

        self.model = PLT(
            str(out), threads=threads, tree_search_type="beam", beam_search_width=BEAM, verbose=0
        )
        self.model.load()

    def ready(self, rows):
        return rows

    def best(self, ready):
        return self.model.predict(ready, top_k=K)

    def single(self, ready, i):
        return ready[i : i + 1]

    def one(self, row):
        return self.model.predict(row, top_k=K)

    def codes(self, answers):
        return _padded(answers)


class Pecos:
    """XR-Linear: one tree of arity 16 and leaves of at most 100 labels, its defaults."""

    package = "libpecos"

    def open(self, folder, rows, labels, threads):
        import pecos.xmc
        from pecos.xmc.xlinear.model import XLinearModel

        self.rows, self.labels = rows, labels
        self.xmc, self.trainer = pecos.xmc, XLinearModel

    def train(self, seed, threads, out):
        means = self.xmc.LabelEmbeddingFactory.create(
            self.labels, self.rows, method="pifa", threads=threads
        )
        tree = self.xmc.Indexer.gen(
            means, nr_splits=16, max_leaf_size=100, seed=seed, threads=threads
        )
        self.model = self.trainer.train(
            self.rows, self.labels, C=tree, threshold=0.1, threads=threads
        )

    def save(self, out):
        self.model.save(str(out))

    def load(self, out, threads):
        from pecos.xmc.xlinear.model import XLinearModel

        self.threads = threads
        self.model = XLinearModel.load(str(out), is_predict_only=True)

    def ready(self, rows):
        return rows

    def best(self, ready):
        return self.model.predict(ready, beam_size=BEAM, only_topk=K, threads=self.threads)

    def single(self, ready, i):
        return ready[i : i + 1]

    def one(self, row):
        return self.model.predict(row, beam_size=BEAM, only_topk=K, threads=self.threads)

    def codes(self, answers):
        ends = answers.indptr
        rows = [(answers.indices[a:b], answers.data[a:b]) for a, b in itertools.pairwise(ends)]
        return _padded([ids[np.argsort(-scores, kind="stable")].tolist() for ids, scores in rows])


class Discriminant:
    """Ours, with what differs from its defaults."""

    package = "discriminant"

    def __init__(self, **settings: Any):
        self.settings = settings

    def open(self, folder, rows, labels, threads):
        from discriminant import LabelTree

        self.rows, self.labels = rows, labels
        some = np.unique(np.linspace(0, rows.shape[0] - 1, 200).astype(int))
        small = LabelTree(**self.settings, threads=threads)
        small.fit(rows[some], labels[some]).predict_topk(rows[some], k=K, beam=BEAM)

    def train(self, seed, threads, out):
        from discriminant import LabelTree

        self.model = LabelTree(**self.settings, threads=threads, random_state=seed)
        self.model.fit(self.rows, self.labels)

    def save(self, out):
        import discriminant

        out.mkdir(parents=True, exist_ok=True)
        discriminant.save(self.model, out / "model")

    def load(self, out, threads):
        import discriminant

        self.model = discriminant.load(out / "model")
        self.model.set_params(threads=threads)

    def ready(self, rows):
        return rows

    def best(self, ready):
        return self.model.predict_topk(ready, k=K, beam=BEAM)

    def single(self, ready, i):
        return ready[i : i + 1]

    def one(self, row):
        return self.model.predict_topk(row, k=K, beam=BEAM)

    def codes(self, answers):
        return np.asarray(answers[0])


def _padded(rows):
    """(n, 5) label codes, -1 where there are fewer."""
    found = np.full((len(rows), K), -1, dtype=np.int64)
    for i, row in enumerate(rows):
        found[i, : len(row)] = row[:K]
    return found


TOOLS = {
    "omikuji": Omikuji(),
    "omikuji-bonsai": Omikuji(bonsai=True),
    "napkinxc": NapkinXC(),
    "libpecos": Pecos(),
    "ours": Discriminant(),
    "ours-bonsai": Discriminant(tree="wide"),
    "ours-1": Discriminant(trees=1),
    "ours-16bit": Discriminant(precision="float16"),
}
PEERS = ("omikuji", "omikuji-bonsai", "napkinxc", "libpecos")
OURS = ("ours", "ours-bonsai", "ours-1", "ours-16bit")


def folder_size(path: Path) -> int:
    """Bytes of all files in it."""
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
