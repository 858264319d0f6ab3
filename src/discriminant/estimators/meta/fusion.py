"""Fusion of classifiers on different columns, assumed independent within each class.

P(k|x) ~ prior_k  prod_i  P_i(k|x_i) / prior_ik
"""

from __future__ import annotations

from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin, clone
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.metaestimators import _BaseComposition

from discriminant.errors import (
    ColumnNamesError,
    ColumnTypeError,
    FusionError,
    LabelError,
    PosteriorError,
    ShapeError,
    SharedColumnsWarning,
    warn,
)
from discriminant.estimators.base import (
    EstimatorMixin,
    LogPosteriorMixin,
    fit_with_weight,
    has_probabilities,
    require_classifier,
    to_memory,
)
from discriminant.estimators.meta.decision import assumed_prior, log_posterior_of, training_shares
from discriminant.models.gaussian.family import validate_prior
from discriminant.posterior import change_prior, fuse_posteriors, not_probabilistic
from discriminant.table.blocks import Floats, Labels, canonical_rows, is_sparse, numbered_names


class NamedClassifiers(LogPosteriorMixin, ClassifierMixin, EstimatorMixin, _BaseComposition):
    """Base class of classifiers that combine the posteriors of others, each with a name.

    A subclass defines `_named_classifiers`, and sets `estimators_` when it is fitted. `_composed`
    is the attribute with the pairs (name, classifier) that scikit-learn uses to set options.
    """

    estimators_: list[Any]
    _composed = "estimators"

    def _named_classifiers(self) -> list[tuple[str, Any]]:
        """Return the name and the classifier of each entry; raise an error if one is invalid."""
        raise NotImplementedError

    @property
    def named_estimators_(self) -> dict[str, Any]:
        """Dict of the fitted classifiers by name."""
        self._check_is_fitted()
        names = [name for name, _ in self._named_classifiers()]
        return dict(zip(names, self.estimators_, strict=True))

    def __sklearn_tags__(self) -> Any:
        """Return the tags: sparse rows and missing values are supported if all classifiers do."""
        tags = super().__sklearn_tags__()
        inner = [get_tags(model).input_tags for _, model in self._named_classifiers()]
        tags.input_tags.sparse = all(each.sparse for each in inner)
        tags.input_tags.allow_nan = all(each.allow_nan for each in inner)
        return tags

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the options; with `deep`, also options of each classifier, as `name__option`."""
        return cast(dict[str, Any], self._get_params(self._composed, deep=deep))

    def set_params(self, **options: Any) -> Self:
        """Set options.

        `name__option` sets an option of a classifier, and `name` replaces the classifier.
        """
        self._set_params(self._composed, **options)
        return self


class Fusion(NamedClassifiers):
    """Combine the posteriors of several classifiers, each on its own columns.

        P(k|x) ~ prior_k  prod_i  P_i(k|x_i) / prior_ik

    The formula holds if the groups of columns are independent within each class, as a blood test
    and an X-ray may be. The classifiers may be of different kinds. A classifier whose outputs are
    not probabilities (LeastSquares, SVM) raises an error unless it is calibrated.

    Parameters
    ----------
    estimators : list of (name, classifier, columns)
        Columns are names in a data frame, positions, a slice or a mask. Each classifier is cloned
        and fitted to its columns.
    prior : array of shape (K,), dict by label or None, default None
        Class priors of the combined posterior. None means the class shares of the rows. The option
        can be changed after the fit.

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
        Class shares of the rows, and the class priors of the combined posterior.
    estimator_priors_ : list of arrays of shape (K,)
        For each classifier, the class priors that its posteriors assume.
    n_features_in_, feature_names_in_
        Number of columns, and their names if the rows had any.

    See Also
    --------
    Pool : Mean of posteriors, for classifiers on the same columns.

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
        """Fit each classifier to its columns of X, with labels y and optional `sample_weight`."""
        sources = self._sources()
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
        self._priors = [assumed_prior(model, y, sample_weight, self.classes_) for model in fitted]
        self.fitted_prior_ = training_shares(None, y, sample_weight, self.classes_)
        return self

    @property
    def estimator_priors_(self) -> list[Floats]:
        """List with the class priors (K,) that the posteriors of each classifier assume."""
        self._check_is_fitted()
        return self._priors

    def predict_log_proba(self, X: Any) -> Floats:
        """Return combined log posteriors (n, K)."""
        prior = self.prior_
        sources = zip(self.estimators_, self._select_columns(X), self._priors, strict=True)
        logs = fuse_posteriors(
            [
                change_prior(log_posterior_of(model, part), old, prior)
                for model, part, old in sources
            ],
            prior,
        )
        for row in np.flatnonzero(np.isnan(logs[:, 0])):
            raise PosteriorError.all_zero(int(row), [name for name, _, _ in self._sources()])
        return logs

    @property
    def prior_(self) -> Floats:
        """Class priors (K,) of the combined posterior."""
        self._check_is_fitted()
        if self.prior is None:
            return self.fitted_prior_
        return validate_prior(self._option("prior"), self.classes_)

    # --- inside -----------------------------------------------------------------------------------

    _composed = "_named_models"

    @property
    def _named_models(self) -> Any:
        """Pairs (name, classifier), which scikit-learn uses to set options by name."""
        try:
            return [(name, model) for name, model, _ in self.estimators]
        except (TypeError, ValueError):
            return self.estimators

    @_named_models.setter
    def _named_models(self, pairs: list[tuple[str, Any]]) -> None:
        sources = zip(pairs, self.estimators, strict=True)
        self.estimators = [(*pair, columns) for pair, (_, _, columns) in sources]

    def _named_classifiers(self) -> list[tuple[str, Any]]:
        return [(name, model) for name, model, _ in self._sources()]

    def _sources(self) -> list[tuple[str, Any, Any]]:
        """Return name, classifier and columns of each entry; raise `FusionError` if invalid."""
        given = self._option("estimators")
        try:
            sources = [(str(name), model, columns) for name, model, columns in given]
        except (TypeError, ValueError):
            raise FusionError.of_members(self.estimators) from None
        if not sources or len({name for name, _, _ in sources}) < len(sources):
            raise FusionError.of_members(self.estimators)
        return sources

    def _check_same_classes(self, names: list[str]) -> None:
        """Raise an error unless all classifiers have the same classes."""
        self.classes_ = np.asarray(self.estimators_[0].classes_)
        for name, model in zip(names, self.estimators_, strict=True):
            if not np.array_equal(model.classes_, self.classes_):
                raise FusionError.of_classes(name, list(model.classes_), self.classes_.tolist())

    def _select_columns(self, X: Any) -> list[Any]:
        """Return the columns of X that each classifier uses, matched by name if X has names."""
        X, names = _open_columns(X)
        width = int(X.shape[1])
        fitted = getattr(self, "feature_names_in_", None)
        if names is None or fitted is None:
            self._check_width(width)
            return [_safe_indexing(X, places, axis=1) for places in self.columns_]
        place = {name: j for j, name in enumerate(names)}
        missing = [name for name in fitted if name not in place]
        if missing:
            known = set(fitted)
            raise ColumnNamesError.of_missing(missing, [n for n in names if n not in known])
        order = np.array([place[name] for name in fitted])
        return [_safe_indexing(X, order[places], axis=1) for places in self.columns_]


def _fit_source(source: str, model: Any, part: Any, y: Any, sample_weight: Any) -> Any:
    if not has_probabilities(model):
        raise PosteriorError.not_combined(source, type(model).__name__)
    if (clipped := not_probabilistic(model)) is not None:
        raise PosteriorError.not_combined(source, clipped, clipped=True)
    return fit_with_weight(model, part, y, sample_weight)


def _open_columns(X: Any) -> tuple[Any, list[str] | None]:
    """Return rows whose columns can be selected by position, and the column names if any.

    Cells are not checked, because a text classifier may need a column of text.
    """
    if hasattr(X, "columns"):
        names = list(X.columns)
        return X, names if all(isinstance(name, str) for name in names) else None
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
    """Return the positions of the columns of one classifier."""
    wanted: Any = [columns] if isinstance(columns, str) else columns
    try:
        if not isinstance(wanted, slice) and any(isinstance(column, str) for column in wanted):
            wanted = [(names or []).index(column) for column in wanted]
        positions = np.atleast_1d(np.arange(width)[wanted])
    except (IndexError, ValueError, TypeError):
        raise FusionError.of_columns(name, columns, width) from None
    if not len(positions):
        raise FusionError.of_columns(name, columns, width)
    return positions


def _warn_of_shared_columns(places: list[npt.NDArray[np.intp]], names: list[str] | None) -> None:
    columns, times = np.unique(np.concatenate(places), return_counts=True)
    shared = columns[times > 1].tolist()
    if shared:
        warn(SharedColumnsWarning.of_columns([names[j] if names else f"x{j}" for j in shared]))
