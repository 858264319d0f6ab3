"""Print the tests of the files that changed, for `make quick`.

    python tools/quick_tests.py [BASE]

Changed means: different from BASE (default: main, or the last commit on main itself), or untracked.
A module src/discriminant/a/b.py is tested by its own doctests and by tests/unit/a/test_b*.py; where
there is no such file, by the tests of the folder tests/unit/a. A changed test file is run itself.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path("src/discriminant")
UNIT = Path("tests/unit")


def changed_files(base: str) -> list[Path]:
    """Return the files that differ from `base`, and the untracked ones."""
    commands = (
        ["git", "diff", "--name-only", "--diff-filter=d", base],
        ["git", "ls-files", "--others", "--exclude-standard"],
    )
    names: list[str] = []
    for command in commands:
        result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        names += result.stdout.split()
    return sorted({Path(name) for name in names})


def select_tests(file: Path, root: Path = ROOT) -> list[Path]:
    """Return what to run for one changed file: test files, folders of tests and doctests."""
    if file.suffix != ".py":
        return []
    if file.is_relative_to("tests"):
        return [file] if file.name.startswith("test_") else []
    if not file.is_relative_to(PACKAGE):
        return []
    folder = UNIT / file.relative_to(PACKAGE).parent
    own = sorted((root / folder).glob(f"test_{file.stem}*.py"))
    if own:
        return [file, *(path.relative_to(root) for path in own)]
    return [file, folder] if (root / folder).is_dir() and folder != UNIT else [file]


def main() -> None:
    """Print the tests, one per line."""
    base = sys.argv[1] if len(sys.argv) > 1 else "HEAD"
    tests = {test for file in changed_files(base) for test in select_tests(file)}
    folders = {test for test in tests if test.suffix == ""}
    print(*sorted(t for t in tests if not folders & set(t.parents)), sep="\n")


if __name__ == "__main__":
    main()
