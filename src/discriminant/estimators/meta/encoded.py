"""Encoded: wrapper that encodes the columns of data frames for any classifier or regressor.

Categories, dates and missing values become numeric features. The encoding is learnt by `fit`
(`table.encoding`); when predicting, it is applied to the columns by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from inspect import signature
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import get_tags

from discriminant.assessment.resampling.folds import estimator_with_class_order, is_moment_based
from discriminant.decision.actions import REJECT
from discriminant.engines.dispatch import read_incomplete_moments
from discriminant.errors import (
    FormulaError,
    LabelError,
    MissingCellError,
    NamesUncheckedWarning,
    OptionError,
    ResponseError,
    ShapeError,
    capture_warnings,
    warn,
)
from discriminant.estimators.base import (
    EstimatorMixin,
    RowEstimator,
    available_if,
    fit_with_weight,
    has_probabilities,
    is_regressor,
    partitioned_or_none,
    second_minus_first,
)
from discriminant.models.gaussian.structured_covariances import DIAGONAL_STRUCTURES
from discriminant.posterior import log_posterior
from discriminant.table.blocks import Features, Floats, Labels, dense, is_sparse, numbered_names
from discriminant.table.column_cells import ColumnCells, Frame
from discriminant.table.column_types import ReadOptions, frame_with_options, infer_encoding
from discriminant.table.encoding import Column, EncodedRows as EncodedRows, Encoding
from discriminant.table.formula.fit import (
    complete_rows,
    formula_encoding,
    formula_frame,
    response_values,
)
from discriminant.table.labels import declared_order, is_missing_label
from discriminant.table.load import (
    dropped_rows_note,
    is_path,
    read_frame,
    unlabelled_rows_note,
)
from discriminant.table.memory import (
    ColumnarFeatures,
    NamedFeatures,
    as_features,
    as_table,
    check_weight,
)


def has_columns(X: Any) -> bool:
    """Return whether rows are a data frame, whose columns may have different types."""
    if isinstance(X, np.ndarray) or is_sparse(X) or isinstance(X, list | tuple):
        return False
    known = hasattr(X, "columns") and hasattr(X, "shape")
    stream = hasattr(X, "__arrow_c_stream__") or hasattr(X, "__arrow_c_array__")
    return is_path(X) or isinstance(X, Frame) or known or hasattr(X, "column_names") or stream


def to_frame(X: Any) -> Any:
    """Return rows of any supported type as a frame."""
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
    """Return an array as a frame, with default column names."""
    rows = dense(features[:] if not is_sparse(features) else features)
    cells = tuple(ColumnCells(name, "number", rows[:, j]) for j, name in enumerate(names))
    return Frame(cells, len(rows), named=False)


def count_rows(X: Any) -> int:
    """Return the number of rows."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def features_for(model: Any, rows: EncodedRows, encoding: Encoding) -> Any:
    """Return the features in the form that an estimator expects.

    Estimators of this package get column names; others get an array.
    """
    if not (isinstance(model, RowEstimator) and (encoding.named or encoding.formula is not None)):
        return rows.matrix()
    import pyarrow as pa

    return pa.table(dict(zip(encoding.features, rows.features.columns, strict=True)))


def _features_to_predict(model: Any, rows: EncodedRows, encoding: Encoding) -> Any:
    """Return features for predictions by an estimator fitted to the result of `features_for`."""
    named = encoding.named or encoding.formula is not None
    if isinstance(model, RowEstimator) and named:
        return NamedFeatures(encoding.features, rows.features)
    return rows.matrix()


def _inner_has(name: str) -> Any:
    def has(self: Any) -> bool:
        model = getattr(self, "estimator_", self.estimator)
        if name in ("predict_proba", "predict_log_proba"):
            return has_probabilities(model)
        return hasattr(model, name)

    return has


def _inner_attribute(name: str, doc: str) -> Any:
    def read(self: Any) -> Floats:
        return np.asarray(getattr(self.estimator_, name))

    return property(read, doc=doc)


def _classifies(self: Any) -> bool:
    if is_regressor(self.estimator):
        name = type(self.estimator).__name__
        raise AttributeError(f"Encoded({name}()) predicts numbers, not classes.")
    return True


def check_unseen_option(unseen: Any) -> None:
    """Raise `OptionError` for unseen='reject' if the estimator is a regressor."""
    if unseen == "reject":
        allowed = "'error' or 'ignore' for a regressor, which cannot reject rows"
        raise OptionError.of("unseen", unseen, allowed)


class Encoded(MetaEstimatorMixin, EstimatorMixin, BaseEstimator):
    """Encode the columns of a frame as numeric features for any classifier or regressor.

    Numbers, booleans and dates become one numeric feature each. A text column becomes one indicator
    per category; with `ordered`, it becomes the position of the category on a scale from 0 to 1.
    Identifiers and constant columns are dropped; `said_` names them. Columns are matched by name
    when predicting. An array, which has only numbers, is passed to the estimator without encoding.

    Parameters
    ----------
    estimator : classifier or regressor
        Estimator that is cloned and fitted. With a regressor such as LinearRegression or GLM, y
        contains numbers, `score` is the regressor's score, and there is no `classes_`.
    ordered : dict or None, default None
        {column: categories from lowest to highest}.
    categories : sequence of str, default ()
        Names of numeric columns to treat as categorical.
    missing : {'error', 'drop', 'mean', 'indicator', 'marginal', 'em'}, default 'error'
        Treatment of missing cells. 'error': raise an error. 'drop': the fit drops rows with missing
        cells or without a label. 'mean': replace missing cells by the mean of the column.
        'indicator': the same, with an additional feature that marks missing cells. 'marginal', for
        LDA, QDA, RDA and NearestMean: the fit drops rows with missing cells, and predictions use
        the exact marginal distribution of the cells that are present. 'em', for the same models: as
        'marginal', but the fit uses all cells that are present, by maximum likelihood (EM).
    unseen : {'error', 'ignore', 'reject'}, default 'error'
        Treatment of categories not seen during fitting. 'error': raise an error. 'ignore': all
        indicators are 0, as for the reference category. 'reject', for classifiers: as 'ignore', but
        `decide` rejects the row.
    reference : {'frequent', 'first', None}, default 'frequent'
        Category that has no indicator: the most frequent one, or the first in the order of the
        categories. None means that every category has an indicator. The indicators then sum to one,
        and some models warn of collinear columns.
    exclude : sequence of str, default ()
        Columns not to use.
    max_levels : int, default 100
        Drop a text column with more categories than this.
    formula : str or None, default None
        Formula of the features, such as 'case ~ age + C(education) + log(dose)', in place of the
        rules above: only the columns that it names are used. The response on its left-hand side is
        a column of X, and y is left out; without a left-hand side, y is needed. `missing` must be
        'error' or 'drop'. `from_formula` of any estimator sets it.

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
        Number of rows that the fit dropped.
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

    Lecture 5 uses categories in regression. Here the price rises by 2 per unit of size, and blue
    costs 3 more than the other colours.

    >>> from discriminant import LinearRegression
    >>> price = [2.0, 4.0, 6.0, 11.0, 10.0, 15.0]
    >>> model = Encoded(LinearRegression(), reference="first").fit(frame, price)
    >>> dict(zip(model.encoding_.features, model.estimator_.coef_.round(6).tolist()))
    {'size': 2.0, 'colour=g': -3.0, 'colour=r': -3.0}

    A formula names the features as R does.

    >>> from discriminant import Logistic
    >>> frame = pd.concat([frame, frame])
    >>> frame["kind"] = list("abaabbbbaaab")
    >>> Logistic.from_formula("kind ~ log(size) + colour", frame).encoding_.features
    ('log(size)', 'colourg', 'colourr')
    """

    _priors_within = True  # classes and priors are those of the wrapped classifier

    estimator_: Any
    encoding_: Encoding
    classes_: Labels  # only if the estimator is a classifier
    said_: tuple[str, ...]
    rows_dropped_: int
    training_rows_: Floats  # only if a study fitted the model: hashes of some of its rows
    training_range_: Floats  # likewise: (2, d) lowest and highest value of each feature

    @staticmethod
    def invalid_reason(parts: Mapping[str, Any]) -> str | None:
        """Return the reason why these fitted attributes are inconsistent, or None if they agree."""
        model = parts.get("estimator_")
        expected = {"estimator_", "encoding_", "classes_"}
        if model is not None and not hasattr(model, "classes_"):
            expected.discard("classes_")  # a regressor has no classes
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
        formula: Any = None,
    ) -> None:
        self.estimator = estimator
        self.ordered = ordered
        self.categories = categories
        self.missing = missing
        self.unseen = unseen
        self.reference = reference
        self.exclude = exclude
        self.max_levels = max_levels
        self.formula = formula

    # --- fitting ----------------------------------------------------------------------------------

    @classmethod
    def of_fitted(cls, estimator: Any, encoding: Encoding, **options: Any) -> Encoded:
        """Wrap an estimator that was fitted to the features of an encoding."""
        text = None if encoding.formula is None else encoding.formula.formula
        options = {"missing": encoding.missing, "unseen": encoding.unseen, **options}
        model = cls(estimator, formula=text, **options)
        return model._set_state(estimator, encoding, (), 0)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the encoding of each column and fit a clone of the estimator.

        A partitioned table (`discriminant.rows`), which is passed without y, already has an
        encoding: the options given to `rows` replace the options of this estimator. The target of a
        partitioned table is always a class, so a regressor must be fitted to X and y instead.
        """
        model = clone(estimator_with_class_order(self.estimator, declared_order(y)))
        options = self._read_options()
        regression = is_regressor(model)
        table = partitioned_or_none(X, y, sample_weight)
        if table is not None and self.formula is not None:
            raise FormulaError.needs_memory("rows")
        if table is not None and regression:
            raise ResponseError.of_classes(type(model).__name__)
        if table is not None:
            model.fit(table)
            dropped = table.rows_read - len(table)
            return self._set_state(model, table.plan.encoding, table.notes, dropped)
        options.check()
        if self.formula is not None:
            return self._fit_formula(model, X, y, sample_weight, options)
        if options.missing in ("marginal", "em") and not getattr(model, "can_marginalise", False):
            allowed = "'mean' or 'indicator': only LDA, QDA, RDA and NearestMean support the others"
            raise OptionError.of("missing", options.missing, f"{allowed} a feature")
        if options.missing == "em" and not is_moment_based(model):
            allowed = (
                "'mean', 'indicator' or 'marginal' with a model that reads the rows repeatedly"
            )
            raise OptionError.of("missing", "em", allowed)
        if options.missing == "em" and getattr(model, "covariance", "") in DIAGONAL_STRUCTURES:
            allowed = f"'mean', 'indicator' or 'marginal' with covariance={model.covariance!r}"
            raise OptionError.of("missing", "em", allowed)
        if regression:
            check_unseen_option(options.unseen)
        if not has_columns(X) and options.missing == "error":
            return self._fit_array(model, X, y, sample_weight)
        if y is None:
            absent = ResponseError.absent if regression else LabelError.absent
            raise absent(type(self).__name__)
        source = to_frame(X)
        # an array without column names: every column is used
        if isinstance(source, Frame) and not source.named:
            options = replace(options, columns=source.names)
        frame = frame_with_options(source, options)
        weight, rows_read = check_weight(sample_weight, len(frame)), len(frame)
        notes: list[str] = []
        if options.missing == "drop" and (unlabelled := is_missing_label(y)).any():
            frame, y, weight = self._drop_unlabelled(frame, np.asarray(y), weight, ~unlabelled)
            notes = unlabelled_rows_note(rows_read, len(frame))
        encoding, column_notes = infer_encoding(frame, options, weight=weight)
        rows = encoding.encode_rows(frame, fitting=True)
        rows, y, weight, row_notes = self._drop_incomplete(rows, y, weight, encoding)
        if encoding.missing == "em":
            incomplete = as_table(features_for(model, rows, encoding), y, weight=weight)
            model.fit_moments(read_incomplete_moments(incomplete, detail=model.detail))
            return self._set_state(model, encoding, (*notes, *column_notes), 0)
        fit_with_weight(model, features_for(model, rows, encoding), y, weight)
        stored = getattr(model, "moments_", None)  # absent from MDA
        if encoding.missing == "marginal" and stored is not None and stored.detail == "rows":
            allowed = "'mean' or 'indicator' if there are more features than rows"
            raise OptionError.of("missing", "marginal", allowed)
        notes = [*notes, *column_notes, *row_notes]
        return self._set_state(model, encoding, tuple(notes), rows_read - len(rows.incomplete))

    def _fit_formula(
        self, model: Any, X: Any, y: Any, sample_weight: Any, options: ReadOptions
    ) -> Self:
        """Fit the estimator to the features of the formula."""
        if is_regressor(model):
            check_unseen_option(options.unseen)
        frame, parsed = formula_frame(to_frame(X), self.formula, options)
        if parsed.response is not None and y is not None:
            raise FormulaError.two_responses(parsed.response)
        if parsed.response is None and y is None:
            raise FormulaError.no_response(self.formula, type(model).__name__)
        _set_intercept(model, parsed.intercept)
        weight, rows_read = check_weight(sample_weight, len(frame)), len(frame)
        notes: list[str] = []
        if y is not None:
            y = np.asarray(y)
            if len(y) != len(frame):
                raise ShapeError.of_lengths("y", len(y), len(frame))
        if options.missing == "drop":
            rows = complete_rows(frame, parsed)
            if y is not None:
                rows = rows[~is_missing_label(y)[rows]]
                y = y[rows]
            if len(rows) < rows_read:
                notes.append(dropped_rows_note(rows_read, len(rows), "drop", labels=True))
            frame, weight = frame.take(rows), None if weight is None else weight[rows]
        if y is None:
            y = response_values(frame, parsed)
            if parsed.target is not None and not isinstance(X, Frame) and not is_path(X):
                model = estimator_with_class_order(model, declared_order(X[parsed.target]))
        reading = replace(options, target=parsed.target)
        encoding, column_notes = formula_encoding(frame, parsed, reading)
        features = features_for(model, encoding.encode_rows(frame, fitting=True), encoding)
        fit_with_weight(model, features, y, weight)
        notes += column_notes
        return self._set_state(model, encoding, tuple(notes), rows_read - len(frame))

    # --- using ------------------------------------------------------------------------------------

    def encode(self, X: Any) -> Floats:
        """Return the encoded features (n, d) of rows X."""
        self._check_is_fitted()
        return self._encode_rows(X).matrix()

    def predict(self, X: Any, *, interval: float | None = None) -> Any:
        """Predict the class of each row, or with a regressor the response.

        With `interval`, a `GLM` returns a tuple (estimate, low, high).
        """
        if interval is not None:
            return self._predict_intervals(X, "predict", interval)
        return self._predict_by(X, "predict", lambda s: self.classes_[s.argmax(axis=1)])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of a classifier, or the `score` of a regressor (R2 or D2)."""
        self._check_is_fitted()
        if not is_regressor(self.estimator_):
            from sklearn.metrics import accuracy_score

            return float(accuracy_score(y, self.predict(X), sample_weight=sample_weight))
        weight = {} if sample_weight is None else {"sample_weight": sample_weight}
        return float(self.estimator_.score(self._inner_rows(X), y, **weight))

    @available_if(_inner_has("predict_log_proba"))
    def predict_log_proba(self, X: Any) -> Floats:
        """Return log posteriors (n, K)."""
        self._check_is_fitted()
        if hasattr(self.estimator_, "predict_log_proba"):
            return self._predict_by(X, "predict_log_proba", log_posterior)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    @available_if(_inner_has("predict_proba"))
    def predict_proba(self, X: Any, *, interval: float | None = None) -> Any:
        """Return posteriors (n, K); with `interval`, `Logistic` returns (estimate, low, high)."""
        self._check_is_fitted()
        if interval is not None:
            return self._predict_intervals(X, "predict_proba", interval)
        if hasattr(self.estimator_, "predict_proba"):
            return self._predict_by(X, "predict_proba", lambda s: np.exp(log_posterior(s)))
        return np.asarray(np.exp(self.predict_log_proba(X)))

    @available_if(_inner_has("decision_function"))
    def decision_function(self, X: Any) -> Floats:
        """Return the scores of the classifier: (n, K), or (n,) with two classes."""
        return self._predict_by(X, "decision_function", second_minus_first)

    @available_if(_inner_has("predict_topk"))
    def predict_topk(self, X: Any, k: int = 5, beam: int | None = None) -> Any:
        """Return codes (n, k) and scores (n, k) of the k best labels of each row.

        The estimator must be a label tree.
        """
        return self.estimator_.predict_topk(self._inner_rows(X), k=k, beam=beam)

    @available_if(_inner_has("transform"))
    def transform(self, X: Any) -> Floats:
        """Return the projection (n, r) of rows on the discriminant directions of the classifier."""
        return np.asarray(self.estimator_.transform(self._inner_rows(X)))

    @available_if(_inner_has("transform"))
    def fit_transform(self, X: Any, y: Any = None, **fitting: Any) -> Floats:
        """Fit the estimator, and return the projection of the same rows."""
        return np.asarray(self.fit(X, y, **fitting).transform(X))

    @available_if(_inner_has("summary"))
    def summary(self, *args: Any, **options: Any) -> Any:
        """Return the summary of the fitted estimator, with the names of the encoded features."""
        self._check_is_fitted()
        return self.estimator_.summary(*args, **options)

    coef_ = _inner_attribute("coef_", "Coefficients of the estimator, for the encoded features.")
    intercept_ = _inner_attribute("intercept_", "Intercepts of the estimator.")
    scalings_ = _inner_attribute(
        "scalings_", "(d, r) discriminant directions in the features of the classifier."
    )
    centre_ = _inner_attribute("centre_", "(d,) origin of the projection.")
    canonical_correlations_ = _inner_attribute(
        "canonical_correlations_", "(r,) correlation of each direction with the classes."
    )
    explained_variance_ratio_ = _inner_attribute(
        "explained_variance_ratio_",
        "(r,) share of each direction in the sum of all eigenvalues.",
    )
    prior_ = _inner_attribute("prior_", "(K,) class priors of the classifier.")

    @available_if(_classifies)
    def rejected(self, X: Any) -> npt.NDArray[np.bool_]:
        """Return a boolean array (n,): True where a row has an unseen category.

        Unless unseen='reject', it is False for every row.
        """
        self._check_is_fitted()
        if self._skips_encoding() or (self.encoding_.unseen != "reject" and not is_path(X)):
            return np.zeros(count_rows(X), dtype=bool)
        return self._encode_rows(X).rejected

    @available_if(_classifies)
    def decide(self, X: Any) -> npt.NDArray[np.object_]:
        """Return for each row (n,) the class or decision, or REJECT if `rejected` marks it."""
        self._check_is_fitted()
        if self._skips_encoding():
            decide = getattr(self.estimator_, "decide", self.estimator_.predict)
            return np.asarray(decide(X), dtype=object)
        rows = self._encode_rows(X)
        given = features_for(self.estimator_, rows, self.encoding_)
        if hasattr(self.estimator_, "decide"):
            actions = np.array(self.estimator_.decide(given), dtype=object)
        else:
            actions = np.array(self.predict(X), dtype=object)
        actions[rows.rejected] = REJECT
        return actions

    @property
    def n_features_out_(self) -> int:
        """Number of features after encoding."""
        return len(self.encoding_.features)

    def __sklearn_tags__(self) -> Any:
        """Return the tags of the estimator; missing cells are allowed if `missing` handles them."""
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.input_tags, tags.target_tags = inner.input_tags, inner.target_tags
        tags.input_tags.allow_nan = self.missing in ("mean", "indicator", "marginal", "em")
        tags.classifier_tags, tags.regressor_tags = inner.classifier_tags, inner.regressor_tags
        tags.transformer_tags = inner.transformer_tags
        return tags

    # --- inside -----------------------------------------------------------------------------------

    def _read_options(self) -> ReadOptions:
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
        """Fit the estimator to an array, which has only numbers, without encoding."""
        fit_with_weight(model, X, y, sample_weight)
        width = getattr(model, "n_features_in_", None)
        width = np.shape(X)[1] if width is None else int(width)
        columns = tuple(Column(n, "number", features=(n,)) for n in numbered_names(width))
        encoding = Encoding(columns, None, self.missing, self.unseen, named=False)
        return self._set_state(model, encoding, (), 0)

    def _drop_unlabelled(
        self, frame: Frame, y: npt.NDArray[Any], weight: Floats | None, known: npt.NDArray[np.bool_]
    ) -> tuple[Frame, npt.NDArray[Any], Floats | None]:
        """Drop the rows without a label; `known` (n,) is True for rows that have a label."""
        if len(y) != len(frame):
            raise ShapeError.of_lengths("y", len(y), len(frame))
        keep = np.flatnonzero(known)
        if not len(keep):
            raise LabelError.missing(range(len(y)))
        return frame.take(keep), y[keep], None if weight is None else weight[keep]

    def _drop_incomplete(
        self, rows: EncodedRows, y: Any, weight: Any, encoding: Encoding
    ) -> tuple[EncodedRows, Any, Any, list[str]]:
        """Drop rows with missing cells if `missing` requires it.

        Return features, labels, weights and notes on what was dropped.
        """
        if encoding.missing not in ("drop", "marginal") or not rows.incomplete.any():
            return rows, y, weight, []
        keep = np.flatnonzero(~rows.incomplete)
        if not len(keep):
            gaps = [column.name for column in encoding.used if column.missing]
            raise MissingCellError.of_all(len(rows.incomplete), gaps)
        y = np.asarray(y)
        if len(y) != len(rows.incomplete):
            raise ShapeError.of_lengths("y", len(y), len(rows.incomplete))
        columns = ColumnarFeatures(tuple(column[keep] for column in rows.features.columns))
        complete = EncodedRows(columns, rows.rejected[keep], rows.incomplete[keep])
        note = dropped_rows_note(len(rows.incomplete), len(keep), encoding.missing)
        return complete, y[keep], None if weight is None else weight[keep], [note]

    def _set_state(
        self, model: Any, encoding: Encoding, notes: tuple[str, ...], dropped: int
    ) -> Self:
        self.estimator_, self.encoding_ = model, encoding
        self.said_, self.rows_dropped_ = notes, dropped
        if not is_regressor(model):
            self.classes_ = np.asarray(model.classes_)
        elif hasattr(self, "classes_"):
            del self.classes_
        self._set_input_names(_input_columns(encoding), named=encoding.named)
        return self

    def _skips_encoding(self) -> bool:
        """Return whether rows are not encoded, because the model was fitted to an array."""
        encoding = self.encoding_
        return encoding.missing == "error" and not encoding.named and encoding.formula is None

    def _encode_rows(self, X: Any) -> EncodedRows:
        encoding = self.encoding_
        if isinstance(X, EncodedRows):  # encoded before, to call several methods
            return X
        if is_path(X):
            return encoding.encode_rows(read_frame(X, encoding=encoding)[0])
        if encoding.named and has_columns(X):
            return encoding.encode_rows(X)
        if encoding.named:
            warn(NamesUncheckedWarning.given_without(type(self).__name__))
        features, _ = as_features(X)
        self._check_width(features.shape[1])
        names: Sequence[str] = _input_columns(encoding)
        if encoding.formula is not None and not encoding.named:
            names = numbered_names(features.shape[1])
        return encoding.encode_rows(array_cells(features, names))

    def _predict_by(self, X: Any, method: str, from_scores: Callable[[Floats], Any]) -> Floats:
        """Call a method of the classifier; use marginal scores for missing='marginal' or 'em'."""
        self._check_is_fitted()
        answer = getattr(self.estimator_, method)
        if self._skips_encoding():
            return np.asarray(answer(X))
        rows = self._encode_rows(X)
        if self.encoding_.missing in ("marginal", "em") and rows.incomplete.any():
            scores = np.asarray(self.estimator_.marginal_scores(rows.matrix()))
            return np.asarray(from_scores(scores))
        features = _features_to_predict(self.estimator_, rows, self.encoding_)
        if isinstance(self.estimator_, RowEstimator):
            return np.asarray(answer(features))
        # the estimators inside a pool may know names, which the encoding has matched
        with capture_warnings() as warnings:
            predicted = np.asarray(answer(features))
        for warning in warnings:
            if not isinstance(warning, NamesUncheckedWarning):
                warn(warning)
        return predicted

    def _predict_intervals(self, X: Any, method: str, interval: float) -> Any:
        """Call a method of the estimator that computes confidence intervals."""
        self._check_is_fitted()
        predict = getattr(self.estimator_, method)
        if "interval" not in signature(predict).parameters:
            allowed = (
                "None, unless the estimator is Logistic or OrderedLogistic (probabilities), GLM or "
                "LogLinear (means)"
            )
            raise OptionError.of("interval", interval, allowed)
        return predict(self._inner_rows(X), interval=interval)

    def _inner_rows(self, X: Any) -> Any:
        """Return rows in the form that the wrapped estimator needs."""
        self._check_is_fitted()
        if self._skips_encoding():
            return X
        return features_for(self.estimator_, self._encode_rows(X), self.encoding_)


def _set_intercept(model: Any, intercept: bool) -> None:
    """Set the intercept option of an estimator to what a formula specifies."""
    options = model.get_params(deep=False)
    option = next((name for name in ("intercept", "fit_intercept") if name in options), None)
    if option is None:
        if not intercept:
            raise FormulaError.needs_option(type(model).__name__)
    elif not intercept:
        model.set_params(**{option: False})
    elif not options[option]:
        raise FormulaError.intercept_option(type(model).__name__, option)


def _input_columns(encoding: Encoding) -> list[str]:
    """Return the names of the input columns that are used as features."""
    return [c.name for c in encoding.columns if c.kind not in ("target", "weight")]
