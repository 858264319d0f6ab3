"""The log: one JSON line for each request, with the id of the response."""

import io
import json

from discriminant.web.request_log import JsonLog, RequestLog
from tests.unit.web.conftest import run_async, start


def lines(log):
    return [json.loads(line) for line in log.getvalue().splitlines()]


def test_request_id_of_the_client_is_kept_and_others_are_replaced(model_folder):
    service = start({"mixed": str(model_folder / "mixed.model")})
    for given, same in (("abc-1.2_X", True), ("spaces and ;", False), ("x" * 65, False)):
        response = service.client.get("/v2", headers={"x-request-id": given})
        written = response.headers["x-request-id"]
        assert (written == given) == same
        assert lines(service.log)[-1]["request_id"] == written


def test_line_has_route_status_model_and_rows(model_folder):
    service = start({"mixed": str(model_folder / "mixed.model")})
    row = {"size": 1.0, "weight": 2.0, "colour": "red"}
    service.client.post("/models/mixed/predict", json=[row, row])
    line = lines(service.log)[-1]
    facts = {name: line[name] for name in ("event", "route", "status", "model", "rows", "method")}
    assert facts == {
        "event": "request",
        "route": "/models/{name}/predict",
        "status": 200,
        "model": "mixed",
        "rows": 2,
        "method": "POST",
    }


def test_unexpected_error_is_logged_without_its_text_and_answered_with_its_id():
    async def broken(scope, receive, send):
        raise RuntimeError("secret value of a row")

    log, sent = io.StringIO(), []

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": "GET", "headers": []}
    run_async(RequestLog(broken, JsonLog(log))(scope, None, send))
    first, second = lines(log)
    assert (first["event"], first["kind"]) == ("internal_error", "RuntimeError")
    assert first["places"][-1].endswith("broken")
    assert second["status"] == sent[0]["status"] == 500
    answer = json.loads(sent[1]["body"])
    assert answer["request_id"] == first["request_id"]
    assert "secret" not in log.getvalue() + answer["error"]
