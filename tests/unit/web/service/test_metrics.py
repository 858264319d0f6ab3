"""Metrics: counts, shares, and drift against the training rows."""

import re

import numpy as np
import pytest

import discriminant as dd
from tests.unit.web.conftest import start, table


def metrics(client):
    """Every sample of the text, by name and labels."""
    samples = {}
    for line in client.get("/metrics").text.splitlines():
        if not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            samples[name] = float(value)
    return samples


def records(frame):
    return frame.to_dict("records")


@pytest.fixture
def served(model_folder):
    names = ("mixed", "careful", "filled", "array")
    return start({name: str(model_folder / f"{name}.model") for name in names}).client


def test_rows_are_counted_by_class(served, rows, model_folder):
    served.post("/models/mixed/predict", json=records(rows[:100]))
    served.post("/models/mixed/predict", json=records(rows[100:200]))
    found = metrics(served)
    predicted = dd.load(model_folder / "mixed.model").predict(rows[:200])
    assert found['discriminant_rows_total{model="mixed"}'] == 200
    for label in "abc":
        name = f'{{model="mixed",class="{label}"}}'
        count = (predicted == label).sum()
        assert found[f"discriminant_predictions_total{name}"] == count
        assert found[f"discriminant_class_share{name}"] == pytest.approx(count / 200)


def test_rejected_share_is_that_of_the_decisions(served, rows, model_folder):
    served.post("/models/careful/predict", json=records(rows))
    model = dd.load(model_folder / "careful.model")
    rejected = sum(str(action) == "REJECT" for action in model.decide(rows))
    found = metrics(served)
    assert 0 < rejected < len(rows)
    assert found['discriminant_rejected_rows_total{model="careful"}'] == rejected
    share = found['discriminant_rejected_share{model="careful"}']
    assert share == pytest.approx(rejected / len(rows), rel=1e-8)


def test_drift_is_hotellings_t2_of_both_sets_of_rows(served, rows):
    new = table(300, seed=5)[0].assign(size=lambda f: f["size"] + 0.5)
    for start_row in range(0, 300, 50):
        served.post("/models/mixed/predict", json=records(new[start_row : start_row + 50]))
    found = metrics(served)
    encode = dd.Encoded(dd.LDA()).fit(*table()).encode
    first, second = encode(rows), encode(new)
    n, m = len(first), len(second)
    within = ((first - first.mean(0)).T @ (first - first.mean(0))) + (
        (second - second.mean(0)).T @ (second - second.mean(0))
    )
    step = second.mean(0) - first.mean(0)
    # the covariance of the training rows is that about their own mean
    d2 = step @ np.linalg.solve(within / (n + m - 2), step)
    assert found['discriminant_drift_rows{model="mixed"}'] == m
    assert found['discriminant_drift_distance{model="mixed"}'] == pytest.approx(d2**0.5, rel=1e-6)
    assert found['discriminant_drift_t2{model="mixed"}'] == pytest.approx(
        n * m / (n + m) * d2, rel=1e-6
    )


def test_rows_like_the_training_rows_show_no_drift_and_others_do(served):
    served.post("/models/mixed/predict", json=records(table(500, seed=1)[0]))
    assert metrics(served)['discriminant_drift_p_value{model="mixed"}'] > 0.001
    far = table(500, seed=2)[0].assign(weight=lambda f: f["weight"] + 5)
    served.post("/models/mixed/predict", json=records(far))
    assert metrics(served)['discriminant_drift_p_value{model="mixed"}'] < 1e-6


def test_model_without_moments_has_no_drift(served, rows):
    served.post("/models/filled/predict", json=records(rows))
    assert not [name for name in metrics(served) if "drift" in name and "filled" in name]


def test_requests_are_counted_by_route_and_status_and_timed(served, rows):
    served.post("/models/mixed/predict", json=records(rows[:2]))
    served.post("/models/mixed/predict", json=[1])
    served.get("/nothing/here")
    found = metrics(served)
    route = "/models/{name}/predict"
    assert found[f'discriminant_requests_total{{route="{route}",status="200"}}'] == 1
    assert found[f'discriminant_requests_total{{route="{route}",status="400"}}'] == 1
    assert found['discriminant_requests_total{route="none",status="404"}'] == 1
    buckets = [v for k, v in found.items() if k.startswith("discriminant_request_seconds_bucket")]
    assert buckets
    inf = f'discriminant_request_seconds_bucket{{route="{route}",le="+Inf"}}'
    count = f'discriminant_request_seconds_count{{route="{route}"}}'
    assert found[inf] == found[count] == 2


def test_text_follows_the_format_of_prometheus(served, rows):
    served.post("/models/mixed/predict", json=records(rows[:2]))
    text = served.get("/metrics").text
    sample = re.compile(
        r'[a-z_][a-z0-9_]*(\{([a-z_]+="([^"\\\n]|\\.)*"(,|(?=\})))*\})? [-+0-9.eEinfNa]+'
    )
    described = set()
    for line in text.splitlines():
        if line.startswith("# "):
            described.add(line.split()[2])
        else:
            assert sample.fullmatch(line), line
            name = re.split(r"[{ ]", line)[0]
            assert re.sub("_(bucket|sum|count)$", "", name) in described or name in described
