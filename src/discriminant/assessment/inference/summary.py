"""Printed results of tests and fits: R's coefficient summary, text tables and number formats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from html import escape
from typing import Any

import numpy as np

from discriminant.assessment.inference.wald import Inference
from discriminant.table.blocks import Floats, Places
from discriminant.table.cells import import_pandas


class PrintedResult:
    """Base class of results that print as their `text`, on a terminal and in a notebook."""

    __slots__ = ()

    @property
    def text(self) -> str:
        """The result as lines of text."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.text)}</pre>"


def text_table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table: a title, a head, and rows whose first cell is a name.

    >>> print("\\n".join(text_table("Sizes", ["", "n"], [["ash", "10"], ["elm", "7"]])))
    Sizes
    <BLANKLINE>
          n
    ash  10
    elm   7
    """
    wide = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = []
    for first, *others in [head, *rows]:
        cells = [cell.rjust(width) for cell, width in zip(others, wide[1:], strict=True)]
        lines.append("  ".join([first.ljust(wide[0]), *cells]).rstrip())
    return [title, "", *lines] if title else lines


def html_table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]], note: str) -> str:
    """Return a table for notebooks: a caption, a head, rows whose first cell is a name, a note.

    >>> html_table("Sizes", ["", "n"], [["ash", "<9"]], "").partition("<tbody>")[2]
    '<tr><th scope="row">ash</th><td>&lt;9</td></tr></tbody></table>'
    """
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    lines = "".join(
        f'<tr><th scope="row">{escape(first)}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        + "</tr>"
        for first, *cells in rows
    )
    below = f"<p>{escape(note)}</p>" if note else ""
    return (
        f"<table><caption>{escape(title)}</caption><thead><tr>{heads}</tr></thead>"
        f"<tbody>{lines}</tbody></table>{below}"
    )


def text_matrix(
    title: str, names: Sequence[object], columns: Sequence[str], values: Floats
) -> list[str]:
    """Return the lines of a table of numbers with named rows and columns."""
    rows = [
        [str(name), *map(format_number, line)]
        for name, line in zip(names, np.asarray(values), strict=True)
    ]
    return text_table(title, ["", *columns], rows)


def steps_frame(kind: Any, steps: Sequence[Any]) -> Any:
    """Return a pandas frame with one row for each step, indexed by its number.

    `kind` is the dataclass of the steps; its fields are the columns.
    """
    columns = [field.name for field in fields(kind)]
    rows = [asdict(step) for step in steps]
    return import_pandas().DataFrame(rows, columns=columns).set_index("number")


def format_number(value: float, decimals: int = 6) -> str:
    """Format a number with `decimals` decimals, or with six digits if it is very large or small.

    >>> format_number(0.02343863), format_number(53.4664888, 4), format_number(1e-9)
    ('0.023439', '53.4665', '1e-09')
    """
    plain = value == 0 or not np.isfinite(value) or 10.0**-decimals <= abs(value) < 1e9
    return f"{value:.{decimals}f}" if plain else f"{value:.6g}"


def format_degrees(value: float) -> str:
    """Format degrees of freedom, without decimals if they are an integer.

    >>> format_degrees(288.0), format_degrees(77566.75)
    ('288', '77566.75')
    """
    return f"{value:.0f}" if value == round(value) else f"{value:.2f}"


def format_p(p: float) -> str:
    """Format a p-value as SAS prints it.

    >>> format_p(1e-20), format_p(0.25)
    ('<.0001', '0.2500')
    """
    return "<.0001" if p < 1e-4 else f"{p:.4f}"


def format_bytes(size: float) -> str:
    """Format a number of bytes.

    >>> format_bytes(812), format_bytes(1_234_567), format_bytes(45e9)
    ('812 B', '1.2 MB', '45 GB')
    """
    for unit in ("B", "kB", "MB"):
        if size < 999.5:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 9.95 else f"{size:.1f} {unit}"
        size /= 1000.0
    return f"{size:.0f} GB" if size >= 9.95 else f"{size:.1f} GB"


STARS = ((0.001, "***"), (0.01, "**"), (0.05, "*"), (0.1, "."))
_LEGEND = "Signif. codes:  0 '***' 0.001 '**' 0.01 '*' 0.05 '.' 0.1 ' ' 1"
_LEAST_P = 2e-16  # smaller p-values are printed as `< 2e-16`
_ERRORS = {
    **{kind: f"sandwich ({kind})" for kind in ("HC0", "HC1", "HC2", "HC3")},
    "cluster": "sandwich, clustered by groups",
}


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
        """Text in the layout of `CoefficientSummary`, with the estimates alone."""
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


def stars(p: float) -> str:
    """Return the significance stars that R prints for a p-value.

    >>> stars(0.02), stars(0.5)
    ('*', '')
    """
    return next((mark for limit, mark in STARS if p <= limit), "")


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
    """Return the lines of the table of estimates, or of those at `places`.

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


def format_p_as_r(p: float) -> str:
    """Format a p-value as R prints it.

    >>> format_p_as_r(1e-20), format_p_as_r(0.25)
    ('< 2e-16', '0.25')
    """
    return f"< {_LEAST_P:.0e}" if p < _LEAST_P else f"{p:.3g}"


def format_short(value: float) -> str:
    """Format a number with six significant digits."""
    return f"{value:.6g}"
