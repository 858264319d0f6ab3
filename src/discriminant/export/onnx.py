"""Export to ONNX: one node per expression, all numbers double, opset 17.

Only nodes that onnxruntime implements for doubles on a CPU are used: no Erf, no Atan, no Softmax.
Inputs are the columns, one tensor (N, 1) each (numbers double, categories text), or one matrix
(N, d). Where a number is NaN and nothing replaces it, all numeric outputs are NaN and the label is
'' (for integers the least int64, for floats NaN).

Optimisers of onnxruntime treat scalar constants as float32: they drop `x - 1e-60` as `x - 0`, and
move a factor of 1e-100 into the attribute of a product, where it is 0. So a scalar constant that
float32 does not represent exactly is looked up in a table, by an index that depends on the row: no
optimiser can then know its value.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from discriminant.errors import ExportError
from discriminant.export.feature_columns import FeatureSource
from discriminant.export.plan import ExportPlan, Output, make_plan
from discriminant.models.expressions import Expression

NAMES = {"p": "probabilities", "log_p": "log_probabilities", "score": "scores", "cost": "costs"}
_FIRST = ("label", "p")  # the order that others expect
_LEAST = -(2**63)

Inputs = Literal["matrix", "columns"]


def to_onnx(
    model: Any, *, inputs: Inputs | None = None, outputs: Sequence[str] | None = None
) -> bytes:
    """The model as the bytes of an ONNX file.

    Parameters
    ----------
    model
        A fitted model.
    inputs
        'columns': one tensor (N, 1) for each column, by its name. 'matrix': one, 'X' (N, d), of
        numbers in the order of the fit. None: columns where they have names, else a matrix.
    outputs
        As in `to_sql`. They are called label, probabilities, log_probabilities, scores, log_odds,
        costs, action, value.
    """
    import onnx

    plan = make_plan(model, outputs)
    if inputs not in (None, "matrix", "columns"):
        raise ExportError.of_target(inputs, ("matrix", "columns"))
    made: bytes = _OnnxGraph(plan, inputs or ("columns" if plan.named else "matrix")).model()
    onnx.checker.check_model(onnx.load_from_string(made))
    return made


class _OnnxGraph:
    """Nodes, as they grow."""

    def __init__(self, plan: ExportPlan, inputs: Inputs) -> None:
        from onnx import TensorProto, helper

        self.plan, self.inputs, self.onnx, self.kinds = plan, inputs, helper, TensorProto
        self.nodes: list[Any] = []
        self.given: list[Any] = []
        self.constants: dict[Any, str] = {}
        self.held: list[Any] = []
        self.found: dict[int, str] = {}
        self.count = 0

    def model(self) -> bytes:
        """The file."""
        x = self._matrix() if self.inputs == "matrix" else self._columns()
        self.found[id(self.plan.x)] = x
        zeros = self._node("Mul", [self._checked(x), self._number([[0.0]])])
        self.known = self._node("ReduceSum", [zeros, self._integers([1])], keepdims=1)
        gone = self._node("Cast", [self._node("IsNaN", [self.known])], to=self.kinds.INT64)
        self.place = self._node("Reshape", [gone, self._integers([-1])])
        ordered = sorted(self.plan.outputs, key=lambda output: output.name not in _FIRST)
        shown = [self._shown(output) for output in ordered]
        graph = self.onnx.make_graph(
            self.nodes, "discriminant", self.given, shown, initializer=self.held
        )
        sets = [self.onnx.make_opsetid("", 17), self.onnx.make_opsetid("ai.onnx.ml", 3)]
        made = self.onnx.make_model(graph, opset_imports=sets, producer_name="discriminant")
        made.ir_version = 8  # the one that came with opset 17
        made.doc_string = f"{self.plan.title}: {len(self.plan.sources)} features"
        columns = list(dict.fromkeys(source.column for source in self.plan.sources))
        self.onnx.set_model_props(made, {"model": self.plan.title, "columns": json.dumps(columns)})
        return bytes(made.SerializeToString())

    # --- what goes in -----------------------------------------------------------------------------

    def _matrix(self) -> str:
        for source in self.plan.sources:
            if source.kind == "text":
                raise ExportError.of_part(
                    f"The column '{source.column}'",
                    "it is text, and a matrix holds numbers",
                    "Pass inputs='columns'.",
                )
        self._input("X", self.kinds.DOUBLE, len(self._names()))
        parts = [
            self._filled(self._node("Gather", ["X", self._integers([place])], axis=1), source)
            for place, source in self._placed()
        ]
        if all(source.kind == "number" and source.fill is None for source in self.plan.sources):
            self.nodes.clear()
            return "X"
        return self._node("Concat", parts, axis=1)

    def _checked(self, x: str) -> str:
        """The features, and with them what must be known though it is none."""
        checks = [self._categories(source.column, [source]) for source in self.plan.checks]
        return self._node("Concat", [x, *checks], axis=1) if checks else x

    def _names(self) -> list[str]:
        return list(dict.fromkeys(source.column for source in self.plan.sources))

    def _placed(self) -> list[tuple[int, FeatureSource]]:
        place = {name: j for j, name in enumerate(self._names())}
        return [(place[source.column], source) for source in self.plan.sources]

    def _columns(self) -> str:
        texts = {source.column for source in self.plan.sources if source.kind == "text"}
        for name in self._names():
            if not name:
                why = "an input of ONNX has a name that is not empty"
                raise ExportError.of_part("The column ''", why, "Rename it and fit again.")
            self._input(name, self.kinds.STRING if name in texts else self.kinds.DOUBLE, 1)
        parts, sources = [], list(self.plan.sources)
        while sources:
            column, run = sources[0].column, []
            while sources and sources[0].column == column:
                run.append(sources.pop(0))
            if column in texts:
                parts.append(self._categories(column, run))
            else:
                parts += [self._filled(column, source) for source in run]
        return parts[0] if len(parts) == 1 else self._node("Concat", parts, axis=1)

    def _input(self, name: str, kind: int, width: int) -> None:
        self.given.append(self.onnx.make_tensor_value_info(name, kind, ["N", width]))

    def _filled(self, column: str, source: FeatureSource) -> str:
        """A number, or what stands in where it is missing."""
        if source.kind == "missing":
            gone = self._node("IsNaN", [column])
            return self._node("Cast", [gone], to=self.kinds.DOUBLE)
        if source.fill is None:
            return column
        gone = self._node("IsNaN", [column])
        return self._node("Where", [gone, self._number([[source.fill]]), column])

    def _categories(self, column: str, run: list[FeatureSource]) -> str:
        """(N, m) numbers of categories: their code, and a row of a table for each."""
        levels = list(dict.fromkeys(level for source in run for level, _ in source.values))
        known = levels if "" in levels else [*levels, ""]  # '' stands for a missing cell
        code = self._node(
            "LabelEncoder",
            [column],
            domain="ai.onnx.ml",
            keys_strings=known,
            values_int64s=list(range(len(known))),
            default_int64=len(known),
        )
        rows = self._node("Reshape", [code, self._integers([-1])])
        table = np.array([[_cell(source, level) for source in run] for level in [*known, None]])
        return self._node("Gather", [self._number(table), rows], axis=0)

    # --- what comes out ---------------------------------------------------------------------------

    def _shown(self, output: Output) -> Any:
        name = NAMES.get(output.name, output.name)
        while name in self._names():  # a column may be called 'label'
            name += "_out"
        value = self.value(output.expression)
        if output.choices:
            return self._choice(name, value, output.choices)
        self._node("Add", [value, self.known], name=name)
        return self.onnx.make_tensor_value_info(
            name, self.kinds.DOUBLE, ["N", output.expression.width]
        )

    def _choice(self, name: str, value: str, choices: tuple[Any, ...]) -> Any:
        table, kind = _choices(choices, self.kinds)
        gone = self._node("IsNaN", [self.known])
        code = self._node("Add", [value, self._number([[0.0]])])
        code = self._node("Where", [gone, self._number([[float(len(choices))]]), code])
        place = self._node("Cast", [code], to=self.kinds.INT64)
        flat = self._node("Reshape", [place, self._integers([-1])])
        self._node("Gather", [self._held(table, kind), flat], name=name, axis=0)
        return self.onnx.make_tensor_value_info(name, kind, ["N"])

    # --- steps ------------------------------------------------------------------------------------

    def value(self, step: Expression) -> str:
        """The tensor (N, width) of a step; constants are (1, width)."""
        for below in self._unmade(step):
            self.found[id(below)] = self._made(below)
        return self.found[id(step)]

    def _unmade(self, step: Expression) -> list[Expression]:
        from discriminant.models.expressions import topological_order

        return [below for below in topological_order([step]) if id(below) not in self.found]

    def _made(self, step: Expression) -> str:
        given = [self.found[id(below)] for below in step.operands]
        if step.op == "constant":
            return self._number(step.constants[0][None])
        if step.op == "affine":
            coef, intercept = step.constants
            if not coef.shape[1]:
                return self._number(intercept[None])
            product = self._node("MatMul", [given[0], self._number(coef.T)])
            if not intercept.any():
                return product
            return self._node("Add", [product, self._looked_up(intercept)])
        if step.op == "pick":
            return self._node("Gather", [given[0], self._integers(step.constants[0])], axis=1)
        if step.op == "stack":
            return self._node("Concat", [self._long(one) for one in step.operands], axis=1)
        if step.op in ("sum", "squares", "max", "first_max"):
            return self._folded(step, given[0])
        if step.op == "greater":
            above = self._node("Greater", given[:2])
            return self._node("Where", [above, *given[2:]])
        if step.op in _ARITHMETIC:
            given = [
                self._looked_up(below.constants[0]) if below.op == "constant" else name
                for below, name in zip(step.operands, given, strict=True)
            ]
        return self._node(_NODES[step.op], given)

    def _folded(self, step: Expression, given: str) -> str:
        if not step.operands[0].width:
            return self._number([[0.0]])
        if step.op == "max":
            return self._node("ReduceMax", [given], axes=[1], keepdims=1)
        if step.op == "squares":
            return self._node("ReduceSumSquare", [given], axes=[1], keepdims=1)
        if step.op == "sum":
            return self._node("ReduceSum", [given, self._integers([1])], keepdims=1)
        place = self._node("ArgMax", [given], axis=1, keepdims=1)
        return self._node("Cast", [place], to=self.kinds.DOUBLE)

    def _long(self, step: Expression) -> str:
        """With as many rows as there are: constants have one."""
        if step.op != "constant":
            return self.found[id(step)]
        return self._node("Add", [self._looked_up(step.constants[0]), self.known])

    def _looked_up(self, values: npt.NDArray[np.float64]) -> str:
        """The tensor (1, m) of constants; of one that optimisers could spoil (N, 1)."""
        if len(values) > 1 or _is_simple(float(values[0])):
            return self._number(values[None])
        table = self._number(np.repeat(values[None], 2, axis=0))
        return self._node("Gather", [table, self.place], axis=0)

    # --- nodes and constants ----------------------------------------------------------------------

    def _node(
        self,
        op: str,
        given: list[str],
        *,
        name: str | None = None,
        domain: str = "",
        **options: Any,
    ) -> str:
        made = name or self._fresh()
        self.nodes.append(self.onnx.make_node(op, given, [made], domain=domain, **options))
        return made

    def _fresh(self) -> str:
        taken = {source.column for source in self.plan.sources} | {*NAMES.values(), "X"}
        while True:
            self.count += 1
            if (name := f"v{self.count}") not in taken:
                return name

    def _number(self, values: npt.ArrayLike) -> str:
        return self._held(np.asarray(values, dtype=np.float64), self.kinds.DOUBLE)

    def _integers(self, values: npt.ArrayLike) -> str:
        return self._held(np.asarray(values, dtype=np.int64), self.kinds.INT64)

    def _held(self, values: npt.NDArray[Any], kind: int) -> str:
        """A constant of the graph; equal ones are held once."""
        text = kind == self.kinds.STRING
        key = kind, values.shape, tuple(values.tolist()) if text else values.tobytes()
        if key not in self.constants:
            name = self.constants[key] = self._fresh()
            whole = np.ascontiguousarray(values)
            raw: Any = [one.encode() for one in values] if text else whole.tobytes()
            self.held.append(self.onnx.make_tensor(name, kind, values.shape, raw, raw=not text))
        return self.constants[key]


_ARITHMETIC = ("add", "sub", "mul", "div")
_NODES = {
    "add": "Add",
    "sub": "Sub",
    "mul": "Mul",
    "div": "Div",
    "larger": "Max",
    "smaller": "Min",
    "exp": "Exp",
    "log": "Log",
    "abs": "Abs",
    "sqrt": "Sqrt",
    "sign": "Sign",
}


def _is_simple(value: float) -> bool:
    """Whether float32 holds a number exactly, and products of a few such numbers too."""
    return value == 0.0 or (2.0**-10 <= abs(value) <= 2.0**10 and float(np.float32(value)) == value)


def _cell(source: FeatureSource, level: str | None) -> float:
    """The number of a category; of '' where that is a missing cell, of None where it is unseen."""
    values = dict(source.values)
    if level in values:
        return values[level]
    missing = level == ""
    if source.kind == "missing":
        return float(missing)
    number = source.fill if missing else source.other
    return float("nan") if number is None else number


def _choices(choices: tuple[Any, ...], kinds: Any) -> tuple[npt.NDArray[Any], int]:
    """The table of labels, with what stands for none at its end."""
    if all(isinstance(one, int) for one in choices) and max(map(abs, choices)) < 2**63:
        return np.array([*map(int, choices), _LEAST], dtype=np.int64), kinds.INT64
    if all(isinstance(one, float) for one in choices):
        return np.array([*choices, np.nan]), kinds.DOUBLE
    return np.array([*map(str, choices), ""], dtype=object), kinds.STRING
