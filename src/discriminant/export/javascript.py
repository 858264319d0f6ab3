"""JavaScript export: one ES module without dependencies.

The module runs in browsers (also under a strict content security policy, and in workers), in
Node.js and in other runtimes. A row is an object with a cell for each column:

    columns           names of the columns that a row needs
    classes           labels; the order of scores and probabilities
    predict(row)      the label; for a regression, the number
    predictProba(row) probabilities of the classes        if the model has probabilities
    scores(row)       scores                              if the model has scores
    decide(row)       the action of a `Decision`          if the model has actions
    outputs(row)      an object with all outputs, named as in the other exports

Cells are numbers, texts, booleans, dates (`Date`, or ISO text) or missing (null, undefined, NaN).
Cells have the same meaning as in the Python export: a category is looked up by the text into which
Python would convert the cell, so that true is 'True' and 0.00001 is '1e-05'. Errors name the column
and never contain the cell. In names and labels `<` is escaped, so that a module may be placed
inside a script element.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, ClassVar

from discriminant.export.feature_columns import FeatureSource
from discriminant.export.plan import ExportPlan, Output, make_plan
from discriminant.export.source_writer import SourceWriter, numbers
from discriminant.models.expressions import ELEMENTWISE, Expression
from discriminant.table.text_values import ISO_DATE, date_pattern

_FUNCTIONS = {  # output: function, and what it returns
    "label": ("predict", "The predicted class."),
    "value": ("predict", "The predicted number, or numbers if there are several responses."),
    "p": ("predictProba", "The probabilities of the classes."),
    "log_p": ("predictLogProba", "The log probabilities of the classes."),
    "score": ("scores", "The scores of the classes, or of the second of two classes."),
    "cost": ("expectedCosts", "The expected costs of the actions."),
    "action": ("decide", "The action of least expected cost."),
}
_MAX_SAFE = 2**53 - 1  # largest integer such that all smaller ones are numbers in JavaScript

_CELL = """\
function cell(row, column) {
  if (!Object.hasOwn(row, column)) throw new Error(`The row has no column '${column}'.`);
  const value = row[column] ?? null;
  return Number.isNaN(value) ? null : value;
}
"""

_NUMBER = """\
// A cell as a finite number; `fill` replaces a missing cell.
function number(row, column, fill = null) {
  const value = cell(row, column);
  if (value === null) {
    if (fill === null) throw new Error(`The column '${column}' is missing.`);
    return fill;
  }
  const numeric = typeof value === "string"
    ? /^\\s*[+-]?([0-9]+\\.?[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?\\s*$/.test(value)
    : ["number", "boolean", "bigint"].includes(typeof value);
  if (!numeric) throw new Error(`The column '${column}' is not a number.`);
  const converted = Number(value);
  if (!Number.isFinite(converted)) throw new Error(`The column '${column}' is infinite.`);
  return converted;
}
"""

_DAYS = """\
// Days since 1970-01-01 of a Date, of text such as 2023-10-27 or 2023-10-27T18:30, or a number.
// `written` is another format of text: its name, its pattern, the groups of year, month and day.
function days(row, column, fill = null, written = null) {
  const value = cell(row, column);
  if (value instanceof Date) return value.getTime() / 86400000;
  if (typeof value !== "string") return number(row, column, fill);
  const clock = "(?:[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\\.([0-9]{1,6}))?)?)?";
  const zone = "(?:(Z)|([+-])([0-9]{2}):?([0-9]{2}))?";
  const match = (pattern) => new RegExp(`^\\s*${pattern}${clock}${zone}\\s*$`).exec(value);
  const iso = match("([0-9]{4})-([0-9]{2})-([0-9]{2})");
  const parts = iso ?? (written && match(written[1]));
  const date = new Date(0);
  const groups = iso || !written ? [0, 1, 2] : written[2];
  const [year, month, day] = groups.map((i) => Number(parts?.[i + 1]));
  if (parts) date.setUTCFullYear(year, month - 1, day);
  const valid = parts && date.getUTCMonth() + 1 === month
    && Number(parts[4] ?? 0) < 24 && Number(parts[5] ?? 0) < 60 && Number(parts[6] ?? 0) < 60;
  const also = written ? ` or ${written[0]}` : "";
  if (!valid) throw new Error(`The column '${column}' is not a date such as 2023-10-27${also}.`);
  const [hour, minute, second] = [4, 5, 6].map((i) => Number(parts[i] ?? 0));
  const east = Number(`${parts[9] ?? ""}1`);
  const offset = east * (Number(parts[10] ?? 0) * 60 + Number(parts[11] ?? 0));
  const fraction = Number(`0.${parts[7] ?? 0}`);
  return date.getTime() / 86400000
    + (hour * 3600 + (minute - offset) * 60 + second + fraction) / 86400;
}
"""

_TEXT = """\
// The text that Python gives for a cell.
function text(value) {
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value !== "number" || !Number.isFinite(value)) return String(value);
  const [digits, exponent] = value.toExponential().split("e");
  if (exponent >= -4 && exponent < 16) return String(value);
  return `${digits}e${exponent[0]}${exponent.slice(1).padStart(2, "0")}`;
}

// The number of a category, of a missing cell, or of a category that was not seen.
function category(row, column, values, fill, other) {
  const value = cell(row, column);
  if (value === null && fill === null) throw new Error(`The column '${column}' is missing.`);
  if (value === null) return fill;
  const name = text(value);
  const known = values.get(name)
    ?? (Number.isInteger(value) ? values.get(`${name}.0`) : undefined) ?? other;
  if (known === null) throw new Error(`The column '${column}' has an unknown category.`);
  return known;
}
"""

_MISSING = """\
function missing(row, column) {
  return cell(row, column) === null ? 1 : 0;
}
"""

_HELPERS = {  # helper functions by name, in the order of the file
    "cell": _CELL,
    "number": _NUMBER,
    "days": _DAYS,
    "category": _TEXT,
    "missing": _MISSING,
    "dot": """\
const dot = (slopes, values) => slopes.reduce((sum, slope, i) => sum + slope * values[i], 0);
""",
    "affine": """\
const affine = (slopes, intercepts, values) =>
  intercepts.map((intercept, i) => dot(slopes[i], values) + intercept);
""",
    "sum": "const sum = (values) => values.reduce((total, value) => total + value, 0);\n",
    "zip": """\
const zip = (combine, first, ...others) =>
  first.map((value, i) => combine(value, ...others.map((other) => other[i])));
""",
    "largest": "const largest = (values) => values.reduce((a, b) => (b > a ? b : a));\n",
    "firstMax": """\
const firstMax = (values) =>
  values.reduce((best, value, i) => (value > values[best] ? i : best), 0);
""",
}
_NEEDED = {"affine": ("dot",), "days": ("number",)}  # helpers that a helper needs
_WORDS = """
actions await break case catch class classes columns const continue debugger default delete do else
enum export extends false finally for function if implements import in instanceof interface let new
null outputs package private protected public return static super switch text this throw true try
typeof undefined var void while with yield arguments eval NaN Infinity Math Number String Object
Array Date Error Map RegExp globalThis window document
"""


def to_javascript(model: Any, *, outputs: Sequence[str] | None = None) -> str:
    """Return the model as the text of an ES module.

    Parameters
    ----------
    model : estimator
        A fitted model.
    outputs : sequence of str, optional
        Outputs to compute; see `to_sql`.

    Returns
    -------
    str
        The text of the module.
    """
    return _JavaScriptWriter(make_plan(model, outputs)).file()


class _JavaScriptWriter(SourceWriter):
    """Builder of one module."""

    brackets = "[", "]"
    functions: ClassVar[dict[str, str]] = {
        "exp": "Math.exp",
        "log": "Math.log",
        "abs": "Math.abs",
        "sqrt": "Math.sqrt",
        "cos": "Math.cos",
        "larger": "Math.max",
        "smaller": "Math.min",
    }

    def __init__(self, plan: ExportPlan) -> None:
        exported = [name for name, _ in _FUNCTIONS.values()]
        super().__init__(plan, [*_WORDS.split(), *_HELPERS, *exported])
        self.helpers = {"cell"}  # names of the helpers that the module needs
        # labels and actions, with the name of the constant that holds them
        self.choices: dict[tuple[Any, ...], str] = {}
        for name, output in (("classes", "label"), ("actions", "action")):
            if output in plan:
                self.choices.setdefault(plan[output].choices, name)
        if "label" not in plan and "p" in plan:
            self.choices.setdefault(plan["p"].components, "classes")

    def file(self) -> str:
        """Return the text of the module."""
        cells = ",\n".join(f"    {self.cell(source)}" for source in self.plan.sources)
        checks = [f"  {self.cell(source)};" for source in self.plan.checks]
        lines = [f"  const {name} = {formula};" for name, formula in self.assignments()]
        entries = [self._entry(output) for output in self.plan.outputs]
        return "\n".join(
            [
                f"// {self.plan.title}: {len(self.plan.sources)} features.",
                f"export const columns = {self.listed(list(map(literal, self.columns)))};",
                *(f"export const {n} = {self._labels(c)};" for c, n in self.choices.items()),
                *(f"const {name} = {text};" for text, name in self.constants.items()),
                "",
                *(text for name, text in _HELPERS.items() if name in self.helpers),
                "/** All outputs for a row. */",
                "export function outputs(row) {",
                f"  const x = [\n{cells},\n  ];",
                *checks,
                *lines,
                "  return {",
                *entries,
                "  };",
                "}\n",
                *self._functions(),
            ]
        )

    def _labels(self, choices: tuple[Any, ...]) -> str:
        return self.listed(list(map(literal, choices)))

    def _functions(self) -> list[str]:
        functions = [
            _FUNCTIONS[o.name] + (o.name,) for o in self.plan.outputs if o.name in _FUNCTIONS
        ]
        return [
            f"/** {text} */\nexport function {name}(row) {{\n  return outputs(row).{output};\n}}\n"
            for name, text, output in functions
        ]

    def _help(self, name: str) -> str:
        """Return the name of a helper function, and include this function in the module."""
        self.helpers |= {name, *_NEEDED.get(name, ())}
        return name

    # --- inputs and outputs -----------------------------------------------------------------------

    def cell(self, source: FeatureSource) -> str:
        """Return the code that computes one feature: a cell converted to a number."""
        column = literal(source.column)
        if source.kind == "missing":
            return f"{self._help('missing')}(row, {column})"
        if source.kind == "text":
            pairs = [f"[{literal(level)}, {value!r}]" for level, value in source.values]
            values = self.constant(f"{source.feature} values", f"new Map({self.listed(pairs)})")
            others = f"{literal(source.fill)}, {literal(source.other)}"
            return f"{self._help('category')}(row, {column}, {values}, {others})"
        fill = "" if source.fill is None else f", {source.fill!r}"
        if source.kind != "date":
            return f"{self._help('number')}(row, {column}{fill})"
        written = ""
        if source.written not in ("", ISO_DATE):
            pattern, groups = date_pattern(source.written)
            format = self.listed([literal(source.written), literal(pattern), str(list(groups))])
            written = f"{fill or ', null'}, {format}"
        return f"{self._help('days')}(row, {column}{written or fill})"

    def _entry(self, output: Output) -> str:
        """Return the entry for an output in the object that `outputs` returns."""
        step = output.expression
        if output.choices:
            choices = self.choices[output.choices]
            value = f"{choices}[{self.at(step, 0)}]"
        elif output.components:
            value = self.vector(step)
        else:
            value = self.at(step, 0)
        return f"    {output.name}: {value},"

    # --- expressions ------------------------------------------------------------------------------

    def formula(self, step: Expression, name: str) -> str:
        """Return the code of an expression."""
        if step.op in ELEMENTWISE:
            return self.elementwise(step)
        vector = self.vector(step.operands[0])
        if step.op == "affine":
            return self._affine(step, name, vector)
        if step.op == "squares":
            return f"{self._help('dot')}({vector}, {vector})"
        names = {"sum": "sum", "max": "largest", "first_max": "firstMax"}
        return f"{self._help(names[step.op])}({vector})"

    def _affine(self, step: Expression, name: str, vector: str) -> str:
        intercept = numbers(step.constants[1])
        if step.width == 1:
            slopes = self.list_constant(f"{name} slopes", numbers(step.constants[0][0]))
            return f"{self._help('dot')}({slopes}, {vector}) + {intercept[0]}"
        slopes = self.list_constant(f"{name} slopes", self.matrix(step))
        intercepts = self.list_constant(f"{name} intercepts", intercept)
        return f"{self._help('affine')}({slopes}, {intercepts}, {vector})"

    def map_vectors(self, text: str, variables: Sequence[str], vectors: Sequence[str]) -> str:
        """Return a call of `map`, or of `zip` if there are several vectors."""
        function = f"({', '.join(variables)}) => {text}"
        if len(vectors) == 1:
            return f"{vectors[0]}.map({function})"
        return f"{self._help('zip')}({function}, {', '.join(vectors)})"

    def choose(self, condition: str, x: str, y: str) -> str:
        """Return a conditional expression."""
        return f"({condition} ? {x} : {y})"

    def sign(self, value: str) -> str:
        """Return a call of `Math.sign`."""
        return f"Math.sign({value})"

    def spread(self, vector: str) -> str:
        """Return the vector with a spread operator."""
        return f"...{vector}"


def literal(value: Any) -> str:
    """Return a text, number or boolean as a JavaScript literal in ASCII.

    >>> literal("</script>"), literal(True), literal(2**60), literal(None)
    ('"\\\\u003c/script>"', 'true', '1152921504606846976n', 'null')
    """
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > _MAX_SAFE:
        return f"{value}n"
    return json.dumps(value).replace("<", "\\u003c")
