"""Compiled loops are kept on disk, and compiled anew when a loop that they call has changed."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import discriminant

pytest.importorskip("numba")

ASK = """
import numpy as np
from discriminant.extreme.model.compiled_train import check_csr
starts, places = np.array([0, 1], np.int32), np.array([0], np.int32)
check_csr(starts, places, np.ones(1, np.float32), 1, 1, 2)
print(sum(check_csr.stats.cache_hits.values()))
"""


def hits(folder: Path) -> int:
    """How often a process with the package in `folder` finds the loop of its rows compiled."""
    asked = subprocess.run(
        [sys.executable, "-c", ASK],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
        env={"PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(folder / "kept")},
    )
    return int(asked.stdout)


@pytest.mark.parametrize(
    "changed",
    [
        "extreme/model/compiled_search.py",
        pytest.param("cached_njit.py", marks=pytest.mark.slow),
    ],
)
def test_a_loop_is_compiled_once_and_again_when_another_file_has_changed(tmp_path, changed):
    package = tmp_path / "discriminant"
    ignored = shutil.ignore_patterns("__pycache__", "assets")
    shutil.copytree(Path(discriminant.__file__).parent, package, ignore=ignored)
    assert (hits(tmp_path), hits(tmp_path)) == (0, 1)
    other = package / changed
    other.write_text(other.read_text() + "\nMORE = 1\n")
    assert hits(tmp_path) == 0
