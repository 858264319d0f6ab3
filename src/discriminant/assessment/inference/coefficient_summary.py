"""Coefficients of linear models with standard errors, tests and intervals, printed in R's layout.

As in R, the statistic of a test is compared with the normal distribution (z). If the dispersion is
estimated, the statistic is compared with Student's t on the residual degrees of freedom. Wald
intervals use the normal quantile in both cases, as R's `confint.default` does. Profile-likelihood
intervals and likelihood-ratio tests read the rows again: see `inference.profile_likelihood`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import norm, t as student

from discriminant.assessment.printed_results import (
    PrintedResult,
    format_p_as_r,
    format_short,
    stars,
    text_table,
)
from discriminant.errors import InferenceError
from discriminant.table.blocks import Floats, Places
from discriminant.table.column_cells import import_pandas

_LEGEND = "Signif. codes:  0 '***' 0.001 '**' 0.01 '*' 0.05 '.' 0.1 ' ' 1"
_ERRORS = {
    **{kind: f"sandwich ({kind})" for kind in ("HC0", "HC1", "HC2", "HC3")},
    "cluster": "sandwich, clustered by groups",
}


@dataclass(frozen=True, slots=True)
class Likelihood:
    """Likelihood of a fit and of its null model."""

    deviance: float
    null_deviance: float
    log_likelihood: float
    null_log_likelihood: float
    rows: int  # number of rows of positive weight
    df_residual: int
    df_null: int
    numbers: int  # number of estimated parameters, including an estimated dispersion
    dispersion: float = 1.0
    free: bool = False  # whether the dispersion is estimated
    # whether the response is Gaussian, so that deviances are compared by their logs
    gaussian: bool = False
    tjur: float | None = None  # Tjur's coefficient; None unless there are two classes

    @property
    def aic(self) -> float:
        """Akaike information criterion."""
        return -2.0 * self.log_likelihood + 2.0 * self.numbers

    @property
    def bic(self) -> float:
        """Bayesian (Schwarz) information criterion."""
        return -2.0 * self.log_likelihood + float(np.log(self.rows)) * self.numbers

    @property
    def pseudo_r2(self) -> dict[str, float]:
        """Dict of the share of deviance explained and the pseudo R2 of McFadden and others."""
        gain = self.log_likelihood - self.null_log_likelihood
        with np.errstate(all="ignore"):
            shares = {"deviance": float(1.0 - np.float64(self.deviance) / self.null_deviance)}
            if self.gaussian:  # here the log likelihood depends on the unit of the response
                return shares
            snell = float(-np.expm1(-2.0 * gain / self.rows))
            upper = float(-np.expm1(2.0 * self.null_log_likelihood / self.rows))
            shares |= {
                "mcfadden": float(1.0 - self.log_likelihood / np.float64(self.null_log_likelihood)),
                "cox_snell": snell,
                "nagelkerke": snell / upper if upper else float("nan"),
            }
        return shares if self.tjur is None else shares | {"tjur": self.tjur}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Inference(PrintedResult):
    """Estimates in the user's units with their tests; for each class the intercept comes first."""

    title: str  # name of the fit, for the heading of a summary
    names: tuple[str, ...]  # p names of columns
    # p classes, each compared with the first; None if there is one response
    classes: tuple[object, ...] | None
    estimate: Floats  # (p,) estimates
    # (p, q m) `a`: each estimate as a linear combination of theta in column order
    directions: Floats
    root: Floats  # (q m, p) `R'^-1 a`
    likelihood: Likelihood
    odds: bool  # whether exp(estimate) is an odds ratio
    rates: bool = False  # whether exp(estimate) is a ratio of means
    passes: int = 0
    steps: int = 0
    first: object = None  # the class that all others are compared with
    second: object = None  # the only other class, if there are two
    converged: bool = True
    thresholds: int = 0  # number of thresholds of ordered classes, which are the last estimates
    errors: str = ""  # kind of robust standard errors; empty if they are from the curvature
    # (p,) standard errors; NaN where a coefficient is not identified
    std_error: Floats = field(init=False)

    def __post_init__(self) -> None:
        length = np.sqrt(np.einsum("ip,ip->p", self.root, self.root))
        object.__setattr__(self, "std_error", np.sqrt(self.likelihood.dispersion) * length)

    @property
    def covariance(self) -> Floats:
        """Covariance matrix of the estimates, (p, p)."""
        return np.asarray(self.likelihood.dispersion * (self.root.T @ self.root))

    @property
    def statistic(self) -> Floats:
        """Test statistics, (p,).

        Estimates are divided by standard errors: z statistics, or t if the dispersion is
        estimated.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.estimate / self.std_error

    @property
    def letter(self) -> str:
        """Name of the statistic: 'z' or 't'."""
        return "t" if self.likelihood.free else "z"

    @property
    def p(self) -> Floats:
        """Two-sided p-values, (p,), accurate even if they are very small."""
        size = np.abs(self.statistic)
        if self.likelihood.free:
            return np.asarray(2.0 * student.sf(size, max(self.likelihood.df_residual, 0) or np.nan))
        return np.asarray(2.0 * norm.sf(size))

    def wald(self, level: float = 0.95) -> Floats:
        """Return the Wald intervals, (p, 2): estimate -+ normal quantile times standard error."""
        reach = norm.isf(0.5 * (1.0 - level)) * self.std_error
        return np.column_stack([self.estimate - reach, self.estimate + reach])

    def odds_ratios(self, level: float = 0.95) -> Floats:
        """Return odds ratios with Wald intervals, (p, 3), for a logit link."""
        if not self.odds:
            raise InferenceError.no_odds(self.title)
        return self._exp(level)

    def rate_ratios(self, level: float = 0.95) -> Floats:
        """Return ratios of means with Wald intervals, (p, 3), for a log link.

        If a column increases by one, the mean of the response (a rate or a risk) is multiplied by
        this ratio.
        """
        if not self.rates:
            raise InferenceError.no_rates(self.title)
        return self._exp(level)

    @property
    def text(self) -> str:
        """Text of the summary."""
        return CoefficientSummary(self).text

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as a dictionary of plain numbers, lists and texts."""
        return CoefficientSummary(self).to_dict()

    def frame(self) -> Any:
        """Return a pandas frame with a row for each estimate."""
        return CoefficientSummary(self).frame()

    def _exp(self, level: float) -> Floats:
        with np.errstate(over="ignore"):
            return np.exp(np.column_stack([self.estimate, self.wald(level)]))

    def places(self, name: str) -> npt.NDArray[np.intp]:
        """Return the indices of the estimates that belong to a column, one for each class."""
        return np.flatnonzero(np.array(self.names, dtype=object) == name)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CoefficientSummary(PrintedResult):
    """Result of `summary()`: coefficients with standard errors and tests, and the deviance."""

    inference: Inference
    level: float = 0.95

    @property
    def text(self) -> str:
        """Text in the layout of R's summary of a `glm`."""
        inference, fit = self.inference, self.inference.likelihood
        kind = "estimated as" if fit.free else "taken to be"
        lines = [
            inference.title,
            "",
            _head(inference),
            *coefficient_lines(inference),
            "---",
            _LEGEND,
            "",
            f"(Dispersion parameter {kind} {format_short(fit.dispersion)})",
            "",
            f"    Null deviance: {format_short(fit.null_deviance)}  on {fit.df_null} degrees of "
            "freedom",
            f"Residual deviance: {format_short(fit.deviance)}  on {fit.df_residual} degrees of "
            "freedom",
            f"AIC: {format_short(fit.aic)}   BIC: {format_short(fit.bic)}   "
            f"log likelihood: {format_short(fit.log_likelihood)}",
            "Pseudo R-squared: "
            + ", ".join(f"{name} {value:.4f}" for name, value in fit.pseudo_r2.items()),
            "",
            f"Number of Fisher Scoring iterations: {inference.steps} ({inference.passes} passes "
            f"over {fit.rows} rows)",
        ]
        if inference.errors:
            lines.insert(1, f"Standard errors: {_ERRORS[inference.errors]}")
        if not inference.converged:
            lines.append("The fit has not converged: its standard errors and tests are not valid.")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as a dictionary of plain numbers, lists and texts."""
        inference, fit = self.inference, self.inference.likelihood
        sides = {}
        if inference.first is not None:
            sides = {"of": inference.second, "against": inference.first}
        return sides | {
            "coefficients": self._coefficients(),
            "deviance": fit.deviance,
            "null_deviance": fit.null_deviance,
            "df_residual": fit.df_residual,
            "df_null": fit.df_null,
            "aic": fit.aic,
            "bic": fit.bic,
            "log_likelihood": fit.log_likelihood,
            "pseudo_r2": fit.pseudo_r2,
            "dispersion": fit.dispersion,
            "n": fit.rows,
            "converged": inference.converged,
            "cov": inference.errors or None,
            "level": self.level,
        }

    def frame(self) -> Any:
        """Return a pandas frame with a row for each coefficient."""
        keys = ["class", "name"] if self.inference.classes is not None else ["name"]
        return import_pandas().DataFrame(self._coefficients()).set_index(keys)

    def _coefficients(self) -> list[dict[str, Any]]:
        inference = self.inference
        ends = inference.wald(self.level)
        ratios = inference.odds_ratios(self.level) if inference.odds else None
        rows = []
        for j, name in enumerate(inference.names):
            classes = inference.classes
            row: dict[str, Any] = {} if classes is None else {"class": classes[j]}
            row |= {
                "name": name,
                "estimate": float(inference.estimate[j]),
                "std_error": float(inference.std_error[j]),
                inference.letter: float(inference.statistic[j]),
                "p": float(inference.p[j]),
                "low": float(ends[j, 0]),
                "high": float(ends[j, 1]),
            }
            if ratios is not None:
                ratio, low, high = ratios[j].tolist()
                row |= {"odds_ratio": ratio, "odds_low": low, "odds_high": high}
            rows.append(row)
        return rows


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PenalisedSummary(PrintedResult):
    """Result of `summary()` of a penalised fit: coefficients without standard errors."""

    title: str
    names: tuple[str, ...]  # p names of columns
    classes: tuple[object, ...] | None  # p classes, each compared with the first
    first: object  # class that the others are compared with
    second: object  # the other of two classes
    estimate: Floats  # (p,)
    why: str  # reason why there are no standard errors

    @property
    def text(self) -> str:
        """Text in the layout of `CoefficientSummary`, with only the estimates."""
        names = list(self.names)
        side = f"'{self.second}'"
        if self.classes is not None:
            names = [f"{c}: {name}" for c, name in zip(self.classes, names, strict=True)]
            side = "each class"
        rows = list(zip(names, _format_column(self.estimate), strict=True))
        lines = text_table("", ["", "Estimate"], rows)
        head = f"Coefficients, log odds of {side} against '{self.first}':"
        return "\n".join([self.title, "", head, *lines, "", self.why])

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as a dictionary of plain numbers, lists and texts."""
        return {
            "of": self.second,
            "against": self.first,
            "coefficients": self._coefficients(),
            "why_no_standard_errors": self.why,
        }

    def frame(self) -> Any:
        """Return a pandas frame with a row for each coefficient."""
        keys = ["class", "name"] if self.classes is not None else ["name"]
        return import_pandas().DataFrame(self._coefficients()).set_index(keys)

    def _coefficients(self) -> list[dict[str, Any]]:
        rows = []
        for j, name in enumerate(self.names):
            row: dict[str, Any] = {} if self.classes is None else {"class": self.classes[j]}
            rows.append(row | {"name": name, "estimate": float(self.estimate[j])})
        return rows


def _head(inference: Inference) -> str:
    """Return the heading above the coefficients, which names the classes that are compared."""
    if inference.first is None:
        return "Coefficients:"
    what = "log odds" if inference.odds else "scores"
    if inference.classes is not None:
        return f"Coefficients, {what} of each class against '{inference.first}':"
    return f"Coefficients, {what} of '{inference.second}' against '{inference.first}':"


def coefficient_lines(
    inference: Inference, places: Places | None = None, estimate: str = "Estimate"
) -> list[str]:
    """Return the lines of the table of estimates; with `places`, only those at these indices.

    `estimate` is the heading of the estimates.
    """
    some = slice(None) if places is None else places
    names, letter = list(inference.names), inference.letter
    if inference.classes is not None:
        names = [f"{c}: {name}" for c, name in zip(inference.classes, names, strict=True)]
    head = ["", estimate, "Std. Error", f"{letter} value", f"Pr(>|{letter}|)", ""]
    p = inference.p[some]
    columns = [
        [str(name) for name in np.array(names, dtype=object)[some]],
        _format_column(inference.estimate[some]),
        _format_column(inference.std_error[some]),
        [f"{value:.3f}" for value in inference.statistic[some]],
        [format_p_as_r(value) for value in p],
        [stars(value) for value in p],
    ]
    wide = [max(map(len, [title, *cells])) for title, cells in zip(head, columns, strict=True)]
    lines = []
    for first, *middle, last in [head, *zip(*columns, strict=True)]:
        cells = [cell.rjust(width) for cell, width in zip(middle, wide[1:-1], strict=True)]
        lines.append(" ".join([first.ljust(wide[0]), *cells, last.ljust(wide[-1])]).rstrip())
    return lines


def _format_column(values: Floats) -> list[str]:
    """Format a column of numbers so that the smallest of them has four significant digits."""
    sizes = np.abs(values[np.isfinite(values) & (values != 0)])
    if not len(sizes) or sizes.max() >= 1e6 or sizes.max() / sizes.min() > 1e6:
        return [f"{value:.5g}" for value in values]
    decimals = int(np.clip(4 - np.floor(np.log10(sizes.min())), 0, 9))
    return [f"{value:.{decimals}f}" for value in values]
