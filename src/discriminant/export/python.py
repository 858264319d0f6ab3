"""Export to one Python file that needs only the standard library.

The file has `predict(row)`, which takes a dict of columns and returns the label and the probability
of each class (for a regression, the number), and `answer(row)`, which returns all outputs.
Expressions are lines with the names they have in the plan; matrices are tuples above them.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Sequence
from typing import Any

from discriminant.export.feature_columns import FeatureSource
from discriminant.export.plan import ExportPlan, Output, make_plan
from discriminant.models.expressions import Expression, stored_ids

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
    """The model as the text of a file of Python.

    Parameters
    ----------
    model
        A fitted model.
    outputs
        As in `to_sql`.
    """
    return _PythonWriter(make_plan(model, outputs)).file()


class _PythonWriter:
    """The text of one file, as it grows."""

    def __init__(self, plan: ExportPlan) -> None:
        self.plan = plan
        self.kept = stored_ids(plan.steps())
        self.taken = {"math", "row", "predict", "answer", "x", *keyword.kwlist}
        self.taken |= {"max", "min", "sum", "abs", "zip", "range", "float", "dict", "str"}
        self.names: dict[int, str] = {id(plan.x): "x"}
        self.constants: dict[str, str] = {}  # text to name
        self.within = ""  # the line being written
        self.lines: list[str] = []

    def file(self) -> str:
        """The text."""
        for step in self.plan.steps():
            if id(step) in self.kept and step.op != "features":
                self._line(step)
        returned = [self._returned(output) for output in self.plan.outputs]
        checks = [f"    {self._cell(source)}" for source in self.plan.checks]
        cells = [f"    x = [{self._cells()}]", *checks]
        body = [*cells, *self.lines, "    return {", *returned, "    }"]
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
        alone = pair if "p" in self.plan else "what it says"
        what = f"{len(self.plan.sources)} features"
        text = _HEAD.format(
            title=self.plan.title, what=what, predicts=alone, names=names, columns="{}"
        )
        return text.replace("{}", shown.replace("\\", "\\\\").replace('"""', '\\"\\"\\"'))

    def _predict(self) -> str:
        names = [output.name for output in self.plan.outputs]
        first = next(name for name in ("label", "value", *names) if name in names)
        told = f'found["{first}"]' + (', found["p"]' if "p" in names else "")
        return (
            f'\n\ndef predict(row):\n    """What the model says of a row."""\n'
            f"    found = answer(row)\n    return {told}\n"
        )

    # --- what goes in, what comes out -------------------------------------------------------------

    def _cells(self) -> str:
        return ", ".join(self._cell(source) for source in self.plan.sources)

    def _cell(self, source: FeatureSource) -> str:
        column = ascii(source.column)
        fill = "" if source.fill is None else f", {source.fill!r}"
        if source.kind == "text":
            values = "{" + ", ".join(f"{k!a}: {v!r}" for k, v in source.values) + "}"
            return f"_category(row, {column}, {values}, {source.fill!r}, {source.other!r})"
        if source.kind == "missing":
            return f"_missing(row, {column})"
        return f"{'_days' if source.kind == 'date' else '_number'}(row, {column}{fill})"

    def _returned(self, output: Output) -> str:
        if output.choices:
            listed = self._constant(f"{output.name}s", [ascii(choice) for choice in output.choices])
            return f'        "{output.name}": {listed}[int({self._scalar(output.expression)})],'
        if not output.components:
            return f'        "{output.name}": {self._scalar(output.expression)},'
        keys = self._keys(output)
        return f'        "{output.name}": dict(zip({keys}, {self._vector(output.expression)})),'

    def _keys(self, output: Output) -> str:
        labels = self.plan["label"].choices if "label" in self.plan else ()
        keys = labels if len(labels) == len(output.components) else output.components
        if "action" in self.plan and output.name == "cost":
            keys = self.plan["action"].choices[: len(output.components)]
        return self._constant("labels", [ascii(key) for key in keys])

    # --- steps ------------------------------------------------------------------------------------

    def _line(self, step: Expression) -> None:
        name = self.within = self.names[id(step)] = self._name(step.name or step.op)
        self.lines.append(f"    {name} = {self._formula(step, name)}")

    def _formula(self, step: Expression, name: str) -> str:
        if step.op == "affine":
            return self._affine(step, name)
        if step.op in ("squares", "sum", "max", "first_max"):
            of = self._vector(step.operands[0])
            return {
                "squares": f"sum(one * one for one in {of})",
                "sum": f"sum({of})",
                "max": f"max({of})",
                "first_max": f"max(range({step.operands[0].width}), key=({of}).__getitem__)",
            }[step.op]
        if step.width == 1:
            return self._plain(step, {})
        names: dict[int, tuple[str, Expression]] = {}
        text = self._plain(step, names)
        pairs = list(names.values())
        if len(pairs) == 1:
            return f"[{text} for {pairs[0][0]} in {self._vector(pairs[0][1])}]"
        letters = ", ".join(letter for letter, _ in pairs)
        return f"[{text} for {letters} in zip({', '.join(self._vector(s) for _, s in pairs)})]"

    def _plain(self, step: Expression, leaves: dict[int, tuple[str, Expression]]) -> str:
        """A formula of one number of each vector in it."""
        given = [self._leaf(one, leaves) for one in step.operands]
        if step.op in _SIGNS:
            return f"({given[0]} {_SIGNS[step.op]} {given[1]})"
        if step.op in ("larger", "smaller"):
            return f"{'max' if step.op == 'larger' else 'min'}({given[0]}, {given[1]})"
        if step.op == "sign":
            return f"(({given[0]} > 0.0) - ({given[0]} < 0.0))"
        if step.op == "greater":
            return f"({given[2]} if {given[0]} > {given[1]} else {given[3]})"
        return f"{_FUNCTIONS[step.op]}({given[0]})"

    def _leaf(self, step: Expression, leaves: dict[int, tuple[str, Expression]]) -> str:
        inline = id(step) not in self.kept and step.op not in (
            "constant",
            "pick",
            "stack",
            "features",
        )
        if inline:
            return self._plain(step, leaves)
        if step.width == 1:
            return self._scalar(step)
        if id(step) not in leaves:
            leaves[id(step)] = f"v{len(leaves)}", step
        return leaves[id(step)][0]

    def _affine(self, step: Expression, name: str) -> str:
        coef, intercept = step.constants
        of = self._vector(step.operands[0])
        rows = [_tuple([repr(float(v)) for v in row]) for row in coef]
        if step.width == 1:
            slopes = self._constant(f"{name} slopes", rows[0])
            return f"_dot({slopes}, {of}) + {float(intercept[0])!r}"
        slopes = self._constant(f"{name} slopes", rows)
        starts = self._constant(f"{name} intercepts", [repr(float(v)) for v in intercept])
        return f"[_dot(slope, {of}) + start for slope, start in zip({slopes}, {starts})]"

    def _scalar(self, step: Expression) -> str:
        if step.op == "constant":
            return repr(float(step.constants[0][0]))
        if step.op == "pick":
            return self._at(step.operands[0], int(step.constants[0][0]))
        if step.op == "features":
            return "x[0]"
        return self.names[id(step)]

    def _at(self, step: Expression, place: int) -> str:
        if step.op == "stack":
            for part in step.operands:
                if place < part.width:
                    return self._at(part, place)
                place -= part.width
        if step.op == "pick":
            return self._at(step.operands[0], int(step.constants[0][place]))
        if step.op == "constant":
            return repr(float(step.constants[0][place]))
        name = self.names[id(step)]
        return name if step.width == 1 and step.op != "features" else f"{name}[{place}]"

    def _vector(self, step: Expression) -> str:
        if step.op == "constant":
            return self._constant(
                f"{self.within} numbers", [repr(float(v)) for v in step.constants[0]]
            )
        if step.op == "pick":
            places = range(step.width)
            return f"[{', '.join(self._at(step, place) for place in places)}]"
        if step.op == "stack":
            return f"[{', '.join(self._spread(part) for part in step.operands)}]"
        name = self.names[id(step)]
        return f"[{name}]" if step.width == 1 and step.op != "features" else name

    def _spread(self, part: Expression) -> str:
        return self._scalar(part) if part.width == 1 else f"*{self._vector(part)}"

    # --- names and constants ----------------------------------------------------------------------

    def _name(self, wanted: str) -> str:
        plain = re.sub(r"[^A-Za-z0-9_]", "_", wanted)
        plain = plain if re.match(r"[A-Za-z]", plain) else f"s_{plain}"
        name, number = plain, 1
        while name in self.taken:
            number += 1
            name = f"{plain}_{number}"
        self.taken.add(name)
        return name

    def _constant(self, wanted: str, values: list[str] | str) -> str:
        text = values if isinstance(values, str) else _tuple(values)
        if text not in self.constants:
            self.constants[text] = self._name(wanted.upper())
        return self.constants[text]


def _tuple(values: Sequence[str]) -> str:
    if sum(map(len, values)) < 88:
        return "(" + ", ".join(values) + ("," if len(values) == 1 else "") + ")"
    return "(\n    " + ",\n    ".join(one.replace("\n", "\n    ") for one in values) + ",\n)"
