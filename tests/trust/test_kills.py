"""Row F1: a process killed while it writes loses nothing.

    pytest tests/trust/test_kills.py --kills 1000

is the whole row; fewer are drawn otherwise, and a thousand again under make soak.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

WRITER = Path(__file__).parent / "killed_writer.py"


@pytest.mark.parametrize("kind", ["model", "text"])
def test_a_process_killed_while_it_writes_loses_nothing(kind, tmp_path, request):
    seed = request.config.getoption("--hypothesis-seed", None)  # given by make soak
    kills = request.config.getoption("--kills") or (30 if seed is None else 1000)
    found = subprocess.run(
        [sys.executable, WRITER, tmp_path, str(kills), str(seed or 0), kind],
        capture_output=True,
        text=True,
        check=True,
    )
    print(found.stdout)
    told = json.loads(found.stdout)
    assert (told["kills"], told["lost"], told["left over"]) == (kills, 0, 0)
    assert told["while writing"] > 0  # else the kills came too early to say anything
