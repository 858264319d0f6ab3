"""Row S1: files made to be wrongly loaded, by name; each is to be refused.

Those under a valid digest are signed by the forger: a digest finds damage, not malice, so that what
a file says must be held to what can be.
"""

import bz2
import copy
import gzip
import io
import json
import lzma
import os
import pickle
import zlib

import joblib
import numpy as np
import pyarrow as pa

from discriminant import LDA, QDA, Encoded, LaplaceNB, LeastSquares, save
from tests.shared.stored import signed, taken_apart

ROWS = np.random.default_rng(3).normal(size=(30, 2)).round(2)
LABELS = np.repeat(["a", "b", "c"], 10)


class Payload:
    """Runs code when it is opened as a pickle: makes a folder."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.makedirs, (str(self.folder),)


def hostile_files(folder):
    """Name and bytes of every file; `folder` is where honest ones are made for a start."""
    honest = {}
    for model in (LDA(), QDA(), LaplaceNB(), LeastSquares(degree=2)):
        save(model.fit(ROWS, LABELS), folder / "honest.dd")
        honest[type(model).__name__] = (folder / "honest.dd").read_bytes()
    found = dict(_strangers(folder / "was run", honest["LDA"]))
    found |= {f"header: {name}": file for name, file in _headers(honest["LDA"])}
    found |= {f"array: {name}": file for name, file in _arrays(honest["LDA"])}
    found |= {f"manifest: {name}": file for name, file in _manifests(honest["LDA"])}
    found |= {f"value: {name}": file for name, file in _values(honest["LDA"])}
    found |= {f"state: {name}": file for name, file in _states(honest["LDA"])}
    found |= {f"number: {name}": file for name, file in _numbers(honest)}
    table = {"size": ROWS[:, 0], "colour": np.array(["r", "g", "b"])[np.arange(30) % 3]}
    save(Encoded(LDA()).fit(pa.table(table), LABELS), folder / "honest.dd")
    encoded = (folder / "honest.dd").read_bytes()
    found |= {f"encoding: {name}": file for name, file in _encodings(encoded)}
    return found | {f"flip: {name}": file for name, file in _flips(honest["LDA"])}


# --- files of others --------------------------------------------------------------------------


def _strangers(target, honest):
    payload = Payload(target)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        yield f"pickle {protocol}", pickle.dumps(payload, protocol)
        yield f"pickle {protocol}, long", pickle.dumps([payload, "x" * 10_000], protocol)
    plain = pickle.dumps(payload)
    for name, pack in [("gzip", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress)]:
        yield f"pickle, {name}", pack(plain)
    for level in (0, 1, 6, 9):
        yield f"pickle, zlib {level}", zlib.compress(plain, level)
    for compress in (0, 3, ("xz", 1), ("bz2", 1), ("lzma", 1)):
        target = io.BytesIO()
        joblib.dump(payload, target, compress=compress)
        yield f"joblib {compress}", target.getvalue()
    npy, npz = io.BytesIO(), io.BytesIO()
    np.save(npy, np.array([payload], dtype=object), allow_pickle=True)
    np.savez(npz, a=np.array([payload], dtype=object), allow_pickle=True)
    yield "npy of objects", npy.getvalue()
    yield "npz of objects", npz.getvalue()
    length = int.from_bytes(honest[:8], "little")
    yield "a pickle after a header of ours", honest[: 8 + length] + plain
    yield "a pickle before a file of ours", plain + honest
    yield "nothing", b""
    yield "one byte", b"\0"
    yield "a header of no length", b"\0" * 8
    yield "zeros", b"\0" * 4096
    yield "text", b"hello, world\n" * 10
    yield "json", json.dumps({"format": "discriminant"}).encode()
    yield "html", b"<!doctype html><script>alert(1)</script>"
    yield "a script", b"#!/bin/sh\ntouch /tmp/was_run\n"
    yield "noise", np.random.default_rng(0).bytes(5000)
    yield "a program", b"\x7fELF" + b"\0" * 200
    yield "parquet", b"PAR1" + b"\0" * 100 + b"PAR1"
    yield "hdf5", b"\x89HDF\r\n\x1a\n" + b"\0" * 100
    other = b'{"a":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}}'
    yield "safetensors of something else", len(other).to_bytes(8, "little") + other + b"\0" * 8


# --- headers ----------------------------------------------------------------------------------


def _headers(honest):
    length = int.from_bytes(honest[:8], "little")
    for claimed in (0, 1, length - 64, length + 1, len(honest), 10**12, 2**63, 2**64 - 1):
        yield f"length {claimed}", claimed.to_bytes(8, "little") + honest[8:]
    header, manifest, arrays = taken_apart(honest)
    text = json.dumps(header, separators=(",", ":"))
    start = text.index(',"package"')
    for name, ending in [
        ("nested without end", ',"package":' + "[" * 200_000),
        ("objects without end", ',"package":' + '{"a":' * 100_000),
        ("not a number", ',"package":NaN}}'),
        ("infinity", ',"package":-Infinity}}'),
        ("a number of many digits", ',"package":' + "9" * 200_000 + "}}"),
        ("the digest twice", ',"sha256":"' + "0" * 64 + '"}}'),
        ("metadata twice", '},"__metadata__":{}}'),
        ("no end", ',"package":"'),
        ("control signs", ',"package":"\0"}}'),
        ("more after its end", text[start:] + "{}"),
        ("an array twice", text[start:-1] + ',"moments_.mean":{}}'),
        ("a part of an array twice", text[start:-1] + ',"x":{"dtype":"U8","dtype":"U8"}}'),
        ("many empty lists", ',"package":[' + "[]," * 300_000 + "[]]}}"),
    ]:
        yield name, signed(copy.deepcopy(header), manifest, arrays, text=text[:start] + ending)
    yield "a list", signed(header, manifest, arrays, text="[1, 2, 3]")
    broken = bytearray(honest)
    broken[8 + start + 15] = 0xFF
    yield "bytes that are no text", bytes(broken)
    for key, value in [
        ("format", "other"),
        ("version", "0"),
        ("version", "-1"),
        ("version", "1.5"),
        ("version", "one"),
        ("version", "٣"),
        ("version", "2"),
        ("version", "99999999999999999999"),
        ("version", 1),
        ("kind", "Crystal"),
        ("kind", "QDA"),
        ("kind", 5),
        ("kind", "builtins.eval"),
        ("package", None),
        ("extra", "x"),
        ("manifest", ["a"]),
    ]:
        changed = copy.deepcopy(header)
        changed["__metadata__"][key] = value
        kept = value if key == "manifest" else manifest
        made = json.dumps(changed, separators=(",", ":")) if key == "manifest" else None
        yield f"{key} {value!r}", signed(changed, kept if made is None else "", arrays, text=made)
    for key in header["__metadata__"]:
        changed = copy.deepcopy(header)
        del changed["__metadata__"][key]
        text = json.dumps(changed, separators=(",", ":")) if key == "manifest" else None
        yield f"without {key}", signed(changed, manifest, arrays, text=text)
    for digest in ("0" * 63, "F" * 64, "g" * 64, ""):
        yield f"digest {digest[:3]}", honest.replace(_digest(honest), digest.encode(), 1)


def _digest(content):
    start = content.index(b'"sha256":"') + 10
    return content[start : start + 64]


# --- arrays -----------------------------------------------------------------------------------


def _arrays(honest):
    header, manifest, arrays = taken_apart(honest)
    name = next(key for key in header if key != "__metadata__")
    last = list(header)[-1]
    first, end = header[name], header[last]["data_offsets"][1]
    size = first["data_offsets"][1]
    for key, value in [
        ("dtype", "O"),
        ("dtype", "F128"),
        ("dtype", ["F64"]),
        ("dtype", None),
        ("dtype", "BF16"),
        ("dtype", "I64, (10000,)F64"),
        ("shape", [2**40]),
        ("shape", [2**62, 4]),
        ("shape", [2**63]),
        ("shape", [10**12, 0]),
        ("shape", [-1]),
        ("shape", [2.5]),
        ("shape", [True]),
        ("shape", ["3"]),
        ("shape", [[3]]),
        ("shape", "3"),
        ("shape", [1] * 1000),
        ("shape", None),
        ("data_offsets", [0, 10**12]),
        ("data_offsets", [0, 2**63]),
        ("data_offsets", [size, 0]),
        ("data_offsets", [-8, size - 8]),
        ("data_offsets", [8, size + 8]),
        ("data_offsets", [0.0, float(size)]),
        ("data_offsets", [0]),
        ("data_offsets", [0, size, size]),
        ("data_offsets", [False, size]),
        ("data_offsets", None),
        ("extra", 1),
    ]:
        changed = copy.deepcopy(header)
        changed[name][key] = value
        yield f"{key} {str(value)[:30]}", signed(changed, manifest, arrays)
    changed = copy.deepcopy(header)
    changed[name] = {"dtype": "F64", "shape": [125_000_000_000], "data_offsets": [0, 10**12]}
    yield "a terabyte", signed(changed, manifest, arrays)
    changed = copy.deepcopy(header)
    changed["spare"] = {"dtype": "U8", "shape": [8], "data_offsets": [0, 8]}
    yield "over another", signed(changed, manifest, arrays)
    changed = copy.deepcopy(header)
    changed["spare"] = {"dtype": "U8", "shape": [8], "data_offsets": [end, end + 8]}
    yield "that no object has", signed(changed, manifest, arrays + b"\0" * 8)
    yield "beyond the end", signed(changed, manifest, arrays)
    yield "bytes of none", signed(copy.deepcopy(header), manifest, arrays + b"\0" * 8)
    changed = copy.deepcopy(header)
    changed["empty"] = {"dtype": "U8", "shape": [0, 2**62], "data_offsets": [end, end]}
    yield "empty and endless", signed(changed, manifest, arrays)
    yield "no entry", signed(header | {name: None}, manifest, arrays)


# --- manifests --------------------------------------------------------------------------------


def _manifests(honest):
    header, manifest, arrays = taken_apart(honest)
    for name, value in [
        ("no JSON", "{"),
        ("a list", "[]"),
        ("a number", "1"),
        ("nothing", "{}"),
        ("nested without end", '{"texts":[],"objects":' + "[" * 100_000),
        ("no objects", {"texts": [], "objects": []}),
        ("objects by name", {"texts": [], "objects": {"a": 1}}),
        ("texts that are numbers", manifest | {"texts": [[1]]}),
        ("texts that are no lists", manifest | {"texts": ["abc"]}),
        ("more than it may have", manifest | {"code": "import os"}),
        ("an object twice", '{"texts":[],"objects":[],"objects":[]}'),
    ]:
        yield name, signed(copy.deepcopy(header), value, arrays)
    for name, entry in [
        ("text", "LDA"),
        ("of no kind", {}),
        ("of a kind that is a number", {"kind": 3, "fields": {}}),
        ("of a kind that is a list", {"kind": ["LDA"], "options": {}, "state": {}}),
        ("os.system", {"kind": "os.system", "fields": {"command": "true"}}),
        ("eval", {"kind": "eval", "fields": {}}),
        ("of scikit-learn", {"kind": "LogisticRegression", "options": {}, "state": {}}),
        ("by module", {"kind": "sklearn.pipeline:Pipeline", "options": {}, "state": {}}),
        ("with other parts", {"kind": "LDA", "fields": {}}),
        ("with more parts", {"kind": "LDA", "options": {}, "state": {}, "code": ""}),
        ("with options in a list", {"kind": "LDA", "options": [], "state": {}}),
        ("with an unknown option", {"kind": "LDA", "options": {"exec": 1}, "state": {}}),
        ("with an unknown field", {"kind": "Anchor", "fields": {"exec": 1}}),
        ("without its fields", {"kind": "Anchor", "fields": {}}),
    ]:
        changed = copy.deepcopy(manifest)
        changed["objects"].insert(0, entry)
        yield f"an object {name}", signed(copy.deepcopy(header), changed, arrays)


def _values(honest):
    for value in [
        {},
        {"pickle": "gASV"},
        {"py/object": "os.system"},
        {"$type": "x"},
        {"object": 0, "more": 1},
        {"object": 10**6},
        {"object": -1},
        {"object": True},
        {"object": "0"},
        {"object": 1.0},
        {"texts": 10**6},
        {"texts": None},
        {"float": "1"},
        {"float": ["nan"]},
        {"tuple": 3},
        {"tuple": {"tuple": []}},
        {"dict": [[1]]},
        {"dict": [[[1], 2]]},
        {"dict": 5},
        {"slice": [1, 2]},
        {"numpy": "O", "value": 1},
        {"numpy": "<f8"},
        {"numpy": "<f8", "value": "x"},
        {"numpy": "|V8", "value": 1},
        {"numpy": "<U99999999999999999999999", "value": "a"},
        {"array": "none"},
        {"array": None},
        {"array": ["moments_.mean"]},
        {"array": "moments_.mean", "axes": [1, 0]},
        {"array": "moments_.mean", "code": 1},
        {"objects": [2**40], "of": {"tuple": [1]}},
        {"objects": [-1, 0], "of": {"tuple": [1]}},
        {"objects": 3, "of": {"tuple": [1]}},
        {"objects": [1], "of": [1]},
        {"objects": [1]},
    ]:
        yield json.dumps(value)[:60], _with_option(honest, value)
    for name, entry in [
        ("axes twice", {"axes": [0, 0]}),
        ("too many axes", {"axes": [0, 1, 2]}),
        ("axes in parts", {"axes": [0.0, 1.0]}),
        ("axes that are text", {"axes": "01"}),
        ("of objects", {"dtype": "|O"}),
        ("of records", {"dtype": "<f8,<f8"}),
        ("of bytes", {"dtype": "|V8"}),
        ("of text that is none", {"dtype": "<U2"}),
        ("of dates that are none", {"dtype": "<M8[ns]"}),
        ("of nothing", {"dtype": None}),
        ("of other numbers", {"dtype": ">i8"}),
        ("of complex numbers", {"dtype": "<c16"}),
    ]:
        changed = honest_parts(honest)
        moments = _first(changed[1], "ClassMoments")
        moments["fields"]["mean"] |= entry
        yield f"an array {name}", signed(*changed)


def honest_parts(honest):
    return [copy.deepcopy(part) for part in taken_apart(honest)]


def _with_option(honest, value):
    header, manifest, arrays = honest_parts(honest)
    manifest["objects"][-1]["options"]["prior"] = value
    return signed(header, manifest, arrays)


def _first(manifest, kind):
    return next(entry for entry in manifest["objects"] if entry["kind"] == kind)


# --- fitted attributes ------------------------------------------------------------------------


def _states(honest):
    for name in [
        "predict",
        "fit",
        "save",
        "get_params",
        "rule_",
        "coef_",
        "__class__",
        "__dict__",
        "__reduce__",
        "__setstate__",
        "__sklearn_tags__",
        "_scores",
        "shrinkage",
        "a b",
        "",
        "é-",
    ]:
        header, manifest, arrays = honest_parts(honest)
        manifest["objects"][-1]["state"][name] = 1
        yield f"attribute {name!r}", signed(header, manifest, arrays)


def _encodings(honest):
    """What becomes of columns, said wrongly; and a model around it that is none."""
    for place, key, value in [
        (0, "kind", "evil"),
        (0, "kind", "target"),
        (0, "name", 1),
        (0, "features", {"tuple": [1]}),
        (0, "features", {"tuple": []}),
        (0, "fill", {"tuple": ["a"]}),
        (0, "fill", {"tuple": [0.0, 1.0]}),
        (1, "name", "size"),
        (1, "levels", {"tuple": [1, 2, 3]}),
        (1, "levels", {"tuple": ["r", "r", "g"]}),
        (1, "reference", "violet"),
        (1, "indicator", "yes"),
        (1, "features", {"tuple": ["size", "colour=g"]}),
        (None, "missing", "zzz"),
        (None, "missing", "mean"),
        (None, "unseen", "zzz"),
        (None, "columns", {"tuple": []}),
        (None, "columns", {"tuple": [1]}),
        (None, "named", 3),
    ]:
        header, manifest, arrays = honest_parts(honest)
        told = _first(manifest, "Encoding")["told"]
        if place is not None:
            told = dict(told["dict"])["columns"]["tuple"][place]
        told["dict"] = [pair for pair in told["dict"] if pair[0] != key] + [[key, value]]
        yield f"{key} {json.dumps(value)[:40]}", signed(header, manifest, arrays)
    for key in ("estimator_", "encoding_", "classes_", "said_", "rows_dropped_"):
        header, manifest, arrays = honest_parts(honest)
        manifest["objects"][-1]["state"][key] = "hello"
        yield f"{key} a text", signed(header, manifest, arrays)
    for key in ("estimator_", "encoding_"):
        header, manifest, arrays = honest_parts(honest)
        del manifest["objects"][-1]["state"][key]
        yield f"without {key}", signed(header, manifest, arrays)


# --- numbers ----------------------------------------------------------------------------------


def _numbers(honest):
    for name, place, value in [
        ("a coefficient that is none", "_fitted.coef", np.nan),
        ("a coefficient without end", "_fitted.coef", np.inf),
        ("an intercept that is none", "_fitted.intercept", np.nan),
        ("an origin that is none", "moments_.anchor.origin", np.nan),
        ("a unit of zero", "moments_.anchor.unit", 0.0),
        ("a unit below zero", "moments_.anchor.unit", -1.0),
        ("a unit without end", "moments_.anchor.unit", np.inf),
    ]:
        yield name, _with_number(honest["LDA"], place, value)
    yield "a metric that is none", _with_number(honest["QDA"], "_fitted.metrics[1].basis", np.nan)
    yield "a mean that is none", _with_number(honest["QDA"], "moments_.mean", np.nan)
    yield "a median that is none", _with_number(honest["LaplaceNB"], "_fitted.median", np.nan)
    codes = "moments_.codes"
    for code in (3, -1, 100, -128):
        yield f"code {code} of 3 classes", _with_number(honest["LaplaceNB"], codes, code)
    yield "codes that are far too many", _with_huge_code(honest["LaplaceNB"])
    for degree in (10**9, 10**4, 0, -3, 2.0, "2", None):
        header, manifest, arrays = honest_parts(honest["LeastSquares"])
        _first(manifest, "PolynomialBasis")["fields"]["degree"] = degree
        yield f"degree {degree!r}", signed(header, manifest, arrays)
    for kind, field, value in [
        ("Schema", "features", ["x0", "x1"]),
        ("Schema", "named", "yes"),
        ("ClassMoments", "labels", "abc"),
        ("ClassMoments", "features", None),
        ("ClassMoments", "detail", "all"),
        ("ClassMoments", "weight", {"array": "moments_.mean"}),
        ("ClassMoments", "anchor", {"object": 0}),
        ("ClassMoments", "rows", {"array": "moments_.weight"}),
        ("LinearRule", "coef", {"array": "_fitted.intercept"}),
        ("LinearRule", "intercept", {"array": "_fitted.coef"}),
        ("LinearRule", "coef", 1.0),
        ("LinearRule", "anchor", None),
        ("LinearRule", "labels", {"array": "moments_.mean"}),
    ]:
        header, manifest, arrays = honest_parts(honest["LDA"])
        _first(manifest, kind)["fields"][field] = value
        yield f"{kind}.{field} {str(value)[:30]}", signed(header, manifest, arrays)


def _with_number(honest, place, value):
    """A file whose array begins with another number."""
    header, manifest, arrays = honest_parts(honest)
    kind = {"F64": "<f8", "U8": "u1", "I64": "<i8"}[header[place]["dtype"]]
    start = header[place]["data_offsets"][0]
    number = np.array([value]).astype(kind).tobytes()
    return signed(header, manifest, arrays[:start] + number + arrays[start + len(number) :])


def _with_huge_code(honest):
    """Codes as 64-bit numbers, the last of which would take terabytes to count up to."""
    header, manifest, arrays = honest_parts(honest)
    codes = np.zeros(30, dtype=np.int64)
    codes[-1] = 10**12
    place = header.pop("moments_.codes")
    lo, hi = place["data_offsets"]
    assert hi == len(arrays) or lo > 0
    kept = arrays[:lo] + arrays[hi:]
    for entry in header.values():
        offsets = entry.get("data_offsets")
        if offsets and offsets[0] >= hi:
            entry["data_offsets"] = [at - (hi - lo) for at in offsets]
    end = len(kept)
    header["moments_.codes"] = {
        "dtype": "I64",
        "shape": [30],
        "data_offsets": [end, end + codes.nbytes],
    }
    return signed(header, manifest, kept + codes.tobytes())


# --- damage -----------------------------------------------------------------------------------


def _flips(honest):
    draw = np.random.default_rng(1)
    for number in range(20):
        changed = bytearray(honest)
        for byte in draw.integers(0, len(honest), number + 1):
            changed[byte] ^= int(draw.integers(1, 256))
        yield f"{number + 1} bytes", bytes(changed)
    for _ in range(5):
        lo, hi = sorted(draw.integers(8, len(honest), 2).tolist())
        yield f"bytes {lo} to {hi} twice", honest[:hi] + honest[lo:]
        yield f"bytes {lo} to {hi} left out", honest[:lo] + honest[hi:]
