"""Encoded: any classifier or regressor on tables with categories, dates and missing values.

Columns of a frame become features by an encoding that is learnt at the fit (`table.encoding`) and
applied by column name when predicting. `WrappedProjection` forwards `transform` to a wrapped
classifier that projects on discriminant directions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.metrics import accuracy_score
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from discriminant.decision.actions import REJECT
from discriminant.errors import (
    LabelError,
    MissingCellError,
    NamesUncheckedWarning,
    OptionError,
    ResponseError,
    ShapeError,
    WeightError,
    warn,
)
from discriminant.estimators.base import (
    EstimatorMixin,
    RowEstimator,
    as_partitioned,
    available_if,
    is_regressor,
)
from discriminant.posterior import log_posterior
from discriminant.table.blocks import Features, Floats, Labels, dense, is_sparse, numbered_names
from discriminant.table.cells import Cells, Frame
from discriminant.table.column_types import ReadOptions, frame_with_options, infer_encoding
from discriminant.table.encoding import Column, EncodedRows as EncodedRows, Encoding
from discriminant.table.labels import is_missing_label
from discriminant.table.memory import ColumnarFeatures, as_features, check_weight
from discriminant.table.load import dropped_rows_note, is_path, read_frame, unlabelled_rows_note


def has_columns(X: Any) -> bool:
    """Whether rows are a frame, whose columns may have several types."""
    if isinstance(X, np.ndarray) or is_sparse(X) or isinstance(X, list | tuple):
        return False
    known = hasattr(X, "columns") and hasattr(X, "shape")
    stream = hasattr(X, "__arrow_c_stream__") or hasattr(X, "__arrow_c_array__")
    return is_path(X) or isinstance(X, Frame) or known or hasattr(X, "column_names") or stream


def to_frame(X: Any) -> Any:
    """Return rows of any kind as a frame."""
    if is_path(X):
        return read_frame(X)[0]
    if has_columns(X):
        return X
    features, _ = as_features(X)
    if not features.shape[0]:
        raise ShapeError.no_rows(0)
    if not features.shape[1]:
        raise ShapeError.no_features(features.shape[0])
    return array_cells(features, numbered_names(features.shape[1]))


def array_cells(features: Features, names: Sequence[str]) -> Frame:
    """Return an array as a frame with default column names."""
    rows = dense(features[:] if not is_sparse(features) else features)
    cells = tuple(Cells(name, "number", rows[:, j]) for j, name in enumerate(names))
    return Frame(cells, len(rows), named=False)


def count_rows(X: Any) -> int:
    """Number of rows."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def features_for(model: Any, rows: EncodedRows, encoding: Encoding) -> Any:
    """Features for the estimator: with names for ours, as an array for others."""
    if not (isinstance(model, RowEstimator) and encoding.named):
        return rows.matrix()
    import pyarrow as pa

    return pa.table(dict(zip(encoding.features, rows.features.columns, strict=True)))


def fit_with_weight(model: Any, X: Any, y: Any, weight: Any) -> None:
    """Fit an estimator; raise WeightError if it does not support the weights given."""
    if weight is None:
        model.fit(X, y)
    elif has_fit_parameter(model, "sample_weight"):
        model.fit(X, y, sample_weight=weight)
    else:
        raise WeightError.not_supported(type(model).__name__)


def _projects(model: Any) -> bool:
    return hasattr(getattr(model, "estimator_", model.estimator), "transform")


class WrappedProjection:
    """Forward the discriminant projection of `estimator_`, if it has one."""

    estimator: Any
    estimator_: Any
    fit: Any

    @available_if(_projects)
    def transform(self, X: Any) -> Floats:
        """(n, r) projection of rows on the discriminant directions of the classifier."""
        return np.asarray(self.estimator_.transform(self._as_given(X)))

    @available_if(_projects)
    def fit_transform(self, X: Any, y: Any = None, **fitting: Any) -> Floats:
        """Fit, and return the projection of the same rows."""
        return np.asarray(self.fit(X, y, **fitting).transform(X))

    @property
    def scalings_(self) -> Floats:
        """(d, r) discriminant directions in the features of the classifier."""
        return np.asarray(self.estimator_.scalings_)

    @property
    def centre_(self) -> Floats:
        """(d,) origin of the projection."""
        return np.asarray(self.estimator_.centre_)

    @property
    def canonical_correlations_(self) -> Floats:
        """(r,) correlation of each direction with the classes."""
        return np.asarray(self.estimator_.canonical_correlations_)

    @property
    def explained_variance_ratio_(self) -> Floats:
        """(r,) share of each direction in the separation of the classes."""
        return np.asarray(self.estimator_.explained_variance_ratio_)

    def _as_given(self, X: Any) -> Any:
        """Rows as the classifier needs them."""
        raise NotImplementedError


def _inner_has(name: str) -> Any:
    def has(self: Any) -> bool:
        model = getattr(self, "estimator_", self.estimator)
        if name in ("predict_proba", "predict_log_proba"):
            return hasattr(model, "predict_proba") or hasattr(model, "predict_log_proba")
        return hasattr(model, name)

    return has


def _classifies(self: Any) -> bool:
    if is_regressor(self.estimator):
        name = type(self.estimator).__name__
        raise AttributeError(f"Encoded({name}()) predicts numbers and decides on no class.")
    return True


def check_unseen(unseen: Any) -> None:
    """Raise OptionError for unseen='reject' with a regressor."""
    if unseen == "reject":
        allowed = "'error' or 'ignore' for a regressor, which rejects no rows"
        raise OptionError.of("unseen", unseen, allowed)


class Encoded(MetaEstimatorMixin, WrappedProjection, EstimatorMixin, BaseEstimator):
    """Encode the columns of a frame as numeric features for any classifier or regressor.

    Numbers, booleans and dates are used as they are; texts become indicators, or with `ordered`
    positions from 0 to 1. Identifiers and constant columns are dropped; `said_` says which.
    Columns are matched by name when predicting. An array has only numbers and is passed on.

    Parameters
    ----------
    estimator : classifier or regressor
        Cloned and fitted. Around a regressor such as LinearRegression or GLM, y holds numbers,
        `score` is that of the regressor, and there are no `classes_`.
    ordered : dict or None, default None
        {column: categories from lowest to highest}.
    categories : sequence of str, default ()
        Columns of numbers to treat as categories.
    missing : {'error', 'drop', 'mean', 'indicator', 'marginal'}, default 'error'
        Treatment of missing cells. 'drop': drop rows at the fit, also those without a label;
        'mean'; 'indicator': the mean, and a feature that marks the cell; 'marginal', for LDA, QDA,
        RDA and NearestMean: drop rows at the fit, and predict exactly from the cells present.
    unseen : {'error', 'ignore', 'reject'}, default 'error'
        Treatment of categories not seen during fitting. 'ignore': no indicator is 1, as for the
        reference category; 'reject', for classifiers: as 'ignore', but `decide` rejects the row.
    reference : {'frequent', 'first', None}, default 'frequent'
        Category without an indicator: the most frequent, the first in the order of the categories,
        or none. Without one, indicators sum to one, and some models warn of collinear columns.
    exclude : sequence of str, default ()
        Columns not to use.
    max_levels : int, default 100
        Drop a text column with more categories than this.

    Attributes
    ----------
    estimator_ : classifier or regressor
        The fitted estimator.
    encoding_ : Encoding
        What was learnt about each column; `encoding_.features` names the features.
    classes_ : array of shape (K,)
        Class labels of a classifier, sorted.
    said_ : tuple of str
        Notes on the columns and rows: what was dropped, and why.
    rows_dropped_ : int
        Rows dropped at the fit.
    n_features_out_ : int
        Number of features after encoding.
    n_features_in_, feature_names_in_
        Number of columns, and their names if the rows had any.

    See Also
    --------
    open_source : Read a file with the same options.

    Examples
    --------
    >>> import pandas as pd
    >>> from discriminant import LDA
    >>> frame = pd.DataFrame({"size": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "colour": list("rgrbgb")})
    >>> model = Encoded(LDA()).fit(frame, list("aaabbb"))
    >>> model.encoding_.features
    ('size', 'colour=g', 'colour=r')
    >>> model.predict(pd.DataFrame({"colour": ["r"], "size": [5.5]})).tolist()
    ['b']

    Lecture 5 introduces categories for regression: here a step of size is worth 2, and blue 3.

    >>> from discriminant import LinearRegression
    >>> price = [2.0, 4.0, 6.0, 11.0, 10.0, 15.0]
    >>> model = Encoded(LinearRegression(), reference="first").fit(frame, price)
    >>> dict(zip(model.encoding_.features, model.estimator_.coef_.round(6).tolist()))
    {'size': 2.0, 'colour=g': -3.0, 'colour=r': -3.0}
    """

    _priors_within = True  # its classes are those of the classifier, and so are its priors

    estimator_: Any
    encoding_: Encoding
    classes_: Labels  # of a classifier
    said_: tuple[str, ...]
    rows_dropped_: int

    @staticmethod
    def invalid_reason(parts: Mapping[str, Any]) -> str | None:
        """Return why these fitted attributes cannot belong together, or None."""
        model = parts.get("estimator_")
        expected = {"estimator_", "encoding_", "classes_"}
        if model is not None and not hasattr(model, "classes_"):
            expected.discard("classes_")  # a regressor has none
        absent = expected - set(parts)
        if absent == expected:
            return None  # not fitted
        if absent:
            return f"it has no {min(absent)}"
        d = len(parts["encoding_"].features)
        width = getattr(model, "n_features_in_", d)
        if width != d:
            return f"its encoding has {d} features, and its model expects {width}"
        return None

    def __init__(
        self,
        estimator: Any,
        *,
        ordered: Any = None,
        categories: Any = (),
        missing: Any = "error",
        unseen: Any = "error",
        reference: Any = "frequent",
        exclude: Any = (),
        max_levels: Any = 100,
    ) -> None:
        self.estimator = estimator
        self.ordered = ordered
        self.categories = categories
        self.missing = missing
        self.unseen = unseen
        self.reference = reference
        self.exclude = exclude
        self.max_levels = max_levels

    # --- fitting ----------------------------------------------------------------------------------

    @classmethod
    def of_fitted(cls, estimator: Any, encoding: Encoding, **options: Any) -> Encoded:
        """Wrap an estimator that was fitted to the features of an encoding."""
        model = cls(estimator, missing=encoding.missing, unseen=encoding.unseen, **options)
        model._set_state(estimator, encoding, (), 0)
        model._set_column_names(encoding)
        return model

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the encoding of each column, and fit a clone of the estimator.

        Partitioned rows (`discriminant.rows`, without y) already have an encoding: the options of
        this estimator are then those given to `rows`. Their target is a class, so that a regressor
        needs X and y.
        """
        model, wishes = clone(self.estimator), self._wishes()
        regression = is_regressor(model)
        found = as_partitioned(X, y, sample_weight)
        if found is not None and regression:
            raise ResponseError.of_classes(type(model).__name__)
        if found is not None:
            model.fit(found)
            self._set_state(model, found.plan.encoding, found.notes, found.rows_read - len(found))
            self._set_column_names(found.plan.encoding)
            return self
        wishes.check()
        if wishes.missing == "marginal" and not getattr(model, "can_marginalise", False):
            allowed = "'mean' or 'indicator': only LDA, QDA, RDA and NearestMean can do without"
            raise OptionError.of("missing", "marginal", f"{allowed} a feature")
        if regression:
            check_unseen(wishes.unseen)
        if not has_columns(X) and wishes.missing == "error":
            return self._fit_array(model, X, y, sample_weight)
        if y is None:
            absent = ResponseError.absent if regression else LabelError.absent
            raise absent(type(self).__name__)
        source = to_frame(X)
        if isinstance(source, Frame) and not source.named:  # an array: all its columns are meant
            wishes = replace(wishes, columns=source.names)
        frame = frame_with_options(source, wishes)
        weight, read = check_weight(sample_weight, len(frame)), len(frame)
        notes: list[str] = []
        if wishes.missing == "drop" and (gone := is_missing_label(y)).any():
            frame, y, weight = self._drop_unlabelled(frame, np.asarray(y), weight, ~gone)
            notes = unlabelled_rows_note(read, len(frame))
        encoding, said = infer_encoding(frame, wishes, weight=weight)
        said = [*notes, *said]
        rows = encoding.encode_rows(frame, fitting=True)
        rows, y, weight, said = self._drop_incomplete(rows, y, weight, said, encoding)
        fit_with_weight(model, features_for(model, rows, encoding), y, weight)
        if encoding.missing == "marginal" and model.moments_.detail == "rows":
            allowed = "'mean' or 'indicator' where features outnumber rows"
            raise OptionError.of("missing", "marginal", allowed)
        self._set_state(model, encoding, tuple(said), read - len(rows.incomplete))
        self._set_column_names(encoding)
        return self

    # --- using ------------------------------------------------------------------------------------

    def encode(self, X: Any) -> Floats:
        """(n, d) encoded features of rows X."""
        self._check_is_fitted()
        return self._rows(X).matrix()

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Predict the class, or the number of a regressor, for each row of X."""
        self._check_is_fitted()
        if self._passes(X):
            return np.asarray(self.estimator_.predict(X))
        rows = self._rows(X)
        if self._by_margins(rows):
            return np.asarray(self.classes_[self._marginal(rows).argmax(axis=1)])
        return np.asarray(
            self.estimator_.predict(features_for(self.estimator_, rows, self.encoding_))
        )

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy of a classifier; R2 or D2 of a regressor, by its own `score`."""
        self._check_is_fitted()
        if not is_regressor(self.estimator_):
            return float(accuracy_score(y, self.predict(X), sample_weight=sample_weight))
        weight = {} if sample_weight is None else {"sample_weight": sample_weight}
        return float(self.estimator_.score(self._as_given(X), y, **weight))

    @available_if(_inner_has("predict_log_proba"))
    def predict_log_proba(self, X: Any) -> Floats:
        """(n, K) log posteriors."""
        self._check_is_fitted()
        if hasattr(self.estimator_, "predict_log_proba"):
            return self._answer(X, "predict_log_proba", log_posterior)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    @available_if(_inner_has("predict_proba"))
    def predict_proba(self, X: Any) -> Floats:
        """(n, K) posteriors."""
        self._check_is_fitted()
        if hasattr(self.estimator_, "predict_proba"):
            return self._answer(X, "predict_proba", lambda s: np.exp(log_posterior(s)))
        return np.asarray(np.exp(self.predict_log_proba(X)))

    @available_if(_inner_has("decision_function"))
    def decision_function(self, X: Any) -> Floats:
        """(n, K) scores of the classifier, or (n,) with two classes."""
        self._check_is_fitted()
        return self._answer(
            X, "decision_function", lambda s: s[:, 1] - s[:, 0] if s.shape[1] == 2 else s
        )

    @available_if(_inner_has("predict_topk"))
    def predict_topk(self, X: Any, k: int = 5, beam: int | None = None) -> Any:
        """(n, k) codes and (n, k) scores of the best labels of each row, by a label tree."""
        self._check_is_fitted()
        if self._passes(X):
            return self.estimator_.predict_topk(X, k=k, beam=beam)
        given = features_for(self.estimator_, self._rows(X), self.encoding_)
        return self.estimator_.predict_topk(given, k=k, beam=beam)

    @available_if(_classifies)
    def rejected(self, X: Any) -> npt.NDArray[np.bool_]:
        """(n,) whether a row has an unseen category and unseen='reject'."""
        self._check_is_fitted()
        if self._passes(X) or (self.encoding_.unseen != "reject" and not is_path(X)):
            return np.zeros(count_rows(X), dtype=bool)
        return self._rows(X).rejected

    @available_if(_classifies)
    def decide(self, X: Any) -> npt.NDArray[np.object_]:
        """(n,) class or decision of each row; REJECT for rows that `rejected` marks."""
        self._check_is_fitted()
        if self._passes(X):
            how = getattr(self.estimator_, "decide", self.estimator_.predict)
            return np.asarray(how(X), dtype=object)
        rows = self._rows(X)
        given = features_for(self.estimator_, rows, self.encoding_)
        if hasattr(self.estimator_, "decide"):
            found = np.array(self.estimator_.decide(given), dtype=object)
        else:
            found = np.array(self.predict(X), dtype=object)
        found[rows.rejected] = REJECT
        return found

    @property
    def prior_(self) -> Floats:
        """(K,) class priors of the classifier."""
        return np.asarray(self.estimator_.prior_)

    @property
    def n_features_out_(self) -> int:
        """Number of features after encoding."""
        return len(self.encoding_.features)

    def __sklearn_tags__(self) -> Any:
        """Tags of the estimator; missing cells are allowed if an option handles them."""
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.regressor_tags = inner.regressor_tags
        tags.input_tags = inner.input_tags
        tags.input_tags.allow_nan = self.missing in ("mean", "indicator", "marginal")
        tags.target_tags = inner.target_tags
        tags.classifier_tags = inner.classifier_tags
        tags.transformer_tags = inner.transformer_tags
        return tags

    # --- inside -----------------------------------------------------------------------------------

    def _wishes(self) -> ReadOptions:
        return ReadOptions(
            exclude=tuple(self.exclude),
            ordered=dict(self.ordered or {}),
            categories=tuple(self.categories),
            missing=self.missing,
            unseen=self.unseen,
            reference=self.reference,
            max_levels=self.max_levels,
        )

    def _fit_array(self, model: Any, X: Any, y: Any, sample_weight: Any) -> Self:
        """Fit an array, which has only numbers, without encoding."""
        fit_with_weight(model, X, y, sample_weight)
        width = getattr(model, "n_features_in_", None)
        width = np.shape(X)[1] if width is None else int(width)
        columns = tuple(Column(n, "number", features=(n,)) for n in numbered_names(width))
        encoding = Encoding(columns, None, self.missing, self.unseen, named=False)
        self._set_state(model, encoding, (), 0)
        self._set_column_names(encoding)
        return self

    def _drop_unlabelled(
        self, frame: Frame, y: npt.NDArray[Any], weight: Floats | None, known: npt.NDArray[np.bool_]
    ) -> tuple[Frame, npt.NDArray[Any], Floats | None]:
        """Drop rows without a label."""
        if len(y) != len(frame):
            raise ShapeError.of_lengths("y", len(y), len(frame))
        keep = np.flatnonzero(known)
        if not len(keep):
            raise LabelError.missing(range(len(y)))
        return frame.take(keep), y[keep], None if weight is None else weight[keep]

    def _drop_incomplete(
        self, rows: EncodedRows, y: Any, weight: Any, said: list[str], encoding: Encoding
    ) -> tuple[EncodedRows, Any, Any, list[str]]:
        """Drop rows with missing cells, if the option says so."""
        if encoding.missing not in ("drop", "marginal") or not rows.incomplete.any():
            return rows, y, weight, said
        keep = np.flatnonzero(~rows.incomplete)
        if not len(keep):
            gaps = [column.name for column in encoding.used if column.missing]
            raise MissingCellError.of_all(len(rows.incomplete), gaps)
        columns = ColumnarFeatures(tuple(column[keep] for column in rows.features.columns))
        kept = EncodedRows(columns, rows.rejected[keep], rows.incomplete[keep])
        weight = None if weight is None else weight[keep]
        told = [*said, dropped_rows_note(len(rows.incomplete), len(keep), encoding.missing)]
        y = np.asarray(y)
        if len(y) != len(rows.incomplete):
            raise ShapeError.of_lengths("y", len(y), len(rows.incomplete))
        return kept, y[keep], weight, told

    def _set_state(self, model: Any, encoding: Encoding, said: tuple[str, ...], lost: int) -> None:
        self.estimator_, self.encoding_ = model, encoding
        self.said_, self.rows_dropped_ = said, lost
        if not is_regressor(model):
            self.classes_ = np.asarray(model.classes_)
        elif hasattr(self, "classes_"):
            del self.classes_

    def _set_column_names(self, encoding: Encoding) -> None:
        names = [c.name for c in encoding.columns if c.kind not in ("target", "weight")]
        self._set_input_names(names, named=encoding.named)

    def _passes(self, X: Any) -> bool:
        """Whether rows are passed on unchanged, as those of the fit were."""
        return self.encoding_.missing == "error" and not self.encoding_.named

    def _rows(self, X: Any) -> EncodedRows:
        encoding = self.encoding_
        if is_path(X):
            return encoding.encode_rows(read_frame(X, encoding=encoding)[0])
        if encoding.named and has_columns(X):
            return encoding.encode_rows(X)
        if encoding.named:
            warn(NamesUncheckedWarning.given_without(type(self).__name__))
        features, _ = as_features(X)
        if features.shape[1] != self.n_features_in_:
            raise ShapeError.of_width(features.shape[1], self.n_features_in_, type(self).__name__)
        known = [c.name for c in encoding.columns if c.kind not in ("target", "weight")]
        return encoding.encode_rows(array_cells(features, known))

    def _answer(self, X: Any, name: str, of_scores: Any) -> Floats:
        """Answer of the classifier, or from marginal scores of rows with missing features."""
        if self._passes(X):
            return np.asarray(getattr(self.estimator_, name)(X))
        rows = self._rows(X)
        if self._by_margins(rows):
            return np.asarray(of_scores(self._marginal(rows)))
        given = features_for(self.estimator_, rows, self.encoding_)
        return np.asarray(getattr(self.estimator_, name)(given))

    def _as_given(self, X: Any) -> Any:
        self._check_is_fitted()
        return (
            X if self._passes(X) else features_for(self.estimator_, self._rows(X), self.encoding_)
        )

    def _by_margins(self, rows: EncodedRows) -> bool:
        return self.encoding_.missing == "marginal" and bool(rows.incomplete.any())

    def _marginal(self, rows: EncodedRows) -> Floats:
        return np.asarray(self.estimator_.marginal_scores(rows.matrix()))
