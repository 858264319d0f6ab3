"""Print the coverage of each room of the package, from a report of coverage.py.

    python tools/coverage_by_room.py build/coverage/report.json

A room is a folder or module directly below src/discriminant. The least covered room comes first.
Loops that Numba compiles count as not run, because coverage.py sees interpreted lines only.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path, PurePath


def main() -> None:
    """Print one line for each room, and the total."""
    files = json.loads(Path(sys.argv[1]).read_text())["files"]
    statements, covered = by_room(files)
    rooms = sorted(statements, key=lambda room: share(covered[room], statements[room]))
    print(f"{'room':16}{'statements':>12}{'not run':>10}{'covered':>10}")
    for room in rooms:
        print(line(room, covered[room], statements[room]))
    print(line("total", covered.total(), statements.total()))


def by_room(files: dict[str, dict]) -> tuple[Counter[str], Counter[str]]:
    """Return the number of statements and of covered statements in each room."""
    statements, covered = Counter(), Counter()
    for path, report in files.items():
        room = room_of(path)
        statements[room] += report["summary"]["num_statements"]
        covered[room] += report["summary"]["covered_lines"]
    return statements, covered


def room_of(path: str) -> str:
    """Return the folder or module of a file directly below the package."""
    parts = PurePath(path).parts
    return parts[parts.index("discriminant") + 1].removesuffix(".py")


def share(covered: int, statements: int) -> float:
    """Return the covered share; a room without statements is covered."""
    return covered / statements if statements else 1.0


def line(room: str, covered: int, statements: int) -> str:
    """Return one row of the table."""
    return f"{room:16}{statements:12,}{statements - covered:10,}{share(covered, statements):10.1%}"


if __name__ == "__main__":
    main()
