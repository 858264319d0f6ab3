"""What tests of files share: whether two things are the same to the last bit, and forged files."""

import hashlib
import json

import numpy as np

PLAIN = (type(None), bool, int, str, slice)


def differences(ours, theirs, path="it"):
    """Places where two things are not the same: kind, value, dtype, order in memory, last bit."""
    if type(ours) is not type(theirs):
        return [f"{path}: {type(ours)} is not {type(theirs)}"]
    if isinstance(ours, np.ndarray):
        return _array_differences(ours, theirs, path)
    if isinstance(ours, (float, np.generic)):
        same = np.array_equal(np.asarray(ours), np.asarray(theirs), equal_nan=ours != ours)
        return [] if same and str(ours) == str(theirs) else [f"{path}: {ours} is not {theirs}"]
    if isinstance(ours, PLAIN):
        return [] if ours == theirs else [f"{path}: {ours} is not {theirs}"]
    mine, yours = parts(ours), parts(theirs)
    if list(mine) != list(yours):
        return [f"{path}: {list(mine)} are not {list(yours)}"]
    return [found for k in mine for found in differences(mine[k], yours[k], f"{path}.{k}")]


def _array_differences(ours, theirs, path):
    if (ours.dtype, ours.shape) != (theirs.dtype, theirs.shape):
        return [f"{path}: {ours.dtype}{ours.shape} is not {theirs.dtype}{theirs.shape}"]
    if ours.dtype.kind == "O":
        return differences(ours.ravel().tolist(), theirs.ravel().tolist(), path)
    if ours.flags.c_contiguous and not theirs.flags.c_contiguous:
        return [f"{path}: not in C order"]
    if ours.flags.f_contiguous and not theirs.flags.f_contiguous:
        return [f"{path}: not in Fortran order"]
    return [] if ours.tobytes() == theirs.tobytes() else [f"{path}: other bytes"]


def parts(thing):
    """What a thing holds, by name."""
    if isinstance(thing, dict):
        return {repr(key): value for key, value in thing.items()}
    if isinstance(thing, (list, tuple)):
        return dict(enumerate(thing))
    if hasattr(thing, "__dict__"):
        left_out = ("f_", "_copied")  # copies of options: a file has them in place of the options
        return {name: value for name, value in sorted(vars(thing).items()) if name not in left_out}
    names = [name for cls in type(thing).__mro__ for name in getattr(cls, "__slots__", ())]
    return {name: getattr(thing, name) for name in names}


def arrays_within(thing):
    """Every array that a thing holds, at any depth."""
    if isinstance(thing, np.ndarray):
        return [thing]
    if isinstance(thing, (*PLAIN, float, np.generic)):
        return []
    return [array for part in parts(thing).values() for array in arrays_within(part)]


# --- forging ----------------------------------------------------------------------------------


def taken_apart(content):
    """Header and manifest as dictionaries, and the bytes of the arrays."""
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    return header, json.loads(header["__metadata__"]["manifest"]), content[8 + length :]


def signed(header, manifest, arrays, *, text=None):
    """A file that says this, with a digest that is right; `text` in place of the header's own."""
    told = header["__metadata__"]
    told["manifest"] = manifest if isinstance(manifest, str) else json.dumps(manifest)
    if "sha256" in told:
        told["sha256"] = "0" * 64
    text = json.dumps(header, separators=(",", ":")) if text is None else text
    content = len(text).to_bytes(8, "little") + text.encode() + arrays
    digest = hashlib.sha256(content).hexdigest()
    return content.replace(b'"sha256":"' + b"0" * 64, b'"sha256":"' + digest.encode(), 1)
