"""Label tree estimator for extreme classification, with linear classifiers in the nodes.

`LabelTree` validates its options and inputs, and builds the trees from rows and label sets
(`extreme.model`). Prediction finds the k best labels of a row, or probabilities, by beam search.
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

from discriminant.engines.dispatch import read_moments
from discriminant.engines.local import available_threads
from discriminant.engines.partitioned_table import AnyTable
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
from discriminant.estimators.base import RowEstimator, partitioned_or_none, to_memory
from discriminant.extreme.inputs import (
    LabelKind,
    LabelSets,
    as_csr_rows,
    as_label_sets,
    check_magnitudes,
    column_scale,
    warn_long_rows,
)
from discriminant.extreme.model.fitted_tree import (
    Forest,
    LabelPartition,
    Layer,
    Tree,
    forest_statistics,
    invalid_model,
)
from discriminant.extreme.model.propensity import inverse_propensity
from discriminant.extreme.model.search import search_top_k
from discriminant.extreme.model.train import (
    TrainingSettings,
    TreeEstimate,
    estimate_tree,
    train_tree,
)
from discriminant.extreme.model.training_checkpoint import HEADER_FILE
from discriminant.extreme.model.tree_construction import (
    balanced_partition,
    hierarchy_partition,
    huffman_partition,
    label_means,
    one_vs_rest_partition,
    sort_by_frequency,
    tree_from_moments,
    wide_partition,
)
from discriminant.extreme.tree_size import ForestSummary
from discriminant.moments.class_moments import ClassMoments
from discriminant.table.blocks import Floats, Labels, Schema, numbered_names
from discriminant.table.files.checkpoint_folder import create_folder
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
    """Raise `OptionError` if an option of a `LabelTree` is invalid."""
    if isinstance(model.tree, str) and model.tree not in TREES:
        words = ", ".join(f"'{tree}'" for tree in TREES)
        raise OptionError.of("tree", model.tree, f"{words} or a hierarchy of the labels")
    if uses_moments(model) and model.unit_rows:
        allowed = "False with tree='moments', which uses the rows unchanged"
        raise OptionError.of("unit_rows", True, allowed)
    for name, choices in CHOICES.items():
        value = getattr(model, name)
        if not (value is None or isinstance(value, str)) or value not in choices:
            raise OptionError.of(name, value, " or ".join(repr(choice) for choice in choices))
    for name, minimum in MINIMUM.items():
        check_integer(name, getattr(model, name), minimum, optional=name in OPTIONAL)
    for name in ("standardize", "unit_rows"):
        if not isinstance(getattr(model, name), bool | np.bool_):
            raise OptionError.of(name, getattr(model, name), "True or False")
    for name in ("cost", "tolerance", "threshold"):
        _check_number(name, getattr(model, name), zero=name == "threshold")


def uses_moments(model: Any) -> bool:
    """Return whether the tree is computed from class moments."""
    return isinstance(model.tree, str) and model.tree == "moments"


def check_integer(name: str, value: Any, minimum: int, *, optional: bool = False) -> None:
    """Raise `OptionError` unless the value is an integer and at least `minimum`.

    With `optional`, None is also accepted.
    """
    if optional and value is None:
        return
    if not _is_integer(value) or value < minimum:
        more = ", or None" if optional else ""
        raise OptionError.of(name, value, f"a whole number of {minimum} or more{more}")


def as_seed(state: Any) -> int:
    """Return an integer seed from any `random_state` that scikit-learn accepts."""
    if _is_integer(state) and 0 <= state < 1 << 62:
        return int(state)
    if isinstance(state, np.random.Generator):
        return int(state.integers(1 << 31))
    return int(check_random_state(state).randint(np.iinfo(np.int32).max))


def _is_integer(value: Any) -> bool:
    if type(value) is int:  # shortcut for single rows
        return True
    return isinstance(value, Integral) and not isinstance(value, bool)


def _check_number(name: str, value: Any, *, zero: bool) -> None:
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not (is_number and 0 <= float(value) < np.inf) or (not zero and value == 0):
        raise OptionError.of(name, value, "a number from 0 on" if zero else "a positive number")


Codes = npt.NDArray[np.int32]

_MAX_CELLS = 1 << 28  # largest number of cells in a dense matrix of probabilities
_MAX_LABELS = 1000  # largest number of labels of a row that get a probability
# term that a margin of 0 adds to the score of a path
_THRESHOLD = {"hinge": -1.0, "logistic": np.log(0.5)}


class LabelTreePredictor(RowEstimator):
    """Prediction methods of a fitted label tree."""

    forest_: Forest
    classes_: Labels
    kind_: LabelKind
    beam: int
    threads: int | None
    scale_: Floats | None = None
    unit_rows_: bool = False

    def predict_topk(self, X: Any, k: int = 5, beam: int | None = None) -> tuple[Codes, Floats]:
        """Return the k best labels of each row, best first.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, d)
            Rows to predict.
        k : int, default=5
            Number of labels per row. With several trees, the scores are combined from the
            max(k, beam, 20) best labels of each tree, so that a larger k can change the order of
            labels with nearly equal scores.
        beam : int, optional
            Number of nodes kept at each level (default: the option `beam` of the model). If `beam`
            equals the number of labels, the search is exhaustive.

        Returns
        -------
        codes : ndarray of shape (n, k)
            Indices into `classes_`; -1 where fewer than k labels were reached.
        scores : ndarray of shape (n, k)
            log of the mean over trees of exp(path score), which is a log probability with
            path='logistic'; -inf where fewer than k labels were reached.
        """
        beam = self.beam if beam is None else beam
        check_integer("k", k, 1)
        check_integer("beam", beam, 1)
        return self._search(self._validate_rows(X), int(k), int(beam))

    def predict(self, X: Any) -> Any:
        """Predict the label, or the label set, of each row.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, d)

        Returns
        -------
        ndarray of shape (n,), sparse matrix or list
            If y was a vector, the best label of each row. Otherwise label sets in the form of y: a
            sparse indicator (n, L), or a list of lists of labels, best first. A set contains every
            label whose score is at least the score of a path with a single margin of 0; with
            path='logistic' this means a probability of at least 1/2.
        """
        if self._kind() == "one":
            codes, _ = self._search(self._validate_rows(X), 1, self.beam)
            return np.asarray(self.classes_[codes[:, 0]])
        codes, scores = self._search_all(self._validate_rows(X))
        chosen = scores >= _THRESHOLD[self.forest_.path]
        if self.kind_ == "indicator":
            return self._to_sparse(codes, chosen.astype(np.float64), chosen).astype(np.int8)
        return [self.classes_[row[mask]].tolist() for row, mask in zip(codes, chosen, strict=True)]

    def predict_proba(self, X: Any, k: int | None = None) -> Any:
        """Return the probability of each label.

        If each row has one label, the probabilities of the labels that the search reaches sum to
        one; with label sets they do not. The values estimate probabilities only if loss='logistic'
        or tree='moments'; choose `cost` by the log loss on held-out rows.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, d)
        k : int, optional
            Return only the k most probable labels of each row, as a sparse matrix.

        Returns
        -------
        ndarray of shape (n, L), or sparse matrix if k is given
        """
        if k is None:
            codes, scores = self._log_probabilities(self._check_dense_size(self._validate_rows(X)))
            return self._to_dense(codes, np.exp(scores), 0.0)
        check_integer("k", k, 1)
        codes, scores = self._log_probabilities(self._validate_rows(X))
        codes, scores = codes[:, :k], scores[:, :k]
        return self._to_sparse(codes, np.exp(scores), codes >= 0)

    def predict_log_proba(self, X: Any) -> Floats:
        """Return log probabilities (n, L), -inf for labels that the search does not reach."""
        rows = self._check_dense_size(self._validate_rows(X))
        return self._to_dense(*self._log_probabilities(rows), -np.inf)

    def decision_function(self, X: Any) -> Floats:
        """Return scores (n, L), which are -inf for labels that the search does not reach.

        With two classes, return the difference of the scores (n,).
        """
        rows = self._check_dense_size(self._validate_rows(X))
        scores = self._to_dense(*self._search_all(rows), -np.inf)
        if len(self.classes_) == 2 and self.kind_ == "one":
            return np.asarray(scores[:, 1] - scores[:, 0])
        return scores

    # --- private ----------------------------------------------------------------------------------

    def _kind(self) -> LabelKind:
        self._check_is_fitted()
        return self.kind_

    def _dtype(self) -> Any:
        """Floating-point type to which rows are converted for a search: the type of the weights."""
        double = self.forest_.trees[0].layers[0].weight.dtype == np.float64
        return np.float64 if double else np.float32

    def _validate_rows(self, X: Any) -> Any:
        """Check that rows have the features of the training rows; convert them to CSR arrays."""
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
        """Return all labels that the search reaches for each row, at most 1000."""
        return self._search(rows, min(len(self.classes_), _MAX_LABELS), self.beam)

    def _log_probabilities(self, rows: Any) -> tuple[Codes, Floats]:
        """Search as `_search_all` does.

        If each row has one label, normalise the scores to log probabilities.
        """
        codes, scores = self._search_all(rows)
        if self.kind_ == "one":
            scores = scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)
        return codes, scores

    def _check_dense_size(self, rows: Any) -> Any:
        """Return the rows; raise an error if a dense matrix (n, L) would be too large."""
        if rows.shape[0] * len(self.classes_) > _MAX_CELLS:
            raise LabelTreeError.too_many_cells(rows.shape[0], len(self.classes_), _MAX_CELLS)
        return rows

    def _to_dense(self, codes: Codes, values: Floats, fill: float) -> Floats:
        dense = np.full((len(codes), len(self.classes_)), fill)
        row, rank = np.nonzero(codes >= 0)
        dense[row, codes[row, rank]] = values[row, rank]
        return dense

    def _to_sparse(self, codes: Codes, values: Floats, mask: npt.NDArray[np.bool_]) -> Any:
        starts = np.concatenate([[0], np.cumsum(mask.sum(axis=1))])
        shape = (len(codes), len(self.classes_))
        matrix = sparse.csr_array((values[mask], codes[mask], starts), shape=shape)
        matrix.sort_indices()
        return matrix


def train_trees(model: Any, rows: sparse.csr_matrix, sets: LabelSets) -> tuple[Tree, ...]:
    """Train the trees of a `LabelTree`."""
    threads, seed = model.threads or available_threads(), as_seed(model.random_state)
    if model.checkpoint is not None:
        # create the folder first, so that an error is raised before the work
        create_folder(Path(model.checkpoint) / "tree0", HEADER_FILE)
    means, members = label_means(rows, sets.members), _weighted_members(model, sets)
    count, trees = n_trees(model), []
    for t in range(count):
        tree = train_tree(
            _partition(model, means, sets, seed + t, threads),
            rows,
            members,
            settings=_settings(model, seed + t),
            threads=threads,
            checkpoint=None if model.checkpoint is None else Path(model.checkpoint) / f"tree{t}",
            progress=_progress(model.progress, t, count),
        )
        trees.append(to_half(tree) if model.precision == "float16" else tree)
    return tuple(trees)


def estimate_trees(
    model: Any, rows: sparse.csr_matrix, sets: LabelSets
) -> tuple[TreeEstimate, int]:
    """Estimate the size of one tree.

    Also return the number of entries of the label means.
    """
    threads, seed = model.threads or available_threads(), as_seed(model.random_state)
    means, members = label_means(rows, sets.members), _weighted_members(model, sets)
    partition = _partition(model, means, sets, seed, threads)
    return estimate_tree(partition, rows, members, settings=_settings(model, seed)), means.nnz


def n_trees(model: Any) -> int:
    """Return the number of trees, which is 1 if the tree does not depend on the seed."""
    seedless = ("one-vs-rest", "huffman", "moments")
    return int(model.trees) if isinstance(model.tree, str) and model.tree not in seedless else 1


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
    arity = model.arity or (100 if isinstance(model.tree, str) and model.tree == "wide" else 16)
    if not isinstance(model.tree, str):
        partition = hierarchy_partition(model.tree, sets.labels.tolist())
    elif model.tree == "one-vs-rest":
        partition = one_vs_rest_partition(len(sets.labels))
    elif model.tree == "huffman":
        partition = huffman_partition(frequency, arity=arity)
    else:
        divide = wide_partition if model.tree == "wide" else balanced_partition
        partition = divide(means, arity=arity, leaf=model.leaf, seed=seed, threads=threads)
    return sort_by_frequency(partition, frequency)


def _progress(
    progress: Callable[[int, int], object] | None, tree: int, trees: int
) -> Callable[[int, int], object] | None:
    """Return a callback for one tree that reports the progress of all trees."""
    if progress is None:
        return None
    return lambda done, total: progress(tree * total + done, trees * total)


def _weighted_members(model: Any, sets: LabelSets) -> sparse.csr_matrix:
    """Return the label matrix.

    With weighting='propensity', its entries are 1 / propensity.
    """
    members = sets.members
    if model.weighting != "propensity":
        return members
    frequency = np.bincount(members.indices, minlength=members.shape[1])
    weight = inverse_propensity(frequency, rows=members.shape[0])
    values = weight[members.indices].astype(np.float32)
    return sparse.csr_matrix((values, members.indices, members.indptr), shape=members.shape)


def to_half(tree: Tree) -> Tree:
    """Return the tree with weights in half precision."""
    return Tree(tree.label_of, tuple(_half(layer) for layer in tree.layers))


def _half(layer: Layer) -> Layer:
    largest = float(np.abs(layer.weight).max(initial=0.0))
    if largest > float(np.finfo(np.float16).max):
        raise LabelTreeError.overflows_float16(largest)
    return replace(layer, weight=layer.weight.astype(np.float16))


class SizeEstimate(NamedTuple):
    """Estimated size of a label tree and cost of its fit, accurate within a factor of two."""

    rows: int
    labels: int
    weights: int  # number of weights in all trees
    model_bytes: int  # size in bytes, in memory and on disk
    training_bytes: int  # bytes of memory during the fit, besides the rows
    seconds: float  # training time with one thread


class LabelTree(ClassifierMixin, LabelTreePredictor):
    """Classifier for very many classes or labels: a tree of linear classifiers.

    Labels with similar rows are grouped recursively into a tree. In every node, each child has a
    linear classifier that separates it from its siblings and is trained on the rows that reach the
    node. The labels of a row are predicted by beam search from the root. Time and memory grow
    slowly with the number of labels; a million labels are feasible.

    Rows have one label each, as in any classifier, or sets of labels. Sparse features of similar
    row lengths, such as TF-IDF of texts, work best.

    Parameters
    ----------
    trees : int, default=3
        Number of trees whose scores are averaged. The accuracy of three trees is usually about one
        percentage point higher than that of one tree.
    tree : str or hierarchy, default='balanced'
        How labels are arranged:

        - 'balanced': repeated bisection by spherical 2-means; of the resulting levels every
          log2(arity)-th is kept;
        - 'wide': k-means with `arity` clusters, applied twice;
        - 'huffman': frequent labels near the root;
        - 'one-vs-rest': no tree;
        - 'moments': one binary tree of two-class LDA rules, computed in float64 from class moments
          (`fit_moments`), for dense rows with one label each; all other options except `beam` and
          `threads` are ignored;
        - a hierarchy whose leaves are the labels: nested mappings and lists, or (child, parent)
          pairs.
    arity : int, optional
        Number of children of each node above the last level (default: 16; for 'wide' 100).
    leaf : int, default=100
        Maximum number of labels below a node of the last level.
    loss : {'squared_hinge', 'logistic'}, default='squared_hinge'
        Loss of the classifiers. With 'logistic', scores are log probabilities.
    cost : float, default=1.0
        C, the weight of the loss relative to the squared length of the coefficients.
    tolerance : float, default=0.1
        Stopping tolerance of the solver.
    max_sweeps : int, default=20
        Maximum number of passes over the rows of a classifier. Rows that are temporarily left out
        (shrinking) do not count.
    threshold : float, default=0.1
        Weights of at most this absolute value are set to zero and not stored.
    standardize : bool, default=False
        Centre dense columns and divide them by their standard deviations. Set this option for
        tables whose columns have different units.
    unit_rows : bool, default=False
        Scale each row to unit length. Set this option for word counts.
    path : {'hinge', 'logistic'}, optional
        Term that a node with margin m adds to the score of a path: -max(0, 1 - m)^3 for 'hinge',
        log sigma(m) for 'logistic' (default: according to `loss`).
    weighting : {'propensity'}, optional
        With 'propensity', rare labels get more weight, because in many data sets they are often not
        recorded for rows to which they apply.
    precision : {'float32', 'float16', 'float64'}, default='float32'
        Precision of the stored weights; files with 'float16' are about a third smaller.
    beam : int, default=10
        Number of nodes that the search keeps for a row at each level.
    threads : int, optional
        Number of threads (default: all cores). Results do not depend on the number of threads.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the trees and of the order of rows.
    checkpoint : path-like, optional
        Folder for intermediate results. After an interruption, repeat the same fit to resume it.
        With a checkpoint folder, large models also need less memory. Keep the folder until the
        model is saved.
    progress : callable, optional
        Called during the fit with the amount of work done and the total amount.

    Attributes
    ----------
    classes_ : ndarray of shape (L,)
        Labels; a label code is an index into this array. If y is a matrix, the labels are the
        numbers of its columns.
    forest_ : Forest
        Fitted trees (`extreme.model.tree.Forest`).
    kind_ : {'one', 'indicator', 'sets'}
        Form of y.
    n_features_in_ : int
        Number of features d.
    feature_names_in_ : ndarray of shape (d,)
        Names of the features; only defined if X had names.
    n_weights_ : int
        Number of weights stored in all trees.
    scale_ : ndarray of shape (2, d) or None
        Number that is subtracted from each column, and scale by which the column is then divided.
    unit_rows_ : bool
        Whether rows are scaled to unit length.
    label_rows_ : ndarray of shape (L,)
        Number of training rows with each label.
    n_rows_ : int
        Number of training rows.

    See Also
    --------
    TopK : Accuracy of ranked labels: P@k, nDCG@k, recall@k and their propensity-scored forms.
    LDA : Linear discriminant analysis, for a moderate number of classes.

    References
    ----------
    Prabhu et al. (2018), "Parabel: Partitioned label trees for extreme classification".
    Khandagale, Xiao and Babbar (2019), "Bonsai: Diverse and shallow trees for extreme multi-label
    classification".

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
        """Build the trees and train their classifiers.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (N, d)
            Training rows.
        y : array-like
            One label for each row; a list of sets of labels; or an (N, L) matrix, sparse or dense,
            with 1 where a row has a label.

        Returns
        -------
        LabelTree
            The fitted model.
        """
        check_options(self)
        if uses_moments(self):
            return self._fit_rows_to_moments(X, y)
        X, y, weight = to_memory(X, y, None, type(self).__name__)
        if weight is not None:
            raise WeightError.not_supported(type(self).__name__)
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
        """Compute the tree from class moments, with tree='moments'.

        Parameters
        ----------
        moments : ClassMoments
            Result of `discriminant.moments`, with detail 'pooled' or finer.

        Returns
        -------
        LabelTree
            The fitted model.

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
            raise LabelTreeError.needs_rows(self.tree)
        if not isinstance(moments, ClassMoments):
            allowed = "what discriminant.moments(X, y) returns; for rows there is fit(X, y)"
            raise OptionError.of("moments", type(moments).__name__, allowed)
        if not moments.has("pooled"):
            raise MomentsMismatchError.needs_detail("LabelTree", "pooled", moments.detail)
        with merge_warnings():
            tree, centre = tree_from_moments(moments)
        d = len(moments.features)
        names = moments.features if moments.features != numbered_names(d) else None
        self._set_state((tree,), d, names, np.array([centre, np.ones_like(centre)]))
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
        """Predict the k best labels of every row of a sparse file and write them to a file.

        `discriminant.predict_file` calls this method for trees fitted to rows without column names.

        Parameters
        ----------
        source : path-like
            File of sparse rows, XMC text or svmlight.
        out : path-like
            CSV, Parquet, Arrow or Feather file to write.
        k : int, default=5
            Number of labels per row.
        safe : bool, default=True
            Escape labels that a spreadsheet would read as formulas.
        progress : callable, optional
            Called with the number of rows done and the total number of rows.

        Returns
        -------
        rows : int
        counts : dict
            Number of rows for which each label is ranked first.
        columns : tuple of str
            Columns written.
        """
        from discriminant.extreme.file_predictions import write_predictions

        report = progress or (lambda done, total: None)
        return write_predictions(self, source, out, k=k, safe=safe, progress=report)

    @staticmethod
    def invalid_reason(parts: Mapping[str, Any]) -> str | None:
        """Return the reason why the attributes of a label tree are invalid, or None."""
        return invalid_model(parts)

    @property
    def n_weights_(self) -> int:
        """Number of weights stored in all trees."""
        self._check_is_fitted()
        return sum(len(layer.weight) for tree in self.forest_.trees for layer in tree.layers)

    def summary(self) -> ForestSummary:
        """Return the shape of the trees, to be printed: nodes, weights and bytes of each level."""
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
        """Estimate the size of the model and the cost of its fit by training a few nodes."""
        check_options(self)
        rows, _, sets, _ = self._validate_data(X, y)
        if uses_moments(self):
            (N, d), L = rows.shape, len(sets.labels)
            weights = 2 * d * (L - 1)
            training = 8 * d * (L + 3 * d) + 28 * weights
            return SizeEstimate(N, L, weights, 14 * weights, training, 0.0)
        tree, n_means = estimate_trees(self, rows, sets)
        count = n_trees(self)
        training = 8 * n_means + 12 * sets.members.nnz + count * tree.size
        if self.precision == "float16":
            tree = replace(tree, size=tree.size - 2 * tree.weights)
        model = count * (tree.size + 4 * len(sets.labels))
        seconds = count * tree.seconds
        return SizeEstimate(*sets.members.shape, count * tree.weights, model, training, seconds)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy.

        For label sets, the accuracy is the share of rows whose set is predicted exactly.
        """
        if self._kind() != "sets":
            return float(super().score(X, y, sample_weight))
        predicted = self.predict(X)
        if len(y) != len(predicted):
            raise ShapeError.of_lengths("y", len(y), len(predicted))
        exact = [set(labels) == set(true) for labels, true in zip(predicted, y, strict=True)]
        return float(np.average(exact, weights=sample_weight))

    # --- private ----------------------------------------------------------------------------------

    def _fit_rows_to_moments(self, X: Any, y: Any) -> Self:
        """Read the class moments of the rows and compute the tree from them."""
        table: AnyTable | None = partitioned_or_none(X, y, None)
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
        self.n_features_in_, self.scale_, self.unit_rows_ = d, scale, bool(self.unit_rows)
        for name in ("feature_names_in_", "first_feature_"):  # remove attributes of an earlier fit
            self.__dict__.pop(name, None)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        self.forest_ = Forest(trees, d, self._path())

    def _set_label_counts(self, label_rows: npt.NDArray[Any], rows: int) -> None:
        """Store the number of training rows of each label, from which propensities are computed."""
        self.label_rows_ = np.minimum(label_rows, np.iinfo(np.int32).max).astype(np.int32)
        self.n_rows_ = rows

    def _validate_data(
        self, X: Any, y: Any
    ) -> tuple[sparse.csr_matrix, tuple[str, ...] | None, LabelSets, Floats | None]:
        """Validate rows and labels and convert the rows to CSR."""
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
            error = LabelError.one_class if sets.kind == "one" else LabelSetError.one_label
            raise error(sets.labels[0])
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
        """Whether `predict_proba` estimates probabilities: with logistic loss or tree='moments'."""
        return bool(self.loss == "logistic" or uses_moments(self))
