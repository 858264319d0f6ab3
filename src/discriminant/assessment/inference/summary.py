"""A fit told as R users expect it: as text, as a frame, as a dictionary.

Tables in plain text, as statistical packages print them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from discriminant.assessment.inference.wald import Inference
from discriminant.table.blocks import Floats
from discriminant.table.cells import import_pandas


class PrintedResult:
    """A result that is shown as its `text`, whether printed or left at the end of a cell."""

    __slots__ = ()

    @property
    def text(self) -> str:
        """All of it, laid out in lines."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text


def text_table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table: a title, a head, and rows whose first cell is a name.

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


def text_matrix(
    title: str, names: Sequence[object], columns: Sequence[str], values: Floats
) -> list[str]:
    """A table of numbers with a name for each row and column."""
    rows = [
        [str(name), *map(format_number, line)]
        for name, line in zip(names, np.asarray(values), strict=True)
    ]
    return text_table(title, ["", *columns], rows)


def steps_frame(kind: Any, steps: Sequence[Any]) -> Any:
    """A pandas frame with a row for each step of a `kind`, by its number."""
    columns = [field.name for field in fields(kind)]
    rows = [asdict(step) for step in steps]
    return import_pandas().DataFrame(rows, columns=columns).set_index("number")


def format_number(value: float, decimals: int = 6) -> str:
    """So many decimals, or six digits if it is very large or small.

    >>> format_number(0.02343863), format_number(53.4664888, 4), format_number(1e-9)
    ('0.023439', '53.4665', '1e-09')
    """
    plain = value == 0 or not np.isfinite(value) or 10.0**-decimals <= abs(value) < 1e9
    return f"{value:.{decimals}f}" if plain else f"{value:.6g}"


def format_degrees(value: float) -> str:
    """Degrees of freedom: whole, or as they are.

    >>> format_degrees(288.0), format_degrees(77566.75)
    ('288', '77566.75')
    """
    return f"{value:.0f}" if value == round(value) else f"{value:.2f}"


def format_p(p: float) -> str:
    """A p-value as SAS prints it.

    >>> format_p(1e-20), format_p(0.25)
    ('<.0001', '0.2500')
    """
    return "<.0001" if p < 1e-4 else f"{p:.4f}"


def format_bytes(size: float) -> str:
    """Bytes as a person says them.

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
_LEAST = 2e-16  # a smaller p-value is shown as less than this; the dictionary has it in full


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CoefficientSummary(PrintedResult):
    """What `summary()` returns: `print` it, or ask for `frame()` or `to_dict()`."""

    inference: Inference
    level: float = 0.95

    @property
    def text(self) -> str:
        """Laid out as R's summary of a glm."""
        found, fit = self.inference, self.inference.likelihood
        kind = "estimated as" if fit.free else "taken to be"
        lines = [
            found.title,
            "",
            _head(found),
            *_table(found),
            "---",
            _LEGEND,
            "",
            f"(Dispersion parameter {kind} {_short(fit.dispersion)})",
            "",
            f"    Null deviance: {_short(fit.null_deviance)}  on {fit.df_null} degrees of freedom",
            f"Residual deviance: {_short(fit.deviance)}  on {fit.df_residual} degrees of freedom",
            f"AIC: {_short(fit.aic)}   BIC: {_short(fit.bic)}   "
            f"log likelihood: {_short(fit.log_likelihood)}",
            "Pseudo R-squared: "
            + ", ".join(f"{name} {value:.4f}" for name, value in fit.pseudo_r2.items()),
            "",
            f"Number of Fisher Scoring iterations: {found.steps} ({found.passes} passes over "
            f"{fit.rows} rows)",
        ]
        if not found.converged:
            lines.append(
                "The fit has not converged: what is said here of its errors does not hold."
            )
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, lists and texts."""
        found, fit = self.inference, self.inference.likelihood
        sides = {} if found.first is None else {"of": found.second, "against": found.first}
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
            "converged": found.converged,
            "level": self.level,
        }

    def frame(self) -> Any:
        """The coefficients as a pandas frame, a row each."""
        found = import_pandas().DataFrame(self._coefficients())
        keys = ["class", "name"] if self.inference.classes is not None else ["name"]
        return found.set_index(keys)

    def _coefficients(self) -> list[dict[str, Any]]:
        found = self.inference
        ends = found.wald(self.level)
        rows = []
        for j, name in enumerate(found.names):
            row: dict[str, Any] = {} if found.classes is None else {"class": found.classes[j]}
            row |= {
                "name": name,
                "estimate": float(found.estimate[j]),
                "std_error": float(found.std_error[j]),
                found.letter: float(found.statistic[j]),
                "p": float(found.p[j]),
                "low": float(ends[j, 0]),
                "high": float(ends[j, 1]),
            }
            if found.odds:
                ratio, low, high = found.odds_ratios(self.level)[j].tolist()
                row |= {"odds_ratio": ratio, "odds_low": low, "odds_high": high}
            rows.append(row)
        return rows


def stars(p: float) -> str:
    """R's stars.

    >>> stars(0.02), stars(0.5)
    ('*', '')
    """
    return next((mark for most, mark in STARS if p <= most), "")


def _head(found: Inference) -> str:
    """What the coefficients are of: of classes, which one against which."""
    if found.first is None:
        return "Coefficients:"
    what = "log odds" if found.odds else "scores"
    if found.classes is not None:
        return f"Coefficients, {what} of each class against '{found.first}':"
    return f"Coefficients, {what} of '{found.second}' against '{found.first}':"


def _table(found: Inference) -> list[str]:
    names = [
        name if found.classes is None else f"{found.classes[j]}: {name}"
        for j, name in enumerate(found.names)
    ]
    head = ["", "Estimate", "Std. Error", f"{found.letter} value", f"Pr(>|{found.letter}|)", ""]
    columns = [
        names,
        _numbers(found.estimate),
        _numbers(found.std_error),
        [f"{value:.3f}" for value in found.statistic],
        [_chance(value) for value in found.p],
        [stars(value) for value in found.p],
    ]
    wide = [max(map(len, [title, *cells])) for title, cells in zip(head, columns, strict=True)]
    rows = [head, *zip(*columns, strict=True)]
    return [_line(row, wide) for row in rows]


def _line(row: Any, wide: list[int]) -> str:
    first, *middle, last = row
    cells = [cell.rjust(width) for cell, width in zip(middle, wide[1:-1], strict=True)]
    return " ".join([first.ljust(wide[0]), *cells, last.ljust(wide[-1])]).rstrip()


def _numbers(values: Floats) -> list[str]:
    """Numbers of one column, with as many decimals as the smallest needs for four digits."""
    some = np.abs(values[np.isfinite(values) & (values != 0)])
    if not len(some) or some.max() >= 1e6 or some.max() / some.min() > 1e6:
        return [f"{value:.5g}" for value in values]
    decimals = int(np.clip(4 - np.floor(np.log10(some.min())), 0, 9))
    return [f"{value:.{decimals}f}" for value in values]


def _chance(p: float) -> str:
    """A p-value as R prints it.

    >>> _chance(1e-20), _chance(0.25)
    ('< 2e-16', '0.25')
    """
    return f"< {_LEAST:.0e}" if p < _LEAST else f"{p:.3g}"


def _short(value: float) -> str:
    return f"{value:.6g}"
