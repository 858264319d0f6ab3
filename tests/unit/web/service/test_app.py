"""Endpoints: formats in and out, MLflow's format, and errors as JSON."""

import io
import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import discriminant as dd
from discriminant.web.service.app import ServiceOptions, find_route
from tests.unit.web.conftest import NAMES, start

ARROW = "application/vnd.apache.arrow.stream"


@pytest.fixture(scope="module")
def mixed(model_folder):
    return dd.load(model_folder / "mixed.model")


def records(rows):
    return rows.to_dict("records")


def test_json_answer_is_bitwise_that_of_the_model(one, mixed, rows):
    answer = one.post("/predict", json=records(rows)).json()
    p = [[row["probabilities"][k] for k in "abc"] for row in answer["predictions"]]
    np.testing.assert_array_equal(p, mixed.predict_proba(rows))
    assert [row["predicted"] for row in answer["predictions"]] == mixed.predict(rows).tolist()


def test_csv_gives_csv(one, mixed, rows):
    body = rows.to_csv(index=False)
    response = one.post(
        "/predict", content=body, headers={"content-type": "text/csv; charset=utf-8"}
    )
    assert response.headers["content-type"] == "text/csv"
    found = pd.read_csv(io.StringIO(response.text))
    assert list(found.columns) == ["predicted", "p(a)", "p(b)", "p(c)"]
    np.testing.assert_array_equal(found.iloc[:, 1:].to_numpy(), mixed.predict_proba(rows))


def test_arrow_gives_arrow(one, mixed, rows):
    table = pa.Table.from_pandas(rows)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    body = sink.getvalue().to_pybytes()
    response = one.post("/predict", content=body, headers={"content-type": ARROW})
    assert response.headers["content-type"] == ARROW
    found = pa.ipc.open_stream(response.content).read_all()
    np.testing.assert_array_equal(found["p(b)"].to_numpy(), mixed.predict_proba(rows)[:, 1])


@pytest.mark.parametrize("accept", ["text/csv", ARROW, "application/vnd.apache.arrow.file"])
def test_accept_chooses_the_format_of_the_answer(one, rows, accept):
    response = one.post(
        "/predict", json=records(rows[:2]), headers={"accept": f"{accept}, */*;q=0.1"}
    )
    assert (response.status_code, response.headers["content-type"]) == (200, accept)


def test_unavailable_format_of_the_answer_is_refused(one, rows):
    response = one.post("/predict", json=records(rows[:2]), headers={"accept": "image/png"})
    assert (response.status_code, response.json()["kind"]) == (406, "AcceptError")


def test_labels_that_a_spreadsheet_would_run_are_escaped_in_csv(tmp_path):
    frame = pd.DataFrame({"size": [1.0, 2.0, 8.0, 9.0]})
    model = dd.Encoded(dd.NearestMean()).fit(frame, ["=1+1", "=1+1", "b", "b"])
    model.save(tmp_path / "risky.model")
    client = start({"risky": str(tmp_path / "risky.model")}).client
    response = client.post("/predict", content="size\n1\n", headers={"content-type": "text/csv"})
    assert response.text.splitlines()[1].startswith("'=1+1,")


def test_options_in_the_query_equal_options_in_the_body(one, rows):
    options = {
        "prior": {"a": 0.5, "b": 0.25, "c": 0.25},
        "reject": 0.2,
        "top_k": 2,
        "explain": True,
    }
    by_body = one.post("/predict", json={"rows": records(rows[:5]), **options}).json()
    query = {name: json.dumps(value) for name, value in options.items()}
    by_query = one.post("/predict", json=records(rows[:5]), params=query).json()
    assert by_body == by_query
    assert "explanation" in by_body["predictions"][0]


@pytest.mark.parametrize(
    ("query", "kind"),
    [("reject=x", "OptionError"), ("nonsense=1", "UnknownOptionError"), ("prior={", "OptionError")],
)
def test_invalid_query_is_refused(one, rows, query, kind):
    response = one.post(f"/predict?{query}", json=records(rows[:1]))
    assert (response.status_code, response.json()["kind"]) == (400, kind)


def test_extra_columns_are_ignored_with_a_warning(one, rows):
    answer = one.post("/predict", json=records(rows[:2].assign(id=[7, 8]))).json()
    assert answer["warnings"] == ["Ignored column(s) 'id': the model was fitted without them."]


def test_error_names_row_column_and_type(one, rows):
    given = [*records(rows[:2]), {"size": [1], "weight": 2.0, "colour": "red"}]
    response = one.post("/predict", json=given)
    answer = response.json()
    assert (response.status_code, answer["kind"]) == (400, "CellTypeError")
    assert "Row 2 (counted from 0), column 'size': the value is an array" in answer["error"]
    assert answer["request_id"] == response.headers["x-request-id"]


def test_unseen_category_is_refused_with_the_known_ones(one):
    response = one.post("/predict", json=[{"size": 1, "weight": 2, "colour": "pink"}])
    assert response.status_code == 400
    assert "known are 'blue', 'green', 'red'" in response.json()["error"]


def test_several_models_are_named_in_the_path(client, rows):
    for name in NAMES:
        names = {"array": ["x0", "x1"], "numbers": ["size", "weight"], "line": ["size", "colour"]}
        used = rows[:2]
        if name == "array":
            used = used[["size", "weight"]].set_axis(["x0", "x1"], axis=1)
        used = used[names.get(name, list(rows.columns))]
        response = client.post(f"/models/{name}/predict", json=records(used))
        assert (response.status_code, response.json()["model"]) == (200, name)
    response = client.post("/predict", json=records(rows[:2]))
    assert (response.status_code, response.json()["kind"]) == (400, "ModelNameError")
    assert "/models/NAME/predict" in response.json()["error"]


def test_unknown_model_is_404_and_lists_the_models(client):
    response = client.post("/models/other/predict", json=[])
    assert response.status_code == 404
    assert "mixed, numbers" in response.json()["error"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/predict", 405),
        ("POST", "/ping", 405),
        ("DELETE", "/models/mixed/predict", 405),
        ("OPTIONS", "/predict", 405),
        ("GET", "/models/mixed", 404),
        ("HEAD", "/ping", 200),
    ],
)
def test_other_paths_and_methods_are_refused(one, method, path, status):
    assert one.request(method, path).status_code == status


def test_compressed_body_is_refused(one):
    response = one.post("/predict", content=b"[]", headers={"content-encoding": "gzip"})
    assert response.status_code == 415


def test_prediction_beyond_the_time_limit_is_refused(model_folder, rows, monkeypatch):
    service = start(
        {"mixed": str(model_folder / "mixed.model")},
        options=ServiceOptions(max_rows=10**6, seconds=0.001),
    )
    given = records(rows) * 40
    response = service.client.post("/predict", json=given)
    assert (response.status_code, response.json()["kind"]) == (503, "TimeLimitError")


def test_before_the_models_are_loaded_only_health_checks_answer(model_folder):
    from starlette.testclient import TestClient

    from discriminant.web.request_log import JsonLog
    from discriminant.web.security import Access
    from discriminant.web.service.app import Service, build_app

    paths = {"mixed": str(model_folder / "mixed.model")}
    service = Service(paths, ServiceOptions(), JsonLog(io.StringIO()), token=False)
    client = TestClient(build_app(service, Access()), base_url="http://localhost")
    assert client.get("/v2/health/live").json() == {"live": True}
    assert client.get("/v2/health/ready").status_code == 503
    response = client.post("/predict", json=[])
    assert (response.status_code, response.headers["retry-after"]) == (503, "1")


def test_routes_have_the_name_of_the_model():
    assert find_route("/v2/models/a.b/infer")[1] == "a.b"
    assert find_route("/models/a/predict")[1] == "a"
    for path in ("/models//predict/", "/v2/models/a/b/infer", "/v3", "//predict", "/models/a/x"):
        assert find_route(path) == (None, None)


# --- MLflow ---------------------------------------------------------------------------------------


def mlflow_bodies(rows):
    split = {"columns": list(rows.columns), "data": rows.to_numpy().tolist()}
    return {
        "dataframe_split": {"dataframe_split": {**split, "index": list(range(len(rows)))}},
        "dataframe_records": {"dataframe_records": records(rows)},
        "instances": {"instances": records(rows)},
        "inputs": {"inputs": {name: rows[name].tolist() for name in rows.columns}},
        "arrays": {"instances": rows.to_numpy().tolist()},
    }


@pytest.mark.parametrize(
    "form", ["dataframe_split", "dataframe_records", "instances", "inputs", "arrays"]
)
def test_invocations_accept_every_form_of_mlflow(one, mixed, rows, form):
    body = mlflow_bodies(rows[:7])[form]
    assert one.post("/invocations", json=body).json() == {
        "predictions": mixed.predict(rows[:7]).tolist()
    }


def test_invocations_accept_csv(one, mixed, rows):
    body = rows[:7].to_csv(index=False)
    response = one.post("/invocations", content=body, headers={"content-type": "text/csv"})
    assert response.json() == {"predictions": mixed.predict(rows[:7]).tolist()}


def test_params_of_invocations_are_options(one, rows):
    body = {"dataframe_records": records(rows[:1]), "params": {"top_k": 2}}
    (answer,) = one.post("/invocations", json=body).json()["predictions"]
    assert [*answer] == ["predicted", "probabilities", "top"]


@pytest.mark.parametrize("body", [{}, [], {"instances": [], "inputs": []}, {"dataframe_split": []}])
def test_invocations_of_another_form_are_refused(one, body):
    assert one.post("/invocations", json=body).status_code == 400
