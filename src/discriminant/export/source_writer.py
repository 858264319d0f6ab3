"""Writer of exported models as source code: what Python and JavaScript have in common.

Each named expression of the plan becomes a line that assigns a variable with this name. Matrices
become constants above the functions, and equal constants share one name. A subclass adds the syntax
of its language for lists, vectors, and the formula of one expression.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from discriminant.export.feature_columns import FeatureSource
from discriminant.export.plan import ExportPlan, Output, number_at
from discriminant.models.expressions import ELEMENTWISE, Expression, ids_of_variables

_SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
_MAX_LINE = 88  # longer lists have one element on each line


class SourceWriter(ABC):
    """Builder of one source file."""

    brackets: ClassVar[tuple[str, str]]  # brackets around a list of constants
    functions: ClassVar[dict[str, str]]  # names of exp, log, abs, sqrt, cos, larger and smaller

    def __init__(self, plan: ExportPlan, reserved: Iterable[str]) -> None:
        self.plan = plan
        self.stored = ids_of_variables(plan.steps())
        self.used = {"row", "x", *reserved}
        self.names: dict[int, str] = {id(plan.x): "x"}
        self.constants: dict[str, str] = {}  # from the text of a constant to its name
        self.assigned = ""  # variable that the current line assigns

    def assignments(self) -> list[tuple[str, str]]:
        """Return name and formula of each variable, in the order of evaluation."""
        lines = []
        for step in self.plan.steps():
            if id(step) in self.stored and step.op != "features":
                name = self.assigned = self.names[id(step)] = self.unique(step.name or step.op)
                lines.append((name, self.formula(step, name)))
        return lines

    def component_names(self, output: Output) -> tuple[Any, ...]:
        """Return the names of an output's components: labels, actions or responses."""
        labels = self.plan["label"].choices if "label" in self.plan else ()
        if "action" in self.plan and output.name == "cost":
            return self.plan["action"].choices[: len(output.components)]
        return labels if len(labels) == len(output.components) else output.components

    @property
    def columns(self) -> list[str]:
        """Names of the columns that a row needs."""
        return list(dict.fromkeys(source.column for source in self.plan.sources))

    @property
    def kinds(self) -> set[str]:
        """Kinds of the columns."""
        return {source.kind for source in (*self.plan.sources, *self.plan.checks)}

    # --- expressions ------------------------------------------------------------------------------

    @abstractmethod
    def formula(self, step: Expression, name: str) -> str:
        """Return the code of an expression."""

    @abstractmethod
    def map_vectors(self, text: str, variables: Sequence[str], vectors: Sequence[str]) -> str:
        """Return the code that evaluates `text` for each component of some vectors."""

    @abstractmethod
    def choose(self, condition: str, x: str, y: str) -> str:
        """Return the code whose value is x if the condition holds, else y."""

    @abstractmethod
    def sign(self, value: str) -> str:
        """Return the code of the sign of a number."""

    @abstractmethod
    def spread(self, vector: str) -> str:
        """Return the code that inserts the numbers of a vector into a list."""

    @abstractmethod
    def cell(self, source: FeatureSource) -> str:
        """Return the code that computes one feature: a cell converted to a number."""

    def elementwise(self, step: Expression) -> str:
        """Return the code of an elementwise expression."""
        vectors: dict[int, tuple[str, Expression]] = {}
        text = self._one_element(step, vectors)
        if step.width == 1:
            return text
        variables = [variable for variable, _ in vectors.values()]
        return self.map_vectors(text, variables, [self.vector(v) for _, v in vectors.values()])

    def _one_element(self, step: Expression, vectors: dict[int, tuple[str, Expression]]) -> str:
        """Return the formula of one component of an elementwise expression.

        Each vector in the formula is replaced by a variable.
        """
        terms = [self._operand(operand, vectors) for operand in step.operands]
        if step.op in _SIGNS:
            return f"({terms[0]} {_SIGNS[step.op]} {terms[1]})"
        if step.op == "sign":
            return self.sign(terms[0])
        if step.op == "where_greater":
            return self.choose(f"{terms[0]} > {terms[1]}", terms[2], terms[3])
        return f"{self.functions[step.op]}({', '.join(terms)})"

    def _operand(self, step: Expression, vectors: dict[int, tuple[str, Expression]]) -> str:
        if id(step) not in self.stored and step.op in ELEMENTWISE:
            return self._one_element(step, vectors)
        if step.width == 1:
            return self.at(step, 0)
        return vectors.setdefault(id(step), (f"v{len(vectors)}", step))[0]

    def at(self, step: Expression, index: int) -> str:
        """Return the source code of component `index` of an expression."""
        step, index = number_at(step, index)
        if step.op == "constant":
            return repr(float(step.constants[0][index]))
        name = self.names[id(step)]
        return name if step.width == 1 and step.op != "features" else f"{name}[{index}]"

    def vector(self, step: Expression) -> str:
        """Return the code of a sequence with all components of an expression."""
        if step.op == "constant":
            return self.list_constant(f"{self.assigned} numbers", numbers(step.constants[0]))
        if step.op == "pick":
            return f"[{', '.join(self.at(step, i) for i in range(step.width))}]"
        if step.op == "stack":
            parts = (
                self.at(part, 0) if part.width == 1 else self.spread(self.vector(part))
                for part in step.operands
            )
            return f"[{', '.join(parts)}]"
        name = self.names[id(step)]
        return f"[{name}]" if step.width == 1 and step.op != "features" else name

    def matrix(self, step: Expression) -> list[str]:
        """Return the rows of the matrix of an affine expression, as lists of constants."""
        return [self.listed(numbers(row)) for row in step.constants[0]]

    # --- names and constants ----------------------------------------------------------------------

    def unique(self, wanted: str) -> str:
        """Return an identifier that is not used yet, similar to the wanted name."""
        plain = re.sub(r"[^A-Za-z0-9_]", "_", wanted)
        plain = plain if re.match(r"[A-Za-z]", plain) else f"s_{plain}"
        name, number = plain, 1
        while name in self.used:
            number += 1
            name = f"{plain}_{number}"
        self.used.add(name)
        return name

    def list_constant(self, wanted: str, values: list[str]) -> str:
        """Define a constant list; return its name."""
        return self.constant(wanted, self.listed(values))

    def constant(self, wanted: str, text: str) -> str:
        """Define a constant above the functions; return its name, which equal constants share."""
        if text not in self.constants:
            self.constants[text] = self.unique(wanted.upper())
        return self.constants[text]

    def listed(self, values: Sequence[str]) -> str:
        """Return the source code of a list of constants."""
        left, right = self.brackets
        if sum(map(len, values)) < _MAX_LINE:
            tuple_of_one = left == "(" and len(values) == 1
            return left + ", ".join(values) + ("," if tuple_of_one else "") + right
        return (
            f"{left}\n    "
            + ",\n    ".join(value.replace("\n", "\n    ") for value in values)
            + f",\n{right}"
        )


def numbers(values: Any) -> list[str]:
    """Return numbers as source code, with all their digits."""
    return [repr(float(value)) for value in values]
