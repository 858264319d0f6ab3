"""Row F1: a process killed while it saves loses nothing."""

import json
import subprocess
import sys
from pathlib import Path

WRITER = Path(__file__).parent / "killed_writer.py"


def test_a_process_killed_while_it_saves_loses_nothing(tmp_path, request):
    seed = request.config.getoption("--hypothesis-seed", None)  # given by make soak
    kills = 30 if seed is None else 1000
    found = subprocess.run(
        [sys.executable, WRITER, tmp_path, str(kills), str(seed or 0)],
        capture_output=True,
        text=True,
        check=True,
    )
    told = json.loads(found.stdout)
    assert (told["kills"], told["lost"], told["left over"]) == (kills, 0, 0)
    assert told["while writing"] > 0  # else the kills came too early to say anything
