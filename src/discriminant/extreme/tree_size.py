"""Summary of a fitted label tree: levels, weights and bytes, as a table to print."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from discriminant.assessment.printed_results import PrintedResult, format_bytes
from discriminant.extreme.model.fitted_tree import CountRange, LevelStatistics, TreeStatistics

_HEAD = ("level", "nodes", "children", "classifiers", "weights", "each", "features", "size")


@dataclass(frozen=True, slots=True, repr=False)
class ForestSummary(PrintedResult):
    """Result of `LabelTree.summary()`: `print` it, or call `to_dict()`."""

    trees: tuple[TreeStatistics, ...]
    features: int
    labels: int
    path: str  # path score: "hinge" or "logistic"
    precision: str  # type of the weights
    beam: int
    rows: int | None = None  # number of training rows; None if the model does not store it
    unseen: int | None = None  # number of labels without training rows
    pairs: int | None = None  # number of (row, label) pairs

    @property
    def weights(self) -> int:
        """Number of weights in all trees."""
        return sum(tree.weights for tree in self.trees)

    @property
    def bytes(self) -> int:
        """Size of all trees in bytes."""
        return sum(tree.bytes for tree in self.trees)

    @property
    def met(self) -> float:
        """Approximate number of classifiers that a search evaluates for a row."""
        return sum(tree.met(self.beam) for tree in self.trees)

    @property
    def tree_groups(self) -> tuple[tuple[int, ...], ...]:
        """Indices of the trees, grouped by shape."""
        groups: dict[Any, list[int]] = {}
        for index, tree in enumerate(self.trees):
            groups.setdefault(tree.shape, []).append(index)
        return tuple(map(tuple, groups.values()))

    @property
    def text(self) -> str:
        """Description of the forest, with a table for each group of trees of equal shape."""
        n_trees = "1 tree" if len(self.trees) == 1 else f"{len(self.trees)} trees"
        lines = [
            f"Label tree: {n_trees} over {self.labels:,} labels, rows of {self.features:,} "
            "features",
            f"{self.weights:,} weights of {self.precision}, {format_bytes(self.bytes)}; "
            f"path score: {self.path}",
        ]
        if self.rows is not None and self.pairs is not None:
            per_row = self.pairs / max(self.rows, 1)
            lines.append(f"fitted to {self.rows:,} rows with {per_row:.2f} labels each")
        if self.unseen:
            lines.append(f"{self.unseen:,} labels had no row, and are hardly ever predicted")
        total = sum(tree.classifiers for tree in self.trees)
        share = "all" if self.met >= total else f"about {self.met:,.0f} of"
        lines.append(
            f"With a beam of {self.beam}, a search evaluates {share} {total:,} classifiers"
        )
        for group in self.tree_groups:
            lines += ["", *_table([self.trees[index] for index in group], group, self.features)]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as a dict of plain numbers, lists and texts."""
        names = ("labels", "features", "rows", "unseen", "path", "precision", "weights", "bytes")
        facts = {name: getattr(self, name) for name in (*names, "beam", "met")}
        return {**facts, "trees": [_tree_dict(tree) for tree in self.trees]}


def format_range(counts: CountRange) -> str:
    """Return minimum, median and maximum as text.

    >>> format_range(CountRange(2, 7.5, 16, 20)), format_range(CountRange(3, 3.0, 3, 1))
    ('2-7.5-16', '3')
    """
    if counts.least == counts.most:
        return f"{counts.most:,}"
    return f"{counts.least:,}-{counts.median:,.10g}-{counts.most:,}"


def level_rows(trees: Sequence[TreeStatistics], features: int) -> list[dict[str, Any]]:
    """Return a table row for each level of trees of equal shape; weights and bytes are totals."""
    rows = []
    for number, levels in enumerate(zip(*(tree.levels for tree in trees), strict=True), 1):
        first: LevelStatistics = levels[0]
        weights = sum(level.weights for level in levels)
        shares = [level.features / features for level in levels]
        rows.append(
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
    return rows


def _tree_dict(tree: TreeStatistics) -> dict[str, Any]:
    levels = [{**asdict(level), "children": level.children._asdict()} for level in tree.levels]
    ranges = {"depth": tree.depth._asdict(), "leaf": tree.leaf._asdict()}
    return {"levels": levels, **ranges, "bytes": tree.bytes, "weights": tree.weights}


def _table(trees: Sequence[TreeStatistics], indices: Sequence[int], features: int) -> list[str]:
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
    widths = [max(map(len, column)) for column in zip(_HEAD, *cells, strict=True)]
    lines = ["  ".join(map(str.rjust, row, widths)) for row in (_HEAD, *cells)]
    depth, leaf = trees[0].depth, trees[0].leaf
    return [
        tree_title(indices),
        *lines,
        f"{leaf.of:,} last {'node' if leaf.of == 1 else 'nodes'} of {format_range(leaf)} labels; "
        f"{format_range(depth)} {'level' if depth.most == 1 else 'levels'} to a label",
    ]


def tree_title(indices: Sequence[int]) -> str:
    """Return the heading of a table, with the numbers of the trees that it describes.

    >>> tree_title([0]), tree_title([0, 1, 2])
    ('Tree 1', 'Trees 1, 2, 3, of equal shape; weights and sizes are totals')
    """
    if len(indices) == 1:
        return f"Tree {indices[0] + 1}"
    numbers = ", ".join(str(index + 1) for index in indices)
    return f"Trees {numbers}, of equal shape; weights and sizes are totals"
