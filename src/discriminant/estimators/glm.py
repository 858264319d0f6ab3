"""GLM and LogLinear: numbers whose mean is a function of a linear score."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from discriminant.assessment.profile import Peak
from discriminant.errors import OptionError, ResponseError, ShapeError
from discriminant.estimators.generalised import Generalised
from discriminant.estimators.responses import Answers, in_reach, null_loss, one_a_row, open_answers
from discriminant.moments.families import LINKS, Deviance
from discriminant.table.schema import Floats
from discriminant.table.source import open_weight


class GLM(Generalised):
    """Generalised linear model: g(mean of y) = x'w + b + offset, by iterated least squares.

    Maximum likelihood by default. Every step reads the rows once.

    Parameters
    ----------
    family
        'gaussian', 'binomial' (y is a share and sample_weight the number of trials, or y has two
        columns, successes and failures), 'poisson' or 'gamma'.
    link
        None for the canonical one. gaussian: 'identity', 'log', 'inverse'; binomial: 'logit',
        'probit', 'cloglog', 'cauchit', 'log'; poisson: 'log', 'identity', 'sqrt'; gamma:
        'inverse', 'log', 'identity'.
    ridge
        Minimises  mean of deviance / 2  +  ridge/2 times the sum of squared coefficients of
        standardised features (without an intercept, of root mean square one); the intercept is
        free. Then there are no standard errors.
    intercept
        False: through the origin.
    max_iter
        Passes of the iteration, at most. Without them, the rows are read once each for their
        moments, the null deviance, the start, the dispersion and the log likelihood.
    progress
        Called after every pass of the iteration with its number, the loss and the largest entry of
        the gradient.

    Attributes
    ----------
    coef_, intercept_
        In the user's numbers. `predict` does not use `intercept_`: it counts from an origin near
        the rows.
    deviance_, null_deviance_, dispersion_
        The dispersion is Pearson's chi-squared over the residual degrees of freedom for gaussian
        and gamma, and 1 for the others.
    converged_, n_iter_, n_passes_, loss_path_
        Whether the gradient vanished, or on the edge of what means can be holds rows there (a
        `BoundaryWarning` says so); steps; passes over the rows in all; loss of each step.
    rank_
        Numbers estimated: less than there are columns where these depend on one another.

    Examples
    --------
    >>> model = GLM("poisson").fit([[0.0], [0.0], [1.0], [1.0]], [1, 3, 3, 5])
    >>> round(float(model.coef_[0]), 9), round(model.intercept_, 9)  # log 2: means 2 and 4
    (0.693147181, 0.693147181)
    """

    def __init__(
        self,
        family: Any = "gaussian",
        link: Any = None,
        *,
        ridge: Any = 0.0,
        intercept: Any = True,
        max_iter: Any = 200,
        progress: Any = None,
    ) -> None:
        self.family = family
        self.link = link
        self.ridge = ridge
        self.intercept = intercept
        self.max_iter = max_iter
        self.progress = progress

    def __sklearn_tags__(self) -> Any:
        """Counts and gamma responses are not negative."""
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = self.family in ("poisson", "gamma")
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> Self:
        """Read the rows, and again for each step."""
        deviance = _deviance(self.family, self.link)
        given = self._answers(y, sample_weight, deviance)
        in_reach(given.response, deviance)
        self._fit(X, given.response, given.weight, offset, deviance)
        return self

    def predict(self, X: Any, offset: Any = None) -> Floats:
        """(n,) means."""
        return self._kept_deviance().mean(self.predict_linear(X, offset))

    def score(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> float:
        """D2, the share of the deviance of y that is explained: 1 is perfect, 0 a constant mean.

        For the gaussian family it is R2. Of a fit with an offset, pass that of these rows: they are
        then compared with the best constant beside it.
        """
        deviance = self._kept_deviance()
        given = self._answers(y, sample_weight, deviance)
        scores = self.predict_linear(X, offset)
        if len(given.response) != len(scores):
            raise ShapeError.of_lengths("y", len(given.response), len(scores))
        left = given.mean(deviance.rows(scores, given.response).loss)
        null = null_loss(given, deviance, offset)
        if null == 0.0:
            return float(left == 0.0)
        return 1.0 - left / null

    def _answers(self, y: Any, weight: Any, deviance: Deviance) -> Answers:
        return open_answers(y, weight, family=deviance.family, name=type(self).__name__)

    def _kept_deviance(self) -> Deviance:
        self._need_fit()
        return self._kept.deviance

    def _peak(self, X: Any, y: Any, weight: Any, offset: Any) -> Peak:
        given = self._answers(y, weight, self._kept.deviance)
        return self._peak_of(X, given.response, given.weight, offset)


class LogLinear(Generalised):
    """Log-linear regression: ln y = x'w + b, by least squares on ln y.

    Errors are taken to be equal on the scale of ln y, so that they multiply y. A GLM with a log
    link fits the log of the mean of y instead, and its errors add to y.

    Parameters
    ----------
    predicted
        What `predict` gives. 'median': exp(x'w + b), the median of y where errors are symmetric.
        'mean': exp(x'w + b + s^2/2), its mean where they are normal. 'smearing': exp(x'w + b)
        times the mean of exp(residual), its mean whatever their shape (Duan 1983).
    ridge, intercept
        As in GLM.

    Attributes
    ----------
    coef_, intercept_
        A step of one in a column multiplies y by exp(coef_).
    deviance_, null_deviance_, dispersion_
        Sums of squares, and the variance s^2, of ln y. So are those of `summary()`.
    smearing_
        Mean of exp(residual).

    Examples
    --------
    >>> model = LogLinear().fit([[0.0], [1.0], [2.0]], [1.0, 2.0, 4.0])
    >>> model.predict([[3.0]]).round(9).tolist()
    [8.0]
    """

    max_iter = 100
    progress = None

    def __init__(
        self, *, ridge: Any = 0.0, intercept: Any = True, predicted: Any = "median"
    ) -> None:
        self.ridge = ridge
        self.intercept = intercept
        self.predicted = predicted

    def __sklearn_tags__(self) -> Any:
        """A logarithm wants positive numbers."""
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Read the rows and fit."""
        _correction(self.predicted)
        logs = self._logs(y)
        self._fit(X, logs, sample_weight, None, Deviance("gaussian", "identity"))
        left = np.exp(logs - self.predict_linear(X))
        weight = open_weight(sample_weight, len(left))
        self.smearing_ = float(np.average(left, weights=weight))
        return self

    def predict(self, X: Any) -> Floats:
        """(n,) y: its median, or as `predicted` asks its mean."""
        factor = _correction(self.predicted)
        scores = self.predict_linear(X)
        with np.errstate(over="ignore"):  # beyond float64 it is infinite
            return np.asarray(np.exp(scores) * factor(self))

    def _title(self) -> str:
        return "LogLinear: least squares on ln y (deviance, AIC and log likelihood are of ln y too)"

    def _rates(self) -> bool:
        return True

    def _logs(self, y: Any) -> Floats:
        response = one_a_row(y, type(self).__name__)
        wrong = np.flatnonzero(response <= 0)
        if len(wrong):
            raise ResponseError.of_range(
                int(wrong[0]),
                len(wrong),
                asking="its logarithm",
                allowed="a number above 0",
                instead="fit GLM('poisson'), which takes zeros",
            )
        return np.log(response)

    def _peak(self, X: Any, y: Any, weight: Any, offset: Any) -> Peak:
        return self._peak_of(X, self._logs(y), weight, offset)


# --- options --------------------------------------------------------------------------------------


def _deviance(family: Any, link: Any) -> Deviance:
    if not isinstance(family, str) or family not in LINKS:
        raise OptionError.of("family", family, f"one of {', '.join(LINKS)}")
    links = LINKS[family]
    if link is not None and link not in links:
        raise OptionError.of(
            "link", link, f"one of {', '.join(links)} for family='{family}', or None for {links[0]}"
        )
    return Deviance(family, links[0] if link is None else link)


def _correction(predicted: Any) -> Callable[[Any], float]:
    """What the fitted median is multiplied by."""
    ways: dict[str, Callable[[Any], float]] = {
        "median": lambda model: 1.0,
        "mean": lambda model: float(np.exp(0.5 * model.dispersion_)),
        "smearing": lambda model: model.smearing_,
    }
    if not isinstance(predicted, str) or predicted not in ways:
        raise OptionError.of("predicted", predicted, f"one of {', '.join(ways)}")
    return ways[predicted]
