"""Whatever a model says, its SQL, its graph and its file of Python say too: log odds to 1e-12."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from discriminant import (
    GLM,
    LDA,
    MDA,
    QDA,
    RDA,
    SDA,
    SVM,
    Basis,
    Calibrated,
    Decision,
    EasyEnsemble,
    Fisher,
    Fusion,
    LaplaceNB,
    LeastSquares,
    LinearRegression,
    Logistic,
    LogitAdjusted,
    LogLinear,
    NearestMean,
    OneVsOne,
    OneVsRest,
    OrderedLogistic,
    OutputCodes,
    Perceptron,
    Pool,
    Resampled,
    Reweighted,
    RobustLDA,
    RobustQDA,
    ShrunkenCentroids,
    SparseLDA,
)
from discriminant.export.plan import make_plan
from tests.unit.export.targets import run

ODD = ("plain", 'a"; DROP TABLE t;--', "it's", "🙂 `é`")
LABELS = {2: ["yes", "n\"o'; --"], 3: ["ash", "Bé🙂", "c'"]}

TWO = {
    "lda": LDA(),
    "lda shrunk": LDA(shrinkage=0.3, prior=[0.1, 0.9]),
    "qda": QDA(),
    "rda": RDA(pooling=0.4, shrinkage=0.2),
    "lda student": LDA(predictive="student"),
    "qda student": QDA(predictive="student"),
    "robust lda": RobustLDA(),
    "qda of one factor": QDA(covariance="factor"),
    "nearest mean": NearestMean(),
    "fisher": Fisher(threshold="midpoint"),
    "sda": SDA(n_features=3),
    "shrunken centroids": ShrunkenCentroids(threshold=0.5),
    "sparse directions": SparseLDA(penalty=0.3),
    "laplace": LaplaceNB(),
    "logit": Logistic(),
    "probit": Logistic("probit"),
    "cloglog": Logistic("cloglog"),
    "cauchit": Logistic("cauchit"),
    "logit weighed": Logistic(class_weight="balanced"),
    "probit under priors": Logistic("probit", prior=[0.2, 0.8], class_weight="balanced"),
    "lasso": Logistic(ridge=0.1, l1_ratio=1.0),
    "ordered": OrderedLogistic(order=["yes", "n\"o'; --"]),
    "ordered probit": OrderedLogistic("probit", order="sorted"),
    "ordered cloglog": OrderedLogistic("cloglog", order="sorted"),
    "least squares": LeastSquares(),
    "least squares of fisher's codes": LeastSquares(coding="fisher"),
    "perceptron": Perceptron(max_passes=5),
    "svm": SVM(),
    "reweighted": Reweighted(LDA()),
    "resampled": Resampled(QDA(), "under"),
    "easy ensemble": EasyEnsemble(LDA(), 4),
    "logit adjusted": LogitAdjusted(LDA()),
    "logit adjusted shares": LogitAdjusted(EasyEnsemble(LDA(), 3), 0.7),
    "balanced rest": OneVsRest(LDA(), balanced=True),
    "one against the rest": OneVsRest(LDA()),
    "codes of least squares": OutputCodes(LeastSquares(), code="one-vs-rest"),
    "codes of logit": OneVsRest(Logistic()),
    "decision": Decision(LDA(), cost={"yes": {"n\"o'; --": 5}}, reject=0.2),
    "decision under priors": Decision(QDA(), prior=[0.2, 0.8], reject={"threshold": 0.8}),
    "decision by threshold": Decision(Logistic(), threshold=0.3, outlier=0.05),
    "decision with an action": Decision(
        LDA(),
        cost={"ask": {"yes": 0.3, "n\"o'; --": 0.4}, "yes": {"n\"o'; --": 2}},
        outlier=0.2,
        reject=0.35,
    ),
    "decision on least squares": Decision(LeastSquares()),
    "fusion": Fusion([("l", LDA(), [0, 1]), ("r", QDA(), [2]), ("q", Logistic(), [3])]),
    "fusion with shares": Fusion([("l", EasyEnsemble(LDA(), 3), [0, 1]), ("r", QDA(), [2, 3])]),
    "pipeline": make_pipeline(StandardScaler(), Basis(degree=2), LDA()),
    "calibrated": Calibrated(QDA()),
    "calibrated by temperature": Calibrated(LDA(), "temperature"),
    "calibrated by steps": Calibrated(QDA(), "isotonic"),
    "calibrated beta": Calibrated(QDA(), "beta"),
    "calibrated scores": Calibrated(SVM()),
    "calibrated shares": Calibrated(EasyEnsemble(LDA(), 3), "isotonic"),
    "decision on calibrated": Decision(Calibrated(LeastSquares()), reject=0.2),
    "kernels": make_pipeline(Basis(degree=None, centres=4), Logistic(ridge=0.01)),
    "random features": make_pipeline(Basis(degree=1, random_features=6), LDA()),
    "fourier features": make_pipeline(
        Basis(degree=None, random_features=6, activation="fourier"), LDA()
    ),
    "pool": Pool(
        [
            ("lda", LDA()),
            ("student", QDA(predictive="student")),
            ("logistic", Logistic(ridge=0.01)),
            ("quadratic", make_pipeline(Basis(degree=2), Logistic(ridge=0.1))),
            ("relu", make_pipeline(Basis(degree=1, random_features=5), Logistic(ridge=0.1))),
            (
                "fourier",
                make_pipeline(Basis(random_features=4, activation="fourier"), LDA(shrinkage=0.1)),
            ),
            ("svm", Calibrated(SVM())),
        ],
        weights=[3, 1, 2, 2, 1, 1, 2],
    ),
    "decision on a pool": Decision(
        Pool([("lda", LDA()), ("logistic", Logistic())], weights=[1, 2]), reject=0.2
    ),
    "frozen": Decision.of_fitted,
}
MANY = {
    "lda": LDA(),
    "qda": QDA(shrinkage=0.1),
    "rda": RDA(),
    "lda student": LDA(predictive="student", shrinkage=1.0),
    "qda student": QDA(predictive="student"),
    "rda by empirical bayes": RDA(pooling="empirical_bayes"),
    "robust qda": RobustQDA(),
    "diagonal qda": QDA(covariance="diagonal"),
    "spherical qda": QDA(covariance="spherical"),
    "qda with a prior": QDA(map_prior="default"),
    "fisher": Fisher(1),
    "sda": SDA(),
    "shrunken centroids": ShrunkenCentroids(),
    "sparse directions": SparseLDA(),
    "laplace": LaplaceNB(),
    "softmax": Logistic(),
    "pool": Pool(
        [
            ("rda", RDA(pooling=0.5)),
            ("mda", MDA(components=2)),
            ("softmax", Logistic(ridge=0.01)),
            ("quadratic", make_pipeline(Basis(degree=2), LDA(shrinkage=0.3))),
            ("fourier", make_pipeline(Basis(random_features=4, activation="fourier"), LDA())),
            ("centroids", ShrunkenCentroids(threshold=0.3)),
        ],
        weights=[1, 2, 3, 2, 1, 1],
    ),
    "ordered": OrderedLogistic(order=["ash", "c'", "Bé🙂"], prior=[0.2, 0.3, 0.5]),
    "ordered probit": OrderedLogistic("probit", order="sorted"),
    "ordered cloglog": OrderedLogistic("cloglog", order="sorted"),
    "softmax weighed": Logistic(class_weight="balanced"),
    "least squares": LeastSquares(coding="sign"),
    "least squares of products": LeastSquares(degree=3),
    "perceptron": Perceptron(max_passes=5),
    "svm": SVM(),
    "easy ensemble of votes": EasyEnsemble(Perceptron(max_passes=3), 3),
    "calibrated": Calibrated(QDA()),
    "calibrated by temperature": Calibrated(LDA(), "temperature"),
    "calibrated by steps": Calibrated(QDA(), "isotonic"),
    "calibrated beta": Calibrated(Logistic(), "beta"),
    "calibrated scores": Calibrated(SVM(), "isotonic"),
    "reweighted": Reweighted(LeastSquares()),
    "logit adjusted": LogitAdjusted(Logistic(), 1.5),
    "logit adjusted as fitted": LogitAdjusted(LDA(), keep_probabilities=False),
    "balanced rest": (OneVsRest(LDA(), balanced=True), ["score", "label"]),
    "reweighted as fitted": Reweighted(LeastSquares(), keep_probabilities=False),
    "easy ensemble of fitted values": EasyEnsemble(LeastSquares(), 3),
    "decision": Decision(
        QDA(), cost={"ash": {"Bé🙂": 3}, "c'": {"ash": 2}}, reject=0.3, outlier=0.1
    ),
    "decision by thresholds": Decision(LDA(), threshold=[0.5, 0.2, 0.3]),
    "fusion": Fusion([("l", LDA(), [0, 1]), ("r", QDA(), [2, 3])], prior=[0.2, 0.3, 0.5]),
    "pairs": (OneVsOne(LDA()), ["score", "label"]),
    "pairs of qda": (OneVsOne(QDA()), ["score", "label"]),
    "rest": (OneVsRest(SVM()), None),
    "rest by regression": (OneVsRest(LinearRegression()), None),
    "pairs by regression": (OneVsOne(GLM("gaussian")), None),
    "codes by regression": (
        OutputCodes(LinearRegression(), code="exhaustive", decoding="euclidean"),
        None,
    ),
    "codes by loss": (OutputCodes(Logistic(), code="sparse"), ["score", "label"]),
    "codes by hinge": (OutputCodes(SVM(), code="one-vs-one"), None),
    "codes by distance": (
        OutputCodes(LDA(), code="exhaustive", decoding="euclidean"),
        ["score", "label"],
    ),
    "codes by distance of words": (
        OutputCodes(LeastSquares(), code="exhaustive", decoding="euclidean"),
        ["score", "label"],
    ),
}


def rows_of(classes, seed, rows=90, offset=0.0):
    """Rows in odd columns, some of them classed by chance."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, classes, rows)
    centres = rng.normal(scale=1.5, size=(classes, len(ODD)))
    values = centres[codes] + rng.normal(size=(rows, len(ODD))) @ rng.normal(size=(4, 4))
    frame = pd.DataFrame(values + offset, columns=list(ODD))
    return frame, np.array(sorted(LABELS[classes]), dtype=object)[codes]


def fitted(model, frame, labels):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if callable(model):
            return Decision.of_fitted(LDA().fit(frame, labels), reject=0.05)
        return model.fit(frame, labels)


def columns_of(frame):
    return {name: frame[name].tolist() for name in frame.columns}


def close(found, wanted, size=1.0):
    """To 1e-12, or that share of the numbers that were subtracted."""
    wanted = np.asarray(wanted)
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12 * max(1.0, size))


def agrees(model, frame, target, **options):
    """Everything that the target says is what the model says."""
    kind, connection = target
    said = run(kind, model, columns_of(frame), connection=connection, **options)
    wanted = {
        "label": lambda: model.predict(frame).tolist(),
        "action": lambda: [str(a) for a in model.decide(frame)],
        "p": lambda: model.predict_proba(frame),
        "log_p": lambda: model.predict_log_proba(frame),
        "log_odds": lambda: np.diff(model.predict_log_proba(frame)).ravel(),
        "cost": lambda: model.expected_cost(frame),
        "value": lambda: model.predict(frame),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, found in said.items():
            if name in ("label", "action"):
                assert [*map(str, found)] == [*map(str, wanted[name]())]
            elif name != "score":
                expected = wanted[name]()
                close(found, expected, float(np.abs(expected).max()) / 100)
            elif hasattr(model, "decision_function"):
                close(_compared(found), model.decision_function(frame))
    return said


def _compared(scores):
    """Scores as decision_function has them: of two classes the difference."""
    return scores[:, 1] - scores[:, 0] if scores.ndim == 2 and scores.shape[1] == 2 else scores


@pytest.mark.parametrize("kind", TWO)
def test_two_classes_are_told_apart_as_by_the_model(kind, target):
    frame, labels = rows_of(2, seed=len(kind))
    model = fitted(TWO[kind], frame, labels)
    said = agrees(model, rows_of(2, seed=99)[0], target)
    assert {"label"} <= set(said)


@pytest.mark.parametrize(
    "options", [{"threshold": 0.8}, {"reject": {"threshold": 0.8}}, {"reject": 0.2}]
)
def test_ties_are_broken_as_by_the_model(options, target):
    """Rows whose posterior is 0.8 up to rounding: in no target does rounding decide."""
    side = np.tile([-1.0, 1.0], 2)
    frame = pd.DataFrame({"x": np.repeat([-1.0, 1.0], 4) + np.concatenate([side, side])})
    labels = np.repeat(["-", "n"], 4)
    model = Decision(LDA(), **options).fit(frame, labels)
    slope = float(np.diff(model.predict_log_proba(pd.DataFrame({"x": [1.0]})))[0, 0])
    ties = np.log(4.0) / slope * (1 + np.arange(-6, 7) * 2.0**-52)  # log odds of 0.8 : 0.2
    near = pd.DataFrame({"x": np.concatenate([ties, 0.99 * ties])})
    agrees(model, near, target)
    first = "-" if "threshold" in options else "n"
    assert model.decide(near)[: len(ties)].tolist() == [first] * len(ties)


@pytest.mark.parametrize("kind", MANY)
def test_many_classes_are_told_apart_as_by_the_model(kind, target):
    frame, labels = rows_of(3, seed=len(kind))
    model, outputs = MANY[kind] if isinstance(MANY[kind], tuple) else (MANY[kind], None)
    agrees(fitted(model, frame, labels), rows_of(3, seed=98)[0], target, outputs=outputs)


@pytest.mark.parametrize(
    "model",
    [
        LinearRegression(),
        GLM("poisson"),
        GLM("gamma", "log"),
        GLM("binomial", "probit"),
        GLM("binomial", "cauchit"),
        LogLinear(predicted="smearing"),
    ],
    ids=str,
)
def test_regressions_say_the_same_number(model, target):
    frame, _ = rows_of(2, seed=5)
    rng = np.random.default_rng(6)
    score = 0.2 * frame.to_numpy() @ rng.normal(size=4)
    response = rng.uniform(0.1, 0.9, len(score)) if "binomial" in str(model) else np.exp(score)
    agrees(model.fit(frame, response), rows_of(2, seed=97)[0], target)


def test_a_pipeline_that_ends_in_a_regressor_says_the_same_number(target):
    frame, _ = rows_of(2, seed=5)
    response = frame.to_numpy() @ [0.1, 0.2, 0.3, 0.4]
    model = make_pipeline(StandardScaler(), LinearRegression(ridge=3.0)).fit(frame, response)
    agrees(model, rows_of(2, seed=97)[0], target)


def test_rows_far_from_zero_lose_no_digit(target):
    frame, labels = rows_of(3, seed=1, offset=1e8 / 3)
    for model in (LDA(), QDA()):
        agrees(fitted(model, frame, labels), rows_of(3, seed=2, offset=1e8 / 3)[0], target)


def test_labels_may_be_numbers_or_truth_values(target):
    frame, labels = rows_of(2, seed=3)
    for given in (labels == "yes", (labels == "yes") * 7 - 3, (labels == "yes") * 2.0):
        model = LDA().fit(frame, given)
        said = run(target[0], model, columns_of(frame), connection=target[1], outputs=["label"])
        assert [float(label) for label in said["label"]] == model.predict(frame).astype(
            float
        ).tolist()


def test_forty_classes_and_sixty_features_are_no_hindrance(target):
    rng = np.random.default_rng(4)
    codes = np.repeat(np.arange(40), 8)
    rows = rng.normal(size=(320, 60)) + rng.normal(size=(40, 60))[codes]
    frame = pd.DataFrame(rows, columns=[f"c{j}" for j in range(60)])
    agrees(LDA(shrinkage=0.5).fit(frame, codes), frame[:20], target)


def test_columns_without_names_are_called_by_their_places(target):
    rows, labels = rows_of(2, seed=3)
    model = LDA().fit(rows.to_numpy(), labels)
    columns = {f"x{j}": rows.iloc[:, j].tolist() for j in range(4)}
    said = run(target[0], model, columns, connection=target[1])
    close(said["p"], model.predict_proba(rows.to_numpy()))


def test_only_the_columns_that_count_are_named():
    frame, labels = rows_of(2, seed=len("lasso"))
    model = Logistic(ridge=0.3, l1_ratio=1.0).fit(frame, labels)
    from discriminant.export.sql import to_sql

    idle = [name for name, slope in zip(ODD, model.coef_[0], strict=True) if slope == 0]
    text = to_sql(model, table="t")
    assert idle and all(name.replace('"', '""') not in text for name in idle)


def test_what_is_worked_out_twice_is_worked_out_once():
    frame, labels = rows_of(2, seed=3)
    plan = make_plan(Decision(LDA(), reject=0.2).fit(frame, labels))
    assert sum(step.op == "affine" for step in plan.steps()) == 1
