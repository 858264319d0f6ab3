"""Fusion: classifiers on different columns, fused as independent within each class."""

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
from discriminant.table.blocks import Floats, Labels, canonical_rows, is_sparse, numbered


class Fusion(ClassifierMixin, EstimatorMixin, _BaseComposition):
    """One posterior from several classifiers, each on columns of its own.

        P(k|x) ~ prior_k  prod_i  P_i(k|x_i) / prior_ik

    which holds where the groups of columns are independent within each class, as a blood test and
    an X-ray may be. Each source needs posteriors, nothing else: models of any kind can be mixed.
    One whose outputs are no probabilities (LeastSquares, SVM) is refused unless it is calibrated.

    Parameters
    ----------
    estimators
        List of (name, classifier, columns); columns are names of a data frame, positions, a slice
        or a mask. Each classifier is cloned and fitted to its columns.
    prior
        (K,) priors of the answer, in the order of the classes, or {class: prior}; None: shares of
        the fit. It is read when it is used, so it may be changed after the fit.

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
        """Fit each classifier to its columns."""
        members = self._members()
        for _, model, _ in members:
            require_classifier(model, "Fusion", "multiplies probabilities of classes")
        X, y, sample_weight = to_memory(X, y, sample_weight, "Fusion")
        X, names = _opened(X)
        width = int(X.shape[1])
        places = [_places(name, columns, names, width) for name, _, columns in members]
        _tell_of_shared(places, names)
        if y is None:
            raise LabelError.absent("Fusion")
        fitted = []
        for (name, model, _), chosen in zip(members, places, strict=True):
            part = _safe_indexing(X, chosen, axis=1)
            fitted.append(_fitted(name, clone(model), part, y, sample_weight))
        self.estimators_, self.columns_ = fitted, places
        self._set_input_names(names or numbered(width), named=names is not None)
        self._agree([name for name, _, _ in members])
        self._priors = [self._prior_of(model, y, sample_weight) for model in fitted]
        self.fitted_prior_ = training_shares(None, y, sample_weight, self.classes_)
        return self

    @property
    def estimator_priors_(self) -> list[Floats]:
        """(K,) of each member: the prior that its posteriors have in them."""
        self._check_is_fitted()
        return self._priors

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The most probable class of each row."""
        best = self.predict_log_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def predict_log_proba(self, X: Any) -> Floats:
        """(n, K) log posteriors."""
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
            raise PosteriorError.all_zero(int(row), [name for name, _, _ in self._members()])
        return found

    def predict_proba(self, X: Any) -> Floats:
        """(n, K) posteriors."""
        return np.asarray(np.exp(self.predict_log_proba(X)))

    @property
    def prior_(self) -> Floats:
        """(K,) the priors that the posteriors are under."""
        self._check_is_fitted()
        if self.prior is None:
            return self.fitted_prior_
        return validate_prior(self._option("prior"), self.classes_)

    @property
    def named_estimators_(self) -> dict[str, Any]:
        """The fitted classifiers by name."""
        self._check_is_fitted()
        names = [name for name, _, _ in self._members()]
        return dict(zip(names, self.estimators_, strict=True))

    def __sklearn_tags__(self) -> Any:
        """Sparse rows where every source takes them."""
        tags = super().__sklearn_tags__()
        inner = [get_tags(model) for _, model, _ in self._members()]
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
        """Pairs of name and classifier, as scikit-learn wants them to set options by name."""
        try:
            return [(name, model) for name, model, _ in self.estimators]
        except (TypeError, ValueError):
            return self.estimators

    @_sources.setter
    def _sources(self, pairs: list[tuple[str, Any]]) -> None:
        columns = [columns for _, _, columns in self.estimators]
        self.estimators = [(*pair, one) for pair, one in zip(pairs, columns, strict=True)]

    def _members(self) -> list[tuple[str, Any, Any]]:
        try:
            found = [
                (str(name), model, columns) for name, model, columns in self._option("estimators")
            ]
        except (TypeError, ValueError):
            raise FusionError.of_members(self.estimators) from None
        if not found or len({name for name, _, _ in found}) < len(found):
            raise FusionError.of_members(self.estimators)
        return found

    def _agree(self, names: list[str]) -> None:
        """All sources know the same classes."""
        self.classes_ = np.asarray(self.estimators_[0].classes_)
        for name, model in zip(names, self.estimators_, strict=True):
            if not np.array_equal(model.classes_, self.classes_):
                raise FusionError.of_classes(name, list(model.classes_), self.classes_.tolist())

    def _prior_of(self, model: Any, y: Any, sample_weight: Any) -> Floats:
        found = declared_prior(model, self.classes_)
        return training_shares(model, y, sample_weight, self.classes_) if found is None else found

    def _parts(self, X: Any) -> list[Any]:
        """The columns of each source, by name where there are names, and else by place."""
        X, names = _opened(X)
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


def _fitted(source: str, model: Any, part: Any, y: Any, sample_weight: Any) -> Any:
    if not (hasattr(model, "predict_proba") or hasattr(model, "predict_log_proba")):
        raise PosteriorError.not_fused(source, type(model).__name__)
    if (clipped := not_probabilistic(model)) is not None:
        raise PosteriorError.not_fused(source, clipped, clipped=True)
    if sample_weight is None:
        return model.fit(part, y)
    if not has_fit_parameter(model, "sample_weight"):
        raise WeightError.not_supported(type(model).__name__)
    return model.fit(part, y, sample_weight=sample_weight)


def _opened(X: Any) -> tuple[Any, list[str] | None]:
    """Rows whose columns can be chosen by place, and the names of the columns, if they have any.

    Cells are not looked at: columns of text may belong to a source that reads text.
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


def _places(name: str, columns: Any, names: list[str] | None, width: int) -> npt.NDArray[np.intp]:
    """Positions of the columns of one source."""
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


def _tell_of_shared(places: list[npt.NDArray[np.intp]], names: list[str] | None) -> None:
    columns, times = np.unique(np.concatenate(places), return_counts=True)
    shared = columns[times > 1].tolist()
    if shared:
        warn(SharedColumnsWarning.of_columns([names[j] if names else f"x{j}" for j in shared]))
