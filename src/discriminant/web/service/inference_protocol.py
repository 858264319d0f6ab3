"""The Open Inference Protocol, version 2: tensors in JSON, and in its binary extension.

Each column of a model is an input, a tensor of shape [n] or [n, 1] with the name of the column:
FP64 for numbers and truth values, BYTES for texts and dates. A model that was fitted to rows
without column names has one input, `rows`, of shape [n, d]. The outputs are

    predicted        [n]      the predicted class, or number
    decision         [n]      BYTES, for a model or a request with costs or a reject option
    probabilities    [n, K]   FP64, in the order of `classes` in the metadata
    labels, scores   [n, k]   the best labels of a label tree, or with the parameter top_k

The parameters of a request are the options of `predictions`; prior and cost are JSON texts, since
parameters are scalars.

Binary data: the header Inference-Header-Content-Length gives the length of the JSON at the start of
the body; the tensors follow, little-endian, in the order of the inputs. Each element of a BYTES
tensor is its length in 4 bytes and its content, UTF-8.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import prod
from struct import pack
from typing import Any

import numpy as np
import orjson

from discriminant.table.column_cells import ColumnCells, Frame
from discriminant.table.encoding import Column
from discriminant.web.responses import dump
from discriminant.web.service.models import ServedModel
from discriminant.web.service.predictions import PredictionOptions, RequestPredictions
from discriminant.web.service.rows import (
    RequestError,
    check_row_count,
    frame_of_columns,
    json_cells,
    parse_json,
)

_DTYPES = {
    "BOOL": "|b1",
    "UINT8": "<u1",
    "UINT16": "<u2",
    "UINT32": "<u4",
    "UINT64": "<u8",
    "INT8": "<i1",
    "INT16": "<i2",
    "INT32": "<i4",
    "INT64": "<i8",
    "FP16": "<f2",
    "FP32": "<f4",
    "FP64": "<f8",
}
_DATATYPE = {"f": "FP64", "i": "INT64", "b": "BOOL"}
_MATRIX = "rows"  # name of the input of a model without column names
_TEXTS = ("category", "ordered", "date")
_MAX_INPUTS = 100_000
_JSON_OPTIONS = ("prior", "cost", "reject")


def server_metadata(version: str) -> dict[str, Any]:
    """Return the metadata of the server."""
    return {"name": "discriminant", "version": version, "extensions": ["binary_tensor_data"]}


def model_metadata(model: ServedModel) -> dict[str, Any]:
    """Return the inputs and outputs of a model."""
    predictor = model.predictor
    if predictor.array:
        width = len(predictor.encoding.features)
        inputs = [{"name": _MATRIX, "datatype": "FP64", "shape": [-1, width]}]
    else:
        inputs = [
            {
                "name": column.name,
                "datatype": "BYTES" if column.kind in _TEXTS else "FP64",
                "shape": [-1],
            }
            for column in predictor.encoding.used
        ]
    predicted = "FP64" if predictor.regressor else _label_type(predictor.labels)
    outputs: list[dict[str, Any]] = [{"name": "predicted", "datatype": predicted, "shape": [-1]}]
    if predictor.has_decision:
        outputs.append({"name": "decision", "datatype": "BYTES", "shape": [-1]})
    if predictor.is_tree:
        outputs.append({"name": "labels", "datatype": predicted, "shape": [-1, -1]})
        outputs.append({"name": "scores", "datatype": "FP64", "shape": [-1, -1]})
    elif predictor.has_posterior:
        K = len(predictor.labels)
        outputs.append({"name": "probabilities", "datatype": "FP64", "shape": [-1, K]})
    metadata: dict[str, Any] = {
        "name": model.name,
        "versions": [model.digest[:12]],
        "platform": f"discriminant_{model.kind}",
        "inputs": inputs,
        "outputs": outputs,
    }
    if predictor.has_posterior and not predictor.is_tree:
        metadata["parameters"] = {"classes": [str(label) for label in predictor.labels]}
    return metadata


def _label_type(labels: Sequence[Any]) -> str:
    return _DATATYPE.get(np.asarray(labels).dtype.kind, "BYTES")


@dataclass(frozen=True, slots=True)
class InferenceRequest:
    """A request to predict."""

    frame: Frame
    options: PredictionOptions
    id: str | None
    outputs: list[tuple[str, bool]]  # names of outputs, and whether as binary data; empty: all
    binary: bool  # whether outputs are binary unless stated otherwise


def parse_request(
    body: bytes, json_length: bytes | None, model: ServedModel, limit: int
) -> InferenceRequest:
    """Return the request in a body."""
    data = b""
    if json_length is not None:
        if not json_length.isdigit() or len(json_length) > 12 or int(json_length) > len(body):
            raise RequestError("Inference-Header-Content-Length is not a length within the body.")
        body, data = body[: int(json_length)], body[int(json_length) :]
    request = parse_json(body)
    if not isinstance(request, dict) or not isinstance(request.get("inputs"), list):
        raise RequestError(
            'The request has no inputs. Send {"inputs": [{"name": ..., "datatype": ..., "shape": '
            '[n], "data": [...]}, ...]}.'
        )
    if len(request["inputs"]) > _MAX_INPUTS:
        raise RequestError(f"The request has more than {_MAX_INPUTS:,} inputs.")
    parameters = _parameters(request)
    tensors = _tensors(request["inputs"], data, limit)
    binary = parameters.pop("binary_data_output", False) is True
    options = _options(parameters)
    request_id = request.get("id")
    if request_id is not None and not isinstance(request_id, str):
        raise RequestError("id is not a text.")
    frame = _frame(tensors, model, limit)
    return InferenceRequest(frame, options, request_id, _outputs(request, binary), binary)


def _parameters(part: Mapping[str, Any]) -> dict[str, Any]:
    parameters = part.get("parameters")
    if parameters is None:
        return {}
    if not isinstance(parameters, dict):
        raise RequestError("parameters is not an object.")
    return dict(parameters)


def _options(parameters: dict[str, Any]) -> PredictionOptions:
    for name in _JSON_OPTIONS:
        if isinstance(parameters.get(name), str):
            parameters[name] = parse_option(name, parameters[name])
    return PredictionOptions.of(parameters)


def parse_option(name: str, text: str) -> Any:
    """Return the value of an option that is given as JSON text."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        raise RequestError(f"{name} is not valid JSON.", kind="OptionError") from None


def _outputs(request: Mapping[str, Any], binary: bool) -> list[tuple[str, bool]]:
    outputs = request.get("outputs") or []
    if not isinstance(outputs, list):
        raise RequestError("outputs is not an array.")
    named = []
    for output in outputs:
        if not isinstance(output, dict) or not isinstance(output.get("name"), str):
            raise RequestError("An output has no name.")
        named.append((output["name"], _parameters(output).get("binary_data", binary) is True))
    return named


# --- inputs ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Tensor:
    name: str
    datatype: str
    shape: list[int]
    values: Any  # a list, or an array of numbers


def _tensors(inputs: list[Any], data: bytes, limit: int) -> dict[str, _Tensor]:
    tensors: dict[str, _Tensor] = {}
    place = 0
    for number, given in enumerate(inputs):
        if not isinstance(given, dict) or not isinstance(given.get("name"), str):
            raise RequestError(f"Input {number} (counted from 0) has no name.")
        name = given["name"]
        datatype: Any = given.get("datatype")
        shape: Any = given.get("shape")
        shown = f"Input '{name[:100]}'"
        if name in tensors:
            raise RequestError(f"{shown} is given twice.", kind="ColumnNamesError")
        known = isinstance(datatype, str) and (datatype in _DTYPES or datatype == "BYTES")
        if not known:
            allowed = ", ".join([*_DTYPES, "BYTES"])
            raise RequestError(f"{shown}: its datatype is none of {allowed}.")
        if not _is_shape(shape):
            raise RequestError(f"{shown}: its shape is not [n] or [n, d].")
        if shape[0] > limit:
            check_row_count(shape[0], limit)
        size = prod(shape)
        length = _parameters(given).get("binary_data_size")
        if length is None:
            values = _json_values(shown, given.get("data"), size)
        else:
            if type(length) is not int or not 0 <= length <= len(data) - place:
                raise RequestError(f"{shown}: its binary_data_size exceeds the body.")
            part = data[place : place + length]
            values = _binary_values(shown, part, datatype, size)
            place += length
        tensors[name] = _Tensor(name, datatype, shape, values)
    if place != len(data):
        raise RequestError(
            f"The body has {len(data) - place:,} bytes after the data of the last input."
        )
    return tensors


def _is_shape(shape: Any) -> bool:
    return (
        isinstance(shape, list)
        and 1 <= len(shape) <= 2
        and all(type(size) is int and 0 <= size < 1 << 40 for size in shape)
    )


def _json_values(shown: str, data: Any, size: int) -> list[Any]:
    if not isinstance(data, list):
        raise RequestError(f"{shown} has no data. Send an array of values.")
    values: list[Any] = data
    while values and all(type(value) is list for value in values):
        values = list(chain.from_iterable(values))
    if len(values) != size:
        raise RequestError(f"{shown} has {len(values):,} values, and its shape {size:,}.")
    return values


def _binary_values(shown: str, part: bytes, datatype: str, size: int) -> Any:
    if datatype == "BYTES":
        return _texts(shown, part, size)
    dtype = np.dtype(_DTYPES[datatype])
    if len(part) != size * dtype.itemsize:
        raise RequestError(
            f"{shown} has {len(part):,} bytes, and its shape and datatype "
            f"{size * dtype.itemsize:,}."
        )
    return np.frombuffer(part, dtype=dtype)


def _texts(shown: str, part: bytes, size: int) -> list[str]:
    texts, place = [], 0
    for number in range(size):
        start = place + 4
        place = start + int.from_bytes(part[place:start], "little")
        if start > len(part) or place > len(part):
            raise RequestError(f"{shown}, row {number} (counted from 0): its text is cut short.")
        try:
            texts.append(part[start:place].decode())
        except UnicodeDecodeError:
            raise RequestError(
                f"{shown}, row {number} (counted from 0): its text is not UTF-8."
            ) from None
    if place != len(part):
        raise RequestError(f"{shown} has {len(part) - place:,} bytes too many.")
    return texts


def _frame(tensors: dict[str, _Tensor], model: ServedModel, limit: int) -> Frame:
    predictor = model.predictor
    used = predictor.encoding.used
    if predictor.array and list(tensors) == [_MATRIX]:
        tensor = tensors[_MATRIX]
        width = len(used)
        if len(tensor.shape) != 2 or tensor.shape[1] != width or tensor.datatype == "BYTES":
            raise RequestError(
                f"Input '{_MATRIX}': the model expects numbers of shape [n, {width}].",
                kind="ShapeError",
            )
        check_row_count(tensor.shape[0], limit)
        matrix = _numbers(tensor).reshape(tensor.shape)
        cells = tuple(ColumnCells(c.name, "number", matrix[:, j]) for j, c in enumerate(used))
        return Frame(cells, len(matrix))
    for tensor in tensors.values():
        if len(tensor.shape) == 2 and tensor.shape[1] != 1:
            raise RequestError(
                f"Input '{tensor.name[:100]}' has the shape {tensor.shape}. Send each column of "
                "the model as an input of shape [n]; its metadata names them.",
                kind="ShapeError",
            )
    if all(isinstance(tensor.values, list) for tensor in tensors.values()):
        columns = {name: tensor.values for name, tensor in tensors.items()}
        return frame_of_columns(columns, predictor.encoding, limit)
    lengths = {tensor.shape[0] for tensor in tensors.values()}
    if len(lengths) != 1:
        raise RequestError("The inputs have different numbers of rows.", kind="ShapeError")
    rows = lengths.pop()
    check_row_count(rows, limit)
    present = [column for column in used if column.name in tensors]
    known = {column.name for column in present}
    extra = tuple(name for name in tensors if name not in known)
    return Frame(tuple(_cells(c, tensors[c.name]) for c in present), rows, excluded=extra)


def _cells(column: Column, tensor: _Tensor) -> ColumnCells:
    if isinstance(tensor.values, list):
        return json_cells(column, tensor.values)
    if tensor.datatype == "BOOL":
        return ColumnCells(column.name, "boolean", tensor.values.astype(np.float64))
    return ColumnCells(column.name, "number", tensor.values.astype(np.float64))


def _numbers(tensor: _Tensor) -> Any:
    if not isinstance(tensor.values, list):
        return tensor.values.astype(np.float64)
    cells = json_cells(Column(tensor.name, "number"), tensor.values)
    if cells.kind == "text":
        raise RequestError(f"Input '{tensor.name}' has texts, and the model expects numbers.")
    return cells.values


# --- outputs --------------------------------------------------------------------------------------


def format_response(
    request: InferenceRequest, predictions: RequestPredictions, model: ServedModel
) -> tuple[bytes, int | None]:
    """Return the body of a response, and the length of its JSON part if binary data follow."""
    values = _output_values(predictions, model)
    wanted = request.outputs or [(name, request.binary) for name in values]
    outputs: list[dict[str, Any]] = []
    parts: list[bytes] = []
    for name, binary in wanted:
        if name not in values:
            raise RequestError(
                f"There is no output '{name[:100]}'. Outputs are: {', '.join(values)}."
            )
        datatype, shape, data = values[name]
        output: dict[str, Any] = {"name": name, "datatype": datatype, "shape": shape}
        if binary:
            parts.append(_to_bytes(data, datatype))
            output["parameters"] = {"binary_data_size": len(parts[-1])}
        else:
            output["data"] = data
        outputs.append(output)
    response: dict[str, Any] = {
        "model_name": model.name,
        "model_version": model.digest[:12],
        "outputs": outputs,
    }
    if request.id is not None:
        response["id"] = request.id
    parameters = _response_parameters(predictions)
    if parameters:
        response["parameters"] = parameters
    header = dump(response)
    return header + b"".join(parts), len(header) if parts else None


def _response_parameters(predictions: RequestPredictions) -> dict[str, str]:
    """Return the notes and explanations of a response as JSON texts."""
    given = {"warnings": predictions.notes, "explanations": predictions.explanations}
    return {name: dump(value).decode() for name, value in given.items() if value}


def _output_values(
    predictions: RequestPredictions, model: ServedModel
) -> dict[str, tuple[str, list[int], list[Any]]]:
    """Return datatype, shape and flat values of each output."""
    n = len(predictions.predicted)
    kind = "FP64" if model.predictor.regressor else _label_type(predictions.labels)
    values: dict[str, tuple[str, list[int], list[Any]]] = {
        "predicted": (kind, [n], _labels(predictions.predicted, kind))
    }
    if predictions.decision is not None:
        values["decision"] = ("BYTES", [n], predictions.decision)
    if predictions.probabilities is not None:
        p = predictions.probabilities
        values["probabilities"] = ("FP64", list(p.shape), p.ravel().tolist())
    if predictions.top is not None:
        k = min(map(len, predictions.top))  # a tensor has as many labels in each row
        top = [pair for best in predictions.top for pair in best[:k]]
        values["labels"] = (kind, [n, k], _labels([label for label, _ in top], kind))
        values["scores"] = ("FP64", [n, k], [float(score) for _, score in top])
    return values


def _labels(values: list[Any], kind: str) -> list[Any]:
    return [str(value) for value in values] if kind == "BYTES" else values


def _to_bytes(values: list[Any], datatype: str) -> bytes:
    if datatype != "BYTES":
        return np.array(values, dtype=_DTYPES[datatype]).tobytes()
    encoded = [value.encode() for value in values]
    return b"".join(pack("<I", len(text)) + text for text in encoded)
