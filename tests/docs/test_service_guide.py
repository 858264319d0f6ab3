"""The guide of the service: every command runs, against a real server, and prints what it shows."""

import os
import re
import signal
import socket
import subprocess
import sys
import time

import pytest

from tests.shared.paths import ROOT

GUIDE = (ROOT / "docs" / "service.md").read_text()


def commands():
    """Every command of the guide, with the output that the guide shows."""
    found = []
    for block in re.findall(r"```console\n(.*?)```", GUIDE, flags=re.DOTALL):
        for command in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, _, output = command.partition("\n")
            found.append((line, output))
    return found


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def matches(shown, printed):
    """Whether the output is the one shown, in which ... stands for any text."""
    pattern = ".*?".join(map(re.escape, shown.strip().split("...")))
    return re.fullmatch(pattern, printed.strip(), flags=re.DOTALL) is not None


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a `discriminant` command, a port, and the server once it is started."""
    folder = tmp_path_factory.mktemp("guide")
    program = folder / "bin" / "discriminant"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m discriminant "$@"\n')
    program.chmod(0o755)
    state = {"folder": folder, "port": free_port(), "server": None}
    yield state
    if state["server"] is not None:
        state["server"].send_signal(signal.SIGTERM)
        assert state["server"].wait(timeout=60) == 0


def start(place, line):
    arguments = line.removesuffix("&").split()[1:]
    port = str(place["port"])
    place["server"] = subprocess.Popen(
        [sys.executable, "-m", "discriminant", *arguments, "--port", port],
        cwd=place["folder"],
        stderr=subprocess.DEVNULL,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    for _ in range(600):
        ping = ["curl", "-sf", f"localhost:{port}/ping"]
        if subprocess.run(ping, capture_output=True).returncode == 0:
            return
        time.sleep(0.1)
    raise AssertionError("the server did not start")


@pytest.mark.xdist_group("service guide")  # the commands follow one another
def test_every_command_of_the_service_guide_prints_what_it_shows(place):
    path = f"{place['folder'] / 'bin'}:{os.environ['PATH']}"
    assert len(commands()) > 8
    for line, shown in commands():
        if line.endswith("&"):
            start(place, line)
            continue
        line = line.replace("localhost:8000", f"localhost:{place['port']}")
        found = subprocess.run(
            ["bash", "-c", line],
            cwd=place["folder"],
            capture_output=True,
            text=True,
            env={**os.environ, "PATH": path, "OPENBLAS_NUM_THREADS": "1"},
        )
        assert found.returncode == 0, (line, found.stderr)
        assert matches(shown, found.stdout), f"{line}\nprinted: {found.stdout}\nshown:   {shown}"
