"""Python export: one file that needs only the standard library.

The file defines `predict(row)` and `answer(row)`; `row` is a dict of columns. `predict` returns the
label and the probability of each class (for a regression, the number); `answer` returns all
outputs. Each expression is a line with its name in the plan; matrices are tuples above the
functions.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Sequence
from typing import Any

from discriminant.export.feature_columns import FeatureSource
from discriminant.export.plan import ExportPlan, Output, make_plan, number_at
from discriminant.models.expressions import ELEMENTWISE, Expression, stored_ids

_FUNCTIONS = {"exp": "math.exp", "log": "math.log", "abs": "abs", "sqrt": "math.sqrt"}
_SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}

_HEAD = '''\
"""{title}, as plain Python: {what}.

    predict(row)  {predicts}
    answer(row)   a dict of all that is known: {names}

A row is a dict with the columns {columns}.
"""

import math
'''

_CELLS = '''

def _number(row, column, fill=None):
    """A cell as a finite number, or what stands in where it is missing."""
    value = row[column]
    if value is None or value != value:
        if fill is None:
            raise ValueError(f"The column {column!r} is missing.")
        return fill
    value = float(value)
    if math.isinf(value):
        raise ValueError(f"The column {column!r} is infinite.")
    return value


def _dot(slopes, values):
    return sum(slope * value for slope, value in zip(slopes, values))
'''

_DAYS = '''

def _days(row, column, fill=None):
    """A date, or its text such as 2023-10-27, as days since 1970-01-01; a number is one already."""
    value = row[column]
    if isinstance(value, str) and value.strip():
        from datetime import datetime
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            told = f"column {column!r}: {value!r} is no date such as 2023-10-27"
            raise ValueError(told) from None
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
    found = fill if value is None or value != value else values.get(str(value), other)
    if found is None:
        raise ValueError(f"The column {column!r} is missing, or has a category never seen.")
    return found


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
        As in `to_sql`.

    Returns
    -------
    str
        The text of the file.
    """
    return _PythonWriter(make_plan(model, outputs)).file()


class _PythonWriter:
    """Builder of one file."""

    def __init__(self, plan: ExportPlan) -> None:
        self.plan = plan
        self.stored = stored_ids(plan.steps())
        self.used = {"math", "row", "predict", "answer", "x", *keyword.kwlist}
        self.used |= {"max", "min", "sum", "abs", "zip", "range", "float", "dict", "str"}
        self.names: dict[int, str] = {id(plan.x): "x"}
        self.constants: dict[str, str] = {}  # from the text of a constant to its name
        self.assigned = ""  # variable that the current line assigns
        self.lines: list[str] = []

    def file(self) -> str:
        """Return the text."""
        for step in self.plan.steps():
            if id(step) in self.stored and step.op != "features":
                name = self.assigned = self.names[id(step)] = self._unique(step.name or step.op)
                self.lines.append(f"    {name} = {self._formula(step, name)}")
        entries = [self._entry(output) for output in self.plan.outputs]
        checks = [f"    {self._cell(source)}" for source in self.plan.checks]
        cells = ", ".join(self._cell(source) for source in self.plan.sources)
        body = [f"    x = [{cells}]", *checks, *self.lines, "    return {", *entries, "    }"]
        kinds = {source.kind for source in (*self.plan.sources, *self.plan.checks)}
        pieces = [
            self._head(),
            "\n".join(f"{name} = {text}" for text, name in self.constants.items()),
            _CELLS,
            _DAYS if "date" in kinds else "",
            _CATEGORY if kinds & {"text", "missing"} else "",
            '\n\ndef answer(row):\n    """All that is known of a row."""\n'
            + "\n".join(body)
            + "\n",
            self._predict(),
        ]
        return "\n".join(piece for piece in pieces if piece)

    def _head(self) -> str:
        columns = list(dict.fromkeys(source.column for source in self.plan.sources))
        shown = ", ".join(ascii(name) for name in columns[:8]) + (", ..." if columns[8:] else "")
        names = ", ".join(output.name for output in self.plan.outputs)
        pair = "the label, and a dict with the probability of each class"
        text = _HEAD.format(
            title=self.plan.title,
            what=f"{len(self.plan.sources)} features",
            predicts=pair if "p" in self.plan else "what it says",
            names=names,
            columns="{}",
        )
        return text.replace("{}", shown.replace("\\", "\\\\").replace('"""', '\\"\\"\\"'))

    def _predict(self) -> str:
        names = [output.name for output in self.plan.outputs]
        first = next(name for name in ("label", "value", *names) if name in names)
        values = f'found["{first}"]' + (', found["p"]' if "p" in names else "")
        return (
            f'\n\ndef predict(row):\n    """What the model says of a row."""\n'
            f"    found = answer(row)\n    return {values}\n"
        )

    # --- inputs and outputs -----------------------------------------------------------------------

    def _cell(self, source: FeatureSource) -> str:
        column = ascii(source.column)
        fill = "" if source.fill is None else f", {source.fill!r}"
        if source.kind == "text":
            values = "{" + ", ".join(f"{k!a}: {v!r}" for k, v in source.values) + "}"
            return f"_category(row, {column}, {values}, {source.fill!r}, {source.other!r})"
        if source.kind == "missing":
            return f"_missing(row, {column})"
        return f"{'_days' if source.kind == 'date' else '_number'}(row, {column}{fill})"

    def _entry(self, output: Output) -> str:
        """Return the entry for an output in the dictionary that `answer` returns."""
        step = output.expression
        if output.choices:
            choices = self._constant(f"{output.name}s", [ascii(c) for c in output.choices])
            value = f"{choices}[int({self._at(step, 0)})]"
        elif output.components:
            value = f"dict(zip({self._keys(output)}, {self._vector(step)}))"
        else:
            value = self._at(step, 0)
        return f'        "{output.name}": {value},'

    def _keys(self, output: Output) -> str:
        labels = self.plan["label"].choices if "label" in self.plan else ()
        keys = labels if len(labels) == len(output.components) else output.components
        if "action" in self.plan and output.name == "cost":
            keys = self.plan["action"].choices[: len(output.components)]
        return self._constant("labels", [ascii(key) for key in keys])

    # --- expressions ------------------------------------------------------------------------------

    def _formula(self, step: Expression, name: str) -> str:
        if step.op == "affine":
            return self._affine(step, name)
        if step.op in ("squares", "sum", "max", "first_max"):
            vector = self._vector(step.operands[0])
            return {
                "squares": f"sum(one * one for one in {vector})",
                "sum": f"sum({vector})",
                "max": f"max({vector})",
                "first_max": f"max(range({step.operands[0].width}), key=({vector}).__getitem__)",
            }[step.op]
        vectors: dict[int, tuple[str, Expression]] = {}
        text = self._elementwise(step, vectors)
        if step.width == 1:
            return text
        variables = ", ".join(variable for variable, _ in vectors.values())
        values = ", ".join(self._vector(vector) for _, vector in vectors.values())
        return f"[{text} for {variables} in {values if len(vectors) == 1 else f'zip({values})'}]"

    def _elementwise(self, step: Expression, vectors: dict[int, tuple[str, Expression]]) -> str:
        """Return the formula of one number of an elementwise expression.

        Each vector in the formula is replaced by a loop variable.
        """
        terms = [self._operand(operand, vectors) for operand in step.operands]
        if step.op in _SIGNS:
            return f"({terms[0]} {_SIGNS[step.op]} {terms[1]})"
        if step.op in ("larger", "smaller"):
            return f"{'max' if step.op == 'larger' else 'min'}({terms[0]}, {terms[1]})"
        if step.op == "sign":
            return f"(({terms[0]} > 0.0) - ({terms[0]} < 0.0))"
        if step.op == "greater":
            return f"({terms[2]} if {terms[0]} > {terms[1]} else {terms[3]})"
        return f"{_FUNCTIONS[step.op]}({terms[0]})"

    def _operand(self, step: Expression, vectors: dict[int, tuple[str, Expression]]) -> str:
        if id(step) not in self.stored and step.op in ELEMENTWISE:
            return self._elementwise(step, vectors)
        if step.width == 1:
            return self._at(step, 0)
        return vectors.setdefault(id(step), (f"v{len(vectors)}", step))[0]

    def _affine(self, step: Expression, name: str) -> str:
        coef, intercept = step.constants
        vector = self._vector(step.operands[0])
        rows = [_tuple([repr(float(v)) for v in row]) for row in coef]
        if step.width == 1:
            slopes = self._constant(f"{name} slopes", rows[0])
            return f"_dot({slopes}, {vector}) + {float(intercept[0])!r}"
        slopes = self._constant(f"{name} slopes", rows)
        starts = self._constant(f"{name} intercepts", [repr(float(v)) for v in intercept])
        return f"[_dot(slope, {vector}) + start for slope, start in zip({slopes}, {starts})]"

    def _at(self, step: Expression, index: int) -> str:
        """Return the code for one number of an expression."""
        step, index = number_at(step, index)
        if step.op == "constant":
            return repr(float(step.constants[0][index]))
        name = self.names[id(step)]
        return name if step.width == 1 and step.op != "features" else f"{name}[{index}]"

    def _vector(self, step: Expression) -> str:
        """Return the code for all numbers of an expression, as a sequence."""
        if step.op == "constant":
            values = [repr(float(v)) for v in step.constants[0]]
            return self._constant(f"{self.assigned} numbers", values)
        if step.op == "pick":
            return f"[{', '.join(self._at(step, i) for i in range(step.width))}]"
        if step.op == "stack":
            parts = (
                self._at(part, 0) if part.width == 1 else f"*{self._vector(part)}"
                for part in step.operands
            )
            return f"[{', '.join(parts)}]"
        name = self.names[id(step)]
        return f"[{name}]" if step.width == 1 and step.op != "features" else name

    # --- names and constants ----------------------------------------------------------------------

    def _unique(self, wanted: str) -> str:
        """Return an identifier that is not used yet, similar to the wanted name."""
        plain = re.sub(r"[^A-Za-z0-9_]", "_", wanted)
        plain = plain if re.match(r"[A-Za-z]", plain) else f"s_{plain}"
        name, number = plain, 1
        while name in self.used:
            number += 1
            name = f"{plain}_{number}"
        self.used.add(name)
        return name

    def _constant(self, wanted: str, values: list[str] | str) -> str:
        """Return the name of a constant above the functions; equal constants share one name."""
        text = values if isinstance(values, str) else _tuple(values)
        if text not in self.constants:
            self.constants[text] = self._unique(wanted.upper())
        return self.constants[text]


def _tuple(values: Sequence[str]) -> str:
    if sum(map(len, values)) < 88:
        return "(" + ", ".join(values) + ("," if len(values) == 1 else "") + ")"
    return "(\n    " + ",\n    ".join(v.replace("\n", "\n    ") for v in values) + ",\n)"
