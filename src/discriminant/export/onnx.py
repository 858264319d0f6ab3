"""ONNX export: one node for each expression, all numbers in double precision, opset 17.

Only nodes that onnxruntime implements for doubles on a CPU are used: no Erf, no Atan, no Softmax.
The inputs are either one tensor (N, 1) for each column (numbers as double, categories as text), or
one matrix (N, d). If a number of a row is NaN and the model has no replacement for it, all numeric
outputs of the row are NaN and its label is '' (the least int64 if labels are integers, NaN if they
are floats).

Optimisers of onnxruntime treat scalar constants as float32: they simplify `x - 1e-60` to `x`, and
move a factor of 1e-100 into the attribute of a product, where it becomes 0. To prevent an optimiser
from folding it, a scalar constant that float32 does not represent exactly is looked up in a table,
by an index that depends on the row.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from discriminant.errors import ExportError
from discriminant.export.feature_columns import FeatureSource
from discriminant.export.plan import ExportPlan, Output, make_plan
from discriminant.models.expressions import Expression, topological_order

NAMES = {"p": "probabilities", "log_p": "log_probabilities", "score": "scores", "cost": "costs"}
_FIRST = ("label", "p")  # outputs that come first, as in skl2onnx
_LEAST_INT64 = -(2**63)

Inputs = Literal["matrix", "columns"]


def to_onnx(
    model: Any, *, inputs: Inputs | None = None, outputs: Sequence[str] | None = None
) -> bytes:
    """Return the model as the bytes of an ONNX file.

    Parameters
    ----------
    model : estimator
        A fitted model.
    inputs : {'columns', 'matrix'}, optional
        With 'columns', one tensor (N, 1) for each column, by its name. With 'matrix', one tensor
        'X' (N, d) of numbers in the column order of the fit. The default is 'columns' if the
        columns have names, else 'matrix'.
    outputs : sequence of str, optional
        Outputs to compute; see `to_sql`. The names of the outputs in the graph are label,
        probabilities, log_probabilities, scores, log_odds, costs, action, value.

    Returns
    -------
    bytes
        The serialised graph, checked by `onnx.checker`.
    """
    import onnx

    plan = make_plan(model, outputs)
    if inputs not in (None, "matrix", "columns"):
        raise ExportError.of_target(inputs, ("matrix", "columns"))
    graph = _OnnxGraph(plan, inputs or ("columns" if plan.named else "matrix")).model()
    onnx.checker.check_model(onnx.load_from_string(graph))
    return graph


class _OnnxGraph:
    """Builder of one graph."""

    def __init__(self, plan: ExportPlan, inputs: Inputs) -> None:
        from onnx import TensorProto, helper

        self.plan, self.inputs, self.onnx, self.kinds = plan, inputs, helper, TensorProto
        self.columns = list(dict.fromkeys(source.column for source in plan.sources))
        self.nodes: list[Any] = []
        self.graph_inputs: list[Any] = []
        self.constants: dict[Any, str] = {}  # from values to the name of a constant
        self.initializers: list[Any] = []
        self.tensors: dict[int, str] = {}  # from the id of an expression to the name of its tensor
        self.count = 0

    def model(self) -> bytes:
        """Return the serialised graph."""
        x = self._matrix_input() if self.inputs == "matrix" else self._column_inputs()
        self.tensors[id(self.plan.x)] = x
        checks = [self._categories(source.column, [source]) for source in self.plan.checks]
        checked = self._node("Concat", [x, *checks], axis=1) if checks else x
        zeros = self._node("Mul", [checked, self._numbers([[0.0]])])
        self.nan_or_zero = self._node("ReduceSum", [zeros, self._integers([1])], keepdims=1)
        is_nan = self._node("Cast", [self._node("IsNaN", [self.nan_or_zero])], to=self.kinds.INT64)
        self.row_index = self._node("Reshape", [is_nan, self._integers([-1])])
        ordered = sorted(self.plan.outputs, key=lambda output: output.name not in _FIRST)
        outputs = [self._output(output) for output in ordered]
        graph = self.onnx.make_graph(
            self.nodes, "discriminant", self.graph_inputs, outputs, initializer=self.initializers
        )
        sets = [self.onnx.make_opsetid("", 17), self.onnx.make_opsetid("ai.onnx.ml", 3)]
        model = self.onnx.make_model(graph, opset_imports=sets, producer_name="discriminant")
        model.ir_version = 8  # the IR version that belongs to opset 17
        model.doc_string = f"{self.plan.title}: {len(self.plan.sources)} features"
        properties = {"model": self.plan.title, "columns": json.dumps(self.columns)}
        self.onnx.set_model_props(model, properties)
        return bytes(model.SerializeToString())

    # --- inputs -----------------------------------------------------------------------------------

    def _matrix_input(self) -> str:
        for source in self.plan.sources:
            if source.kind == "text":
                raise ExportError.of_part(
                    f"The column '{source.column}'",
                    "it is text, and a matrix holds numbers",
                    "Pass inputs='columns'.",
                )
        self._input("X", self.kinds.DOUBLE, len(self.columns))
        place = {name: j for j, name in enumerate(self.columns)}
        parts = []
        for source in self.plan.sources:
            column = self._node("Gather", ["X", self._integers([place[source.column]])], axis=1)
            parts.append(self._fill(column, source))
        if all(source.kind == "number" and source.fill is None for source in self.plan.sources):
            self.nodes.clear()
            return "X"
        return self._node("Concat", parts, axis=1)

    def _column_inputs(self) -> str:
        texts = {source.column for source in self.plan.sources if source.kind == "text"}
        for name in self.columns:
            if not name:
                why = "an input of ONNX has a name that is not empty"
                raise ExportError.of_part("The column ''", why, "Rename it and fit again.")
            self._input(name, self.kinds.STRING if name in texts else self.kinds.DOUBLE, 1)
        parts = []
        for column, run in groupby(self.plan.sources, key=lambda source: source.column):
            if column in texts:
                parts.append(self._categories(column, list(run)))
            else:
                parts += [self._fill(column, source) for source in run]
        return parts[0] if len(parts) == 1 else self._node("Concat", parts, axis=1)

    def _input(self, name: str, kind: int, width: int) -> None:
        self.graph_inputs.append(self.onnx.make_tensor_value_info(name, kind, ["N", width]))

    def _fill(self, column: str, source: FeatureSource) -> str:
        """Return a column after replacing its missing cells, or the indicator of missing cells."""
        if source.kind == "missing":
            return self._node("Cast", [self._node("IsNaN", [column])], to=self.kinds.DOUBLE)
        if source.fill is None:
            return column
        is_nan = self._node("IsNaN", [column])
        return self._node("Where", [is_nan, self._numbers([[source.fill]]), column])

    def _categories(self, column: str, sources: list[FeatureSource]) -> str:
        """Return the (N, m) numbers of categories, which are looked up in a table by code."""
        levels = list(dict.fromkeys(level for source in sources for level, _ in source.values))
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
        table = np.array([[_level_number(s, level) for s in sources] for level in [*known, None]])
        return self._node("Gather", [self._numbers(table), rows], axis=0)

    # --- outputs ----------------------------------------------------------------------------------

    def _output(self, output: Output) -> Any:
        name = NAMES.get(output.name, output.name)
        while name in self.columns:  # a column may be called 'label'
            name += "_out"
        for step in topological_order([output.expression]):
            if id(step) not in self.tensors:
                self.tensors[id(step)] = self._tensor(step)
        value = self.tensors[id(output.expression)]
        if output.choices:
            return self._choice(name, value, output.choices)
        self._node("Add", [value, self.nan_or_zero], name=name)
        return self.onnx.make_tensor_value_info(
            name, self.kinds.DOUBLE, ["N", output.expression.width]
        )

    def _choice(self, name: str, value: str, choices: tuple[Any, ...]) -> Any:
        table, kind = _choice_table(choices, self.kinds)
        is_nan = self._node("IsNaN", [self.nan_or_zero])
        code = self._node("Add", [value, self._numbers([[0.0]])])
        code = self._node("Where", [is_nan, self._numbers([[float(len(choices))]]), code])
        index = self._node("Cast", [code], to=self.kinds.INT64)
        flat = self._node("Reshape", [index, self._integers([-1])])
        self._node("Gather", [self._initializer(table, kind), flat], name=name, axis=0)
        return self.onnx.make_tensor_value_info(name, kind, ["N"])

    # --- expressions ------------------------------------------------------------------------------

    def _tensor(self, step: Expression) -> str:
        """Return the tensor (N, width) of an expression, or (1, width) for a constant."""
        operands = [self.tensors[id(operand)] for operand in step.operands]
        if step.op == "constant":
            return self._numbers(step.constants[0][None])
        if step.op == "affine":
            coef, intercept = step.constants
            if not coef.shape[1]:
                return self._numbers(intercept[None])
            product = self._node("MatMul", [operands[0], self._numbers(coef.T)])
            if not intercept.any():
                return product
            return self._node("Add", [product, self._protected(intercept)])
        if step.op == "pick":
            return self._node("Gather", [operands[0], self._integers(step.constants[0])], axis=1)
        if step.op == "stack":
            return self._node("Concat", [self._full(part) for part in step.operands], axis=1)
        if step.op in ("sum", "squares", "max", "first_max"):
            return self._reduce(step, operands[0])
        if step.op == "where_greater":
            above = self._node("Greater", operands[:2])
            return self._node("Where", [above, *operands[2:]])
        if step.op in _ARITHMETIC:
            operands = [
                self._protected(operand.constants[0]) if operand.op == "constant" else name
                for operand, name in zip(step.operands, operands, strict=True)
            ]
        return self._node(_NODES[step.op], operands)

    def _reduce(self, step: Expression, operand: str) -> str:
        if not step.operands[0].width:
            return self._numbers([[0.0]])
        if step.op == "max":
            return self._node("ReduceMax", [operand], axes=[1], keepdims=1)
        if step.op == "squares":
            return self._node("ReduceSumSquare", [operand], axes=[1], keepdims=1)
        if step.op == "sum":
            return self._node("ReduceSum", [operand, self._integers([1])], keepdims=1)
        index = self._node("ArgMax", [operand], axis=1, keepdims=1)
        return self._node("Cast", [index], to=self.kinds.DOUBLE)

    def _full(self, step: Expression) -> str:
        """Return the tensor of an expression with all N rows, even for a constant."""
        if step.op != "constant":
            return self.tensors[id(step)]
        return self._node("Add", [self._protected(step.constants[0]), self.nan_or_zero])

    def _protected(self, values: npt.NDArray[np.float64]) -> str:
        """Return constants as a (1, m) tensor.

        A scalar that an optimiser would round is returned as (N, 1).
        """
        if len(values) > 1 or _is_simple(float(values[0])):
            return self._numbers(values[None])
        table = self._numbers(np.repeat(values[None], 2, axis=0))
        return self._node("Gather", [table, self.row_index], axis=0)

    # --- nodes and constants ----------------------------------------------------------------------

    def _node(
        self,
        op: str,
        operands: list[str],
        *,
        name: str | None = None,
        domain: str = "",
        **options: Any,
    ) -> str:
        """Append a node and return the name of its output."""
        output = name or self._unique_name()
        self.nodes.append(self.onnx.make_node(op, operands, [output], domain=domain, **options))
        return output

    def _unique_name(self) -> str:
        while True:
            self.count += 1
            if (name := f"v{self.count}") not in self.columns:
                return name

    def _numbers(self, values: npt.ArrayLike) -> str:
        return self._initializer(np.asarray(values, dtype=np.float64), self.kinds.DOUBLE)

    def _integers(self, values: npt.ArrayLike) -> str:
        return self._initializer(np.asarray(values, dtype=np.int64), self.kinds.INT64)

    def _initializer(self, values: npt.NDArray[Any], kind: int) -> str:
        """Return the name of a constant tensor; equal tensors are stored only once."""
        text = kind == self.kinds.STRING
        key = kind, values.shape, tuple(values.tolist()) if text else values.tobytes()
        if key not in self.constants:
            name = self.constants[key] = self._unique_name()
            contiguous = np.ascontiguousarray(values)
            raw: Any = [value.encode() for value in values] if text else contiguous.tobytes()
            tensor = self.onnx.make_tensor(name, kind, values.shape, raw, raw=not text)
            self.initializers.append(tensor)
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
    "cos": "Cos",
}


def _is_simple(value: float) -> bool:
    """Whether float32 represents a number, and products of a few such numbers, exactly."""
    return value == 0.0 or (2.0**-10 <= abs(value) <= 2.0**10 and float(np.float32(value)) == value)


def _level_number(source: FeatureSource, level: str | None) -> float:
    """Return the number of a category, where '' is a missing cell and None an unseen category."""
    values = dict(source.values)
    if level in values:
        return values[level]
    missing = level == ""
    if source.kind == "missing":
        return float(missing)
    number = source.fill if missing else source.other
    return float("nan") if number is None else number


def _choice_table(choices: tuple[Any, ...], kinds: Any) -> tuple[npt.NDArray[Any], int]:
    """Return the labels and a value for rows without a label, and their ONNX type."""
    if all(isinstance(choice, int) for choice in choices) and max(map(abs, choices)) < 2**63:
        return np.array([*map(int, choices), _LEAST_INT64], dtype=np.int64), kinds.INT64
    if all(isinstance(choice, float) for choice in choices):
        return np.array([*choices, np.nan]), kinds.DOUBLE
    return np.array([*map(str, choices), ""], dtype=object), kinds.STRING
