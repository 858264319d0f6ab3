"""Very many rows: the digits of float64, in hardly more room than the rows take (trust.md, N8).

The work is done by many_rows.py in a process of its own, so that the memory measured is its own.
"""

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

MB = 1 << 20

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="peak memory is read from /proc")


@cache
def measured(*job):
    script = Path(__file__).with_name("many_rows.py")
    done = subprocess.run(
        [sys.executable, str(script), *job], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("what", ["mean", "scatter"])
def test_ten_million_float32_rows_are_summed_to_twelve_digits(what):
    assert measured("digits")[what] <= 1e-12


def test_not_one_of_200_000_labels_flips():
    assert measured("digits")["flips"] == 0


def test_ten_million_rows_take_at_most_200_mb_beside_themselves():
    assert measured("digits")["grown"] <= 200 * MB


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["float64", "float32"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_two_gigabytes_take_at_most_200_mb_beside_themselves(order, kind):
    assert measured("room", order, kind)["grown"] <= 200 * MB
