"""What cannot be exported is named, with a way out, and no file is begun."""

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from discriminant import (
    GLM,
    LDA,
    QDA,
    SVM,
    Decision,
    Fusion,
    LeastSquares,
    OneVsOne,
    OneVsRest,
)
from discriminant.errors import ExportError, PosteriorError
from discriminant.export import export

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3))
Y = np.array(list("abc"))[RNG.integers(0, 3, 90)]
OPTIONS = {"sql": {"table": "t"}, "onnx": {}, "python": {}, "javascript": {}}

REFUSED = {
    "a stranger's model": (lambda: LogisticRegression().fit(X, Y), "LogisticRegression"),
    "a model not fitted": (lambda: LDA(), "LDA is not fitted"),
    "a stranger's step": (
        lambda: make_pipeline(PCA(2), LDA()).fit(X, Y),
        "The step PCA of a pipeline",
    ),
    "probabilities by a search": (
        lambda: OneVsRest(LDA()).fit(X, Y),
        r"The probabilities of OneVsRest.*outputs=\['score', 'label'\]",
    ),
    "probabilities of pairs": (lambda: OneVsOne(QDA()).fit(X, Y), "The probabilities of OneVsOne"),
    "a decision on such": (
        lambda: Decision(OneVsRest(LDA())).fit(X, Y),
        "The probabilities of OneVsRest",
    ),
    "a fusion of such": (
        lambda: Fusion([("a", OneVsRest(LDA()), [0, 1]), ("b", LDA(), [2])]).fit(X, Y),
        "The probabilities of OneVsRest",
    ),
    "calibration": (
        lambda: Decision(CalibratedClassifierCV(SVM())).fit(X, Y),
        "CalibratedClassifierCV",
    ),
    "an offset": (
        lambda: GLM("poisson").fit(X, np.exp(X[:, 0]), offset=np.ones(90)),
        "fitted with an offset",
    ),
    "a class called as a verdict": (
        lambda: Decision(LDA(), reject=0.1).fit(X, np.where(Y == "a", "REJECT", Y.astype(object))),
        "A class is called 'REJECT'",
    ),
    "labels that are dates": (
        lambda: LDA().fit(X, np.where(Y == "a", "2020-01-01", "2021-01-01").astype("M8[D]")),
        "is a date",
    ),
}


@pytest.mark.parametrize("to", OPTIONS)
@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_be_said_is_named_and_no_file_is_begun(kind, to, tmp_path):
    make, words = REFUSED[kind]
    model = make()
    with pytest.raises(ExportError, match=words):
        export(model, to, tmp_path / "model", **OPTIONS[to])
    assert not list(tmp_path.iterdir())


def test_a_file_that_was_there_stays_as_it_was(tmp_path):
    place = tmp_path / "model.sql"
    place.write_text("before")
    with pytest.raises(ExportError):
        export(OneVsRest(LDA()).fit(X, Y), "sql", place, table="t")
    assert place.read_text() == "before"


@pytest.mark.parametrize("to", OPTIONS)
def test_the_file_holds_what_is_returned(to, tmp_path):
    made = export(LDA().fit(X, Y), to, tmp_path / "model", **OPTIONS[to])
    read = (tmp_path / "model").read_bytes()
    assert read == (made.encode() if isinstance(made, str) else made)
    assert [one.name for one in tmp_path.iterdir()] == ["model"]


def test_targets_dialects_and_outputs_that_are_none_are_told():
    model = LDA().fit(X, Y)
    with pytest.raises(
        ExportError, match=r"no export to 'pmml'.*'sql', 'onnx', 'python', 'javascript'"
    ):
        export(model, "pmml")
    with pytest.raises(ExportError, match=r"'duckdb', 'postgres', 'sqlite'"):
        export(model, "sql", table="t", dialect="oracle")
    with pytest.raises(ExportError, match=r"no output 'odds'.*'score', 'log_p', 'p', 'label'"):
        export(model, "python", outputs=["odds"])


def test_a_graph_of_text_is_no_matrix():
    import pandas as pd

    from discriminant import Encoded

    frame = pd.DataFrame({"c": list("xyxyxz") * 15})
    model = Encoded(LDA()).fit(frame, np.array(list("ab"))[RNG.integers(0, 2, 90)])
    with pytest.raises(ExportError, match=r"The column 'c'.*inputs='columns'"):
        export(model, "onnx", inputs="matrix")


def test_fitted_values_are_not_weighed_in_an_export():
    X, y = np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) % 3
    model = Decision(LeastSquares()).fit(X, y).set_params(reject=0.1)
    with pytest.raises(PosteriorError, match="LeastSquares are fitted values"):
        export(model, "sql", table="t")
