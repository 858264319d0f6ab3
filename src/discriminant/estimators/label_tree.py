"""LabelTree: very many labels, by a tree over them with a linear classifier in every node."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import ClassifierMixin

from discriminant.assessment.forest_summary import ForestSummary
from discriminant.engines.engine import read_moments
from discriminant.engines.parted import AnyTable
from discriminant.errors import (
    LabelError,
    LabelSetError,
    LabelTreeError,
    MomentsMismatchError,
    OptionError,
    ShapeError,
    TooFewRowsError,
    WeightError,
    gathered,
)
from discriminant.estimators.in_parts import at_hand, parted
from discriminant.estimators.label_answers import LabelAnswers
from discriminant.estimators.label_growing import grown, how_many, tried
from discriminant.estimators.label_options import check_options, from_moments
from discriminant.estimators.label_rows import as_rows, check_sizes, scale_of, tell_long_rows
from discriminant.estimators.label_sets import LabelSets, open_labels
from discriminant.models.label_tree.from_moments import separated
from discriminant.models.label_tree.layers import Forest, Tree
from discriminant.models.label_tree.soundness import model_fault
from discriminant.models.label_tree.statistics import forest_statistics
from discriminant.moments.class_moments import ClassMoments
from discriminant.table.schema import Floats, numbered
from discriminant.table.source import open_features, open_table


class Size(NamedTuple):
    """What a label tree will take, about: within a factor of two."""

    rows: int
    labels: int
    weights: int  # of all trees
    model_bytes: int  # in memory, and as a file
    training_bytes: int  # besides the rows
    seconds: float  # of one thread at work in nodes


class LabelTree(ClassifierMixin, LabelAnswers):
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

    _mark = "forest_"
    _ways_to_fit = "fit, or fit_moments with tree='moments'"

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
        if from_moments(self):
            return self._fit_table(X, y)
        X, y, weight = at_hand(X, y, None, type(self).__name__)
        if weight is not None:
            raise WeightError.not_taken(type(self).__name__)
        rows, names, sets, scale = self._opened(X, y)
        with gathered():
            sets.tell()
            tell_long_rows(self, rows)
            trees = grown(self, rows, sets)
        self._hold(trees, rows.shape[1], names, scale)
        self.classes_, self.kind_ = sets.labels, sets.kind
        self._count(np.bincount(sets.members.indices, minlength=len(sets.labels)), rows.shape[0])
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
        if not from_moments(self):
            raise LabelTreeError.moments_elsewhere(self.tree)
        if not isinstance(moments, ClassMoments):
            allowed = "what discriminant.moments(X, y) returns; for rows there is fit(X, y)"
            raise OptionError.of("moments", type(moments).__name__, allowed)
        if not moments.holds("pooled"):
            raise MomentsMismatchError.needs_detail("LabelTree", "pooled", moments.detail)
        with gathered():
            tree, centre = separated(moments)
        named = moments.features != numbered(len(moments.features))
        scale = np.array([centre, np.ones_like(centre)])
        self._hold((tree,), len(moments.features), moments.features if named else None, scale)
        self.classes_, self.kind_ = moments.labels, "one"
        self._count(moments.rows, int(moments.rows.sum()))
        return self

    @staticmethod
    def invalid_reason(parts: Mapping[str, Any]) -> str | None:
        """Return why these fitted attributes cannot form a label tree, or None."""
        return model_fault(parts)

    @property
    def n_weights_(self) -> int:
        """Weights of all trees that were kept."""
        self._need_fit()
        return sum(len(layer.weight) for tree in self.forest_.trees for layer in tree.layers)

    def summary(self) -> ForestSummary:
        """The shape of the trees, level by level: nodes, weights and bytes; `print` it."""
        self._need_fit()
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

    def estimate_size(self, X: Any, y: Any) -> Size:
        """What a fit to these rows will take, before it is made: a few nodes are fitted for it."""
        check_options(self)
        rows, _, sets, _ = self._opened(X, y)
        if from_moments(self):
            (N, d), L = rows.shape, len(sets.labels)
            weights = 2 * d * (L - 1)
            return Size(N, L, weights, 14 * weights, 8 * d * (L + 3 * d) + 28 * weights, 0.0)
        one, held = tried(self, rows, sets)
        count = how_many(self)
        training = 8 * held + 12 * sets.members.nnz + count * one.size
        if self.precision == "float16":
            one = replace(one, size=one.size - 2 * one.weights)
        model = count * (one.size + 4 * len(sets.labels))
        seconds = count * one.seconds
        return Size(*sets.members.shape, count * one.weights, model, training, seconds)

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

    def _fit_table(self, X: Any, y: Any) -> Self:
        """Read class moments, and make the tree of them."""
        table: AnyTable | None = parted(X, y, None)
        if table is None:
            if open_labels(y, name=type(self).__name__).kind != "one":
                raise LabelTreeError.moments_of_sets()
            table = open_table(X, y, name=type(self).__name__)
        if len(table) == 1:
            raise TooFewRowsError.of_one_row(type(self).__name__, 3)
        if len(table.schema.labels) < 2:
            raise LabelError.one_class(table.schema.labels[0])
        return self.fit_moments(read_moments(table, detail="pooled"))

    def _hold(
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

    def _count(self, label_rows: npt.NDArray[Any], rows: int) -> None:
        """Keep how frequent labels were, which says what finding each is worth."""
        most = np.iinfo(np.int32).max
        self.label_rows_ = np.minimum(label_rows, most).astype(np.int32)
        self.n_rows_ = rows

    def _opened(
        self, X: Any, y: Any
    ) -> tuple[sparse.csr_matrix, tuple[str, ...] | None, LabelSets, Floats | None]:
        """Rows and labels at the door."""
        features, names = open_features(X)
        N, d = features.shape
        if not N:
            raise ShapeError.no_rows(N)
        if not d:
            raise ShapeError.no_features(N)
        sets = open_labels(y, name=type(self).__name__)
        if sets.members.shape[0] != N:
            raise ShapeError.of_lengths("y", sets.members.shape[0], N)
        if sets.kind == "one" and N == 1:
            raise TooFewRowsError.of_one_row(type(self).__name__, 2)
        if len(sets.labels) < 2:
            label = sets.labels[0]
            one = sets.kind == "one"
            raise LabelError.one_class(label) if one else LabelSetError.one_label(label)
        scale = scale_of(features) if self.standardize else None
        kind: Any = np.float64 if self.precision == "float64" else np.float32
        unit = bool(self.unit_rows)
        rows = as_rows(features, kind, names=names, scale=scale, unit=unit).matrix()
        check_sizes(rows, names=names)
        return rows, names, sets, scale

    def _path(self) -> str:
        if self.path is not None:
            return self.path
        return "logistic" if self.loss == "logistic" or from_moments(self) else "hinge"

    @property
    def probabilistic(self) -> bool:
        """Whether `predict_proba` gives probabilities: with the logistic loss or from moments."""
        return bool(self.loss == "logistic" or from_moments(self))
