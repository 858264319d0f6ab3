"""Fusion: combine classifiers on different columns that are independent within each class.

P(k|x) ~ prior_k  prod_i  P_i(k|x_i) / prior_ik
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin, clone
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.metaestimators import _BaseComposition
from sklearn.utils.validation import has_fit_parameter

from discriminant.errors import (
    ColumnNamesError,
    ColumnTypeError,
    FusionError,
    LabelError,
    PosteriorError,
    ShapeError,
    SharedColumnsWarning,
    WeightError,
    warn,
)
from discriminant.estimators.base import EstimatorMixin, require_classifier, to_memory
from discriminant.estimators.meta.decision import declared_prior, log_posterior_of, training_shares
from discriminant.models.gaussian.family import validate_prior
from discriminant.posterior import fused, not_probabilistic, reweighed
from discriminant.table.blocks import Floats, Labels, canonical_rows, is_sparse, numbered_names


class Fusion(ClassifierMixin, EstimatorMixin, _BaseComposition):
    """Combine the posteriors of several classifiers, each on its own columns.

        P(k|x) ~ prior_k  prod_i  P_i(k|x_i) / prior_ik

    which holds if the groups of columns are independent within each class, as a blood test and an
    X-ray may be. Classifiers of any kind can be mixed; one whose outputs are not probabilities
    (LeastSquares, SVM) is refused unless it is calibrated.

    Parameters
    ----------
    estimators : list of (name, classifier, columns)
        Columns are names in a data frame, positions, a slice or a mask. Each classifier is cloned
        and fitted to its columns.
    prior : array of shape (K,), dict by label or None, default None
        Class priors of the combined posterior. None: the class shares of the rows. Read when it is
        used, so that it may be changed after the fit.

    Attributes
    ----------
    estimators_ : list
        The fitted classifiers.
    named_estimators_ : dict
        The fitted classifiers by name.
    columns_ : list of arrays
        Positions of the columns of each classifier.
    classes_ : array of shape (K,)
        Class labels, sorted.
    fitted_prior_, prior_ : arrays of shape (K,)
        Class shares of the rows, and the priors in use.
    estimator_priors_ : list of arrays of shape (K,)
        Priors that the posteriors of each classifier assume.
    n_features_in_, feature_names_in_
        Number of columns, and their names if the rows had any.

    Examples
    --------
    >>> from discriminant import LDA
    >>> X, y = [[0.0, 1.0], [1.0, 0.0], [4.0, 5.0], [5.0, 4.0]], list("aabb")
    >>> Fusion([("left", LDA(), [0]), ("right", LDA(), [1])]).fit(X, y).predict([[0, 0]]).tolist()
    ['a']
    """

    _fitted_attribute = "estimators_"
    classes_: Labels
    fitted_prior_: Floats
    estimators_: list[Any]
    columns_: list[npt.NDArray[np.intp]]

    def __init__(self, estimators: Any, *, prior: Any = None) -> None:
        self.estimators = estimators
        self.prior = prior

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit each classifier to its columns of X, with labels y and optional sample_weight."""
        sources = self._checked_estimators()
        for _, model, _ in sources:
            require_classifier(model, "Fusion", "multiplies probabilities of classes")
        X, y, sample_weight = to_memory(X, y, sample_weight, "Fusion")
        X, names = _open_columns(X)
        width = int(X.shape[1])
        places = [_column_positions(name, columns, names, width) for name, _, columns in sources]
        _warn_of_shared_columns(places, names)
        if y is None:
            raise LabelError.absent("Fusion")
        fitted = []
        for (name, model, _), chosen in zip(sources, places, strict=True):
            part = _safe_indexing(X, chosen, axis=1)
            fitted.append(_fit_source(name, clone(model), part, y, sample_weight))
        self.estimators_, self.columns_ = fitted, places
        self._set_input_names(names or numbered_names(width), named=names is not None)
        self._check_same_classes([name for name, _, _ in sources])
        self._priors = [self._prior_of(model, y, sample_weight) for model in fitted]
        self.fitted_prior_ = training_shares(None, y, sample_weight, self.classes_)
        return self

    @property
    def estimator_priors_(self) -> list[Floats]:
        """(K,) class priors that the posteriors of each classifier assume."""
        self._check_is_fitted()
        return self._priors

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Predict the most probable class of each row."""
        best = self.predict_log_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def predict_log_proba(self, X: Any) -> Floats:
        """(n, K) combined log posteriors."""
        self._check_is_fitted()
        prior = self.fitted_prior_
        if self.prior is not None:
            prior = validate_prior(self._option("prior"), self.classes_)
        parts = self._parts(X)
        found = fused(
            [
                reweighed(log_posterior_of(model, part), old, prior)
                for model, part, old in zip(self.estimators_, parts, self._priors, strict=True)
            ],
            prior,
        )
        for row in np.flatnonzero(np.isnan(found[:, 0])):
            raise PosteriorError.all_zero(
                int(row), [name for name, _, _ in self._checked_estimators()]
            )
        return found

    def predict_proba(self, X: Any) -> Floats:
        """(n, K) combined posteriors."""
        return np.asarray(np.exp(self.predict_log_proba(X)))

    @property
    def prior_(self) -> Floats:
        """(K,) class priors of the combined posterior."""
        self._check_is_fitted()
        if self.prior is None:
            return self.fitted_prior_
        return validate_prior(self._option("prior"), self.classes_)

    @property
    def named_estimators_(self) -> dict[str, Any]:
        """The fitted classifiers by name."""
        self._check_is_fitted()
        names = [name for name, _, _ in self._checked_estimators()]
        return dict(zip(names, self.estimators_, strict=True))

    def __sklearn_tags__(self) -> Any:
        """Sparse rows and missing values are supported if every classifier supports them."""
        tags = super().__sklearn_tags__()
        inner = [get_tags(model) for _, model, _ in self._checked_estimators()]
        tags.input_tags.sparse = all(found.input_tags.sparse for found in inner)
        tags.input_tags.allow_nan = all(found.input_tags.allow_nan for found in inner)
        return tags

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Options, with `deep` also those of each classifier, as name__option."""
        found: dict[str, Any] = self._get_params("_sources", deep=deep)
        return found

    def set_params(self, **options: Any) -> Self:
        """Options, and those of each classifier as name__option; a name replaces a classifier."""
        self._set_params("_sources", **options)
        return self

    # --- inside -----------------------------------------------------------------------------------

    @property
    def _sources(self) -> Any:
        """Pairs of name and classifier, for scikit-learn to set options by name."""
        try:
            return [(name, model) for name, model, _ in self.estimators]
        except (TypeError, ValueError):
            return self.estimators

    @_sources.setter
    def _sources(self, pairs: list[tuple[str, Any]]) -> None:
        columns = [columns for _, _, columns in self.estimators]
        self.estimators = [(*pair, one) for pair, one in zip(pairs, columns, strict=True)]

    def _checked_estimators(self) -> list[tuple[str, Any, Any]]:
        try:
            found = [
                (str(name), model, columns) for name, model, columns in self._option("estimators")
            ]
        except (TypeError, ValueError):
            raise FusionError.of_members(self.estimators) from None
        if not found or len({name for name, _, _ in found}) < len(found):
            raise FusionError.of_members(self.estimators)
        return found

    def _check_same_classes(self, names: list[str]) -> None:
        """Raise unless all classifiers have the same classes."""
        self.classes_ = np.asarray(self.estimators_[0].classes_)
        for name, model in zip(names, self.estimators_, strict=True):
            if not np.array_equal(model.classes_, self.classes_):
                raise FusionError.of_classes(name, list(model.classes_), self.classes_.tolist())

    def _prior_of(self, model: Any, y: Any, sample_weight: Any) -> Floats:
        found = declared_prior(model, self.classes_)
        return training_shares(model, y, sample_weight, self.classes_) if found is None else found

    def _parts(self, X: Any) -> list[Any]:
        """The columns of each classifier, by name if there are names, else by position."""
        X, names = _open_columns(X)
        width = int(X.shape[1])
        fitted = getattr(self, "feature_names_in_", None)
        if names is None or fitted is None:
            if width != self.n_features_in_:
                raise ShapeError.of_width(width, self.n_features_in_, "Fusion")
            return [_safe_indexing(X, places, axis=1) for places in self.columns_]
        place = {name: j for j, name in enumerate(names)}
        missing = [name for name in fitted if name not in place]
        if missing:
            known = set(fitted)
            raise ColumnNamesError.of_missing(missing, [n for n in names if n not in known])
        now = np.array([place[name] for name in fitted])
        return [_safe_indexing(X, now[places], axis=1) for places in self.columns_]


def _fit_source(source: str, model: Any, part: Any, y: Any, sample_weight: Any) -> Any:
    if not (hasattr(model, "predict_proba") or hasattr(model, "predict_log_proba")):
        raise PosteriorError.not_fused(source, type(model).__name__)
    if (clipped := not_probabilistic(model)) is not None:
        raise PosteriorError.not_fused(source, clipped, clipped=True)
    if sample_weight is None:
        return model.fit(part, y)
    if not has_fit_parameter(model, "sample_weight"):
        raise WeightError.not_supported(type(model).__name__)
    return model.fit(part, y, sample_weight=sample_weight)


def _open_columns(X: Any) -> tuple[Any, list[str] | None]:
    """Rows whose columns can be selected by position, and the names of the columns or None.

    Cells are not checked: a column of text may belong to a classifier of text.
    """
    if hasattr(X, "columns"):
        found = list(X.columns)
        return X, found if all(isinstance(name, str) for name in found) else None
    X = X if is_sparse(X) else np.asarray(X)
    if X.ndim != 2:
        raise ShapeError.not_two_dimensional(X.ndim)
    X = canonical_rows(X) if is_sparse(X) else X
    if X.dtype.kind == "c":
        raise ColumnTypeError.of_column("x0", str(X.dtype))
    if not X.shape[0]:
        raise ShapeError.no_rows(0)
    if not X.shape[1]:
        raise ShapeError.no_features(X.shape[0])
    return X, None


def _column_positions(
    name: str, columns: Any, names: list[str] | None, width: int
) -> npt.NDArray[np.intp]:
    """Positions of the columns of one classifier."""
    wanted: Any = [columns] if isinstance(columns, str) else columns
    try:
        if not isinstance(wanted, slice) and any(isinstance(one, str) for one in wanted):
            wanted = [(names or []).index(one) for one in wanted]
        found = np.atleast_1d(np.arange(width)[wanted])
    except (IndexError, ValueError, TypeError):
        raise FusionError.of_columns(name, columns, width) from None
    if not len(found):
        raise FusionError.of_columns(name, columns, width)
    return found


def _warn_of_shared_columns(places: list[npt.NDArray[np.intp]], names: list[str] | None) -> None:
    columns, times = np.unique(np.concatenate(places), return_counts=True)
    shared = columns[times > 1].tolist()
    if shared:
        warn(SharedColumnsWarning.of_columns([names[j] if names else f"x{j}" for j in shared]))
