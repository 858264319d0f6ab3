"""Importance of the features of a linear model: coefficients per standard deviation.

    score = w_1 x_1 + ... + w_d x_d + b = w_1 s_1 (x_1 / s_1) + ... + w_d s_d (x_d / s_d) + b

The weight w_j depends on the unit of x_j. The standardised weight w_j s_j, with s_j the standard
deviation of the feature over all rows, does not depend on it: w_j s_j is the change of the score if
x_j grows by one standard deviation and the other features stay the same. If features are
correlated, they do not vary one at a time, and a standardised weight does not measure the
information in a single feature.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from discriminant.errors import LinearModelError, OptionError, ShapeError
from discriminant.table.blocks import Floats, Schema, numbered_names
from discriminant.table.column_cells import import_pandas
from discriminant.table.memory import as_features


@dataclass(frozen=True, slots=True, eq=False)
class Importance:
    """Standardised weights of the m scores of a linear model.

    Attributes
    ----------
    features : tuple of str
        Names of the d features.
    scores : tuple
        Name of each score: a class label, the number of a response, or None for a single score.
    weight, standardised, share : arrays of shape (m, d)
        Weight per unit of the feature, weight per standard deviation, and the absolute value of the
        latter as a share of the sum over the features.
    scale : array of shape (d,)
        Standard deviation of each feature.
    """

    features: tuple[str, ...]
    scores: tuple[Any, ...]
    weight: Floats
    scale: Floats

    @property
    def standardised(self) -> Floats:
        """Weights (m, d) per standard deviation of the feature."""
        return np.asarray(self.weight * self.scale)

    @property
    def share(self) -> Floats:
        """Absolute standardised weights (m, d), as a share of their sum over the features."""
        size = np.abs(self.standardised)
        total = size.sum(axis=1, keepdims=True)
        return np.asarray(np.divide(size, total, out=np.zeros_like(size), where=total > 0))

    def frame(self) -> Any:
        """Return a data frame with a row for each feature, sorted by decreasing importance.

        With several scores, there is a row for each score and feature.
        """
        pd = import_pandas()
        values = {"weight": self.weight, "sd": np.broadcast_to(self.scale, self.weight.shape)}
        values |= {"per sd": self.standardised, "share": self.share}
        parts = []
        for i, score in enumerate(self.scores):
            order = np.argsort(-self.share[i], kind="stable")
            columns = {name: table[i, order] for name, table in values.items()}
            index = [self.features[j] for j in order]
            part = pd.DataFrame(columns, index=pd.Index(index, name="feature"))
            parts.append(part if score is None else part.assign(score=score))
        frame = pd.concat(parts)
        return frame.set_index("score", append=True).swaplevel() if "score" in frame else frame

    def __repr__(self) -> str:
        order = np.argsort(-self.share.mean(axis=0), kind="stable")[:3]
        largest = ", ".join(repr(self.features[j]) for j in order)
        return f"Importance({len(self.features)} features, largest: {largest})"


def importance(model: Any, X: Any = None) -> Importance:
    """Return the weights of a linear model per unit and per standard deviation of each feature.

    Parameters
    ----------
    model : fitted classifier or regressor with `coef_`
        Linear model of this package or another one.
    X : array or data frame of shape (n, d), default None
        Rows from which the standard deviations are computed. None means the rows of the fit, if the
        model stores their moments.

    Returns
    -------
    Importance

    Examples
    --------
    >>> from discriminant import LinearRegression
    >>> rows = [[1.0, 100.0], [2.0, 300.0], [3.0, 200.0], [4.0, 400.0]]
    >>> model = LinearRegression().fit(rows, [1.5, 3.5, 4.0, 6.0])  # x0 + x1 / 200
    >>> importance(model).weight.round(6).tolist(), importance(model).share.round(6).tolist()
    ([[1.0, 0.005]], [[0.666667, 0.333333]])
    """
    weight = np.atleast_2d(linear_coefficients(model, "importance"))
    scale = _scale_of_fit(model, weight.shape[1]) if X is None else _scale_of_rows(model, X, weight)
    names = getattr(model, "feature_names_in_", None)
    features = numbered_names(weight.shape[1]) if names is None else tuple(map(str, names))
    labels = getattr(model, "classes_", None)
    scores: tuple[Any, ...] = (None,)
    if len(weight) > 1:
        scores = tuple(range(len(weight)) if labels is None else np.asarray(labels).tolist())
    return Importance(features, scores, weight, scale)


def linear_coefficients(model: Any, who: str) -> Floats:
    """Return the coefficients of a linear model.

    Raises LinearModelError if they do not belong to the input features of the model, for instance
    after a basis expansion.
    """
    try:
        weight = np.asarray(model.coef_, dtype=np.float64)
    except AttributeError:
        raise LinearModelError.not_linear(type(model).__name__, who) from None
    inner = getattr(getattr(model, "estimator_", model), "feature_names_in_", None)
    computed = inner is not None and list(inner) != list(getattr(model, "feature_names_in_", inner))
    if computed or weight.shape[-1] != getattr(model, "n_features_in_", weight.shape[-1]):
        raise LinearModelError.not_linear(type(model).__name__, who)
    return weight


def _scale_of_rows(model: Any, X: Any, weight: Floats) -> Floats:
    names = getattr(model, "feature_names_in_", None)
    if names is not None and hasattr(X, "columns"):
        X = as_features(X, match=Schema(tuple(map(str, names)), np.zeros(0), True))[0]
    rows = np.asarray(X, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != weight.shape[1]:
        raise ShapeError.of_width(rows.shape[-1] if rows.ndim else 0, weight.shape[1], "importance")
    return np.asarray(rows.std(axis=0))


def _scale_of_fit(model: Any, d: int) -> Floats:
    moments = getattr(model, "moments_", None)
    if moments is None:
        allowed = f"the rows of the fit: {type(model).__name__} does not store their moments"
        raise OptionError.of("X", None, allowed)
    if moments.detail == "rows":
        moments = moments.reduce("diagonal")
    within = moments.pooled if moments.pooled.ndim == 1 else np.diagonal(moments.pooled)
    between = moments.weight @ (moments.mean - moments.centre) ** 2
    variance = (within + between) / moments.weight.sum()
    return np.asarray((np.sqrt(variance) * moments.anchor.unit)[:d])
