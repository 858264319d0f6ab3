"""Python export: one file that needs only the standard library.

The file defines `predict(row)` and `answer(row)`; `row` is a dict of columns. `predict` returns the
label and the probability of each class (for a regression, the number); `answer` returns all
outputs. Each expression becomes a line that assigns a variable with the expression's name; matrices
are tuples above the functions.
"""

from __future__ import annotations

import keyword
from collections.abc import Sequence
from typing import Any, ClassVar

from discriminant.export.feature_columns import FeatureSource
from discriminant.export.plan import ExportPlan, Output, make_plan
from discriminant.export.source_writer import SourceWriter, numbers
from discriminant.models.expressions import ELEMENTWISE, Expression
from discriminant.table.text_values import ISO_DATE, date_pattern

_HEAD = '''\
"""{title}, as plain Python: {what}.

    predict(row)  {predicts}
    answer(row)   a dict of all outputs: {names}

A row is a dict with the columns {columns}.
"""

import math
'''

_CELLS = '''

def _number(row, column, fill=None):
    """A cell as a finite number; `fill` replaces a missing cell."""
    value = row[column]
    if value is None or value != value:
        if fill is None:
            raise ValueError(f"The column {column!r} is missing.")
        return fill
    try:
        value = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"The column {column!r} is not a number.") from None
    if math.isinf(value):
        raise ValueError(f"The column {column!r} is infinite.")
    return value


def _dot(slopes, values):
    return sum(slope * value for slope, value in zip(slopes, values))
'''

_DAYS = '''

def _days(row, column, fill=None, written=None):
    """A date, or its text, as days since 1970-01-01; numbers are days.

    Texts are dates such as 2023-10-27. `written` is another format: its name, its pattern, and the
    groups of year, month and day.
    """
    value = row[column]
    if isinstance(value, str) and value.strip():
        import re
        from datetime import datetime
        text = value.strip()
        parts = written and re.fullmatch(written[1] + "([T ].*)?", text)
        if parts:
            year, month, day = (parts[group + 1].zfill(2) for group in written[2])
            text = f"{year}-{month}-{day}{parts[4] or ''}"
        try:
            value = datetime.fromisoformat(text)
        except ValueError:
            also = f" or {written[0]}" if written else ""
            raise ValueError(
                f"The column {column!r} is not a date such as 2023-10-27{also}."
            ) from None
    if not hasattr(value, "toordinal"):
        return _number(row, column, fill)
    if getattr(value, "tzinfo", None) is not None:
        return value.timestamp() / 86400.0
    day = value.toordinal() - 719163
    seconds = [(getattr(value, name, 0), unit) for name, unit in
               (("hour", 3600.0), ("minute", 60.0), ("second", 1.0), ("microsecond", 1e-6))]
    return day + sum(many * unit for many, unit in seconds) / 86400.0
'''

_CATEGORY = '''

def _category(row, column, values, fill, other):
    """The number of a category, of a missing cell, or of a category that was not seen."""
    value = row[column]
    missing = value is None or value != value
    number = fill if missing else values.get(str(value), other)
    if number is None:
        reason = "is missing" if missing else "has an unknown category"
        raise ValueError(f"The column {column!r} {reason}.")
    return number


def _missing(row, column):
    return float(row[column] is None or row[column] != row[column])
'''


def to_python(model: Any, *, outputs: Sequence[str] | None = None) -> str:
    """Return the model as the text of a Python file.

    Parameters
    ----------
    model : estimator
        A fitted model.
    outputs : sequence of str, optional
        Outputs to compute; see `to_sql`.

    Returns
    -------
    str
        The text of the file.
    """
    return _PythonWriter(make_plan(model, outputs)).file()


class _PythonWriter(SourceWriter):
    """Builder of one file."""

    brackets = "(", ")"
    functions: ClassVar[dict[str, str]] = {
        "exp": "math.exp",
        "log": "math.log",
        "abs": "abs",
        "sqrt": "math.sqrt",
        "cos": "math.cos",
        "larger": "max",
        "smaller": "min",
    }

    def __init__(self, plan: ExportPlan) -> None:
        builtin = ("max", "min", "sum", "abs", "zip", "range", "float", "dict", "str", "int")
        super().__init__(plan, {"math", "predict", "answer", *keyword.kwlist, *builtin})

    def file(self) -> str:
        """Return the text of the file."""
        lines = [f"    {name} = {formula}" for name, formula in self.assignments()]
        entries = [self._entry(output) for output in self.plan.outputs]
        checks = [f"    {self.cell(source)}" for source in self.plan.checks]
        cells = ", ".join(self.cell(source) for source in self.plan.sources)
        body = [f"    x = [{cells}]", *checks, *lines, "    return {", *entries, "    }"]
        pieces = [
            self._head(),
            "\n".join(f"{name} = {text}" for text, name in self.constants.items()),
            _CELLS,
            _DAYS if "date" in self.kinds else "",
            _CATEGORY if self.kinds & {"text", "missing"} else "",
            '\n\ndef answer(row):\n    """Return all outputs for a row."""\n'
            + "\n".join(body)
            + "\n",
            self._predict(),
        ]
        return "\n".join(piece for piece in pieces if piece)

    def _head(self) -> str:
        columns = self.columns
        shown = ", ".join(ascii(name) for name in columns[:8]) + (", ..." if columns[8:] else "")
        names = ", ".join(output.name for output in self.plan.outputs)
        pair = "the label, and a dict with the probability of each class"
        text = _HEAD.format(
            title=self.plan.title,
            what=f"{len(self.plan.sources)} features",
            predicts=pair if "p" in self.plan else "the prediction",
            names=names,
            columns="{}",
        )
        return text.replace("{}", shown.replace("\\", "\\\\").replace('"""', '\\"\\"\\"'))

    def _predict(self) -> str:
        names = [output.name for output in self.plan.outputs]
        first = next(name for name in ("label", "value", *names) if name in names)
        values = f'outputs["{first}"]' + (', outputs["p"]' if "p" in names else "")
        return (
            f'\n\ndef predict(row):\n    """Return the prediction for a row."""\n'
            f"    outputs = answer(row)\n    return {values}\n"
        )

    # --- inputs and outputs -----------------------------------------------------------------------

    def cell(self, source: FeatureSource) -> str:
        """Return the code that computes one feature: a cell converted to a number."""
        column = ascii(source.column)
        fill = "" if source.fill is None else f", {source.fill!r}"
        if source.kind == "text":
            values = "{" + ", ".join(f"{k!a}: {v!r}" for k, v in source.values) + "}"
            return f"_category(row, {column}, {values}, {source.fill!r}, {source.other!r})"
        if source.kind == "missing":
            return f"_missing(row, {column})"
        if source.kind != "date":
            return f"_number(row, {column}{fill})"
        written = ""
        if source.written not in ("", ISO_DATE):
            written = f", written={(source.written, *date_pattern(source.written))!r}"
        return f"_days(row, {column}{fill}{written})"

    def _entry(self, output: Output) -> str:
        """Return the code of an output, an entry in the dictionary that `answer` returns."""
        step = output.expression
        if output.choices:
            choices = self.list_constant(f"{output.name}s", [ascii(c) for c in output.choices])
            value = f"{choices}[int({self.at(step, 0)})]"
        elif output.components:
            keys = self.list_constant(
                "labels", [ascii(key) for key in self.component_names(output)]
            )
            value = f"dict(zip({keys}, {self.vector(step)}))"
        else:
            value = self.at(step, 0)
        return f'        "{output.name}": {value},'

    # --- expressions ------------------------------------------------------------------------------

    def formula(self, step: Expression, name: str) -> str:
        """Return the code of an expression."""
        if step.op in ELEMENTWISE:
            return self.elementwise(step)
        vector = self.vector(step.operands[0])
        if step.op == "affine":
            return self._affine(step, name, vector)
        return {
            "squares": f"sum(one * one for one in {vector})",
            "sum": f"sum({vector})",
            "max": f"max({vector})",
            "first_max": f"max(range({step.operands[0].width}), key=({vector}).__getitem__)",
        }[step.op]

    def _affine(self, step: Expression, name: str, vector: str) -> str:
        intercept = numbers(step.constants[1])
        if step.width == 1:
            slopes = self.list_constant(f"{name} slopes", numbers(step.constants[0][0]))
            return f"_dot({slopes}, {vector}) + {intercept[0]}"
        slopes = self.list_constant(f"{name} slopes", self.matrix(step))
        starts = self.list_constant(f"{name} intercepts", intercept)
        return f"[_dot(slope, {vector}) + start for slope, start in zip({slopes}, {starts})]"

    def map_vectors(self, text: str, variables: Sequence[str], vectors: Sequence[str]) -> str:
        """Return a list comprehension."""
        values = vectors[0] if len(vectors) == 1 else f"zip({', '.join(vectors)})"
        return f"[{text} for {', '.join(variables)} in {values}]"

    def choose(self, condition: str, x: str, y: str) -> str:
        """Return a conditional expression."""
        return f"({x} if {condition} else {y})"

    def sign(self, value: str) -> str:
        """Return the difference of two comparisons."""
        return f"(({value} > 0.0) - ({value} < 0.0))"

    def spread(self, vector: str) -> str:
        """Return the unpacked vector."""
        return f"*{vector}"
