"""Trees over labels that come from elsewhere: from their frequencies, or from the user.

A Huffman tree of arity a joins the a rarest parts again and again, so that frequent labels lie near
the root: the least mean number of steps from the root to the label of a row.

A user's hierarchy is told in one of two ways:

    nested    {"fruit": ["apple", "pear"], "nut": {"hard": ["hazel"], "soft": ["cashew"]}},
              lists within lists too: [["apple", "pear"], [["hazel"], ["cashew"]]]
    pairs     child and parent: [("apple", "fruit"), ("fruit", "food"), ..], or a mapping of them;
              what is at the top has the parent None, or is the one node without a parent

Leaves are labels, each in one place. A label may stand above others too, by name in a mapping or in
pairs: it then is a leaf below itself. A node with one child alone is that child.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np

from discriminant.errors import HierarchyError
from discriminant.models.label_tree.layers import Ints, Partition

Below = list[list[int]]  # the children of each node; none of a leaf


def huffman(frequency: Any, *, arity: int = 16, order: Ints | None = None) -> Partition:
    """The Huffman tree of labels by how many rows have them.

    Labels of one frequency are taken in the `order` given, else by their codes.
    """
    count = np.asarray(frequency, dtype=np.float64)
    L = len(count)
    rank = np.empty(L, np.int64)
    rank[np.arange(L) if order is None else order] = np.arange(L)
    heap = [(float(count[label]), int(rank[label]), label) for label in range(L)]
    heapify(heap)
    below: Below = [[] for _ in range(L)]
    joined = (L - 2) % (arity - 1) + 2 if L > 1 else 1  # so that the root has all its children
    while len(heap) > 1:
        parts = [heappop(heap) for _ in range(min(joined, len(heap)))]
        below.append([node for _, _, node in reversed(parts)])
        heappush(heap, (sum(part[0] for part in parts), len(below), len(below) - 1))
        joined = arity
    return laid_out(below, heap[0][2], np.arange(L))


def given(hierarchy: Any, labels: Sequence[Hashable]) -> Partition:
    """The partition of a user's hierarchy, of `labels` by their codes.

    Examples
    --------
    >>> given({"nut": ["hazel", "cashew"], "fruit": ["apple"]}, ["apple", "cashew", "hazel"])
    ... # doctest: +NORMALIZE_WHITESPACE
    Partition(label_of=array([2, 1, 0]), levels=(array([0, 3]), array([0, 2, 3]),
    array([0, 1, 2, 3])))
    """
    if not _holds(hierarchy):
        raise HierarchyError.of_kind(type(hierarchy).__name__)
    if not len(hierarchy):
        raise HierarchyError.empty(len(labels))
    tree = Named()
    pairs = _pairs(hierarchy)
    try:
        if pairs is None:
            tree.nest(hierarchy)
        else:
            tree.join(pairs)
        return tree.partition(labels)
    except HierarchyError as fault:
        raise fault.meaning(_meant(hierarchy, pairs, labels)) from None


class Named:
    """Nodes with their names, as they are told."""

    def __init__(self) -> None:
        self.names: list[Hashable] = [None]
        self.steps: list[str] = ["tree"]  # from the node above, as Python would say it
        self.below: Below = [[]]
        self.inner: set[int] = {0}  # told as standing above others
        self.hollow: set[int] = set()  # told as standing above nothing

    def add(self, name: Hashable, above: int, step: str = "") -> int:
        """A new node below another."""
        self.names.append(name)
        self.steps.append(step)
        self.below.append([])
        self.below[above].append(len(self.names) - 1)
        return len(self.names) - 1

    def nest(self, hierarchy: Any) -> None:
        """Add what is told nested: mappings and lists stand above what they hold."""
        waiting: list[tuple[Any, int, tuple[int, ...]]] = [(hierarchy, 0, ())]
        while waiting:
            held, node, path = waiting.pop()
            if id(held) in path:
                raise HierarchyError.cycle([self.names[node], self.names[node]])
            (self.inner if len(held) else self.hollow).add(node)  # a hollow one may be a label
            inside: list[tuple[Any, int, tuple[int, ...]]] = []
            for name, part, step in _parts(held):
                child = self.add(name, node, step)
                if part is not None:
                    inside.append((part, child, (*path, id(held))))
            waiting.extend(reversed(inside))  # the first is next

    def join(self, pairs: Sequence[tuple[Hashable, Hashable]]) -> None:
        """Add what is told by pairs of child and parent."""
        above = _above(pairs)
        children: dict[Hashable, list[Hashable]] = {}
        for child, parent in above.items():
            children.setdefault(parent, []).append(child)
        waiting: list[tuple[Hashable, int]] = [(None, 0)]
        while waiting:
            name, node = waiting.pop()
            for child in children.get(name, []):
                at = self.add(child, node)
                if child in children:
                    self.inner.add(at)
                    waiting.append((child, at))
        if len(self.names) - 1 < len(above):
            raise HierarchyError.cycle(_cycle(above, set(self.names)))

    def partition(self, labels: Sequence[Hashable]) -> Partition:
        """Leaves matched with labels, each once."""
        code = {label: place for place, label in enumerate(labels)}
        for node in sorted(self.inner - {0}):  # a label that stands above others
            if self.names[node] in code and self.names[node] is not None:
                self.add(self.names[node], node)
        leaves = [node for node in range(1, len(self.names)) if not self.below[node]]
        names = [self.names[node] for node in leaves]
        self._check(leaves, code)
        found = np.full(len(self.names), -1)
        found[leaves] = [code[name] for name in names]
        return laid_out(self.below, 0, found)

    def _check(self, leaves: Sequence[int], code: Mapping[Hashable, int]) -> None:
        """Every label is a leaf, once, and nothing else is."""
        above = {child: node for node, children in enumerate(self.below) for child in children}
        places: dict[Hashable, list[int]] = {}
        for leaf in leaves:
            places.setdefault(self.names[leaf], []).append(leaf)
        hollow = [leaf for leaf in leaves if leaf in self.hollow and self.names[leaf] not in code]
        if hollow:
            raise HierarchyError.hollow(len(hollow), self._place(hollow[0], above))
        unknown = [name for name in places if name not in code]
        if unknown:
            raise HierarchyError.unknown(unknown, self._place(places[unknown[0]][0], above))
        for name, found in places.items():
            if len(found) > 1:
                raise HierarchyError.duplicate(name, [self._place(leaf, above) for leaf in found])
        missing = [label for label in code if label not in places]
        if missing:
            raise HierarchyError.orphan(missing)

    def _place(self, node: int, above: Mapping[int, int]) -> str:
        """Where a node stands: tree['nut'][1], if nested; of pairs, below which other."""
        if not self.steps[node]:
            return f"below '{self.names[above[node]]}'" if above[node] else "at the top"
        path = []
        while node:
            path.append(self.steps[node])
            node = above[node]
        return "tree" + "".join(reversed(path))


def laid_out(below: Below, root: int, label: Ints) -> Partition:
    """The partition of a tree of nodes, whose leaves have labels and pass down to the end."""
    at = [_down(below, root)]
    rounds = [at]
    while any(below[node] for node in at):
        at = [_down(below, child) for node in at for child in (below[node] or [node])]
        rounds.append(at)
    leaves = _leaves(below, rounds[0][0])
    levels = [np.concatenate([[0], np.cumsum([leaves[node] for node in at])]) for at in rounds]
    if len(levels) == 1:  # one label alone
        levels.append(levels[0])
    return Partition(np.array([label[node] for node in at]), tuple(levels))


def _down(below: Below, node: int) -> int:
    while len(below[node]) == 1:
        node = below[node][0]
    return node


def _leaves(below: Below, root: int) -> dict[int, int]:
    """How many leaves lie below each node."""
    order = [root]
    for node in order:
        order.extend(_down(below, child) for child in below[node])
    found: dict[int, int] = {}
    for node in reversed(order):
        found[node] = sum(found[_down(below, child)] for child in below[node]) or 1
    return found


def _parts(held: Any) -> Iterable[tuple[Hashable, Any, str]]:
    """Names, what they hold and where; a label holds nothing, a list has no name."""
    if isinstance(held, Mapping):
        return [(name, part, f"[{name!r}]") for name, part in held.items()]
    steps = ("{..}" for _ in held) if isinstance(held, set | frozenset) else _numbered(held)
    parts = zip(held, steps, strict=True)
    return [(None, part, at) if _holds(part) else (part, None, at) for part, at in parts]


def _numbered(held: Any) -> Iterable[str]:
    return (f"[{place}]" for place in range(len(held)))


def _holds(part: Any) -> bool:
    return isinstance(part, Mapping | list | tuple | set | frozenset | np.ndarray)


def _pairs(hierarchy: Any) -> list[tuple[Hashable, Hashable]] | None:
    """Pairs of child and parent, where it is told so."""
    if isinstance(hierarchy, Mapping):
        parents = list(hierarchy.values())
        flat = parents and not any(_holds(parent) for parent in parents)
        named = any(parent is not None for parent in parents)
        return list(hierarchy.items()) if flat and named else None
    told = list(hierarchy)
    if told and all(isinstance(pair, tuple) and len(pair) == 2 for pair in told):
        return None if any(_holds(part) for pair in told for part in pair) else told
    return None


def _above(pairs: Sequence[tuple[Hashable, Hashable]]) -> dict[Hashable, Hashable]:
    """The parent of each node; of those at the top, None."""
    above: dict[Hashable, Hashable] = {}
    for child, parent in pairs:
        if child in above:
            raise HierarchyError.two_parents(child, [above[child], parent])
        above[child] = parent
    loose = [parent for parent in dict.fromkeys(above.values()) if parent not in above]
    tops = [parent for parent in loose if parent is not None]
    if len(tops) > 1 or (tops and len(loose) > len(tops)):
        raise HierarchyError.two_roots([*tops, *(child for child in above if above[child] is None)])
    for parent in tops:
        above[parent] = None
    return above


def _cycle(above: dict[Hashable, Hashable], placed: set[Hashable]) -> list[Hashable]:
    """The nodes of a cycle, among those that no way from the top leads to."""
    node = next(child for child in above if child not in placed)
    seen: dict[Hashable, None] = {}
    while node not in seen:
        seen[node] = None
        node = above[node]
    path = list(seen)
    return [*path[path.index(node) :], node]


def _meant(hierarchy: Any, pairs: Any, labels: Sequence[Hashable]) -> str | None:
    """What may be meant by what is no tree: tuples as groups, or lists as pairs."""
    if isinstance(hierarchy, Mapping):
        return None
    known = set(labels)
    if pairs is not None:
        return "groups" if all(name in known for pair in pairs for name in pair) else None
    twos = all(_holds(part) and len(part) == 2 for part in hierarchy)
    flat = twos and not any(_holds(name) for part in hierarchy for name in part)
    return "pairs" if flat and all(list(part)[1] not in known for part in hierarchy) else None
