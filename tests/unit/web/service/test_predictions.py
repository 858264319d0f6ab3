"""Predictions of a service are those of the model, and options of a request act as `Decision`."""

import numpy as np
import pytest
from scipy import sparse

import discriminant as dd
from discriminant.errors import DiscriminantError
from discriminant.study.row_explanation import explain_rows
from discriminant.table.column_cells import frame_from_dataframe
from discriminant.web.service.models import load_model
from discriminant.web.service.predictions import PredictionOptions
from discriminant.web.service.rows import RequestError
from tests.unit.web.conftest import NAMES, start, table


@pytest.fixture(scope="module")
def served(model_folder):
    return {name: load_model(name, str(model_folder / f"{name}.model")) for name in NAMES}


def frame_for(model, rows):
    names = [column.name for column in model.predictor.encoding.used]
    if model.predictor.array:
        rows = rows[["size", "weight"]].set_axis(names, axis=1)
    return rows[names]


def predict(model, rows, **options):
    return model.predictor.predict(
        frame_from_dataframe(frame_for(model, rows)), PredictionOptions.of(options)
    )


@pytest.mark.parametrize("name", NAMES)
def test_predictions_are_bitwise_those_of_the_model(served, model_folder, rows, name):
    found = predict(served[name], rows)
    model = dd.load(model_folder / f"{name}.model")
    given = frame_for(served[name], rows)
    given = given.to_numpy() if served[name].predictor.array else given
    assert found.predicted == model.predict(given).tolist()
    if name == "line":
        assert found.probabilities is None
        return
    np.testing.assert_array_equal(found.probabilities, model.predict_proba(given))
    if name == "careful":
        assert found.decision == [str(action) for action in model.decide(given)]
        assert "REJECT" in found.decision


def test_prior_cost_and_reject_of_a_request_are_those_of_decision(served, model_folder, rows):
    model = dd.load(model_folder / "mixed.model")
    options = {"prior": {"a": 0.8, "b": 0.1, "c": 0.1}, "cost": {"c": {"a": 9}}, "reject": 0.3}
    expected = dd.Decision.of_fitted(model, **options)
    found = predict(served["mixed"], rows, **options)
    assert found.decision == [str(action) for action in expected.decide(rows)]
    np.testing.assert_array_equal(found.probabilities, expected.predict_proba(rows))
    assert found.decision != predict(served["mixed"], rows, reject=0.3).decision


def test_options_of_a_request_do_not_change_the_model(served, rows):
    before = predict(served["careful"], rows)
    changed = predict(served["careful"], rows, reject={"threshold": 0.99}, prior=[0.2, 0.3, 0.5])
    after = predict(served["careful"], rows)
    assert changed.decision != before.decision
    assert after.decision == before.decision
    np.testing.assert_array_equal(after.probabilities, before.probabilities)


def test_priors_of_whole_number_classes_are_named_by_their_text(served, rows):
    found = predict(served["array"], rows, prior={"0": 0.5, "1": 0.5})
    expected = predict(served["array"], rows, prior=[0.5, 0.5])
    np.testing.assert_array_equal(found.probabilities, expected.probabilities)


def test_contributions_of_a_linear_model_are_weight_times_difference_from_the_mean():
    frame, labels = table()
    numbers = frame[["size", "weight"]]
    model = dd.LDA().fit(numbers, labels)
    from discriminant.web.service.models import with_columns
    from discriminant.web.service.predictions import Predictor

    predictor = Predictor(with_columns(model)[0], array=False)
    found = predictor.predict(
        frame_from_dataframe(numbers), PredictionOptions.of({"explain": True})
    )
    classes = model.classes_.tolist()
    for row, explanation in zip(numbers.to_numpy()[:20], found.explanations, strict=False):
        first, second = explanation["class"], explanation["against"]
        weights = model.coef_[classes.index(first)] - model.coef_[classes.index(second)]
        expected = weights * (row - numbers.to_numpy().mean(axis=0))
        values = list(explanation["contributions"].values())
        np.testing.assert_allclose(values, expected, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(
            explanation["base"] + sum(values), explanation["log_odds"], rtol=1e-9
        )


@pytest.mark.parametrize("name", ["mixed", "numbers", "array", "careful", "filled"])
def test_explanation_names_the_columns_of_the_rows(served, rows, name):
    model = served[name]
    explanation = predict(model, rows[:3], explain=True).explanations[0]
    assert set(explanation["contributions"]) == {c.name for c in model.predictor.encoding.used}
    assert all(np.isfinite(value) for value in explanation["contributions"].values())


def test_a_pool_is_explained_with_the_typical_row_of_explain_row():
    frame, labels = table()
    numbers = frame[["size", "weight"]]
    study = dd.study(numbers.assign(label=labels), target="label", folds=3)
    study.compare(["lda", "qda"])
    pool = study.model("pool")
    from discriminant.web.service.predictions import Predictor

    predictor = Predictor(pool, array=False)
    explanations = predictor.predict(
        frame_from_dataframe(numbers[:3]), PredictionOptions.of({"explain": True})
    ).explanations
    expected = explain_rows(pool, numbers, pool.encoding_, most=3).rows
    for found, row in zip(explanations, expected, strict=True):
        contributions = {one.column: one.contribution for one in row.columns}
        assert found["contributions"] == pytest.approx(contributions)


def test_smallest_change_changes_the_class(served, rows):
    found = predict(served["mixed"], rows[:20], explain=True)
    for i, explanation in enumerate(found.explanations):
        change = explanation["smallest_change"]
        changed = rows[i : i + 1].assign(**{change["column"]: change["to"]})
        assert predict(served["mixed"], changed).predicted == [change["class"]]
        assert change["class"] != found.predicted[i]


def test_top_k_are_the_largest_probabilities_in_order(served, rows):
    found = predict(served["mixed"], rows, top_k=2)
    expected = np.sort(found.probabilities, axis=1)[:, ::-1][:, :2]
    np.testing.assert_array_equal([[p for _, p in best] for best in found.top], expected)


def test_label_tree_answers_with_its_best_labels(tmp_path):
    frame, labels = table(400)
    tree = dd.Encoded(dd.LabelTree()).fit(frame, labels)
    tree.save(tmp_path / "tree.model")
    served = load_model("tree", str(tmp_path / "tree.model"))
    found = served.predictor.predict(
        frame_from_dataframe(frame[:5]), PredictionOptions.of({"top_k": 2})
    )
    codes, scores = tree.predict_topk(frame[:5], k=2)
    expected = [
        list(zip(tree.classes_[c].tolist(), s.tolist(), strict=True))
        for c, s in zip(codes, scores, strict=True)
    ]
    assert found.top == expected
    assert found.probabilities is None
    assert list(found.columns()) == ["predicted", "label_1", "score_1", "label_2", "score_2"]


def test_label_tree_of_sparse_rows_takes_feature_numbers(tmp_path):
    random = np.random.default_rng(0)
    labels = random.integers(0, 5, 200)
    X = sparse.random_array((200, 30), density=0.2, rng=random, format="lil")
    X[np.arange(200), labels] = 3.0
    X = X.tocsr().astype(np.float32)
    tree = dd.LabelTree().fit(X, labels)
    tree.save(tmp_path / "tree.model")
    client = start({"tree": str(tmp_path / "tree.model")}).client
    rows = [
        {str(j): float(v) for j, v in zip(row.indices, row.data, strict=True)}
        for row in (X[[i]] for i in range(20))
    ]
    answer = client.post("/predict", json={"rows": rows, "top_k": 2}).json()["predictions"]
    codes, scores = tree.predict_topk(X[:20], k=2)
    assert [row["predicted"] for row in answer] == tree.classes_[codes[:, 0]].tolist()
    found = [[best["score"] for best in row["top"]] for row in answer]
    np.testing.assert_array_equal(found, scores)
    for bad in ([{"30": 1.0}], [{"x": 1.0}], [{"3": "a"}], [[1, 2]], []):
        assert client.post("/predict", json=bad).status_code == 400
    kind = {"content-type": "text/csv"}
    assert client.post("/predict", content="1,2", headers=kind).status_code == 415
    assert client.get("/openapi.json").status_code == 200
    assert client.get("/v2/models/tree").status_code == 200


@pytest.mark.parametrize(
    "options",
    [
        {"nonsense": 1},
        {"top_k": 0},
        {"top_k": True},
        {"explain": 1},
        {"probabilities": "no"},
        {"prior": {"a": 1.0}},
        {"prior": [0.5, 0.5]},
        {"prior": "a"},
        {"cost": {"a": {"z": 1}}},
        {"cost": [[0, 1], [1, 0]]},
        {"reject": -1},
        {"reject": "x"},
        {"reject": {"threshold": 2}},
    ],
)
def test_invalid_options_are_refused(served, rows, options):
    with pytest.raises((RequestError, DiscriminantError)):
        predict(served["mixed"], rows, **options)


@pytest.mark.parametrize(
    "options", [{"prior": [1.0]}, {"reject": 0.1}, {"top_k": 2}, {"explain": True}]
)
def test_regressor_has_no_options_of_classifiers(served, rows, options):
    with pytest.raises((RequestError, DiscriminantError)):
        predict(served["line"], rows, **options)


def test_explanation_of_too_many_cells_is_refused(served, rows):
    many = rows.loc[rows.index.repeat(1000)]
    with pytest.raises(RequestError, match="too much for one request"):
        predict(served["mixed"], many, explain=True)
