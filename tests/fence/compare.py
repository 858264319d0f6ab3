"""Compare the numbers of this tree with those of another commit, bit for bit.

    make fence BASE=main~3            # or: python tests/fence/compare.py main~3 --ulps 4

Both versions run `record.py` of this tree on this machine, one after the other. Exit code 1 means
that a value differs by more than `--ulps` units in the last place, that a label differs, or that a
value of the base is gone. Values that only this tree has are accepted.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def main() -> int:
    """Record both versions, compare them and print what differs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("base", help="commit to compare with")
    parser.add_argument("--ulps", type=int, default=0, help="largest difference to accept")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder) / "base"
        git("worktree", "add", "--detach", "--quiet", str(base), options.base)
        try:
            before = record(base, Path(folder) / "base.npz")
            after = record(ROOT, Path(folder) / "head.npz")
        finally:
            git("worktree", "remove", "--force", str(base))
    return report(compare(before, after), accepted=options.ulps)


def git(*arguments: str) -> None:
    """Run git in this repository."""
    subprocess.run(["git", "-C", str(ROOT), *arguments], check=True)


def record(tree: Path, path: Path) -> dict[str, np.ndarray]:
    """Return the values that the package in `tree` computes."""
    environment = os.environ | {"PYTHONPATH": str(tree / "src"), "OPENBLAS_NUM_THREADS": "1"}
    subprocess.run(
        [sys.executable, str(HERE / "record.py"), str(path)], check=True, env=environment
    )
    with np.load(path) as values:
        return {name: values[name] for name in values.files}


def compare(before: dict[str, np.ndarray], after: dict[str, np.ndarray]) -> dict[str, float]:
    """Return the distance in ulps of every value that differs; infinity if gone or not a float."""
    gone = {name: np.inf for name in before.keys() - after.keys()}
    distances = {name: distance(before[name], after[name]) for name in before.keys() & after.keys()}
    return gone | {name: ulps for name, ulps in distances.items() if ulps > 0}


def distance(one: np.ndarray, other: np.ndarray) -> float:
    """Return the largest difference of two arrays in units in the last place."""
    if one.shape != other.shape or one.dtype.kind != other.dtype.kind:
        return np.inf
    if one.dtype.kind != "f" or one.dtype != other.dtype:
        return 0.0 if np.array_equal(one, other) else np.inf
    same = (one == other) | (np.isnan(one) & np.isnan(other))
    if same.all():
        return 0.0
    gap = np.abs(one - other)[~same] / np.spacing(np.maximum(np.abs(one), np.abs(other))[~same])
    return float(np.nan_to_num(gap, nan=np.inf).max())


def report(differences: dict[str, float], accepted: int) -> int:
    """Print the cases that differ, the largest difference first, and return the exit code."""
    cases: dict[str, list[float]] = {}
    for name, ulps in differences.items():
        cases.setdefault(name.partition("|")[0], []).append(ulps)
    for case, distances in sorted(cases.items(), key=lambda item: -max(item[1])):
        largest = max(distances)
        size = "gone or another kind" if np.isinf(largest) else f"{largest:.0f} ulp"
        print(f"{size:>20}  {case} ({len(distances)} values)")
    refused = sum(ulps > accepted for ulps in differences.values())
    print(f"{len(differences)} values differ, {refused} of them by more than {accepted} ulp")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
