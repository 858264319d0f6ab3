"""The OpenAPI 3.1 description of a service, from the columns of its models."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from discriminant.table.encoding import Column
from discriminant.web.service.models import ServedModel

_LISTED_LEVELS = 1000
_TYPES = {"number": "number", "boolean": "boolean"}


def describe(models: Iterable[ServedModel], version: str, *, token: bool) -> dict[str, Any]:
    """Return the description as an object for JSON."""
    served = list(models)
    paths: dict[str, Any] = {
        "/v2": _get("Metadata of the server"),
        "/v2/health/live": _get("Whether the server runs", public=True),
        "/v2/health/ready": _get("Whether all models are loaded", public=True),
        "/metrics": _get("Metrics in the text format of Prometheus", kind="text/plain"),
    }
    schemas: dict[str, Any] = {"Error": _ERROR}
    for number, model in enumerate(served):
        row, answer = f"Row{number}", f"Prediction{number}"
        schemas[row] = _row_schema(model)
        schemas[answer] = _prediction_schema(model)
        predict = {"post": _predict(model, row, answer)}
        paths[f"/models/{model.name}/predict"] = predict
        if len(served) == 1:
            paths["/predict"] = predict
        paths[f"/v2/models/{model.name}"] = _get(f"Inputs and outputs of {model.name}")
        paths[f"/v2/models/{model.name}/ready"] = _get(f"Whether {model.name} is loaded")
        paths[f"/v2/models/{model.name}/infer"] = {"post": _infer(model)}
    description: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "discriminant",
            "version": version,
            "description": "Predictions of linear and Gaussian classifiers.",
        },
        "paths": paths,
        "components": {"schemas": schemas},
    }
    if token:
        description["components"]["securitySchemes"] = {
            "token": {"type": "http", "scheme": "bearer"}
        }
        description["security"] = [{"token": []}]
    return description


_ERROR = {
    "type": "object",
    "required": ["error", "kind", "request_id"],
    "properties": {
        "error": {"type": "string", "description": "What is wrong, where, and what to do"},
        "kind": {"type": "string"},
        "request_id": {"type": "string"},
    },
}
_OPTIONS: dict[str, Any] = {
    "prior": {"type": "object", "additionalProperties": {"type": "number"}},
    "cost": {
        "type": "object",
        "description": "{action: {class: cost}}",
        "additionalProperties": {"type": "object", "additionalProperties": {"type": "number"}},
    },
    "reject": {
        "oneOf": [
            {"type": "number", "description": "Cost of rejecting a row"},
            {
                "type": "object",
                "required": ["threshold"],
                "properties": {"threshold": {"type": "number"}},
            },
        ]
    },
    "explain": {"type": "boolean"},
    "top_k": {"type": "integer", "minimum": 1},
    "probabilities": {"type": "boolean", "default": True},
}


def _get(text: str, *, kind: str = "application/json", public: bool = False) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": text,
        "responses": {"200": {"description": text, "content": {kind: {}}}},
    }
    if public:
        operation["security"] = []
    return {"get": operation}


def _row_schema(model: ServedModel) -> dict[str, Any]:
    predictor = model.predictor
    statistics = _statistics(model)
    optional = predictor.encoding.missing in ("mean", "indicator", "marginal", "em")
    properties = {
        column.name: _column_schema(
            column, statistics, optional=optional, closed=predictor.encoding.unseen == "error"
        )
        for column in predictor.encoding.used
    }
    required = [] if optional else list(properties)
    return {"type": "object", "properties": properties, "required": required}


def _column_schema(
    column: Column, statistics: dict[str, tuple[float, float]], *, optional: bool, closed: bool
) -> dict[str, Any]:
    kind = _TYPES.get(column.kind, "string")
    schema: dict[str, Any] = {"type": [kind, "null"] if optional else kind}
    if column.kind == "date":
        schema["format"] = "date"
    levels = list(column.levels[:_LISTED_LEVELS])
    if levels:
        if closed and len(levels) == len(column.levels):
            schema["enum"] = [*levels, None] if optional else levels
        else:
            schema["examples"] = levels[:20]
    if column.kind == "ordered":
        schema["description"] = "From lowest to highest: " + ", ".join(levels[:20])
    elif column.name in statistics:
        mean, sd = statistics[column.name]
        schema["description"] = f"Training rows: mean {mean:.4g}, standard deviation {sd:.3g}"
        schema["examples"] = [float(f"{mean:.4g}")]
    return schema


def _statistics(model: ServedModel) -> dict[str, tuple[float, float]]:
    """Return mean and standard deviation of the numeric columns, where moments are stored."""
    moments = model.predictor.training_moments()
    if moments is None or moments.detail == "rows":
        return {}
    within = moments.pooled if moments.pooled.ndim == 1 else np.diagonal(moments.pooled)
    between = moments.weight @ (moments.mean - moments.centre) ** 2
    sd = np.sqrt((within + between) / moments.weight.sum()) * moments.anchor.unit
    mean = moments.anchor.values(moments.centre[None])[0]
    numbers = {c.features[0]: c.name for c in model.predictor.encoding.used if c.kind == "number"}
    return {
        numbers[feature]: (float(m), float(s))
        for feature, m, s in zip(moments.features, mean, sd, strict=True)
        if feature in numbers
    }


def _prediction_schema(model: ServedModel) -> dict[str, Any]:
    predictor = model.predictor
    if predictor.regressor:
        return {"type": "object", "properties": {"predicted": {"type": "number"}}}
    label: dict[str, Any] = {}
    if len(predictor.labels) <= _LISTED_LEVELS:
        label = {"enum": list(predictor.labels)}
    properties: dict[str, Any] = {
        "predicted": label,
        "decision": {"type": "string", "description": "A class, REJECT or OUTLIER"},
    }
    if predictor.has_posterior and not predictor.is_tree:
        properties["probabilities"] = {
            "type": "object",
            "additionalProperties": {"type": "number", "minimum": 0, "maximum": 1},
        }
    properties["top"] = {
        "type": "array",
        "items": {"type": "object", "properties": {"label": label, "score": {"type": "number"}}},
    }
    properties["explanation"] = {"type": "object"}
    return {"type": "object", "required": ["predicted"], "properties": properties}


def _predict(model: ServedModel, row: str, answer: str) -> dict[str, Any]:
    rows = {"type": "array", "items": {"$ref": f"#/components/schemas/{row}"}}
    table = {"schema": {"type": "string"}}
    arrow = "application/vnd.apache.arrow.stream"
    body = {
        "oneOf": [
            rows,
            {"type": "object", "required": ["rows"], "properties": {"rows": rows, **_OPTIONS}},
        ]
    }
    response = {
        "type": "object",
        "required": ["model", "predictions"],
        "properties": {
            "model": {"type": "string"},
            "predictions": {
                "type": "array",
                "items": {"$ref": f"#/components/schemas/{answer}"},
            },
            "warnings": {"type": "array", "items": {"type": "string"}},
        },
    }
    return {
        "summary": f"Predict with {model.name} ({model.kind})",
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": body}, "text/csv": table, arrow: {}},
        },
        "responses": {
            "200": {
                "description": "A prediction for each row, in the order of the rows",
                "content": {
                    "application/json": {"schema": response},
                    "text/csv": table,
                    arrow: {},
                },
            },
            "4XX": {
                "description": "The request is not valid",
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
            },
        },
    }


def _infer(model: ServedModel) -> dict[str, Any]:
    return {
        "summary": f"Predict with {model.name} (Open Inference Protocol, version 2)",
        "requestBody": {"required": True, "content": {"application/json": {}}},
        "responses": {"200": {"description": "Tensors", "content": {"application/json": {}}}},
    }
