"""Folders that tests read: the repository, frozen reference values and shared data sets."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden"
NIST = ROOT / "tests" / "nist"
SHARED = ROOT.parent / "shared" / "data"
