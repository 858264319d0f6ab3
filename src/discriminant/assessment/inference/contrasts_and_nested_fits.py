"""Tests of linear contrasts of the estimates, and comparison of nested fits.

For k contrasts L of the estimates b with covariance V, the joint Wald statistic of L b = c is

    X2 = (L b - c)' (L V L')^-1 (L b - c)

which is compared with the chi-squared distribution with k degrees of freedom. If the dispersion is
estimated, X2 / k is compared with the F distribution, as in an analysis of variance. `compare_fits`
is the likelihood-ratio test of two nested fits to the same rows, as R's `anova(test="Chisq")`:

    X2 = (deviance of the smaller - deviance of the larger) / dispersion of the larger
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import chi2, f as fisher, norm, t as student

from discriminant.assessment.inference.coefficient_summary import Inference
from discriminant.assessment.printed_results import (
    PrintedResult,
    format_p_as_r,
    format_short,
    text_table,
)
from discriminant.errors import InferenceError, OptionError
from discriminant.table.blocks import Floats
from discriminant.table.column_cells import import_pandas


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ContrastTest(PrintedResult):
    """Linear contrasts of estimates with their Wald tests."""

    title: str
    names: tuple[str, ...]  # k contrasts
    estimate: Floats  # (k,) L b
    value: Floats  # (k,) values under the hypothesis
    std_error: Floats  # (k,)
    p_each: Floats  # (k,) two-sided p-values
    letter: str  # 'z' or 't'
    statistic: float  # joint statistic: chi-squared, or F
    df: int  # rank of the contrasts
    df_residual: int | None  # for F; None for chi-squared
    p: float  # of the joint test

    @property
    def text(self) -> str:
        """The contrasts, and the joint test."""
        letter = self.letter
        head = ["", "Estimate", "Value", "Std. Error", f"{letter} value", f"Pr(>|{letter}|)"]
        rows = [
            [
                record["name"],
                *(format_short(record[key]) for key in ("estimate", "value", "std_error")),
                f"{record[letter]:.3f}",
                format_p_as_r(record["p"]),
            ]
            for record in self._records()
        ]
        kind = f"chi-squared with {self.df}"
        if self.df_residual is not None:
            kind = f"F with {self.df} and {self.df_residual}"
        joint = (
            f"Joint Wald test: {format_short(self.statistic)}, {kind} degrees of freedom, "
            f"p {format_p_as_r(self.p)}"
        )
        return "\n".join([*text_table(f"{self.title}: linear contrasts", head, rows), "", joint])

    def to_dict(self) -> dict[str, Any]:
        """Return the tests as a dictionary of plain numbers, lists and texts."""
        return {
            "contrasts": self._records(),
            "statistic": self.statistic,
            "df": self.df,
            "df_residual": self.df_residual,
            "p": self.p,
        }

    def frame(self) -> Any:
        """Return a pandas frame with a row for each contrast."""
        return import_pandas().DataFrame(self._records()).set_index("name")

    def _records(self) -> list[dict[str, Any]]:
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = (self.estimate - self.value) / self.std_error
        return [
            {
                "name": name,
                "estimate": float(self.estimate[j]),
                "value": float(self.value[j]),
                "std_error": float(self.std_error[j]),
                self.letter: float(ratio[j]),
                "p": float(self.p_each[j]),
            }
            for j, name in enumerate(self.names)
        ]


def wald_test(inference: Inference, contrasts: Any, value: Any = 0.0) -> ContrastTest:
    """Test linear contrasts of the estimates, one by one and jointly.

    Parameters
    ----------
    inference : Inference
        Estimates with their covariance.
    contrasts : dict, list of dicts, or array of shape (k, p)
        Numbers by which the estimates are multiplied: by name, or in the order of `summary()`. With
        more than two classes, the name is a pair (class, column).
    value : float or array of shape (k,)
        Values of the contrasts under the null hypothesis.
    """
    matrix = _contrast_matrix(inference, contrasts)
    k = len(matrix)
    try:
        values = np.broadcast_to(np.asarray(value, dtype=np.float64), (k,))
    except (TypeError, ValueError):
        raise OptionError.of("value", value, f"a number, or {k} numbers") from None
    used = np.flatnonzero(matrix.any(axis=0))
    if not np.isfinite(inference.std_error[used]).all():
        names = [inference.names[j] for j in used]
        raise InferenceError.no_error(names)
    fit = inference.likelihood
    root = inference.root[:, used] @ matrix[:, used].T * np.sqrt(fit.dispersion)  # V = root'root
    estimate = matrix @ inference.estimate
    error = np.sqrt(np.einsum("ik,ik->k", root, root))
    _, size, right = np.linalg.svd(root, full_matrices=False)
    rank = int((size > 1e-10 * size.max(initial=0.0)).sum())
    if rank < k:
        raise InferenceError.dependent_contrasts(k, rank)
    white = (right @ (estimate - values)) / size
    statistic = float(white @ white)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.abs(estimate - values) / error
    degrees = max(fit.df_residual, 0) or np.nan
    if fit.free:
        p_each = 2.0 * student.sf(ratio, degrees)
        statistic /= k
        p = float(fisher.sf(statistic, k, degrees))
    else:
        p_each, p = 2.0 * norm.sf(ratio), float(chi2.sf(statistic, k))
    return ContrastTest(
        inference.title,
        tuple(_contrast_name(inference, row) for row in matrix),
        estimate,
        np.array(values),
        error,
        np.asarray(p_each),
        inference.letter,
        statistic,
        k,
        fit.df_residual if fit.free else None,
        p,
    )


def _keys(inference: Inference) -> list[Any]:
    """Return the name of each estimate; with several classes a pair (class, column)."""
    if inference.classes is None:
        return list(inference.names)
    return list(zip(inference.classes, inference.names, strict=True))


def _contrast_matrix(inference: Inference, contrasts: Any) -> Floats:
    """Return the (k, p) matrix of the contrasts, one row for each."""
    keys, p = _keys(inference), len(inference.names)
    allowed = f"a dict of factors by name, a list of such dicts, or an array of {p} columns"
    if isinstance(contrasts, Mapping):
        contrasts = [contrasts]
    rows = contrasts if isinstance(contrasts, list | tuple) else []
    if rows and all(isinstance(each, Mapping) for each in rows):
        matrix = np.zeros((len(rows), p))
        for row, each in zip(matrix, rows, strict=True):
            for key, factor in each.items():
                if key not in keys:
                    raise InferenceError.unknown_estimate(key, keys)
                row[keys.index(key)] = factor
        return _nonzero(matrix, allowed)
    try:
        matrix = np.atleast_2d(np.asarray(contrasts, dtype=np.float64))
    except (TypeError, ValueError):
        raise OptionError.of("contrasts", type(contrasts).__name__, allowed) from None
    if matrix.ndim != 2 or matrix.shape[1] != p:
        raise OptionError.of("contrasts", f"of shape {matrix.shape}", allowed)
    return _nonzero(matrix, allowed)


def _nonzero(matrix: Floats, allowed: str) -> Floats:
    if not np.isfinite(matrix).all() or not matrix.any(axis=1).all():
        raise OptionError.of("contrasts", "zero or not finite", allowed)
    return matrix


def _contrast_name(inference: Inference, row: Floats) -> str:
    terms = []
    for key, factor in zip(_keys(inference), row.tolist(), strict=True):
        if factor:
            name = key if isinstance(key, str) else f"{key[0]}: {key[1]}"
            sign = "-" if factor < 0 else "+"
            size = "" if abs(factor) == 1 else f"{abs(factor):g} "
            terms.append(f"{sign} {size}{name}")
    text = " ".join(terms)
    return text[2:] if text.startswith("+") else text


# --- nested fits ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FitComparison(PrintedResult):
    """Likelihood-ratio test of two nested fits."""

    titles: tuple[str, str]  # smaller and larger model
    df_residual: tuple[int, int]
    deviances: tuple[float, float]
    df: int  # additional estimates of the larger model
    statistic: float  # difference of the deviances, over the dispersion of the larger model
    p: float

    @property
    def text(self) -> str:
        """Text in the layout of R's `anova`."""
        head = ["", "Resid. Df", "Resid. Dev", "Df", "Deviance", "Pr(>Chi)"]
        (small, large), first, second = self.titles, *map(format_short, self.deviances)
        drop = format_short(self.deviances[0] - self.deviances[1])
        rows = [
            [f"1  {small}", str(self.df_residual[0]), first, "", "", ""],
            [
                f"2  {large}",
                str(self.df_residual[1]),
                second,
                str(self.df),
                drop,
                format_p_as_r(self.p),
            ],
        ]
        return "\n".join(text_table("Analysis of deviance", head, rows))

    def to_dict(self) -> dict[str, Any]:
        """Return the test as a dictionary of plain numbers, lists and texts."""
        return {
            "models": list(self.titles),
            "df_residual": list(self.df_residual),
            "deviances": list(self.deviances),
            "df": self.df,
            "statistic": self.statistic,
            "p": self.p,
        }

    def frame(self) -> Any:
        """Return a pandas frame with a row for each model."""
        columns = {
            "df_residual": list(self.df_residual),
            "deviance": list(self.deviances),
            "df": [np.nan, self.df],
            "statistic": [np.nan, self.statistic],
            "p": [np.nan, self.p],
        }
        return import_pandas().DataFrame(columns, index=[1, 2]).rename_axis("model")


def compare_fits(a: Any, b: Any) -> FitComparison:
    """Compare two nested fits to the same rows by a likelihood-ratio test.

    The features of one model must be among those of the other. Either model may be the larger one.

    Parameters
    ----------
    a, b : fitted GLM, Logistic or OrderedLogistic
        Two models of the same class and options, fitted to the same rows.

    Returns
    -------
    FitComparison
        `print` shows it in the layout of R's `anova`; `frame` and `to_dict` convert it.

    Examples
    --------
    >>> from discriminant import GLM
    >>> X, y = [[0.0, 1.0], [0.0, 3.0], [1.0, 2.0], [1.0, 5.0]], [1, 3, 3, 5]
    >>> large = GLM("poisson").fit(X, y)
    >>> small = GLM("poisson").fit([row[:1] for row in X], y)
    >>> result = compare_fits(small, large)
    >>> result.df, round(result.statistic, 3), round(result.p, 3)
    (1, 1.157, 0.282)
    """
    for model in (a, b):
        if not hasattr(model, "inference"):
            allowed = "fitted GLM, Logistic or OrderedLogistic models"
            raise OptionError.of("the models", type(model).__name__, allowed)
    fits: list[Inference] = [a.inference(), b.inference()]
    if len(fits[0].estimate) > len(fits[1].estimate):
        fits.reverse()
    small, large = fits
    ours, theirs = small.likelihood, large.likelihood
    tolerance = 1e-6 * max(abs(theirs.null_deviance), 1e-6)
    same_null = abs(ours.null_deviance - theirs.null_deviance) <= tolerance
    if small.title != large.title:
        raise InferenceError.other_models(small.title, large.title)
    if ours.rows != theirs.rows or not same_null:
        facts = ours.rows, theirs.rows, ours.null_deviance, theirs.null_deviance
        raise InferenceError.other_rows(*facts)
    missing = [key for key in _keys(small) if key not in _keys(large)]
    df = theirs.numbers - ours.numbers
    if missing or df < 1:
        raise InferenceError.not_nested([str(key) for key in missing])
    statistic = (ours.deviance - theirs.deviance) / theirs.dispersion
    texts = (_describe(small), _describe(large))
    return FitComparison(
        texts,
        (ours.df_residual, theirs.df_residual),
        (ours.deviance, theirs.deviance),
        df,
        statistic,
        float(chi2.sf(max(statistic, 0.0), df)),
    )


def _describe(inference: Inference) -> str:
    """Return the columns of a model, at most four of them by name."""
    columns = inference.names[: len(inference.names) - inference.thresholds]
    names = list(dict.fromkeys(columns))
    shown = ", ".join(names[:4])
    return shown if len(names) <= 4 else f"{shown} and {len(names) - 4} more"
