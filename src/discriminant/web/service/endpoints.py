"""The endpoints of the service: they parse the body of a request and write the response."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any
from urllib.parse import parse_qsl

import pyarrow as pa
from scipy.sparse import csr_array

from discriminant.study.prediction_writers import safe_cell
from discriminant.table.column_cells import Frame
from discriminant.table.encoding import EncodedRows
from discriminant.web.responses import JSON, HttpError, Response, Scope, dump
from discriminant.web.service import inference_protocol as protocol
from discriminant.web.service.metrics import Metrics
from discriminant.web.service.models import ModelRegistry, ServedModel
from discriminant.web.service.openapi import describe
from discriminant.web.service.predictions import (
    DEFAULTS,
    OPTIONS,
    PredictionOptions,
    RequestPredictions,
    SparsePredictor,
)
from discriminant.web.service.rows import (
    RequestError,
    frame_of_arrow,
    frame_of_columns,
    frame_of_csv,
    frame_of_records,
    frame_of_split,
    parse_json,
    plain_rows,
    sparse_rows,
)

CSV = b"text/csv"
ARROW_STREAM = b"application/vnd.apache.arrow.stream"
ARROW_FILE = b"application/vnd.apache.arrow.file"
_RESPONSE_KINDS = (JSON, CSV, ARROW_STREAM, ARROW_FILE)
Rows = Frame | EncodedRows | csr_array
_MLFLOW = ("dataframe_split", "dataframe_records", "instances", "inputs")


class Endpoints:
    """Endpoints that serve the models of a registry."""

    def __init__(self, registry: ModelRegistry, max_rows: int, *, token: bool) -> None:
        self.registry = registry
        self.max_rows = max_rows
        self.metrics = Metrics()
        self._token = token
        self._openapi: Response | None = None

    def model_changed(self, model: ServedModel) -> None:
        """Reset what depends on a model, because it was loaded again."""
        self.metrics.reset(model)
        self._openapi = None

    def _model(self, scope: Scope, name: str | None) -> ServedModel:
        model = self.registry.only() if name is None else self.registry.model(name)
        scope["model"] = model.name
        return model

    # --- about the service ------------------------------------------------------------------------

    def server_metadata(self, scope: Scope, name: str | None, body: bytes) -> Response:
        """Describe the server."""
        return Response(dump(protocol.server_metadata(package_version())))

    def model_metadata(self, scope: Scope, name: str | None, body: bytes) -> Response:
        """Describe the inputs and outputs of a model."""
        return Response(dump(protocol.model_metadata(self._model(scope, name))))

    def version(self, scope: Scope, name: str | None, body: bytes) -> Response:
        """Return the version of the package."""
        return Response(package_version().encode(), b"text/plain; charset=utf-8")

    def list_models(self, scope: Scope, name: str | None, body: bytes) -> Response:
        """List the models."""
        models = [self.registry.model(name) for name in self.registry.paths]
        facts = [{"name": m.name, "kind": m.kind, "sha256": m.digest} for m in models]
        return Response(dump({"models": facts}))

    def metrics_text(self, scope: Scope, name: str | None, body: bytes) -> Response:
        """Return the metrics."""
        kind = b"text/plain; version=0.0.4; charset=utf-8"
        return Response(self.metrics.text().encode(), kind)

    def openapi(self, scope: Scope, name: str | None, body: bytes) -> Response:
        """Return the description of the service."""
        if self._openapi is None:
            models = [self.registry.model(name) for name in self.registry.paths]
            facts = describe(models, package_version(), token=self._token)
            self._openapi = Response(dump(facts))
        return self._openapi

    # --- predictions ------------------------------------------------------------------------------

    def predict(self, scope: Scope, name: str | None, body: bytes) -> Response:
        """Predict rows in JSON, CSV or Arrow, and respond in one of these formats."""
        model = self._model(scope, name)
        kind = _content_type(scope)
        accepted = _accepted(scope, kind)
        options = _query_options(scope)
        rows: Rows
        if kind == JSON:
            rows, options = self._json_rows(model, body, options)
        else:
            rows = self._table_rows(scope, model, body, kind)
        predictions = self._predict(scope, model, rows, _options(options))
        return Response(_write(model, predictions, accepted), accepted)

    def _json_rows(
        self, model: ServedModel, body: bytes, options: dict[str, Any]
    ) -> tuple[Rows, dict[str, Any]]:
        given, encoding = parse_json(body), model.predictor.encoding
        if isinstance(given, dict) and "rows" in given and isinstance(given["rows"], dict | list):
            rows = given.pop("rows")
            for option in given:
                if option in options:
                    raise RequestError(f"{option[:100]} is in the body and in the query.")
            options = {**given, **options}
        else:
            rows = given
        if isinstance(model.predictor, SparsePredictor):
            return self._sparse_rows(model.predictor, rows), options
        values_of = model.predictor.values_of
        plain = None if values_of is None else plain_rows(rows, values_of)
        if plain is not None:
            return plain, options
        return frame_of_records(rows, encoding, self.max_rows), options

    def _sparse_rows(self, predictor: SparsePredictor, rows: Any) -> csr_array:
        limit = self.max_rows
        matrix: csr_array = sparse_rows(
            rows, width=predictor.width, first=predictor.first, limit=limit
        )
        return matrix

    def _table_rows(self, scope: Scope, model: ServedModel, body: bytes, kind: bytes) -> Frame:
        _refuse_sparse(model)
        encoding, limit = model.predictor.encoding, self.max_rows
        if kind == CSV:
            return frame_of_csv(body, encoding, limit, _charset(scope))
        if kind in (ARROW_STREAM, ARROW_FILE):
            return frame_of_arrow(body, encoding, limit)
        raise _unsupported(kind)

    def infer(self, scope: Scope, name: str | None, body: bytes) -> Response:
        """Predict by the Open Inference Protocol."""
        model = self._model(scope, name)
        if _content_type(scope) not in (JSON, b"application/octet-stream"):
            raise _unsupported(_content_type(scope))
        _refuse_sparse(model)
        length = scope["header_values"].get(b"inference-header-content-length")
        request = protocol.parse_request(body, length, model, self.max_rows)
        predictions = self._predict(scope, model, request.frame, request.options)
        response, json_length = protocol.format_response(request, predictions, model)
        if json_length is None:
            return Response(response)
        header = (b"inference-header-content-length", b"%d" % json_length)
        return Response(response, b"application/octet-stream", [header])

    def invocations(self, scope: Scope, name: str | None, body: bytes) -> Response:
        """Predict rows in the formats of MLflow's scoring server."""
        model = self._model(scope, name)
        kind = _content_type(scope)
        options: dict[str, Any] = {}
        rows: Rows
        if kind == JSON:
            rows, options = self._mlflow_rows(model, body)
        elif kind == CSV:
            rows = self._table_rows(scope, model, body, kind)
        else:
            raise _unsupported(kind)
        predictions = self._predict(scope, model, rows, _options(options))
        result: dict[str, Any] = {
            "predictions": predictions.records() if options else predictions.predicted
        }
        if predictions.notes:
            result["warnings"] = predictions.notes
        return Response(dump(result))

    def _mlflow_rows(self, model: ServedModel, body: bytes) -> tuple[Rows, dict[str, Any]]:
        request = parse_json(body)
        given = [key for key in _MLFLOW if isinstance(request, dict) and key in request]
        if len(given) != 1:
            raise RequestError(
                "The request needs exactly one of: dataframe_split, dataframe_records, instances, "
                "inputs."
            )
        rows, encoding, limit = request[given[0]], model.predictor.encoding, self.max_rows
        options = request.get("params") or {}
        if not isinstance(options, dict):
            raise RequestError("params is not an object.")
        if isinstance(model.predictor, SparsePredictor):
            return self._sparse_rows(model.predictor, rows), options
        if given == ["dataframe_split"]:
            if not isinstance(rows, dict):
                raise RequestError(
                    'dataframe_split is not an object, {"columns": ..., "data": ...}.'
                )
            names, data = rows.get("columns"), rows.get("data")
            return frame_of_split(names, data, encoding, limit), options
        by_column = isinstance(rows, dict) and all(isinstance(v, list) for v in rows.values())
        if by_column and given != ["dataframe_records"]:
            return frame_of_columns(rows, encoding, limit), options
        return frame_of_records(rows, encoding, limit), options

    def _predict(
        self,
        scope: Scope,
        model: ServedModel,
        rows: Rows,
        options: PredictionOptions,
    ) -> RequestPredictions:
        scope["rows"] = len(rows) if isinstance(rows, Frame) else int(rows.shape[0])
        predictor = model.predictor
        if isinstance(rows, csr_array):
            assert isinstance(predictor, SparsePredictor)
            predictions = predictor.predict_sparse(rows, options)
        else:
            predictions = predictor.predict(rows, options)
        self.metrics.predictions(model, predictions)
        return predictions


def _refuse_sparse(model: ServedModel) -> None:
    if isinstance(model.predictor, SparsePredictor):
        raise RequestError(
            f"The model '{model.name}' was fitted to sparse rows. Send JSON to /predict: each row "
            'as an object of feature numbers, {"3": 0.5, ...}.',
            kind="ContentTypeError",
            status=415,
        )


def package_version() -> str:
    """Return the version of the package."""
    try:
        return version("discriminant")
    except PackageNotFoundError:
        return "0"


# --- headers and options --------------------------------------------------------------------------


def _content_type(scope: Scope) -> bytes:
    headers: Mapping[bytes, bytes] = scope["header_values"]
    packed = headers.get(b"content-encoding", b"identity")
    if packed.lower() != b"identity":
        raise HttpError(
            415,
            "ContentTypeError",
            "Compressed bodies are not accepted, since a small one could expand to any size. Send "
            "the body without Content-Encoding.",
        )
    # clients of the Open Inference Protocol send no type with JSON
    return headers.get(b"content-type", JSON).partition(b";")[0].strip().lower()


def _charset(scope: Scope) -> str | None:
    for part in scope["header_values"].get(b"content-type", b"").split(b";")[1:]:
        key, _, value = part.strip().partition(b"=")
        if key.lower() == b"charset":
            return str(value.strip(b' "').decode("latin-1"))[:40]
    return None


def _unsupported(kind: bytes) -> HttpError:
    shown = kind.decode("latin-1")[:100]
    message = (
        f"The Content-Type '{shown}' is not accepted here. Send application/json, text/csv or "
        "(to predict) application/vnd.apache.arrow.stream."
    )
    return HttpError(415, "ContentTypeError", message)


def _accepted(scope: Scope, kind: bytes) -> bytes:
    """Return the content type of the response: from the header Accept, else as the request."""
    header: bytes = scope["header_values"].get(b"accept", b"*/*")
    if header == b"*/*":
        return kind if kind in _RESPONSE_KINDS else JSON
    types = [part.partition(b";")[0].strip().lower() for part in header.split(b",")]
    for accepted in types:
        if accepted in _RESPONSE_KINDS:
            return accepted
    if b"*/*" in types or b"application/*" in types:
        return JSON
    message = (
        "None of the types in Accept is available. Accept application/json, text/csv or "
        "application/vnd.apache.arrow.stream."
    )
    raise HttpError(406, "AcceptError", message)


def _query_options(scope: Scope) -> dict[str, Any]:
    query: bytes = scope["query_string"]
    if not query:
        return {}
    try:
        pairs = parse_qsl(query.decode("ascii"), keep_blank_values=True, max_num_fields=20)
    except ValueError:
        raise RequestError("The query is not valid.") from None
    options: dict[str, Any] = {}
    for name, text in pairs:
        if name not in OPTIONS:
            raise RequestError(
                f"The query has no option of this name. Options are: {', '.join(OPTIONS)}.",
                kind="UnknownOptionError",
            )
        options[name] = protocol.parse_option(name, text)
    return options


def _options(given: dict[str, Any]) -> PredictionOptions:
    return PredictionOptions.of(given) if given else DEFAULTS


# --- responses ------------------------------------------------------------------------------------


def _write(model: ServedModel, predictions: RequestPredictions, kind: bytes) -> bytes:
    if kind == JSON:
        result: dict[str, Any] = {"model": model.name, "predictions": predictions.records()}
        if predictions.notes:
            result["warnings"] = predictions.notes
        return dump(result)
    columns = predictions.columns()
    if predictions.explanations is not None:
        columns["explanation"] = [dump(fact).decode() for fact in predictions.explanations]
    if kind == CSV:
        return _csv(columns)
    table = pa.table(columns)
    sink = pa.BufferOutputStream()
    new = pa.ipc.new_stream if kind == ARROW_STREAM else pa.ipc.new_file
    with new(sink, table.schema) as writer:
        writer.write_table(table)
    written: bytes = sink.getvalue().to_pybytes()
    return written


def _csv(columns: dict[str, list[Any]]) -> bytes:
    """Return a CSV, in which no text runs as a formula in a spreadsheet."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([safe_cell(name) for name in columns])
    safe = [
        [safe_cell(value) if isinstance(value, str) else value for value in values]
        for values in columns.values()
    ]
    writer.writerows(zip(*safe, strict=True))
    return text.getvalue().encode()
