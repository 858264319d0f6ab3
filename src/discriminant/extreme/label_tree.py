"""LabelTree: very many labels, by a tree over them with a linear classifier in every node.

The options of a label tree: what they may be.

What a fitted label tree answers: the best labels of rows, and how probable they are.

From rows and label sets to trees: the options of a `LabelTree`, spelt out for the models.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state

from discriminant.engines.engine import read_moments
from discriminant.engines.local import available_threads
from discriminant.engines.partitioned import AnyTable
from discriminant.errors import (
    LabelError,
    LabelSetError,
    LabelTreeError,
    MomentsMismatchError,
    NamesUncheckedWarning,
    OptionError,
    ShapeError,
    TooFewRowsError,
    WeightError,
    merge_warnings,
    warn,
)
from discriminant.estimators.base import RowEstimator, as_partitioned, to_memory
from discriminant.extreme.inputs import (
    LabelKind,
    LabelSets,
    as_csr_rows,
    as_label_sets,
    check_magnitudes,
    column_scale,
    warn_long_rows,
)
from discriminant.extreme.model.layer_store import make_folder
from discriminant.extreme.model.partition import (
    balanced_partition,
    hierarchy_partition,
    huffman_partition,
    label_means,
    one_vs_rest_partition,
    sort_by_frequency,
    tree_from_moments,
    wide_partition,
)
from discriminant.extreme.model.propensity import inverse_propensity
from discriminant.extreme.model.search import search_top_k
from discriminant.extreme.model.train import (
    TrainingSettings,
    TreeEstimate,
    estimate_tree,
    train_tree,
)
from discriminant.extreme.model.tree import (
    Forest,
    LabelPartition,
    Layer,
    Tree,
    forest_statistics,
    invalid_model,
)
from discriminant.extreme.summary import ForestSummary
from discriminant.moments.class_moments import ClassMoments
from discriminant.table.blocks import Floats, Labels, Schema, numbered_names
from discriminant.table.memory import as_features, as_table

TREES = ("balanced", "wide", "huffman", "one-vs-rest", "moments")
CHOICES = {
    "loss": ("squared_hinge", "logistic"),
    "precision": ("float32", "float16", "float64"),
    "path": ("hinge", "logistic", None),
    "weighting": ("propensity", None),
}
MINIMUM = {"trees": 1, "arity": 2, "leaf": 2, "max_sweeps": 1, "beam": 1, "threads": 1}
OPTIONAL = ("arity", "threads")


def check_options(model: Any) -> None:
    """Refuse what an option cannot be."""
    if isinstance(model.tree, str) and model.tree not in TREES:
        words = ", ".join(f"'{tree}'" for tree in TREES)
        raise OptionError.of("tree", model.tree, f"{words} or a hierarchy of the labels")
    if uses_moments(model) and model.unit_rows:
        raise OptionError.of("unit_rows", True, "False with tree='moments', made of rows as given")
    for name, choices in CHOICES.items():
        value = getattr(model, name)
        if not (value is None or isinstance(value, str)) or value not in choices:
            raise OptionError.of(name, value, " or ".join(repr(choice) for choice in choices))
    for name, least in MINIMUM.items():
        check_integer(name, getattr(model, name), least, optional=name in OPTIONAL)
    for name in ("standardize", "unit_rows"):
        if not isinstance(getattr(model, name), bool | np.bool_):
            raise OptionError.of(name, getattr(model, name), "True or False")
    for name in ("cost", "tolerance", "threshold"):
        _check_number(name, getattr(model, name), zero=name == "threshold")


def uses_moments(model: Any) -> bool:
    """Whether the tree is made of class moments."""
    return isinstance(model.tree, str) and model.tree == "moments"


def check_integer(name: str, value: Any, least: int, *, optional: bool = False) -> None:
    """Refuse what is not a whole number from `least` on."""
    if optional and value is None:
        return
    if not _is_whole(value) or value < least:
        more = ", or None" if optional else ""
        raise OptionError.of(name, value, f"a whole number of {least} or more{more}")


def as_seed(state: Any) -> int:
    """A whole number from whatever scikit-learn takes as a seed."""
    if _is_whole(state) and 0 <= state < 1 << 62:
        return int(state)
    if isinstance(state, np.random.Generator):
        return int(state.integers(1 << 31))
    return int(check_random_state(state).randint(np.iinfo(np.int32).max))


def _is_whole(value: Any) -> bool:
    if type(value) is int:  # quick, for single rows
        return True
    return isinstance(value, Integral) and not isinstance(value, bool)


def _check_number(name: str, value: Any, *, zero: bool) -> None:
    fits = isinstance(value, Real) and not isinstance(value, bool)
    if not (fits and 0 <= float(value) < np.inf) or (not zero and value == 0):
        raise OptionError.of(name, value, "a number from 0 on" if zero else "a positive number")


Codes = npt.NDArray[np.int32]

_CELLS = 1 << 28  # of a matrix of probabilities
_REACHED = 1000  # labels of a row, at most, that have a probability
_HALF = {"hinge": -1.0, "logistic": np.log(0.5)}  # what a margin of 0 adds to a score


class LabelTreePredictor(RowEstimator):
    """Rows, and a forest that is asked about them."""

    forest_: Forest
    classes_: Labels
    kind_: LabelKind
    beam: int
    threads: int | None
    scale_: Floats | None = None
    unit_rows_: bool = False

    def predict_topk(self, X: Any, k: int = 5, beam: int | None = None) -> tuple[Codes, Floats]:
        """The k best labels of each row, best first: codes (n, k) and scores (n, k).

        Parameters
        ----------
        k
            Labels for each row. Where fewer were reached, codes are -1 and scores -inf. Of several
        trees, a score is of the max(k, beam, 20) best labels of each: a larger k can change the
        order of labels that are nearly equal.
        beam
            Nodes of each level to follow, in place of the fitted option; as many as there are
            labels leave nothing out.

        Returns
        -------
        codes
            Places in `classes_`.
        scores
            Logs of the mean, over trees, of exp(path score): with path 'logistic', of
            probabilities.
        """
        beam = self.beam if beam is None else beam
        check_integer("k", k, 1)
        check_integer("beam", beam, 1)
        return self._search(self._validate_rows(X), int(k), int(beam))

    def predict(self, X: Any) -> Any:
        """The best label of each row; of label sets, all labels more likely than not.

        These are as y was: a sparse matrix of ones, or a list of lists of labels, best first.
        """
        if self._kind() == "one":
            codes, _ = self._search(self._validate_rows(X), 1, self.beam)
            return np.asarray(self.classes_[codes[:, 0]])
        codes, scores = self._search_all(self._validate_rows(X))
        kept = scores >= _HALF[self.forest_.path]
        if self.kind_ == "indicator":
            found = self._to_sparse(codes, kept.astype(np.float64), kept)
            return found.astype(np.int8)
        return [self.classes_[row[some]].tolist() for row, some in zip(codes, kept, strict=True)]

    def predict_proba(self, X: Any, k: int | None = None) -> Any:
        """(n, L) probability of each label; with k, of the k best as a sparse matrix.

        Of one label for each row they sum to one over the labels that were reached; those of label
        sets do not. They are probabilities in so far as loss='logistic' makes them, with a cost
        that is chosen by the log loss of rows held out.
        """
        if k is None:
            codes, scores = self._log_probabilities(self._check_dense_size(self._validate_rows(X)))
            return self._to_dense(codes, np.exp(scores), 0.0)
        check_integer("k", k, 1)
        codes, scores = self._log_probabilities(self._validate_rows(X))
        codes, scores = codes[:, :k], scores[:, :k]
        return self._to_sparse(codes, np.exp(scores), codes >= 0)

    def predict_log_proba(self, X: Any) -> Floats:
        """(n, L) log probability of each label, -inf of those that were not reached."""
        return self._to_dense(
            *self._log_probabilities(self._check_dense_size(self._validate_rows(X))), -np.inf
        )

    def decision_function(self, X: Any) -> Floats:
        """(n, L) scores, -inf of labels that were not reached; with two (n,), their difference."""
        found = self._to_dense(
            *self._search_all(self._check_dense_size(self._validate_rows(X))), -np.inf
        )
        if len(self.classes_) == 2 and self.kind_ == "one":
            return np.asarray(found[:, 1] - found[:, 0])
        return found

    # --- inside -----------------------------------------------------------------------------------

    def _kind(self) -> LabelKind:
        self._check_is_fitted()
        return self.kind_

    def _dtype(self) -> Any:
        """What rows are searched in: as weights are."""
        double = self.forest_.trees[0].layers[0].weight.dtype == np.float64
        return np.float64 if double else np.float32

    def _validate_rows(self, X: Any) -> Any:
        """Rows to search for, as those of the fit."""
        self._check_is_fitted()
        names = getattr(self, "feature_names_in_", None)
        if type(X) in (sparse.csr_matrix, sparse.csr_array) and names is None:
            features, given = X, None
        else:
            match = None if names is None else Schema(tuple(names.tolist()), np.zeros(0), True)
            features, given = as_features(X, match=match)
        if len(features.shape) != 2 or features.shape[1] != self.n_features_in_:
            raise ShapeError.of_width(features.shape[-1], self.n_features_in_, type(self).__name__)
        if features.shape[0] == 0:
            raise ShapeError.no_rows(0)
        if given is not None and names is None:
            warn(NamesUncheckedWarning.fitted_without(type(self).__name__))
        if given is None and names is not None:
            warn(NamesUncheckedWarning.given_without(type(self).__name__))
        known = None if names is None else tuple(names)
        scale, unit = self.scale_, self.unit_rows_
        return as_csr_rows(features, self._dtype(), names=known, scale=scale, unit=unit)

    def _search(self, rows: Any, k: int, beam: int) -> tuple[Codes, Floats]:
        check_integer("beam", beam, 1)
        check_integer("threads", self.threads, 1, optional=True)
        threads = 1 if rows.shape[0] == 1 else self.threads or available_threads()
        return search_top_k(self.forest_, rows, k=k, beam=beam, threads=threads)

    def _search_all(self, rows: Any) -> tuple[Codes, Floats]:
        """All labels that a row reaches."""
        return self._search(rows, min(len(self.classes_), _REACHED), self.beam)

    def _log_probabilities(self, rows: Any) -> tuple[Codes, Floats]:
        """The same, where one label is true of each row, so that they sum to one."""
        codes, scores = self._search_all(rows)
        if self.kind_ == "one":
            scores = scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)
        return codes, scores

    def _check_dense_size(self, rows: Any) -> Any:
        """Rows so few that there is room for a number for each label."""
        if rows.shape[0] * len(self.classes_) > _CELLS:
            raise LabelTreeError.too_many_cells(rows.shape[0], len(self.classes_), _CELLS)
        return rows

    def _to_dense(self, codes: Codes, values: Floats, beyond: float) -> Floats:
        found = np.full((len(codes), len(self.classes_)), beyond)
        row, place = np.nonzero(codes >= 0)
        found[row, codes[row, place]] = values[row, place]
        return found

    def _to_sparse(self, codes: Codes, values: Floats, kept: npt.NDArray[np.bool_]) -> Any:
        starts = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
        shape = (len(codes), len(self.classes_))
        found = sparse.csr_array((values[kept], codes[kept], starts), shape=shape)
        found.sort_indices()
        return found


def train_trees(model: Any, rows: sparse.csr_matrix, sets: LabelSets) -> tuple[Tree, ...]:
    """The trees that a `LabelTree` asks for."""
    threads, seed = model.threads or available_threads(), as_seed(model.random_state)
    if model.checkpoint is not None:
        make_folder(Path(model.checkpoint) / "tree0")  # what cannot be is told before the work
    means = label_means(rows, sets.members)
    members = _leaned(sets.members) if model.weighting == "propensity" else sets.members
    count, found = n_trees(model), []
    for t in range(count):
        tree = train_tree(
            _partition(model, means, sets, seed + t, threads),
            rows,
            members,
            settings=_settings(model, seed + t),
            threads=threads,
            spool=None if model.checkpoint is None else Path(model.checkpoint) / f"tree{t}",
            progress=_progress(model.progress, t, count),
        )
        found.append(to_half(tree) if model.precision == "float16" else tree)
    return tuple(found)


def estimate_trees(
    model: Any, rows: sparse.csr_matrix, sets: LabelSets
) -> tuple[TreeEstimate, int]:
    """What one of the trees will be, and the numbers in the mean rows of labels."""
    threads, seed = model.threads or available_threads(), as_seed(model.random_state)
    means = label_means(rows, sets.members)
    members = _leaned(sets.members) if model.weighting == "propensity" else sets.members
    partition = _partition(model, means, sets, seed, threads)
    return estimate_tree(partition, rows, members, settings=_settings(model, seed)), means.nnz


def n_trees(model: Any) -> int:
    """Trees; one where a further one would be the same again."""
    alone = not isinstance(model.tree, str) or model.tree in ("one-vs-rest", "huffman", "moments")
    return 1 if alone else int(model.trees)


def _settings(model: Any, seed: int) -> TrainingSettings:
    return TrainingSettings(
        loss=model.loss,
        cost=float(model.cost),
        tolerance=float(model.tolerance),
        max_sweeps=int(model.max_sweeps),
        threshold=float(model.threshold),
        precision="float64" if model.precision == "float64" else "float32",
        seed=seed,
    )


def _partition(
    model: Any, means: sparse.csr_matrix, sets: LabelSets, seed: int, threads: int
) -> LabelPartition:
    frequency = np.bincount(sets.members.indices, minlength=len(sets.labels))
    found = _divided(model, means, sets, frequency, seed, threads)
    return sort_by_frequency(found, frequency)


def _divided(
    model: Any, means: sparse.csr_matrix, sets: LabelSets, frequency: Any, seed: int, threads: int
) -> LabelPartition:
    if not isinstance(model.tree, str):
        return hierarchy_partition(model.tree, sets.labels.tolist())
    if model.tree == "one-vs-rest":
        return one_vs_rest_partition(len(sets.labels))
    if model.tree == "huffman":
        return huffman_partition(frequency, arity=model.arity or 16)
    if model.tree == "wide":
        return wide_partition(
            means, arity=model.arity or 100, leaf=model.leaf, seed=seed, threads=threads
        )
    return balanced_partition(
        means, arity=model.arity or 16, leaf=model.leaf, seed=seed, threads=threads
    )


def _progress(
    told: Callable[[int, int], object] | None, tree: int, trees: int
) -> Callable[[int, int], object] | None:
    """How far a tree is, as part of them all."""
    if told is None:
        return None
    return lambda done, total: told(tree * total + done, trees * total)


def _leaned(members: sparse.csr_matrix) -> sparse.csr_matrix:
    """Labels that count 1 / propensity."""

    frequency = np.bincount(members.indices, minlength=members.shape[1])
    weight = inverse_propensity(frequency, rows=members.shape[0])
    values = weight[members.indices].astype(np.float32)
    return sparse.csr_matrix((values, members.indices, members.indptr), shape=members.shape)


def to_half(tree: Tree) -> Tree:
    """The tree with weights of half precision."""
    return Tree(tree.label_of, tuple(_half(layer) for layer in tree.layers))


def _half(layer: Layer) -> Layer:
    largest = float(np.abs(layer.weight).max(initial=0.0))
    if largest > float(np.finfo(np.float16).max):
        raise LabelTreeError.overflows_float16(largest)
    return replace(layer, weight=layer.weight.astype(np.float16))


class SizeEstimate(NamedTuple):
    """What a label tree will take, about: within a factor of two."""

    rows: int
    labels: int
    weights: int  # of all trees
    model_bytes: int  # in memory, and as a file
    training_bytes: int  # besides the rows
    seconds: float  # of one thread at work in nodes


class LabelTree(ClassifierMixin, LabelTreePredictor):
    """Very many labels: a tree over the labels, linear classifiers in its nodes, a beam to search.

    Labels whose rows are alike are put together, again and again; in every node, each child is told
    from its siblings by a linear classifier fitted to the rows that reach the node. To predict, a
    row goes down from the root along the few best paths. Time and room grow little with the number
    of labels: a million are possible.

    Rows may have one label each, as any classifier has it, or sets of labels. Features are best
    sparse and of similar lengths, such as TF-IDF of texts.

    Parameters
    ----------
    trees
        How many, whose scores are averaged; three are better than one by a point or so.
    tree
        'balanced': halves of halves, of which every log2(arity)-th level is kept; 'wide': k-means
        of `arity` parts, twice; 'huffman': frequent labels near the root; 'one-vs-rest': no tree;
        'moments': one tree of two-class LDAs, made of class moments (`fit_moments`) in float64,
        for dense rows of one label each, with no option but `beam` and `threads`; or a hierarchy
        of your own, whose leaves are the labels: nested, or (child, parent) pairs.
    arity
        Children of a node, above the leaves; None: 16, of a wide tree 100.
    leaf
        Most labels of a last node.
    loss
        'squared_hinge', or 'logistic', with which scores are probabilities.
    cost
        C: what errors cost against the length of the weights.
    tolerance, max_sweeps
        When a classifier is good enough, and the most sweeps over its rows; rows that are at rest
        meanwhile are not counted.
    threshold
        Weights not above it are left out: most of them, which matter little.
    standardize
        Whether columns of dense rows are centred and divided by their standard deviations, as they
        should be where they are of different units: a table rather than words.
    unit_rows
        Whether rows are brought to length one, as is best for words and their counts.
    path
        What a margin m adds to the score of a path: 'hinge', -max(0, 1 - m)^3, or 'logistic',
        log sigma(m). None: as the loss.
    weighting
        None, or 'propensity': rare labels, which are often missing where they are true, count
        more.
    precision
        Of the weights: 'float32'; 'float16', for a file of about two thirds; or 'float64'.
    beam
        Nodes of each level that a row follows.
    threads
        At work at a time; None for all cores. No answer depends on it.
    random_state
        Seed of the trees and of the order of rows.
    checkpoint
        A folder for parts of the model as they are done: the same fit goes on there if it was
        stopped, and large models need less memory. It is used until the model is saved.
    progress
        Called with the work done and the work in all, now and then, during the fit.

    Attributes
    ----------
    classes_
        (L,) labels; codes are places in it. Of a matrix y, the numbers of its columns.
    forest_
        The fitted trees: `models.label_tree.layers.Forest`.
    kind_
        What y was: 'one', 'indicator' or 'sets'.
    n_weights_
        Weights of all trees that were kept.
    scale_
        (2, d) what is subtracted from columns, and what they are then divided by, or None.
    unit_rows_
        Whether rows are brought to length one.
    label_rows_
        (L,) rows of the fit that each label had.
    n_rows_
        Rows of the fit.

    Examples
    --------
    >>> from discriminant import LabelTree
    >>> X = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]]
    >>> model = LabelTree(trees=1).fit(X, [{"cat", "pet"}, {"cat"}, {"dog", "pet"}, {"dog"}])
    >>> codes, scores = model.predict_topk([[1.0, 0.1]], k=1)
    >>> model.classes_[codes].tolist()
    [['cat']]
    """

    scale_: Floats | None = None
    label_rows_: npt.NDArray[np.int32]
    n_rows_: int

    _fitted_attribute = "forest_"
    _fit_methods = "fit, or fit_moments with tree='moments'"

    def __init__(
        self,
        *,
        trees: int = 3,
        tree: Any = "balanced",
        arity: int | None = None,
        leaf: int = 100,
        loss: str = "squared_hinge",
        cost: float = 1.0,
        tolerance: float = 0.1,
        max_sweeps: int = 20,
        threshold: float = 0.1,
        standardize: bool = False,
        unit_rows: bool = False,
        path: str | None = None,
        weighting: str | None = None,
        precision: str = "float32",
        beam: int = 10,
        threads: int | None = None,
        random_state: Any = 0,
        checkpoint: str | os.PathLike[str] | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> None:
        self.trees = trees
        self.tree = tree
        self.arity = arity
        self.leaf = leaf
        self.loss = loss
        self.cost = cost
        self.tolerance = tolerance
        self.max_sweeps = max_sweeps
        self.threshold = threshold
        self.standardize = standardize
        self.unit_rows = unit_rows
        self.path = path
        self.weighting = weighting
        self.precision = precision
        self.beam = beam
        self.threads = threads
        self.random_state = random_state
        self.checkpoint = checkpoint
        self.progress = progress

    # --- fitting ----------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Make the trees and train their classifiers.

        Parameters
        ----------
        X
            (N, d) array, sparse matrix or data frame.
        y
            One label for each row; or a list of sets of labels; or an (N, L) matrix, sparse or
            dense, with 1 where a row has a label.
        """
        check_options(self)
        if uses_moments(self):
            return self._fit_rows_to_moments(X, y)
        X, y, weight = to_memory(X, y, None, type(self).__name__)
        if weight is not None:
            raise WeightError.not_taken(type(self).__name__)
        rows, names, sets, scale = self._validate_data(X, y)
        with merge_warnings():
            sets.warn_missing()
            warn_long_rows(self, rows)
            trees = train_trees(self, rows, sets)
        self._set_state(trees, rows.shape[1], names, scale)
        self.classes_, self.kind_ = sets.labels, sets.kind
        self._set_label_counts(
            np.bincount(sets.members.indices, minlength=len(sets.labels)), rows.shape[0]
        )
        return self

    def fit_moments(self, moments: Any) -> Self:
        """With tree='moments': make the tree of class moments, of detail 'pooled' or more.

        Examples
        --------
        >>> import discriminant
        >>> X, y = [[0.0], [1.0], [4.0], [5.0], [9.0], [11.0]], ["a", "a", "b", "b", "c", "c"]
        >>> model = LabelTree(tree="moments").fit_moments(discriminant.moments(X, y))
        >>> model.predict([[4.4], [8.0]]).tolist()
        ['b', 'c']
        """
        check_options(self)
        if not uses_moments(self):
            raise LabelTreeError.moments_elsewhere(self.tree)
        if not isinstance(moments, ClassMoments):
            allowed = "what discriminant.moments(X, y) returns; for rows there is fit(X, y)"
            raise OptionError.of("moments", type(moments).__name__, allowed)
        if not moments.holds("pooled"):
            raise MomentsMismatchError.needs_detail("LabelTree", "pooled", moments.detail)
        with merge_warnings():
            tree, centre = tree_from_moments(moments)
        named = moments.features != numbered(len(moments.features))
        scale = np.array([centre, np.ones_like(centre)])
        self._set_state((tree,), len(moments.features), moments.features if named else None, scale)
        self.classes_, self.kind_ = moments.labels, "one"
        self._set_label_counts(moments.rows, int(moments.rows.sum()))
        return self

    def write_predictions(
        self,
        source: Any,
        out: str | os.PathLike[str],
        *,
        k: int = 5,
        safe: bool = True,
        progress: Callable[[int, int], None] | None = None,
    ) -> tuple[int, dict[str, int], tuple[str, ...]]:
        """Predict the k best labels of every row of a sparse file, and write them to a file.

        Returns the number of rows, how often each label comes first, and the columns written.
        `discriminant.predict_file` calls this for trees fitted to rows without column names.
        """
        from discriminant.extreme.files import write_predictions

        return write_predictions(self, source, out, k=k, safe=safe, told=progress or _no_progress)

    @staticmethod
    def invalid_reason(parts: Mapping[str, Any]) -> str | None:
        """Return why these fitted attributes cannot form a label tree, or None."""
        return invalid_model(parts)

    @property
    def n_weights_(self) -> int:
        """Weights of all trees that were kept."""
        self._check_is_fitted()
        return sum(len(layer.weight) for tree in self.forest_.trees for layer in tree.layers)

    def summary(self) -> ForestSummary:
        """The shape of the trees, level by level: nodes, weights and bytes; `print` it."""
        self._check_is_fitted()
        forest, rows = self.forest_, getattr(self, "label_rows_", None)
        return ForestSummary(
            forest_statistics(forest),
            forest.n_features,
            len(self.classes_),
            forest.path,
            str(forest.trees[0].layers[0].weight.dtype),
            int(self.beam),
            rows=getattr(self, "n_rows_", None),
            unseen=None if rows is None else int((rows == 0).sum()),
            pairs=None if rows is None else int(rows.sum(dtype=np.int64)),
        )

    def estimate_size(self, X: Any, y: Any) -> SizeEstimate:
        """What a fit to these rows will take, before it is made: a few nodes are fitted for it."""
        check_options(self)
        rows, _, sets, _ = self._validate_data(X, y)
        if uses_moments(self):
            (N, d), L = rows.shape, len(sets.labels)
            weights = 2 * d * (L - 1)
            return SizeEstimate(
                N, L, weights, 14 * weights, 8 * d * (L + 3 * d) + 28 * weights, 0.0
            )
        one, held = estimate_trees(self, rows, sets)
        count = n_trees(self)
        training = 8 * held + 12 * sets.members.nnz + count * one.size
        if self.precision == "float16":
            one = replace(one, size=one.size - 2 * one.weights)
        model = count * (one.size + 4 * len(sets.labels))
        seconds = count * one.seconds
        return SizeEstimate(*sets.members.shape, count * one.weights, model, training, seconds)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of rows that are right; of label sets, of rows whose set is exactly so."""
        if self._kind() != "sets":
            return float(super().score(X, y, sample_weight))
        said = self.predict(X)
        if len(y) != len(said):
            raise ShapeError.of_lengths("y", len(y), len(said))
        right = [set(one) == set(own) for one, own in zip(said, y, strict=True)]
        return float(np.average(right, weights=sample_weight))

    # --- inside -----------------------------------------------------------------------------------

    def _fit_rows_to_moments(self, X: Any, y: Any) -> Self:
        """Read class moments, and make the tree of them."""
        table: AnyTable | None = as_partitioned(X, y, None)
        if table is None:
            if as_label_sets(y, name=type(self).__name__).kind != "one":
                raise LabelTreeError.moments_of_sets()
            table = as_table(X, y, name=type(self).__name__)
        if len(table) == 1:
            raise TooFewRowsError.of_one_row(type(self).__name__, 3)
        if len(table.schema.labels) < 2:
            raise LabelError.one_class(table.schema.labels[0])
        return self.fit_moments(read_moments(table, detail="pooled"))

    def _set_state(
        self,
        trees: tuple[Tree, ...],
        d: int,
        names: tuple[str, ...] | None,
        scale: Floats | None = None,
    ) -> None:
        """Keep what was fitted to d features."""
        self.n_features_in_, self.scale_, self.unit_rows_ = d, scale, bool(self.unit_rows)
        for held in ("feature_names_in_", "first_feature_"):  # of an earlier fit
            self.__dict__.pop(held, None)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        self.forest_ = Forest(trees, d, self._path())

    def _set_label_counts(self, label_rows: npt.NDArray[Any], rows: int) -> None:
        """Keep how frequent labels were, which says what finding each is worth."""
        most = np.iinfo(np.int32).max
        self.label_rows_ = np.minimum(label_rows, most).astype(np.int32)
        self.n_rows_ = rows

    def _validate_data(
        self, X: Any, y: Any
    ) -> tuple[sparse.csr_matrix, tuple[str, ...] | None, LabelSets, Floats | None]:
        """Rows and labels at the door."""
        features, names = as_features(X)
        N, d = features.shape
        if not N:
            raise ShapeError.no_rows(N)
        if not d:
            raise ShapeError.no_features(N)
        sets = as_label_sets(y, name=type(self).__name__)
        if sets.members.shape[0] != N:
            raise ShapeError.of_lengths("y", sets.members.shape[0], N)
        if sets.kind == "one" and N == 1:
            raise TooFewRowsError.of_one_row(type(self).__name__, 2)
        if len(sets.labels) < 2:
            label = sets.labels[0]
            one = sets.kind == "one"
            raise LabelError.one_class(label) if one else LabelSetError.one_label(label)
        scale = column_scale(features) if self.standardize else None
        kind: Any = np.float64 if self.precision == "float64" else np.float32
        unit = bool(self.unit_rows)
        rows = as_csr_rows(features, kind, names=names, scale=scale, unit=unit).to_matrix()
        check_magnitudes(rows, names=names)
        return rows, names, sets, scale

    def _path(self) -> str:
        if self.path is not None:
            return self.path
        return "logistic" if self.loss == "logistic" or uses_moments(self) else "hinge"

    @property
    def probabilistic(self) -> bool:
        """Whether `predict_proba` gives probabilities: with the logistic loss or from moments."""
        return bool(self.loss == "logistic" or uses_moments(self))


def _no_progress(rows: int, of: int) -> None:
    """Report nothing."""
