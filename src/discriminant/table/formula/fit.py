"""Fit of a formula to a table: determine the encoding of its columns, and its design.

frame -> rows without missing cells -> encoding of the columns -> design of the features
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from discriminant.errors import (
    EmptyLevelWarning,
    FormulaError,
    MissingCellError,
    OptionError,
    warn,
)
from discriminant.table.column_cells import (
    ColumnCells,
    Frame,
    encode_label_cells,
    frame_from_dataframe,
)
from discriminant.table.column_types import ReadOptions, frame_with_options, infer_encoding
from discriminant.table.encoding import Encoding
from discriminant.table.formula.design import Design
from discriminant.table.formula.expressions import (
    BOOLEANS,
    Categories,
    Columns,
    Evaluation,
    parse_expression,
)
from discriminant.table.formula.parse import ParsedFormula, parse_formula

_POLICIES = ("error", "drop")


def formula_for_columns(text: str, columns: Sequence[str], options: ReadOptions) -> ParsedFormula:
    """Return the terms of a formula for a table; reject options that conflict with a formula."""
    if options.missing not in _POLICIES:
        allowed = "'error' or 'drop' with a formula"
        raise OptionError.of("missing", options.missing, allowed)
    for name in ("ordered", "categories", "columns"):
        if getattr(options, name):
            allowed = "left out with a formula: name the columns in it, categories as C(column)"
            raise OptionError.of(name, getattr(options, name), allowed)
    left_out = {options.weight, *options.exclude}
    names = [name for name in columns if name not in left_out]
    parsed = parse_formula(text, names)
    if options.target is None:
        return parsed
    if parsed.response is not None and parsed.target != options.target:
        raise FormulaError.other_target(parsed.response, options.target)
    if options.target in parsed.columns:
        if "." in text and parsed.response is None:  # the dot means all columns but the target
            return parse_formula(text, [name for name in names if name != options.target])
        raise FormulaError.response_inside(options.target, text)
    return parsed


def formula_frame(source: Any, text: str, options: ReadOptions) -> tuple[Frame, ParsedFormula]:
    """Return the columns of a table that a formula uses, and its terms.

    The other columns may have any type. If the columns have no names, all columns are returned.
    """
    parsed: list[ParsedFormula] = []

    def select(names: Sequence[str]) -> list[str]:
        parsed.append(formula_for_columns(text, names, options))
        return [*parsed[0].response_columns, *parsed[0].columns]

    if isinstance(source, Frame):
        select(source.names)
        return source, parsed[0]
    return frame_from_dataframe(source, wanted=select), parsed[0]


def complete_rows(frame: Frame, parsed: ParsedFormula) -> npt.NDArray[np.intp]:
    """Return the numbers of the rows without missing cells in the columns of a formula."""
    incomplete = np.zeros(len(frame), dtype=bool)
    used = (*parsed.response_columns, *parsed.columns)
    for name in used:
        incomplete |= frame[name].missing
    complete = np.flatnonzero(~incomplete)
    if not len(complete):
        raise MissingCellError.of_all(len(frame), [name for name in used if frame[name].n_missing])
    return complete


def formula_encoding(
    frame: Frame, parsed: ParsedFormula, options: ReadOptions
) -> tuple[Encoding, list[str]]:
    """Return the encoding of a frame by a formula, and notes on its columns.

    `frame` holds the rows of the fit. Columns that the formula does not use are left out.
    """
    used = dict.fromkeys((*parsed.columns, *options.target_and_weight))
    options = replace(options, columns=tuple(used), exclude=(), reference=None)
    selected = frame_with_options(frame, options)
    if frame.named:  # other columns are not part of the model, not even as columns left out
        selected = replace(selected, excluded=())
    encoding, notes = infer_encoding(selected, options)
    for column in encoding.columns:
        empty = [level for level in column.order if level not in column.levels]
        if column.kind == "category" and empty:
            warn(EmptyLevelWarning.of(column.name, empty))
    columns = encoding.raw_columns(selected, fitting=True)
    design = Design.learn(
        parsed.text,
        parsed.response,
        parsed.terms,
        columns,
        rows=len(selected),
        intercept=parsed.intercept,
        max_levels=options.max_levels,
    )
    return replace(encoding, formula=design), notes


def response_values(frame: Frame, parsed: ParsedFormula) -> npt.NDArray[Any]:
    """Return the response of each row: labels of a column, or the value of an expression."""
    assert parsed.response is not None
    if (target := parsed.target) is not None:
        cells = frame[target]
        if cells.kind == "boolean" and not cells.n_missing:
            return cells.values.astype(bool)
        if cells.kind in ("number", "boolean"):
            return cells.values
        labels, codes = encode_label_cells(cells)
        return np.asarray(labels[codes])
    columns: Columns = {name: _values(frame[name]) for name in parsed.response_columns}
    evaluation = Evaluation(columns, len(frame), learning=True)
    value = evaluation.factor(parse_expression(parsed.response))
    if isinstance(value, Categories):
        if value.levels == BOOLEANS:
            return np.asarray(value.codes == 1)
        return np.asarray(np.array(value.levels)[value.codes])
    if value.shape[1] != 1:
        raise FormulaError.one_response(parsed.response)
    return value[:, 0]


def _values(cells: ColumnCells) -> Any:
    if cells.kind == "boolean":
        return Categories(cells.values.astype(np.intp), BOOLEANS)
    if cells.kind == "text":
        return Categories(cells.values, cells.levels)
    return cells.values.astype(np.float64)
