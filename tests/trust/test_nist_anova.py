"""NIST's certified one-way analyses of variance are certified class moments (trust.md, N3).

The within sum of squares is the within scatter of the classes, the between sum of squares their
between scatter. `attainable` is what exact arithmetic gets from the rows rounded to float64; 15
digits are all that NIST certifies.
"""

import json
import math
from fractions import Fraction

import numpy as np
import pytest

import discriminant
from discriminant.engines.dispatch import anchor_of, read_moments
from discriminant.engines.local import tree_sum
from discriminant.moments.accumulate import MomentsReading
from discriminant.moments.class_moments import DETAILS
from discriminant.table.memory import as_table
from tests.shared.paths import NIST

SETS = json.loads((NIST / "anova.json").read_text())
LARGE = ("SmLs03", "SmLs06", "SmLs09")  # 18,009 rows each
CLOSE = 0.2  # digits


def rows_of(name, order=None):
    found = SETS[name]
    if "groups" in found:
        groups = found["groups"]
    else:
        first, then, count = (found["pattern"][key] for key in ("first", "then", "replicates"))
        groups = [
            [first[k], *(then[i % 2][k] for i in range(count - 1))] for k in range(len(first))
        ]
    X = np.array([value for group in groups for value in group])[:, None]
    y = np.array([code for code, group in enumerate(groups) for _ in group])
    if order is None:
        return X, y
    mixed = np.random.default_rng(order).permutation(len(y))
    return X[mixed], y[mixed]


def digits_lost(name, moments):
    """How many digits fewer than attainable, the worse of the within and between sums."""
    known, best = SETS[name]["certified"], SETS[name]["attainable"]
    within = moments.pooled.item() * moments.anchor.unit.item() ** 2
    return max(
        best["within_lre"] - correct_digits(within, known["within_ss"]),
        best["between_lre"] - correct_digits(moments.between().item(), known["between_ss"]),
    )


def correct_digits(value, certified):
    error = abs(Fraction(float(value)) - Fraction(certified)) / abs(Fraction(certified))
    return 15.0 if error == 0 else min(15.0, -math.log10(error))


@pytest.mark.parametrize("detail", DETAILS)
@pytest.mark.parametrize("name", SETS)
def test_sums_of_squares_have_the_digits_that_the_rows_allow(name, detail):
    assert digits_lost(name, discriminant.moments(*rows_of(name), detail=detail)) <= CLOSE


@pytest.mark.parametrize("detail", DETAILS)
@pytest.mark.parametrize("name", SETS)
def test_so_they_have_when_the_rows_come_in_another_order(name, detail):
    assert digits_lost(name, discriminant.moments(*rows_of(name, 5), detail=detail)) <= CLOSE


def chunkings():
    for name in SETS:
        for detail in DETAILS:
            for size in (1, 4, 7, 1000):
                parts = 18_009 // size if name in LARGE else 2_000 // size
                swift = parts <= 500 or (detail == "pooled" and parts <= 5_000)
                marks = [] if swift else [pytest.mark.slow]
                yield pytest.param(name, detail, size, marks=marks)


@pytest.mark.parametrize(("name", "detail", "size"), list(chunkings()))
def test_so_they_have_however_the_rows_are_cut(name, detail, size):
    table = as_table(*rows_of(name, 1))
    reading = MomentsReading(table.schema.labels, table.schema.features, anchor_of(table), detail)
    moments = tree_sum(reading.read(block) for block in table.blocks(size))
    assert digits_lost(name, moments) <= CLOSE


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", SETS)
def test_so_they_have_in_any_merge_tree_with_an_origin_for_each_part(name, seed):
    rng = np.random.default_rng(seed)
    X, y = rows_of(name, seed)
    cuts = np.sort(rng.integers(0, len(y), size=20))
    parts = [
        read_moments(as_table(part, label), detail="class")
        for part, label in zip(np.split(X, cuts), np.split(y, cuts), strict=True)
        if len(label)
    ]
    while len(parts) > 1:
        ours, theirs = (parts.pop(int(rng.integers(len(parts)))) for _ in range(2))
        parts.append(ours + theirs)
    assert digits_lost(name, parts[0]) <= CLOSE
