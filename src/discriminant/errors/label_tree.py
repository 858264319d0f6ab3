"""Label sets, trees over labels and what they are asked that cannot be."""

from __future__ import annotations

from collections.abc import Sequence

from discriminant.errors.base import DiscriminantWarning, InputError, listing


class LabelSetError(InputError):
    """The label sets of rows cannot be used."""

    @classmethod
    def of_shape(cls, shape: tuple[int, ...]) -> LabelSetError:
        return cls(
            f"y has shape {shape}. Pass one label for each row, a list of label sets, or a matrix "
            "with a row for each row and a column for each label that is 1 where the row has it."
        )

    @classmethod
    def of_entry(cls, row: int, column: int, value: object) -> LabelSetError:
        return cls(
            f"y[{row}, {column}] is {value}: where a row has a label there is a 1, elsewhere a 0 "
            "or nothing."
        )

    @classmethod
    def of_names(cls) -> LabelSetError:
        return cls(
            "The labels are names, and these files have numbers of labels. Pass a matrix with a "
            "column for each label, such as "
            "sklearn.preprocessing.MultiLabelBinarizer(sparse_output=True).fit_transform(sets)."
        )

    @classmethod
    def no_set(cls, row: int, kind: str) -> LabelSetError:
        return cls(
            f"y[{row}] is a {kind}, and y[0] is a set of labels: pass a set, a list or a tuple for "
            "every row, an empty one for a row without labels."
        )

    @classmethod
    def all_empty(cls, rows: int) -> LabelSetError:
        return cls(f"None of the {rows} rows has a label: there is nothing to learn.")

    @classmethod
    def one_label(cls, label: object) -> LabelSetError:
        return cls(
            f"There is only one label ('{label}'): a label tree tells labels from each other, and "
            "needs two or more. To tell rows with the label from rows without, pass y as one label "
            "for each row, such as 'yes' and 'no'."
        )


class LabelTreeError(InputError):
    """A label tree is asked for what it cannot give."""

    @classmethod
    def beyond_single(cls, row: int, column: str) -> LabelTreeError:
        return cls(
            f"Row {row} (counted from 0), column '{column}' is too large for float32 (more than "
            "3.4e38). Pass precision='float64', or scale the rows."
        )

    @classmethod
    def beyond_squares(cls, row: int, column: str, kind: str, most: float) -> LabelTreeError:
        other = "" if kind == "float64" else "precision='float64', "
        return cls(
            f"Row {row} (counted from 0), column '{column}' is too large to be squared in {kind} "
            f"(more than {most:.2g}). Pass {other}unit_rows=True, or scale the rows."
        )

    @classmethod
    def beyond_half(cls, largest: float) -> LabelTreeError:
        return cls(
            f"A weight of {largest:.3g} is too large for float16, which ends at 65504. Pass "
            "precision='float32', or scale the rows up."
        )

    @classmethod
    def sparse_to_standardize(cls) -> LabelTreeError:
        return cls(
            "standardize=True is for dense rows: to centre the columns of a sparse matrix would "
            "fill it. Pass standardize=False, and scale the columns before "
            "(sklearn.preprocessing.MaxAbsScaler keeps zeros), or pass X.toarray()."
        )

    @classmethod
    def unsound_rows(cls, why: str) -> LabelTreeError:
        return cls(
            f"The sparse matrix X is not sound: {why}. Build it anew with "
            "scipy.sparse.csr_array((data, indices, indptr), shape=...), or ask its check_format()."
        )

    @classmethod
    def too_many_cells(cls, rows: int, labels: int, most: int) -> LabelTreeError:
        return cls(
            f"Probabilities of {rows:,} rows and {labels:,} labels are {rows * labels:,} numbers; "
            f"more than {most:,} are not made at once. Pass k for a sparse matrix of the k best "
            "of each row, use predict_topk, or pass fewer rows at a time."
        )

    @classmethod
    def only_one_label(cls, what: str) -> LabelTreeError:
        return cls(
            f"{what} is of one label for each row, and this label tree was fitted to label sets: "
            "use predict_topk, or predict_proba, which gives the probability of each label."
        )

    @classmethod
    def moments_of_sets(cls) -> LabelTreeError:
        return cls(
            "tree='moments' needs one label for each row, and y has sets of labels: the moments of "
            "a class are those of its rows. Pass tree='balanced' for sets of labels."
        )

    @classmethod
    def moments_elsewhere(cls, tree: object) -> LabelTreeError:
        return cls(
            f"LabelTree(tree={tree!r}) is fitted to rows: pass them to fit(X, y), or choose "
            "LabelTree(tree='moments'), whose tree is made of class moments."
        )


class HierarchyError(InputError):
    """A hierarchy given for the labels is not a tree over them."""

    @classmethod
    def cycle(cls, nodes: Sequence[object]) -> HierarchyError:
        path = " -> ".join(f"'{node}'" for node in list(nodes)[:10])
        return cls(
            f"The hierarchy has a cycle: {path}. Each node must lead up to the root: remove one of "
            "these links."
        )

    @classmethod
    def orphan(cls, labels: Sequence[object]) -> HierarchyError:
        return cls(
            f"{len(labels)} label(s) are not in the hierarchy: {listing(labels)}. Give each of "
            "them a place, or leave out its rows."
        )

    @classmethod
    def duplicate(cls, label: object, places: Sequence[str]) -> HierarchyError:
        where = ", ".join(places[:5]) + (", .." if len(places) > 5 else "")
        return cls(
            f"Label '{label}' comes {len(places)} times in the hierarchy: {where}. A label has one "
            "place: keep one of them."
        )

    @classmethod
    def two_parents(cls, node: object, parents: Sequence[object]) -> HierarchyError:
        return cls(
            f"Node '{node}' has {len(parents)} parents in the hierarchy, {listing(parents)}. A "
            "node has one place: keep one of these pairs."
        )

    @classmethod
    def unknown(cls, leaves: Sequence[object], place: str) -> HierarchyError:
        many = len(leaves)
        said = "leaf of the hierarchy is no label" if many == 1 else "leaves are no labels"
        return cls(
            f"{many} {said}: {listing(leaves)}; the first stands {_at(place)}. Leaves are the "
            "labels of y, by the same names and of the same type: leave the others out."
        )

    @classmethod
    def hollow(cls, many: int, place: str) -> HierarchyError:
        others = "" if many == 1 else f" (and {many - 1} more)"
        return cls(
            f"The node {place} of the hierarchy is empty{others}: no label stands below it. Leave "
            "it out, or put labels there."
        )

    @classmethod
    def empty(cls, labels: int) -> HierarchyError:
        return cls(
            f"The hierarchy is empty, and there are {labels} labels to give a place in it. Pass "
            "nested lists of labels, a dict from each node to its parent, or tree='balanced'."
        )

    @classmethod
    def two_roots(cls, roots: Sequence[object]) -> HierarchyError:
        pairs = ", ".join(f"({root!r}, 'all')" for root in list(roots)[:2])
        return cls(
            f"The hierarchy has {len(roots)} roots: {listing(roots)}. Put one node above them: "
            f"{pairs}{', ..' if len(roots) > 2 else ''}."
        )

    def meaning(self, other: str | None) -> HierarchyError:
        """The same, with what may have been meant: 'groups' by tuples, or 'pairs' by lists."""
        hints = {
            "groups": " Tuples of two are taken for (child, parent): if these are groups of "
            "labels, write lists, [['a', 'b'], ['c', 'd']].",
            "pairs": " Lists are groups of labels: if these are pairs of child and parent, write "
            "tuples, [('a', 'top'), ('b', 'top')], or a dict.",
        }
        return self if other is None else type(self)(f"{self}{hints[other]}")

    @classmethod
    def of_kind(cls, kind: str) -> HierarchyError:
        return cls(
            f"A hierarchy cannot be made from a {kind}. Pass nested lists of labels, a dict from "
            "each node to its parent, or a word: tree='balanced', 'wide', 'huffman', 'moments', "
            "'one-vs-rest'."
        )


class UnseenLabelsWarning(DiscriminantWarning):
    """Some labels have no rows."""

    @classmethod
    def of(cls, labels: Sequence[object], of_labels: int) -> UnseenLabelsWarning:
        return cls(
            f"{len(labels):,} of {of_labels:,} labels have no row, so that nothing can be learnt "
            f"of them and they are hardly ever predicted: {listing(labels)}."
        )


class UnlabelledRowsWarning(DiscriminantWarning):
    """Some rows have no labels."""

    @classmethod
    def of(cls, rows: int, of_rows: int) -> UnlabelledRowsWarning:
        return cls(
            f"{rows:,} of {of_rows:,} rows have no label. They reach no node of the tree, so that "
            "nothing is learnt from them."
        )


class LongRowsWarning(DiscriminantWarning):
    """Rows are long, weights small, and the threshold takes them away."""

    @classmethod
    def of(cls, length: float, threshold: float) -> LongRowsWarning:
        return cls(
            f"Rows have a length of {length:.3g} (the median), so that weights are small, and "
            f"those below threshold={threshold:g} are left out though they matter. Pass "
            "unit_rows=True (best for words), standardize=True (for columns of different units), "
            f"or threshold={threshold / length:.1g}."
        )


def _at(place: str) -> str:
    return f"at {place}" if place.startswith("tree") else place
