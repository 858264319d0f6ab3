"""Files of format version 1: one of every kind. They were made once and are never made again.

    python tests/golden/make_store_v1.py tests/golden/store_v1

Later versions must load them to the last bit, so that a new version adds a folder of its own and
leaves this one. Files that are there already are left as they are: a new kind adds its file.
`answers.json` has, for each file, the rows asked and what the model said of them: as it was when it
was saved, or, of tables and moments, when it was made again from the same rows;
`kinds.json` the names of all kinds.
"""

import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.calibration import CalibratedClassifierCV

import discriminant as dd
from discriminant.engines.dispatch import read_moments
from discriminant.engines.moments_with_encoding import TableMoments
from discriminant.store.kinds import KINDS

warnings.simplefilter("ignore")

RNG = np.random.default_rng(20)
Y = np.repeat([0, 1, 2], 12)
X = RNG.normal(size=(36, 3)).round(3) + np.array([[0, 0, 0], [2, 1, 0], [0, 2, 3]])[Y] + 1e3
NAMES = np.array(["rust", "smut", "ergot"])
ROWS = X[::7]
FRAME = pd.DataFrame({"size": X[:, 0], "colour": np.array(["red", "green", None])[Y[::-1]]})
MIXED = {"size": X[:, 0], "width": X[:, 1], "colour": np.array(["red", "blue"])[np.arange(36) % 2]}
TABLE = dd.open_source(pd.DataFrame(MIXED | {"kind": NAMES[Y]}), target="kind")

THINGS = {
    "lda": dd.LDA(shrinkage=0.1).fit(X, NAMES[Y]),
    "lda_objects": dd.LDA().fit(X, NAMES.astype(object)[Y]),
    "lda_booleans": dd.LDA(prior=[0.25, 0.75]).fit(X, Y == 1),
    "lda_wide": dd.LDA().fit(RNG.normal(size=(8, 12)).round(3), np.repeat(["a", "b"], 4)),
    "lda_not_fitted": dd.LDA(prior=[0.5, 0.5], shrinkage="auto"),
    "lda_more_rows": dd.LDA().partial_fit(X[:20], Y[:20], classes=[0, 1, 2]),
    "qda": dd.QDA(shrinkage="auto").fit(X, NAMES[Y]),
    "rda": dd.RDA(pooling=0.4, shrinkage=0.2).fit(X, Y),
    "rda_chosen": dd.RDA(pooling="cv", shrinkage="cv").fit(X, Y),
    "robust_lda": dd.RobustLDA().fit(X, Y),
    "robust_qda": dd.RobustQDA().fit(X, NAMES[Y]),
    "qda_factor": dd.QDA(covariance="factor", groups=[[0, 1]]).fit(X, Y),
    "qda_prior": dd.QDA(map_prior={"strength": 1.0}).fit(X, Y),
    "rda_bayes": dd.RDA(pooling="empirical_bayes").fit(X, Y),
    "nearest_mean": dd.NearestMean().fit(X, Y),
    "fisher": dd.Fisher().fit(X, NAMES[Y]),
    "least_squares": dd.LeastSquares(degree=2, ridge=0.1).fit(X, Y),
    "least_squares_high": dd.LeastSquares(precision="high").fit(X, Y),
    "linear_regression": dd.LinearRegression().fit(X, Y + X[:, 0]),
    "linear_regression_high": dd.LinearRegression(precision="high").fit(X, Y + X[:, 0]),
    "laplace_nb": dd.LaplaceNB().fit(X, Y),
    "glm": dd.GLM("poisson").fit(X, Y),
    "log_linear": dd.LogLinear().fit(X, Y + 1.0),
    "logistic": dd.Logistic().fit(X[::2], np.tile([0, 1], 9)),
    "logistic_separated": dd.Logistic().fit(X[:4], np.array([0, 0, 1, 1])),
    "logistic_ridge": dd.Logistic(ridge=0.1).fit(X, NAMES[Y]),
    "basis": dd.Basis(degree=2, centres=2, random_state=0).fit(X),
    "perceptron": dd.Perceptron().fit(X, Y),
    "svm": dd.SVM(standardize=True).fit(X, NAMES[Y]),
    "decision": dd.Decision(dd.LDA(), cost=1 - np.eye(3), reject=0.1, outlier=0.01).fit(X, Y),
    "decision_calibrated": dd.Decision(CalibratedClassifierCV(dd.LDA())).fit(X, Y),
    "decision_of_fitted": dd.Decision.of_fitted(dd.LDA().fit(X, Y)),
    "fusion": dd.Fusion([("a", dd.LDA(), [0, 1]), ("b", dd.LDA(), slice(2, 3))]).fit(X, Y),
    "one_vs_rest": dd.OneVsRest(dd.LDA()).fit(X, Y),
    "one_vs_one": dd.OneVsOne(dd.QDA()).fit(X, Y),
    "one_vs_one_fitted": dd.OneVsOne(dd.Logistic(ridge=0.1)).fit(X, Y),
    "output_codes": dd.OutputCodes(dd.LDA(), code="dense", random_state=0).fit(X, Y),
    "reweighted": dd.Reweighted(dd.LDA()).fit(X, Y),
    "resampled": dd.Resampled(dd.LDA(), random_state=0).fit(X, Y),
    "easy_ensemble": dd.EasyEnsemble(dd.LDA(), 2, random_state=0).fit(X, Y),
    "encoded": dd.Encoded(dd.LDA(), missing="mean").fit(FRAME, NAMES[Y]),
    "decision_steps": dd.Decision(CalibratedClassifierCV(dd.LDA(), method="isotonic")).fit(X, Y),
    "moments": dd.moments(X, NAMES[Y]),
    "moments_pooled": dd.moments(X, Y, detail="pooled"),
    "moments_fourth": dd.moments(X, Y, detail="fourth"),
    "moments_rows": dd.moments(X, Y, detail="rows"),
    "moments_of_table": TableMoments.from_moments(
        read_moments(TABLE.table, detail="class"), TABLE.encoding
    ),
}


def said(thing):
    """What it says of some rows: numbers as hexadecimal text, which is exact.

    Moments are asked through a model made from them: LDA, or LaplaceNB where rows are kept.
    """
    if not hasattr(thing, "get_params"):
        model = "LaplaceNB" if thing.detail == "rows" else "LDA"
        return {"model": model, **said(getattr(dd, model)().fit_moments(thing))}
    if not thing.__sklearn_is_fitted__():
        return None
    if isinstance(thing, dd.Encoded):
        rows = {"size": ROWS[:, 0].tolist(), "colour": ["red", None, "green", "red", "green", None]}
        return _asked(thing, "predict_log_proba", rows, pd.DataFrame(rows))
    for ask in ("predict_log_proba", "decision_function", "transform", "predict"):
        if hasattr(thing, ask):
            rows = RNG.normal(size=(3, 12)).round(3) if thing.n_features_in_ == 12 else ROWS
            return _asked(thing, ask, rows.tolist(), rows)
    return None


def _asked(thing, ask, told, rows):
    found = getattr(thing, ask)(rows)
    exact = [[float(v).hex() for v in np.atleast_1d(row)] for row in found]
    return {"ask": ask, "rows": told, "found": exact}


def main(folder):
    answers = folder / "answers.json"
    told = json.loads(answers.read_text()) if answers.exists() else {}
    for name, thing in THINGS.items():
        if told.get(name) is None:
            told[name] = said(thing)
        if not (folder / f"{name}.dd").exists():
            dd.save(thing, folder / f"{name}.dd")
    answers.write_text(json.dumps(told, indent=0) + "\n")
    (folder / "kinds.json").write_text(json.dumps(sorted(KINDS), indent=0) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
