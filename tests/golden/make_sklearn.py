"""The same sets by scikit-learn -> sklearn.json

    python tests/golden/make_sklearn.py tests/golden/sklearn.json

Rows and classes are counted from 0; Python writes doubles so that they come back the same. The
covariances are scikit-learn's since 1.9: pooled scatter / N and class scatter / N_k. README.md has
the layout.
"""

import json
import sys
from pathlib import Path

import numpy as np
import scipy
import sklearn
from export_sets import SETS, rows_of
from sklearn.covariance import ledoit_wolf_shrinkage, oas
from sklearn.datasets import load_diabetes
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.neighbors import NearestCentroid

ALPHAS = [0.01, 0.1, 1.0, 10.0]
TOL = 1e-12  # of the rank only; its 1e-4 is absolute and refuses breast_cancer (QDA)


def main(target):
    if sklearn.__version__ != "1.9.1":
        raise SystemExit(f"scikit-learn 1.9.1 makes these numbers; this is {sklearn.__version__}.")
    answer = {
        "versions": {m.__name__: m.__version__ for m in (sklearn, np, scipy)},
        "sets": {name: set_answer(name) for name in SETS},
        "diabetes": regression_answer(),
    }
    target.write_text(one_row_a_line(answer) + "\n")


def set_answer(name):
    _, _, every, prior = SETS[name]
    features, codes = rows_of(name)
    chosen = slice(None, None, every)

    def said(model):
        return posterior_of(model.fit(features, codes), features, codes, chosen)

    return {
        "rows": np.arange(len(codes))[chosen],
        "prior": prior,
        "lda": {
            "default": said(LinearDiscriminantAnalysis(tol=TOL)),
            "prior": said(LinearDiscriminantAnalysis(tol=TOL, priors=prior)),
        },
        "qda": {
            "default": said(QuadraticDiscriminantAnalysis(tol=TOL)),
            "prior": said(QuadraticDiscriminantAnalysis(tol=TOL, priors=prior)),
            "reg_param_0.3": said(QuadraticDiscriminantAnalysis(tol=TOL, reg_param=0.3)),
            "reg_param_0.3_prior": said(
                QuadraticDiscriminantAnalysis(tol=TOL, reg_param=0.3, priors=prior)
            ),
        },
        "shrinkage": shrinkage_of(features, codes),
        "nearest_centroid": labels_of(
            NearestCentroid().fit(features, codes), features, codes, chosen
        ),
    }


def posterior_of(model, features, codes, chosen):
    answer = {"posterior": model.predict_proba(features[chosen])}
    if hasattr(model, "coef_"):
        answer |= {"coef": model.coef_, "intercept": model.intercept_}
    return answer | labels_of(model, features, codes, chosen)


def labels_of(model, features, codes, chosen):
    said = model.predict(features)
    return {"class": said[chosen], "errors": int(np.sum(said != codes))}


def shrinkage_of(features, codes):
    """Of the rows less their class mean: as they are, and over the pooled within sd."""
    means = np.array([features[codes == code].mean(axis=0) for code in np.unique(codes)])
    centred = features - means[codes]
    scaled = centred / np.sqrt(np.mean(centred**2, axis=0))  # scatter / N
    return {
        kind: {
            "ledoit_wolf": float(ledoit_wolf_shrinkage(rows, assume_centered=True)),
            "oas": float(oas(rows, assume_centered=True)[1]),
        }
        for kind, rows in {"raw": centred, "scaled": scaled}.items()
    }


def regression_answer():
    features, target = load_diabetes(return_X_y=True)
    answer = {"linear_regression": line_of(LinearRegression().fit(features, target))}
    for alpha in ALPHAS:
        ridge = Ridge(alpha=alpha, solver="svd").fit(features, target)
        answer[f"ridge_{alpha}"] = {"alpha": alpha} | line_of(ridge)
    return answer


def line_of(model):
    return {"coef": model.coef_, "intercept": float(model.intercept_)}


def one_row_a_line(value, depth=0):
    """JSON in which a vector, or one row of a matrix, has a line to itself."""
    pad, end = " " * (depth + 1), " " * depth
    if isinstance(value, dict):
        items = [f'{pad}"{key}": {one_row_a_line(v, depth + 1)}' for key, v in value.items()]
        return "{\n" + ",\n".join(items) + f"\n{end}}}"
    if isinstance(value, np.ndarray) and value.ndim == 2:
        return "[\n" + ",\n".join(pad + json.dumps(row.tolist()) for row in value) + f"\n{end}]"
    return json.dumps(value.tolist() if isinstance(value, np.ndarray) else value, allow_nan=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
