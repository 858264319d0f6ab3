"""Rows for tests to share, and what their sums are, written out once more and slowly.

`Rows` is a small table with everything in the open. `expected` says its moments by the formulas of
`moments.class_moments`, straight from the rows; `seen` brings any moments to the same numbers, so
that those about different origins and in different units can be compared.
"""

from dataclasses import dataclass, replace

import numpy as np
from hypothesis import strategies as st

from discriminant.moments.accumulate import MomentsReading
from discriminant.moments.anchor import Anchor
from discriminant.table.blocks import Block

LABELS = np.array(["ash", "birch", "cedar", "date", "elm"], dtype=object)


@dataclass(frozen=True)
class Rows:
    """n rows in d features, of classes named in `labels`."""

    features: np.ndarray  # (n, d)
    codes: np.ndarray  # (n,)
    weight: np.ndarray | None  # (n,)
    labels: np.ndarray  # (K,) sorted

    def __len__(self):
        return len(self.codes)

    @property
    def names(self):
        return tuple(f"f{j}" for j in range(self.features.shape[1]))

    @property
    def y(self):
        return self.labels[self.codes]

    @property
    def ones(self):
        """Weights, spelt out."""
        return np.ones(len(self)) if self.weight is None else self.weight

    def take(self, places):
        weight = None if self.weight is None else self.weight[places]
        return replace(
            self, features=self.features[places], codes=self.codes[places], weight=weight
        )

    def own_labels(self):
        """The same rows, knowing only the classes they have."""
        present, codes = np.unique(self.codes, return_inverse=True)
        return replace(self, codes=codes, labels=self.labels[present])

    def block(self):
        return Block(self.features, self.codes, self.weight)


def random_rows(seed, n=40, width=3, classes=3, weighted=False, spread=2.0):
    """Correlated Gaussian rows; every class has a row as long as there are rows enough."""
    rng = np.random.default_rng(seed)
    mix = np.eye(width) + 0.5 * rng.standard_normal((width, width))
    codes = rng.permutation(np.concatenate([np.arange(classes), rng.integers(0, classes, n)])[:n])
    centres = spread * rng.standard_normal((classes, width))
    features = centres[codes] + rng.standard_normal((n, width)) @ mix
    weight = rng.gamma(2.0, 0.5, n) if weighted else None
    return Rows(features, codes.astype(np.intp), weight, LABELS[:classes])


def rows_of(least=1, most=40, classes=(1, 4), weighted=None, width=(1, 4)):
    """Hypothesis: tables of all small shapes."""
    return st.builds(
        random_rows,
        seed=st.integers(0, 10_000),
        n=st.integers(least, most),
        width=st.integers(*width),
        classes=st.integers(*classes),
        weighted=st.booleans() if weighted is None else st.just(weighted),
    )


@st.composite
def cuts(draw, n, most=5):
    """The places 0..n-1 dealt out to a few parts, some of them perhaps empty."""
    parts = draw(st.integers(1, most))
    dealt = np.array(draw(st.lists(st.integers(0, parts - 1), min_size=n, max_size=n)), dtype=int)
    return [np.flatnonzero(dealt == part) for part in range(parts)]


@st.composite
def merged(draw, parts):
    """The sum of the parts, added in any order and any grouping."""
    parts = list(parts)
    while len(parts) > 1:
        one = parts.pop(draw(st.integers(0, len(parts) - 1)))
        place = draw(st.integers(0, len(parts) - 1))
        parts[place] = parts[place] + one
    return parts[0]


# --- moments, written out ------------------------------------------------------------------------


def read_class_moments(rows, detail, anchor=None):
    """Moments by the reading of the house, about an anchor near the rows unless one is given."""
    anchor = anchor or near(rows)
    return MomentsReading(rows.labels, rows.names, anchor, detail).read(rows.block())


def near(rows):
    if not len(rows):
        return Anchor.zero(rows.features.shape[1])
    return Anchor.from_sample(rows.features)


def frame_of(rows):
    """Where the rows lie and how far they spread: comparisons are made in these numbers."""
    if not len(rows):
        return Anchor.zero(rows.features.shape[1])
    origin = np.median(rows.features, axis=0)
    spread = np.abs(rows.features - origin).max(axis=0)
    return Anchor(origin, np.where(spread > 0, spread, 1.0))


def expected(rows, detail, frame):
    """What moments must say of these rows: one class at a time, centred, then summed."""
    u = (rows.features - frame.origin) / frame.unit
    K, d = len(rows.labels), u.shape[1]
    facts = {
        "rows": np.zeros(K),
        "weight": np.zeros(K),
        "weight2": np.zeros(K),
        "mean": np.zeros((K, d)),
        "scatter": np.zeros((K, d, d)),
        "third": np.zeros((K, d, d)),
        "fourth": np.zeros((K, d, d)),
    }
    for k in range(K):
        chosen = (rows.codes == k) & (rows.ones > 0)
        if not chosen.any():
            continue
        w, x = rows.ones[chosen], u[chosen]
        mean = (w @ x) / w.sum()
        z = x - mean
        facts["rows"][k] = chosen.sum()
        facts["weight"][k], facts["weight2"][k], facts["mean"][k] = w.sum(), (w**2).sum(), mean
        facts["scatter"][k] = np.einsum("n,ni,nj->ij", w, z, z)
        facts["third"][k] = np.einsum("n,ni,nj->ij", w, z**2, z)
        facts["fourth"][k] = np.einsum("n,ni,nj->ij", w, z**2, z**2)
    return at_detail(facts, detail)


def at_detail(facts, detail):
    """The part of the facts of each class that a detail keeps."""
    if detail != "fourth":
        facts = {name: value for name, value in facts.items() if name not in ("third", "fourth")}
    if detail == "diagonal":
        facts["scatter"] = np.einsum("kii->ki", facts["scatter"])
    if detail == "pooled":
        facts["scatter"] = facts["scatter"].sum(axis=0)
    return facts


def seen(moments, frame):
    """What moments say, in the numbers of the frame."""
    stretch = moments.anchor.unit / frame.unit
    shift = (moments.anchor.origin - frame.origin) / frame.unit
    some = (moments.rows > 0)[:, None]
    square = stretch[:, None] * stretch
    facts = {
        "rows": moments.rows,
        "weight": moments.weight,
        "weight2": moments.weight2,
        "mean": np.where(some, moments.mean * stretch + shift, moments.mean),
        "scatter": moments.scatter * (stretch**2 if moments.detail == "diagonal" else square),
    }
    if moments.detail == "fourth":
        facts["third"] = moments.third * (stretch**2)[:, None] * stretch
        facts["fourth"] = moments.fourth * square**2
    return facts


def assert_facts(found, wanted, tolerance=1e-12, leave_out=()):
    """Each fact the same, to a tolerance relative to the largest number of its kind."""
    assert set(found) == set(wanted)
    for name, value in wanted.items():
        if name not in leave_out:
            size = max(1.0, float(np.abs(value).max(initial=0.0)))
            np.testing.assert_allclose(
                found[name], value, rtol=0, atol=tolerance * size, err_msg=name
            )


def same_bits(found, wanted):
    """Whether two arrays are equal to the last bit."""
    return np.array_equal(np.asarray(found), np.asarray(wanted))
