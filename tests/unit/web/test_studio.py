"""The server of the studio: who may use it, and that its numbers and files equal Python's."""

import io
import json
import os
import random
import re
import signal
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import AsyncMock

import httpx2 as httpx
import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from starlette.testclient import TestClient

import discriminant as dd
from discriminant.errors import InputError
from discriminant.report import svg
from discriminant.table.files.example_tables import EXAMPLES
from discriminant.web.request_log import JsonLog
from discriminant.web.security import Access
from discriminant.web.studio import app as studio_app, command
from discriminant.web.studio.app import PUBLIC, Studio, build_app
from discriminant.web.studio.sources import Sources, guess_target, safe_name
from tests.unit.web.conftest import TOKEN, run_async, table

ASSETS = Path(studio_app.__file__).parent / "assets"
FILES = [file for file in ASSETS.rglob("*") if file.is_file()]
ASSET_PATHS = [path for path in PUBLIC if not path.startswith("/lectures")]
BEARER = {"authorization": f"Bearer {TOKEN}"}
IRIS = {"example": "iris"}
MODELS = {
    "lda": dd.LDA(prior=[0.2, 0.3, 0.5]),
    "qda": dd.QDA(shrinkage=0.1, prior=[0.2, 0.3, 0.5]),
    "rda": dd.RDA(pooling=0.3, shrinkage=0.1, prior=[0.2, 0.3, 0.5]),
    "student": dd.LDA(predictive="student", prior=[0.2, 0.3, 0.5]),
    "nearest_mean": dd.NearestMean(prior=[0.2, 0.3, 0.5]),
    "ridge": dd.LeastSquares(ridge=0.4),
    "logistic": dd.Logistic(ridge=0.4, prior=[0.2, 0.3, 0.5]),
}


def choice(model="lda", **more):
    dials = {"pooling": 0.3, "ridge": 0.4, "prior": [0.2, 0.3, 0.5], **more}
    return {"model": model, "shrinkage": 0.1 if model in ("qda", "rda") else 0, **dials}


class Page:
    """The studio as its page uses it."""

    def __init__(self, folder, **options):
        self.log = io.StringIO()
        studio = Studio(folder, **options)
        access = Access(token=TOKEN, public=PUBLIC, max_bytes=3_000_000)
        app = build_app(studio, access, JsonLog(self.log))
        url = "http://localhost:8000"
        self.client = TestClient(app, base_url=url, raise_server_exceptions=False)

    def post(self, path, body, status=200):
        response = self.client.post(path, json=body, headers=BEARER)
        assert response.status_code == status, response.text
        return response

    def open(self, source, target, **plan):
        body = {"source": source, "target": target, **plan}
        return self.post("/api/open", body).json()

    def ask(self, number, action, **body):
        return self.post(f"/api/tables/{number}/{action}", body)

    def upload(self, frame, name="rows.csv"):
        text = frame.to_csv(index=False).encode()
        response = self.client.post(f"/api/upload?name={name}", content=text, headers=BEARER)
        return {"upload": response.json()["upload"]}


def unpack(data):
    """The arrays of a binary response, as server.js reads them."""
    size = int.from_bytes(data[:4], "little")
    at, arrays = 4 + size, {}
    for name, kind, length in json.loads(data[4:at])["arrays"]:
        arrays[name] = np.frombuffer(data, kind, length, at)
        at += -(-arrays[name].nbytes // 8) * 8
    assert at == len(data)
    return arrays


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    page = Page(tmp_path_factory.mktemp("studio"))
    with page.client:
        yield page


@pytest.fixture
def iris(page):
    """The number of the open example: opened again, since only a few tables stay open."""
    return page.open(IRIS, "species")["id"]


@pytest.fixture(scope="module")
def iris_file(tmp_path_factory):
    file = tmp_path_factory.mktemp("iris") / "iris.csv"
    file.write_bytes(EXAMPLES[0].csv())
    return file


@pytest.fixture(scope="module")
def rows(iris_file):
    """The features and the labels of the example."""
    frame = pd.read_csv(iris_file)
    return frame.drop(columns="species"), frame["species"].to_numpy()


# --- who may use it -------------------------------------------------------------------------------


def test_every_asset_is_served_without_token_and_under_a_strict_policy(page):
    for path in ASSET_PATHS:
        response = page.client.get(path)
        assert response.status_code == 200
        policy = response.headers["content-security-policy"]
        assert "default-src 'none'; script-src 'self';" in policy
        assert "unsafe" not in policy
        assert response.headers["x-content-type-options"] == "nosniff"


def test_assets_are_those_of_the_folder():
    served = {path.rpartition("/")[2] or "index.html" for path in ASSET_PATHS}
    assert served == {file.name for file in FILES} | {"moments.js"}


def test_lecture_pages_are_served_with_their_own_policy(page):
    titles = page.client.get("/api/start", headers=BEARER).json()["lectures"]
    for number, title in titles.items():
        response = page.client.get(f"/lectures/lecture_{number}.html")
        assert response.status_code == 200
        assert title in response.text
        assert "default-src 'none'" in response.text
        assert "frame-ancestors 'none'" in response.headers["content-security-policy"]
    assert page.client.get("/lectures/lecture_6.html", headers=BEARER).status_code == 404


def test_page_has_no_inline_script_and_loads_nothing_from_elsewhere():
    for file in FILES:
        text = file.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "://" not in text.replace("sqlite:///", "").replace("postgresql://", "")
        assert "innerHTML" not in text
    page = (ASSETS / "index.html").read_text()
    assert re.findall(r"<script(?![^>]*\bsrc=)|\son\w+=|\sstyle=", page) == []


def test_colours_and_shapes_of_classes_are_those_of_the_report():
    """One class has one colour and one marker in both, so that figures can be compared."""

    def colours(file):
        return re.findall(r"--k(\d+): (#\w+)", file.read_text())

    report = files("discriminant.report").joinpath("assets", "style.css")
    own = colours(ASSETS / "studio.css")
    assert own == colours(report)[: len(own)]
    assert len(set(own)) == 2 * svg.COLOURS  # light and dark
    script = (ASSETS / "elements.js").read_text()
    assert tuple(re.findall(r'"(M[^"]+Z)"', script)) == svg.SHAPES
    assert f"COLOURS = {svg.COLOURS};" in script


@pytest.mark.parametrize("token", [None, "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN}x"])
def test_missing_and_wrong_tokens_are_refused(page, iris, token):
    headers = {} if token is None else {"authorization": token}
    paths = ["start", "open", "upload", f"tables/{iris}/data", f"tables/{iris}/export"]
    for path in paths:
        for method in ("GET", "POST"):
            response = page.client.request(method, f"/api/{path}?token={TOKEN}", headers=headers)
            assert response.status_code == 401


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": "127.0.0.1.nip.io:8000"},
        {"origin": "http://evil.example"},
        {"origin": "http://localhost:8001"},
        {"sec-fetch-site": "cross-site"},
    ],
)
def test_foreign_hosts_and_origins_are_refused(page, headers):
    for path in ("/", "/api/start", "/assets/studio.js"):
        response = page.client.get(path, headers={**BEARER, **headers})
        assert response.status_code == 403


@pytest.mark.parametrize(
    "path",
    [
        "/assets/../app.py",
        "/assets/%2e%2e/app.py",
        "/assets/..%2fapp.py",
        "/assets//etc/passwd",
        "/assets/",
        "/api/tables/..%2f1/data",
        "/api/tables/1/../../start/data",
        "/api/tables/-1/data",
        "/api/tables/1/__class__",
        "/api/tables/1/folder",
        "/api/__init__",
        "/etc/passwd",
    ],
)
def test_there_is_nothing_at_other_paths(page, path):
    response = page.client.get(path, headers=BEARER)
    assert response.status_code in (404, 405)
    assert "root:" not in response.text


def test_oversized_bodies_are_refused(page):
    big = b"x" * 3_000_001
    response = page.client.post("/api/upload?name=big.csv", content=big, headers=BEARER)
    assert response.status_code == 413


def test_upload_stays_in_its_folder(tmp_path):
    page = Page(tmp_path)
    frame, labels = table(30)
    source = page.upload(frame.assign(kind=labels), "..%2F..%2Fescape.csv")
    assert [file.relative_to(tmp_path).as_posix() for file in tmp_path.rglob("*.csv")] == [
        "1/escape.csv"
    ]
    assert page.post("/api/preview", {"source": source}).json()["target"] == "kind"
    assert safe_name("a\\b/..") == "table"


@pytest.mark.parametrize(
    "source",
    [
        {"path": "/etc/passwd"},
        {"given": True},
        {"example": "../iris"},
        {"upload": "1"},
        {"upload": 99},
        {"address": "/etc/passwd"},
        {"address": "file:///etc/passwd"},
        "iris",
        None,
    ],
)
def test_page_cannot_name_a_file(page, source):
    for path in ("/api/preview", "/api/open"):
        answer = page.post(path, {"source": source, "target": "x"}, status=400).json()
        assert "root:" not in answer["error"]


def test_page_cannot_read_a_file_through_a_database(tmp_path, monkeypatch):
    import duckdb

    secret = tmp_path / "secret.csv"
    secret.write_text("word,kind\nxyzzy,a\n")
    with duckdb.connect(tmp_path / "rows.db") as connection:
        connection.execute("CREATE TABLE csv AS SELECT 1 AS size, 'a' AS kind")
    monkeypatch.chdir(tmp_path)
    page = Page(tmp_path)
    own = f"duckdb:///{tmp_path}/rows.db"
    texts = [f"SELECT * FROM read_csv('{secret}')", f"'{secret}'", "secret.csv", "csv; SELECT 1"]
    for address in ("duckdb://", "duckdb:///:memory:", own):
        for text in texts:
            for source in (
                {"address": address, "table": text},
                {"address": f"{address}#{text}"},
            ):
                answer = page.post("/api/preview", {"source": source}, status=400)
                assert "xyzzy" not in answer.text
    answer = page.post("/api/preview", {"source": {"address": own, "table": "csv"}}).json()
    assert [column["name"] for column in answer["columns"]] == ["size", "kind"]
    answer = page.post("/api/preview", {"source": {"address": f"{own}#main.csv"}}).json()
    assert answer["rows"] == [["1", "a"]]


def test_password_of_an_address_is_in_no_answer_and_no_log(page):
    address = "postgresql://reader:abracadabra1234@127.0.0.1:9/loans"
    body = {"source": {"address": address, "table": "loans"}}
    response = page.client.post("/api/preview", json=body, headers=BEARER)
    assert response.status_code == 400
    assert "abracadabra" not in response.text + page.log.getvalue()


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"model": "lda"}, "must be an object"),
        ({"model": {"model": "pickle"}}, "model must be one of"),
        ({"model": {"shrinkage": 2}}, "between 0 and 1"),
        ({"model": {"shrinkage": "0.1"}}, "must be a number"),
        ({"model": {"shrinkage": True}}, "must be a number"),
        ({"model": {"prior": [0.5, 0.5]}}, "a list of 3"),
        ({"model": {"prior": [0.5, 0.5, 0]}}, "positive"),
        ({"model": {"cost": [[0, 1], [1, 0]]}}, "a list of 3"),
        ({"model": {"cost": [[0, 1, 1], [1, 0, -1], [1, 1, 0]]}}, "0 or more"),
        ({"model": {"reject": -1}}, "0 or more"),
        ({"model": {"degree": 3}}, "degree must be 1 or 2"),
        ({"model": {"off": ["species"]}}, "columns of the table"),
        ({"edits": {"removed": [150]}}, "below 150"),
        ({"edits": {"removed": [1, 1]}}, "twice"),
        ({"edits": {"added": [[3, [1, 2, 3, 4]]]}}, "class number"),
        ({"edits": {"added": [[0, [1, 2, 3]]]}}, "a list of 4"),
        ({"label": "rose"}, "one of the classes"),
    ],
)
def test_invalid_choices_are_refused_with_the_reason(page, iris, body, reason):
    answer = page.post(f"/api/tables/{iris}/evaluate", body, status=400).json()
    assert reason in answer["error"]


@pytest.mark.parametrize(
    ("action", "body"),
    [
        ("evaluate", {"model": {"model": []}}),
        ("evaluate", {"model": {"off": [[]]}}),
        ("evaluate", {"edits": {"added": 5}}),
        ("evaluate", {"edits": {"shifts": {"0": 1}}}),
        ("evaluate", {"label": []}),
        ("export", {"to": {}}),
        (
            "export",
            {
                "model": {"model": "ridge", "degree": 2},
                "edits": {"shifts": [[2, [1e308, 0, 0, 0]]]},
                "to": "javascript",
            },
        ),
        ("slices", {"column": []}),
        (
            "evaluate",
            {"model": {"model": "logistic"}, "edits": {"removed": list(range(50))}},
        ),
        ("evaluate", {"model": {"model": "lda"}, "edits": {"removed": list(range(50))}}),
    ],
)
def test_wrong_types_and_empty_classes_are_refused(page, iris, action, body):
    answer = page.post(f"/api/tables/{iris}/{action}", body, status=400).json()
    assert answer["error"]


def test_long_numbers_names_and_cells_are_refused_or_shortened(page):
    for number in ("9" * 5000, "²", "٣"):
        response = page.client.get(f"/api/tables/{number}/data", headers=BEARER)
        assert response.status_code == 404
    frame, labels = table(30)
    source = page.upload(frame.assign(kind=labels), "表" * 100 + ".csv")
    assert page.post("/api/preview", {"source": source}).json()["target"] == "kind"
    source = page.upload(pd.DataFrame({"note": ["x" * 200_000], "kind": ["a"]}))
    assert "131,072" in page.post("/api/preview", {"source": source}, status=400).json()["error"]


def test_missing_library_is_reported_as_such(page, iris, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    answer = page.post(f"/api/tables/{iris}/export", {"to": "onnx"}, status=400).json()
    assert "onnx" in answer["error"]


def test_malformed_requests_are_refused_without_a_crash(page, iris):
    rng = random.Random(7)
    valid = json.dumps({"model": choice(), "edits": {"removed": [3]}, "label": "setosa"})
    for _ in range(200):
        text = list(valid)
        for _ in range(rng.randint(1, 6)):
            text[rng.randrange(len(text))] = rng.choice('{}[]",:0129eE.-tfn\\\x00é')
        action = rng.choice(["evaluate", "density", "slices", "export", "code"])
        response = page.client.post(
            f"/api/tables/{iris}/{action}", content="".join(text).encode(), headers=BEARER
        )
        assert response.status_code in (200, 400), (action, "".join(text), response.text)
    assert "internal_error" not in page.log.getvalue()


# --- numbers --------------------------------------------------------------------------------------


def test_page_gets_the_moments_and_the_rows(page, iris, rows):
    response = page.client.get(f"/api/tables/{iris}/data", headers=BEARER)
    arrays, sums = unpack(response.content), dd.moments(*rows)
    X = arrays["points"].reshape(150, 4)
    np.testing.assert_array_equal(X, rows[0].to_numpy())
    mean = arrays["mean"].reshape(3, 4) + arrays["origin"]
    np.testing.assert_allclose(mean, sums.mean + sums.anchor.origin, rtol=1e-14)
    np.testing.assert_allclose(arrays["scatter"].reshape(3, 4, 4), sums.scatter, rtol=1e-12)
    np.testing.assert_array_equal(arrays["numbers"], np.arange(150))


@pytest.mark.parametrize("name", MODELS)
def test_counts_equal_those_of_python(page, iris, rows, name):
    X, y = rows
    model = MODELS[name].fit(X, y)
    cost = None if name == "ridge" else [[0, 1, 1], [3, 0, 1], [1, 2, 0]]
    asked = choice(name, cost=cost, reject=0.05)
    answer = page.ask(iris, "evaluate", model=asked, label="virginica").json()
    if name == "ridge":
        expected = dd.assess(y, model.predict(X))
    else:
        labels = model.classes_.tolist()
        costs = {
            a: dict(zip(labels, row, strict=True)) for a, row in zip(labels, cost, strict=True)
        }
        decided = dd.Decision.of_fitted(model, cost=costs, reject=0.05).decide(X)
        expected = dd.assess(y, decided, log_posterior=model.predict_log_proba(X), classes=labels)
        assert answer["log_loss"] == pytest.approx(expected.log_loss, rel=1e-9)
    counts = np.zeros((len(answer["confusion"]), 3))
    counts[: len(expected.weight)] = expected.weight
    np.testing.assert_array_equal(answer["confusion"], counts)
    curve = dd.roc(y == "virginica", model.predict_proba(X)[:, 2])
    assert answer["curve"]["auc"] == pytest.approx(curve.area, abs=1e-12)


@pytest.mark.parametrize("name", ["lda", "qda", "rda", "ridge", "logistic"])
def test_squares_and_products_are_those_of_basis(page, iris, rows, name):
    off = ["sepal length (cm)", "sepal width (cm)"]
    X, y = rows[0].drop(columns=off), rows[1]
    model = make_pipeline(dd.Basis(degree=2), MODELS[name]).fit(X, y)
    asked = choice(name, degree=2, off=off)
    answer = page.ask(iris, "evaluate", model=asked, label="virginica").json()
    expected = dd.assess(y, model.predict(X))
    np.testing.assert_array_equal(answer["confusion"], expected.weight)
    curve = dd.roc(y == "virginica", model.predict_proba(X)[:, 2])
    assert answer["curve"]["auc"] == pytest.approx(curve.area, abs=1e-12)


def test_counts_follow_edited_rows(page, iris, rows):
    X, y = rows[0].to_numpy(), rows[1]
    removed, shift, added = [0, 60, 149], [0.2, 0, -0.3, 0], [5.5, 3.0, 4.0, 1.0]
    edits = {"removed": removed, "shifts": [[2, shift]], "added": [[1, added]]}
    answer = page.ask(iris, "evaluate", model={"model": "qda"}, edits=edits).json()
    X, y = np.delete(X, removed, axis=0), np.delete(y, removed)
    X[y == "virginica"] += shift
    X, y = np.vstack([X, added]), np.append(y, "versicolor")
    expected = dd.assess(y, dd.QDA().fit(X, y).predict(X))
    np.testing.assert_array_equal(answer["confusion"], expected.weight)


def test_surface_equals_the_grid_of_python(page, iris, rows):
    from discriminant.assessment.resampling.folds import fold_numbers

    answer = page.ask(iris, "surface", model={"model": "rda"}).json()
    codes = np.unique(rows[1], return_inverse=True)[1]
    steps = np.linspace(0, 1, 11).round(3)
    folds = fold_numbers(10, codes, seed=0)
    grid = dd.rda_grid(rows[0], rows[1], folds, pooling=steps, shrinkage=steps)
    np.testing.assert_allclose(answer["error"], grid.error[:, :, 0], atol=1e-12)
    np.testing.assert_allclose(answer["log_loss"], grid.log_loss[:, :, 0], rtol=1e-9)


def test_density_counts_the_rows_of_each_class(page, iris, rows):
    X, y = rows[0].to_numpy(), rows[1]
    rng = np.random.default_rng(0)
    axes, centre = rng.normal(size=(2, 4)), X.mean(axis=0)
    body = {"centre": centre.tolist(), "axes": axes.tolist(), "box": [-4, 4, -3, 3]}
    response = page.ask(iris, "density", **body, width=90, height=70)
    counts = np.frombuffer(response.content, "<i4").reshape(3, 70, 90)
    Z = (X - centre) @ axes.T
    for k, label in enumerate(np.unique(y)):
        own = Z[y == label]
        expected = np.histogram2d(own[:, 1], own[:, 0], (70, 90), ((-3, 3), (-4, 4)))[0]
        np.testing.assert_array_equal(counts[k], expected)


def test_large_table_is_shown_as_a_sample_and_counted_in_full(page):
    frame, labels = table(8000)
    facts = page.open(page.upload(frame.assign(kind=labels)), "kind")
    assert (facts["rows"], facts["shown"]) == (8000, 5000)
    answer = page.ask(facts["id"], "evaluate", model={"model": "lda"}).json()
    expected = dd.assess(labels, dd.Encoded(dd.LDA()).fit(frame, labels).predict(frame))
    np.testing.assert_array_equal(answer["confusion"], expected.weight)
    assert sum(answer["certainty"]["rows"]) == 8000
    assert sum(answer["certainty"]["wrong"]) == round(expected.error * 8000)
    groups = page.ask(facts["id"], "slices", model={"model": "lda"}, column="colour").json()
    assert np.sum(groups["counts"]["rows"]) == 8000
    assert np.sum(groups["counts"]["correct"]) == 8000 - round(expected.error * 8000)
    sizes = frame["colour"].value_counts()
    assert [sum(row) for row in groups["counts"]["rows"]] == sizes[groups["names"]].tolist()


def test_slices_of_numbers_are_their_quartiles(page, iris, rows):
    answer = page.ask(iris, "slices", model={}, column="sepal length (cm)").json()
    quartile = pd.qcut(rows[0]["sepal length (cm)"], 4, labels=False)
    np.testing.assert_array_equal(answer["group"], quartile)


def test_drift_equals_hotelling(page, iris, rows):
    moved = rows[0].assign(**{"petal width (cm)": rows[0]["petal width (cm)"] + 0.5})[20:]
    answer = page.ask(iris, "drift", source=page.upload(moved, "later.csv")).json()
    expected = dd.hotelling(dd.moments(*rows), dd.moments(moved, np.zeros(len(moved))))
    assert answer["d2"] == pytest.approx(expected.d2, rel=1e-9)
    assert answer["p"] == pytest.approx(expected.t2.p, rel=1e-6)
    assert answer["features"][0]["feature"] == "petal width (cm)"
    assert answer["rows"] == [150, 130]


def test_plan_of_columns_is_followed(page):
    frame, labels = table(200)
    frame = frame.assign(code=np.arange(200) % 4, kind=labels)
    source = page.upload(frame)
    facts = page.open(source, "kind", exclude=["size"], categories=["code"])
    kinds = {column["name"]: column["kind"] for column in facts["columns"]}
    assert kinds["code"] == "category"
    assert not any(feature.startswith("size") for feature in facts["features"])
    copied = page.upload(frame.assign(length=2 * frame["size"] + 1))
    number = page.open(copied, "kind")["id"]
    response = page.client.get(f"/api/tables/{number}/checks", headers=BEARER)
    findings = response.json()["findings"]
    assert any({"size", "length"} <= set(json.dumps(each).split('"')) for each in findings)


def test_missing_cells_are_treated_as_chosen_in_checks_and_drift(page):
    frame, labels = table(200)
    frame.loc[3, "size"] = np.nan
    source = page.upload(frame.assign(kind=labels))
    number = page.open(source, "kind", missing="drop")["id"]
    found = page.client.get(f"/api/tables/{number}/checks", headers=BEARER).json()["findings"]
    text = next(each["text"] for each in found if each["kind"] == "incomplete")
    assert text == "size. These rows are left out."
    later = page.upload(frame.assign(weight=frame["weight"] + 5), "later.csv")
    answer = page.ask(number, "drift", source=later).json()
    assert answer["rows"] == [199, 199]
    assert answer["features"][0]["feature"] == "weight"


def test_damaged_parquet_file_is_refused_with_the_reason(page):
    """A footer that is whole, and pages that are not."""
    file = io.BytesIO()
    table(400)[0].to_parquet(file)
    content = bytearray(file.getvalue())
    content[4:400] = bytes(396)
    response = page.client.post(
        "/api/upload?name=a.parquet", content=bytes(content), headers=BEARER
    )
    source = {"upload": response.json()["upload"]}
    answer = page.post("/api/preview", {"source": source}, status=400).json()
    assert "damaged" in answer["error"]


def test_target_is_guessed():
    columns = [
        {"name": "id", "distinct": 90, "number": True},
        {"name": "kind", "distinct": 3, "number": False},
        {"name": "size", "distinct": 80, "number": True},
    ]
    assert guess_target(columns, 90) == "kind"
    assert guess_target(columns[:1], 90) == "id"


# --- what leaves ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_model_file_predicts_as_the_model_of_python(page, iris, rows, iris_file, tmp_path, name):
    file = tmp_path / "iris.model"
    file.write_bytes(page.ask(iris, "export", model=choice(name, reject=0.1), to="model").content)
    loaded = dd.load(file)
    own = dd.study(iris_file, target="species").fitted(MODELS[name])
    np.testing.assert_allclose(loaded.predict_proba(rows[0]), own.predict_proba(rows[0]), atol=1e-9)
    if name != "ridge":
        decision = dd.Decision.of_fitted(own, reject=0.1)
        assert loaded.decide(rows[0]).tolist() == decision.decide(rows[0]).tolist()


@pytest.mark.parametrize("to", ["python", "javascript", "sql", "onnx"])
def test_exports_are_those_of_python(page, iris, rows, to):
    response = page.ask(iris, "export", model=choice(off=["sepal width (cm)"]), to=to)
    X = rows[0].drop(columns="sepal width (cm)")
    model = dd.Encoded(dd.LDA(prior=[0.2, 0.3, 0.5])).fit(X, rows[1])
    if to == "python":
        scope = {}
        exec(response.text, scope)
        predicted = [scope["predict"](row)[0] for row in X.to_dict("records")]
        assert predicted == model.predict(X).tolist()
    elif to == "onnx":
        import onnxruntime

        session = onnxruntime.InferenceSession(response.content)
        given = {each.name: X[[each.name]].to_numpy() for each in session.get_inputs()}
        names = [each.name for each in session.get_outputs()]
        outputs = dict(zip(names, session.run(None, given), strict=True))
        label = np.asarray(outputs["label"]).ravel()
        assert label.tolist() == model.predict(X).tolist()
    elif to == "sql":
        import duckdb

        database = duckdb.connect()
        database.register("iris", X)
        result = database.sql(response.text).df()
        column = next(name for name in result.columns if "label" in name or "decision" in name)
        assert sorted(result[column]) == sorted(model.predict(X).tolist())
    else:
        assert "export" in response.text
        assert "sepal width" not in response.text


@pytest.mark.parametrize(
    "edits",
    [
        None,
        {
            "removed": [0, 60],
            "shifts": [[2, [0.1, 0.2, 0.3, 0.4]]],
            "added": [[1, [5.5, 3.0, 4.0, 1.0]]],
        },
    ],
)
@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("name", ["rda", "logistic"])
def test_shown_code_makes_the_model_that_is_exported(
    page, iris, rows, iris_file, tmp_path, monkeypatch, name, edits, degree
):
    cost = [[0, 1, 1], [1, 0, 4], [1, 1, 0]]
    asked = choice(name, cost=cost, off=["sepal width (cm)"], degree=degree)
    body = {"model": asked, "edits": edits}
    code = page.ask(iris, "code", **body).json()["code"]
    (tmp_path / "iris.csv").write_bytes(iris_file.read_bytes())
    monkeypatch.chdir(tmp_path)
    exec(code, {})
    file = tmp_path / "exported.model"
    file.write_bytes(page.ask(iris, "export", **body, to="model").content)
    X = rows[0].drop(columns="sepal width (cm)")
    by_code, exported = dd.load(tmp_path / "iris.model"), dd.load(file)
    np.testing.assert_allclose(by_code.predict_proba(X), exported.predict_proba(X), atol=1e-7)
    assert by_code.decide(X).tolist() == exported.decide(X).tolist()


@pytest.mark.parametrize("kind", [int, bool])
def test_labels_that_are_not_text_stay_as_they_are(page, tmp_path, monkeypatch, kind):
    frame, labels = table(120)
    frame = frame[["size", "weight"]].assign(kind=(labels == "a").astype(kind))
    file = tmp_path / "rows.parquet"
    frame.to_parquet(file)
    response = page.client.post(
        "/api/upload?name=rows.parquet", content=file.read_bytes(), headers=BEARER
    )
    number = page.open({"upload": response.json()["upload"]}, "kind")["id"]
    edits = {"removed": [3], "shifts": [[0, [0.5, 0]]], "added": [[1, [0.1, 0.2]]]}
    body = {"model": {"cost": [[0, 5], [1, 0]]}, "edits": edits}
    counts = page.ask(number, "evaluate", **body).json()["confusion"]
    exported = tmp_path / "exported.model"
    exported.write_bytes(page.ask(number, "export", **body, to="model").content)
    code = page.ask(number, "code", **body).json()["code"]
    monkeypatch.chdir(tmp_path)
    exec(code, {})
    X, values = frame[["size", "weight"]], frame["kind"].to_numpy()
    own, by_code = dd.load(exported), dd.load("rows.model")
    assert own.decide(X).tolist() == by_code.decide(X).tolist()
    assert {type(label) for label in own.decide(X).tolist()} == {kind}
    X, values = X.to_numpy()[np.arange(120) != 3], np.delete(values, 3)
    X[values == 0, 0] += 0.5
    X, values = np.vstack([X, [0.1, 0.2]]), np.append(values, kind(1))
    decided = dd.Decision.of_fitted(
        dd.LDA().fit(X, values), cost={kind(0): {kind(1): 5}, kind(1): {kind(0): 1}}
    ).decide(X)
    np.testing.assert_array_equal(counts, dd.assess(values, decided).weight)


@pytest.mark.parametrize("model", ["lda", "logistic"])
@pytest.mark.parametrize("edits", [None, {"removed": [30, 31]}])
def test_rows_dropped_for_a_column_that_is_off_stay_dropped(
    page, tmp_path, monkeypatch, model, edits
):
    frame, labels = table(120)
    frame = frame.assign(height=frame["size"] + 1, kind=labels)
    frame.loc[::3, "height"] = np.nan
    frame.loc[::3, "size"] += 2
    number = page.open(page.upload(frame), "kind", missing="drop")["id"]
    body = {"model": {"model": model, "off": ["height"]}, "edits": edits}
    file = tmp_path / "exported.model"
    file.write_bytes(page.ask(number, "export", **body, to="model").content)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    monkeypatch.chdir(tmp_path)
    exec(page.ask(number, "code", **body).json()["code"], {})
    X = frame[["size", "weight", "colour"]]
    exported, by_code = dd.load(file), dd.load("rows.model")
    np.testing.assert_allclose(exported.predict_proba(X), by_code.predict_proba(X), atol=1e-6)
    complete = frame.dropna()
    if edits:
        complete = complete.drop(index=complete.index[edits["removed"]])
    own = dd.Encoded(dd.LDA() if model == "lda" else dd.Logistic())
    own.fit(complete[X.columns], complete["kind"])
    np.testing.assert_allclose(exported.predict_proba(X), own.predict_proba(X), atol=1e-6)


def test_report_compares_the_rows_of_the_page(page):
    frame, labels = table(120)
    frame = frame.assign(height=frame["size"] + 1, kind=labels)
    frame.loc[::3, "height"] = np.nan
    number = page.open(page.upload(frame), "kind", missing="drop")["id"]
    page.post(f"/api/tables/{number}/report", {"model": {"off": ["height"]}})
    report = page.client.get(f"/api/tables/{number}/report", headers=BEARER).text
    assert "80 rows" in report
    assert "120 rows, " not in report


@pytest.fixture
def database(tmp_path):
    """A page on a database of 60,000 rows, of which a sample is in memory."""
    import duckdb

    frame, labels = table(60_000)
    frame = frame[["size", "weight"]].assign(kind=labels)
    with duckdb.connect(tmp_path / "rows.db") as connection:
        connection.execute("CREATE TABLE loans AS SELECT * FROM frame")
    page = Page(tmp_path, given=f"duckdb:///{tmp_path}/rows.db", table="loans")
    return page, frame


def test_logistic_regression_of_a_database_is_fitted_to_all_rows(database, tmp_path, monkeypatch):
    page, frame = database
    facts = page.open({"given": True}, "kind")
    assert facts["partial"] and facts["rows"] == 60_000
    for off in ([], ["weight"]):
        body = {"model": {"model": "logistic", "off": off}}
        file = tmp_path / "exported.model"
        file.write_bytes(page.ask(facts["id"], "export", **body, to="model").content)
        X = frame.drop(columns=["kind", *off])
        own = dd.Encoded(dd.Logistic()).fit(X, frame["kind"])
        np.testing.assert_allclose(dd.load(file).predict_proba(X), own.predict_proba(X), atol=1e-5)
    drift = f"/api/tables/{facts['id']}/drift"
    assert "compares files" in page.post(drift, {"source": {"given": True}}, status=400).text
    for action in ("evaluate", "export", "code"):
        body = {"model": {}, "edits": {"removed": [0]}, "to": "model"}
        path = f"/api/tables/{facts['id']}/{action}"
        assert "in partitions" in page.post(path, body, status=400).json()["error"]


def test_report_sends_its_progress_and_then_the_page(page):
    frame, labels = table(60)
    facts = page.open(page.upload(frame[["size"]].assign(kind=labels), "small.csv"), "kind")
    path = f"/api/tables/{facts['id']}/report"
    assert page.client.get(path, headers=BEARER).status_code == 404
    response = page.client.post(path, json={"model": {}}, headers=BEARER)
    assert response.headers["content-type"] == "text/event-stream"
    lines = response.text.split("\n\n")
    events = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
    assert {"reading", "LDA"} <= {event.get("step") for event in events}
    assert events[-1] == {"done": True}
    report = page.client.get(path, headers=BEARER).text
    assert "small.csv: kind" in report


# --- resources ------------------------------------------------------------------------------------


def files_of(folder):
    return sorted(file.name for file in folder.rglob("*.csv"))


def test_uploads_are_deleted_when_nothing_uses_them(tmp_path, page):
    own = Page(tmp_path)
    frame, labels = table(40)
    frame = frame[["size"]].assign(kind=labels)
    number = own.open(own.upload(frame, "first.csv"), "kind")["id"]
    own.ask(number, "drift", source=own.upload(frame, "later.csv"))
    assert files_of(tmp_path) == ["first.csv"]
    for k in range(8):
        own.upload(frame, f"unused{k}.csv")
    assert len(files_of(tmp_path)) <= 6
    assert "first.csv" in files_of(tmp_path)
    second = own.open(own.upload(frame, "second.csv"), "kind")["id"]
    for k in range(2):
        own.client.get(f"/api/tables/{number}", headers=BEARER)  # used last, so it stays open
        own.open(own.upload(frame, f"next{k}.csv"), "kind")
    assert own.client.get(f"/api/tables/{number}", headers=BEARER).status_code == 200
    assert own.client.get(f"/api/tables/{second}", headers=BEARER).status_code == 404
    assert "second.csv" not in files_of(tmp_path)


def test_uploads_have_a_total_limit(tmp_path):
    sources = Sources(tmp_path, most_bytes=1000)
    paths = []
    for _ in range(3):
        path = sources.new_upload("rows.csv")[1]
        path.write_bytes(b"x" * 400)
        paths.append(path)
    assert [path.exists() for path in paths] == [True, True, True]
    sources.new_upload("rows.csv")
    assert [path.exists() for path in paths] == [False, True, True]
    paths[-1].write_bytes(b"x" * 1001)
    with pytest.raises(InputError, match="Restart the studio"):
        sources.new_upload("rows.csv", {str(paths[-1])})


def test_example_is_written_whole(tmp_path, monkeypatch):
    sources, whole = Sources(tmp_path), EXAMPLES[0].csv()
    replace, sizes = os.replace, []

    def check(source, target):
        sizes.append((Path(source).stat().st_size, Path(target).exists()))
        replace(source, target)

    monkeypatch.setattr(os, "replace", check)
    assert Path(sources.resolve(IRIS).path).read_bytes() == whole
    assert sizes == [(len(whole), False)]


def test_errors_name_the_file_as_the_user_does(tmp_path):
    (tmp_path / "given").mkdir()
    given = tmp_path / "given" / "rows.csv"
    given.write_text("a,b\n1,2\n3,4,5\n")
    page = Page(tmp_path, given=str(given))
    response = page.client.post(
        "/api/upload?name=rows.csv", content=given.read_bytes(), headers=BEARER
    )
    for source in ({"given": True}, {"upload": response.json()["upload"]}):
        error = page.post("/api/open", {"source": source, "target": "b"}, status=400).text
        assert "rows.csv" in error
        assert str(tmp_path) not in error


def test_map_and_squares_are_bounded_on_the_server(page, iris):
    body = {"centre": [0] * 4, "axes": [[1, 0, 0, 0], [0, 1, 0, 0]], "box": [0, 1, 0, 1]}
    body |= {"width": 1000, "height": 1000}
    assert len(page.ask(iris, "density", **body).content) == 12_000_000
    labels = np.repeat([f"c{k}" for k in range(5)], 4)
    many = page.upload(pd.DataFrame({"size": np.sin(np.arange(20)), "kind": labels}))
    number = page.open(many, "kind")["id"]
    body |= {"centre": [0], "axes": [[1], [1]]}
    answer = page.post(f"/api/tables/{number}/density", body, status=400)
    assert "800,000 cells for 5 classes" in answer.json()["error"]
    number = page.open({"example": "breast_cancer"}, "diagnosis")["id"]
    answer = page.post(f"/api/tables/{number}/evaluate", {"model": {"degree": 2}}, status=400)
    assert "up to 120" in answer.json()["error"]


def test_reports_wait_for_a_free_slot(tmp_path):
    class Slots:
        entered = 0

        async def __aenter__(self):
            self.entered += 1

        async def __aexit__(self, *_):
            pass

    async def report():
        studio = Studio(tmp_path)
        studio._slots = Slots()
        workspace = SimpleNamespace(checked_spec=lambda *_: None, report=lambda *_: None)
        await studio._report(workspace, None, {}, AsyncMock())
        return studio._slots.entered

    assert run_async(report()) == 1


def test_token_is_not_among_the_arguments_of_the_browser(tmp_path, monkeypatch):
    opened, modes = [], []

    def open_page(url):
        opened.append(url)
        file = tmp_path / "start.html"
        modes.append((file.stat().st_mode & 0o777, "#token=abc" in file.read_text()))

    monkeypatch.setattr("webbrowser.open", open_page)
    monkeypatch.setattr(command, "_REDIRECT_SECONDS", 0)
    command._open_browser("http://127.0.0.1:1/#token=abc", tmp_path)
    assert opened == [(tmp_path / "start.html").as_uri()]
    assert modes == [(0o600, True)]
    assert not (tmp_path / "start.html").exists()


# --- the command ----------------------------------------------------------------------------------


def run(*arguments):
    command = [sys.executable, "-m", "discriminant", "studio", "--no-browser", *map(str, arguments)]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)


def test_command_prints_its_address_and_stops_with_ctrl_c(iris_file):
    process = run(iris_file)
    try:
        url = process.stderr.readline().split()[1]
        place, token = url.split("/#token=")
        assert httpx.get(place).status_code == 200
        headers = {"authorization": f"Bearer {token}"}
        start = httpx.get(f"{place}/api/start", headers=headers, timeout=60).json()
        assert start["given"] == "iris.csv"
        body = {"source": {"given": True}}
        preview = httpx.post(f"{place}/api/preview", json=body, headers=headers, timeout=60).json()
        assert preview["target"] == "species"
        assert str(iris_file.parent) not in json.dumps(preview)
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 0
    assert "Traceback" not in process.stderr.read()


def test_absent_file_ends_the_command_with_the_reason(tmp_path):
    process = run(tmp_path / "absent.csv")
    assert process.wait(timeout=30) == 2
    assert "absent.csv" in process.stderr.read()


def test_server_listens_before_large_imports():
    code = (
        "import sys\n"
        "import discriminant.cli.studio\n"
        "heavy = 'numpy scipy sklearn pandas pyarrow numba uvicorn starlette'.split()\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"
