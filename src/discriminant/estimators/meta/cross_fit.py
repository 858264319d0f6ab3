"""Cross-fitting: one classifier fitted without each fold, and held-out values of all rows.

    models[f]    fitted without fold f: by adding moments, without reading rows, where possible
    values       of each row, from the scores of the model that was fitted without the row

Calibrators (`Calibrated`) and conformity scores (`PredictionSets`) need, for each row, values
computed by a model that was fitted without the row. Rows are assigned to folds by their content
(`folds.content_folds`), in memory and on partitioned tables, so the result does not depend on their
order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from discriminant.assessment.classifier_outputs import without_feature_names
from discriminant.assessment.resampling.folds import (
    FoldNumbers,
    MemoryFolds,
    PartitionedFolds,
    check_training_classes,
    class_counts,
    content_folds,
    content_order,
    drop_empty_classes,
    estimator_with_class_order,
    fold_numbers,
    present_classes,
    restrict_prior,
    rows_by_fold,
    stratified_folds,
    warn_classes_in_one_fold,
)
from discriminant.assessment.resampling.held_out_folds import (
    can_add_moments,
    needed_moments_detail,
)
from discriminant.engines.local import blas_context
from discriminant.engines.partitioned_table import PartitionedTable
from discriminant.errors import (
    DiscriminantError,
    OptionError,
    ShapeError,
    WeightError,
    capture_warnings,
    merge_warnings,
)
from discriminant.estimators.base import fit_with_weight
from discriminant.moments.summary_base import Summable, split_by_fold
from discriminant.table.blocks import (
    Block,
    Codes,
    Features,
    Floats,
    Labels,
    Places,
    Schema,
    check_weight,
    dense,
)
from discriminant.table.hash_folds import row_hashes
from discriminant.table.labels import declared_order, encode_labels
from discriminant.table.memory import as_features, as_indexable, as_table, encode_classes

Hashes = npt.NDArray[np.uint64]
Score = Callable[[Any, Any], Floats]  # fitted model, rows -> (n, k) scores of its classes
# scores (n, K), codes and a function that computes hashes of the rows -> (n, m)
RowValues = Callable[[Floats, Places, Callable[[], Hashes]], Floats]
LEAVE_ONE_OUT = "leave one out"
_PIECE = 8192  # rows scored or hashed at a time
_OTHER_SEED = 1 << 31  # seed of hashes that must differ from those of the folds


@dataclass(frozen=True, slots=True, eq=False)
class HeldOutValues(Summable):
    """Values of n rows; the value of each row is computed by the model fitted without its fold."""

    values: Floats  # (n, m)
    codes: Places  # (n,) true class
    fold: Places  # (n,)
    weight: Floats | None  # (n,)

    def __add__(self, other: HeldOutValues) -> HeldOutValues:
        """Return the values of both sets of rows."""
        weights = [np.ones(len(v.codes)) if v.weight is None else v.weight for v in (self, other)]
        plain = self.weight is None and other.weight is None
        return HeldOutValues(
            np.concatenate([self.values, other.values]),
            np.concatenate([self.codes, other.codes]),
            np.concatenate([self.fold, other.fold]),
            None if plain else np.concatenate(weights),
        )


@dataclass(frozen=True, slots=True, eq=False)
class CrossFitRows:
    """Rows in memory, of positive weight, with the codes of their classes."""

    X: Any
    labels: Labels  # (K,)
    codes: Codes  # (n,)
    weight: Floats | None  # (n,)
    numbers: Places | None = None  # (n,) row numbers before rows of weight 0 were dropped
    order: list[Any] | None = None  # declared order of the labels

    @classmethod
    def of(cls, X: Any, y: Any, sample_weight: Any, *, frozen: bool = False) -> CrossFitRows:
        """Check labels and weights, and drop rows of weight 0.

        Rows for a frozen classifier may belong to a single class.
        """
        X = as_indexable(X)
        if frozen and y is not None:
            labels, codes = encode_labels(y)
            if len(codes) != X.shape[0]:
                raise ShapeError.of_lengths("y", len(codes), X.shape[0])
        else:
            labels, codes = encode_classes(X, y)
        weight, order = check_weight(sample_weight, len(codes)), declared_order(y)
        if weight is None or weight.all():
            return cls(X, labels, codes, weight, order=order)
        if not frozen:
            for k in np.flatnonzero(np.bincount(codes, weight, len(labels)) <= 0):
                raise WeightError.zero_class(labels[k])
        rows = np.flatnonzero(weight)
        X = _safe_indexing(X, rows)
        used = cls.of(X, labels[codes[rows]], weight[rows], frozen=frozen)
        return replace(used, numbers=rows, order=order)

    def take(self, rows: Places) -> CrossFitRows:
        """Return some of the rows, with the same classes."""
        weight = None if self.weight is None else self.weight[rows]
        X, codes = _safe_indexing(self.X, rows), self.codes[rows]
        return CrossFitRows(X, self.labels, codes, weight, order=self.order)

    def split(self, size: float, seed: int) -> npt.NDArray[np.bool_]:
        """Return a boolean array (n,): True for a random sample of a share `size` of the rows.

        The hash of a row decides whether the row is in the sample. The sample is not stratified by
        class: the coverage of split conformal prediction is guaranteed for random samples.
        """
        features, one_class = numeric_features(None, self.X), self.codes * 0
        place, folds = None, max(round(1.0 / size), 2)
        if features is not None:
            place = content_order(features, one_class, self.weight, folds, seed=seed)
        if place is None:
            place = np.random.default_rng(seed).permutation(len(self.codes))
        return np.asarray(np.floor((place + 1) * size) > np.floor(place * size))

    def fit(self, estimator: Any) -> Any:
        """Fit an estimator to the rows and return it."""
        estimator = estimator_with_class_order(estimator, self.order)
        return fit_with_weight(estimator, self.X, self.labels[self.codes], self.weight)

    def folds(self, fitted: Any, folds: Any, seed: int) -> FoldNumbers:
        """Return the fold of each row; there are at most as many folds as rows."""
        n = len(self.codes)
        if isinstance(folds, str) and folds == LEAVE_ONE_OUT:
            return np.arange(n)
        if not isinstance(folds, int | np.integer) or isinstance(folds, bool):
            if self.numbers is not None and np.ndim(folds) == 1:
                folds = np.asarray(folds)[self.numbers]
            return fold_numbers(folds, self.codes, seed=seed, X=self.X)
        if folds < 2:
            raise OptionError.of("folds", folds, "2 or more, fold numbers, or a splitter")
        features, n_folds = numeric_features(fitted, self.X), min(int(folds), n)
        if features is None:
            return stratified_folds(self.codes, n_folds, seed)
        return content_folds(features, self.codes, self.weight, n_folds, seed=seed)


def check_seed(seed: Any) -> int:
    """Return the seed of hashes; raise `OptionError` unless it is a whole number."""
    whole = isinstance(seed, int | np.integer) and not isinstance(seed, bool)
    if not whole or not 0 <= seed < _OTHER_SEED:
        raise OptionError.of("seed", seed, "a whole number from 0 to 2147483647")
    return int(seed)


def numeric_features(fitted: Any, X: Any) -> Features | None:
    """Return the rows as numbers, with columns in the order of a fit; None if some are text."""
    names = getattr(fitted, "feature_names_in_", None)
    schema = None if names is None else Schema(tuple(map(str, names)), np.zeros(0), True)
    try:
        with capture_warnings():
            return as_features(X, match=schema)[0]
    except DiscriminantError:
        return None


def hashes_of(fitted: Any, X: Any, scores: Floats, seed: int) -> Hashes:
    """Return a hash of each row (n,), computed from its numbers, or else from its scores."""
    features = numeric_features(fitted, X)
    return hash_rows(scores if features is None else features, seed)


def hash_rows(features: Features, seed: int) -> Hashes:
    """Return a hash of the features of each row (n,), other than the hash that assigns folds."""
    parts = [np.zeros(0, dtype=np.uint64)]
    for lo in range(0, features.shape[0], _PIECE):
        rows = dense(features[lo : lo + _PIECE])
        parts.append(row_hashes(rows, np.zeros(len(rows), dtype=np.uint8), seed=seed + _OTHER_SEED))
    return np.concatenate(parts)


def scores_among(model: Any, X: Any, labels: Labels, score: Score) -> Floats:
    """Return the (n, K) scores of all classes; -inf for a class that the model does not know."""
    scores = score(model, X)
    if len(model.classes_) == len(labels):
        return scores
    among_all = np.full((len(scores), len(labels)), -np.inf)
    among_all[:, np.searchsorted(labels, model.classes_)] = scores
    return among_all


# --- rows in memory -------------------------------------------------------------------------------


def fit_folds(estimator: Any, rows: CrossFitRows, fold: FoldNumbers, *, adds: bool) -> list[Any]:
    """Fit one classifier for each fold, to the rows of all other folds.

    With `adds`, a model that is fitted from moments gets the sum of the moments of the other folds,
    if that is less work.
    """
    labels = rows.labels
    warn_classes_in_one_fold(class_counts(rows.codes, rows.weight, labels, fold), labels)
    if not (adds and can_add_moments(estimator, rows.X)):
        return [_fit_rows(estimator, rows, fold, f) for f in range(int(fold.max()) + 1)]
    table = as_table(rows.X, labels[rows.codes], weight=rows.weight, name=type(estimator).__name__)
    with blas_context(table.width):
        folded = MemoryFolds.of_table(table, fold, detail=estimator.detail)
        models = []
        for f, train in enumerate(folded.trains):
            model = _fit_moments(estimator, train, labels, table.schema)
            models.append(_fit_rows(estimator, rows, fold, f) if model is None else model)
    return models


def _fit_moments(estimator: Any, train: Any, labels: Labels, schema: Schema) -> Any | None:
    """Return a classifier fitted to moments; None if they are not accurate enough."""
    present = train.rows > 0
    check_training_classes(present, labels)
    model = clone(restrict_prior(estimator, present, labels))
    own = drop_empty_classes(train)
    if model.needs_rows_for(own):
        return None
    model.fit_moments(own)
    model._set_features(schema.features, schema.named)
    return model


def _fit_rows(estimator: Any, rows: CrossFitRows, fold: FoldNumbers, f: int) -> Any:
    train = rows.take(np.flatnonzero(fold != f))
    present = present_classes(train.codes, train.weight, rows.labels)
    check_training_classes(present, rows.labels)
    return train.fit(clone(restrict_prior(estimator, present, rows.labels)))


def held_out_values(
    models: list[Any],
    rows: CrossFitRows,
    fold: FoldNumbers,
    *,
    score: Score,
    values: RowValues,
    seed: int,
) -> HeldOutValues:
    """Return the values of all rows; the value of each row is computed by the model of its fold."""
    parts, codes = [], rows.codes.astype(np.intp)
    order, plain = rows_by_fold(fold), isinstance(rows.X, np.ndarray)
    for model, places in zip(models, order, strict=True):
        X = rows.X[places] if plain else _safe_indexing(rows.X, places)
        scores = scores_among(model, X, rows.labels, score)
        parts.append(values(scores, codes[places], partial(hashes_of, model, X, scores, seed)))
    joined = np.empty((len(codes), parts[0].shape[1]))
    joined[np.concatenate(order)] = np.concatenate(parts)
    return HeldOutValues(joined, codes, fold.astype(np.intp), rows.weight)


# --- partitioned tables ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class HeldOutValuesReading:
    """Compute the values of every row by the model that was fitted without the fold of the row."""

    labels: Labels  # (K,)
    models: tuple[Any, ...]  # one for each of the F folds; None: the fold is left out
    score: Score
    values: RowValues
    seed: int

    @property
    def summary_size(self) -> int:
        """Number of values that are stored for each row."""
        return 3 + len(self.labels)

    def read(self, block: Block) -> HeldOutValues:
        """Return the values of the rows of one block."""
        if block.fold is None:
            block = block.with_folds(np.zeros(len(block), dtype=np.intp))
        total = self._read_part(0, block.rows(0, 0))
        for f, part in split_by_fold(block):
            if self.models[f] is not None:
                total = total + self._read_part(f, part)
        return total

    def _read_part(self, f: int, part: Block) -> HeldOutValues:
        codes, K = part.codes.astype(np.intp), len(self.labels)
        values = [self.values(np.zeros((0, K)), codes[:0], lambda: np.zeros(0, dtype=np.uint64))]
        for lo in range(0, len(part), _PIECE):
            piece = slice(lo, min(lo + _PIECE, len(part)))
            features = np.asarray(dense(part.features[piece]), dtype=np.float64)
            scores = scores_among(self.models[f], features, self.labels, self.score)
            hashes = partial(hash_rows, features, self.seed)
            values.append(self.values(scores, codes[piece], hashes))
        weight = None if part.weight is None else part.weight.astype(np.float64)
        fold = np.full(len(part), f, dtype=np.intp)
        return HeldOutValues(np.concatenate(values), codes, fold, weight)


def cross_fit_partitions(
    estimator: Any,
    table: PartitionedTable,
    *,
    folds: Any,
    seed: int,
    score: Score,
    values: RowValues,
    only: int | None = None,
) -> tuple[list[Any], HeldOutValues]:
    """Fit one classifier without each fold of a partitioned table; also return held-out values.

    The values of all rows are stored in memory. With `only`, a single model is fitted, without that
    fold, and values are returned for the rows of that fold.
    """
    with merge_warnings():
        detail = needed_moments_detail(estimator)
        folded = PartitionedFolds.of(table, folds, seed=seed, detail=detail)
        used = folded.filled if only is None else [only]
        models = {f: _fit_partitions(estimator, folded, f) for f in used}
    plain = tuple(
        without_feature_names(models[f]) if f in models else None for f in range(folded.n_folds)
    )
    held = folded.rows.fold(HeldOutValuesReading(folded.labels, plain, score, values, seed))
    place = np.zeros(folded.n_folds, dtype=np.intp)
    place[used] = np.arange(len(used))
    return [models[f] for f in used], replace(held, fold=place[held.fold])


def _fit_partitions(estimator: Any, folded: PartitionedFolds, f: int) -> Any:
    present = folded.trains[f].rows > 0
    check_training_classes(present, folded.labels)
    if hasattr(estimator, "rule_from") and can_add_moments(estimator, folded.rows.sample.features):
        train = folded.training_moments(f, estimator.detail)
        model = _fit_moments(estimator, train, folded.labels, folded.rows.schema)
        if model is not None:
            return model
    model = clone(restrict_prior(estimator, present, folded.labels))
    return cast(Any, model.fit(folded.training(f)))
