"""Summary of a fitted label tree: levels, weights and bytes, as a table to print."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from discriminant.assessment.inference.summary import PrintedResult, format_bytes
from discriminant.extreme.model.fitted_tree import CountRange, LevelStatistics, TreeStatistics

_HEAD = ("level", "nodes", "children", "classifiers", "weights", "each", "features", "size")


@dataclass(frozen=True, slots=True, repr=False)
class ForestSummary(PrintedResult):
    """Result of `LabelTree.summary()`: `print` it, or call `to_dict()`."""

    trees: tuple[TreeStatistics, ...]
    features: int
    labels: int
    path: str  # path score: "hinge" or "logistic"
    precision: str  # of the weights
    beam: int
    rows: int | None = None  # training rows; None if the model does not store them
    unseen: int | None = None  # labels without training rows
    pairs: int | None = None  # (row, label) pairs

    @property
    def weights(self) -> int:
        """Number of weights of all trees."""
        return sum(tree.weights for tree in self.trees)

    @property
    def bytes(self) -> int:
        """Size of all trees."""
        return sum(tree.bytes for tree in self.trees)

    @property
    def met(self) -> float:
        """Approximate number of classifiers evaluated for a row."""
        return sum(tree.met(self.beam) for tree in self.trees)

    @property
    def tree_groups(self) -> tuple[tuple[int, ...], ...]:
        """Indices of the trees, grouped by shape."""
        found: dict[Any, list[int]] = {}
        for place, tree in enumerate(self.trees):
            found.setdefault(tree.shape, []).append(place)
        return tuple(tuple(places) for places in found.values())

    @property
    def text(self) -> str:
        """Description of the forest, and a table for the trees of each shape."""
        several = "1 tree" if len(self.trees) == 1 else f"{len(self.trees)} trees"
        lines = [
            f"Label tree: {several} over {self.labels:,} labels, rows of {self.features:,} "
            "features",
            f"{self.weights:,} weights of {self.precision}, {format_bytes(self.bytes)}; "
            f"path score: {self.path}",
        ]
        if self.rows is not None and self.pairs is not None:
            each = self.pairs / max(self.rows, 1)
            lines.append(f"fitted to {self.rows:,} rows with {each:.2f} labels each")
        if self.unseen:
            lines.append(f"{self.unseen:,} labels had no row, and are hardly ever predicted")
        asked = sum(tree.classifiers for tree in self.trees)
        some = "all" if self.met >= asked else f"about {self.met:,.0f} of"
        met = f"a row meets {some} {asked:,} classifiers"
        lines.append(f"With a beam of {self.beam}, {met}")
        for places in self.tree_groups:
            lines += ["", *_table([self.trees[place] for place in places], places, self.features)]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, lists and strings."""
        names = ("labels", "features", "rows", "unseen", "path", "precision", "weights", "bytes")
        found = {name: getattr(self, name) for name in (*names, "beam", "met")}
        return {**found, "trees": [_plainly(tree) for tree in self.trees]}


def format_range(found: CountRange) -> str:
    """Minimum, median and maximum as text.

    >>> format_range(CountRange(2, 7.5, 16, 20)), format_range(CountRange(3, 3.0, 3, 1))
    ('2-7.5-16', '3')
    """
    if found.least == found.most:
        return f"{found.most:,}"
    return f"{found.least:,}-{found.median:,.10g}-{found.most:,}"


def level_rows(trees: Sequence[TreeStatistics], features: int) -> list[dict[str, Any]]:
    """Table rows of trees of equal shape: totals of weights and bytes, other counts per tree."""
    found = []
    for number, levels in enumerate(zip(*(tree.levels for tree in trees), strict=True), 1):
        first: LevelStatistics = levels[0]
        weights = sum(level.weights for level in levels)
        shares = [level.features / features for level in levels]
        found.append(
            {
                "level": number,
                "nodes": first.nodes,
                "children": first.children._asdict(),
                "classifiers": first.classifiers,
                "weights": weights,
                "each": weights / max(sum(level.classifiers for level in levels), 1),
                "features": sum(shares) / len(shares),
                "bytes": sum(level.bytes for level in levels),
            }
        )
    return found


def _plainly(tree: TreeStatistics) -> dict[str, Any]:
    levels = [{**asdict(level), "children": level.children._asdict()} for level in tree.levels]
    own = {"depth": tree.depth._asdict(), "leaf": tree.leaf._asdict(), "bytes": tree.bytes}
    return {"levels": levels, **own, "weights": tree.weights}


def _table(trees: Sequence[TreeStatistics], places: Sequence[int], features: int) -> list[str]:
    cells = [
        (
            str(row["level"]),
            f"{row['nodes']:,}",
            format_range(CountRange(**row["children"])),
            f"{row['classifiers']:,}",
            f"{row['weights']:,}",
            f"{row['each']:,.1f}",
            f"{100 * row['features']:.1f}%",
            format_bytes(row["bytes"]),
        )
        for row in level_rows(trees, features)
    ]
    wide = [max(map(len, column)) for column in zip(_HEAD, *cells, strict=True)]
    lines = ["  ".join(map(str.rjust, row, wide)) for row in (_HEAD, *cells)]
    depth, leaf = trees[0].depth, trees[0].leaf
    return [
        tree_title(places),
        *lines,
        f"{leaf.of:,} last {'node' if leaf.of == 1 else 'nodes'} of {format_range(leaf)} labels; "
        f"{format_range(depth)} "
        f"{'level' if depth.most == 1 else 'levels'} to a label",
    ]


def tree_title(places: Sequence[int]) -> str:
    """Heading of a table, with the numbers of its trees.

    >>> tree_title([0]), tree_title([0, 1, 2])
    ('Tree 1', 'Trees 1, 2, 3: of one shape; weights and size of all of them')
    """
    if len(places) == 1:
        return f"Tree {places[0] + 1}"
    numbers = ", ".join(str(place + 1) for place in places)
    return f"Trees {numbers}: of one shape; weights and size of all of them"
