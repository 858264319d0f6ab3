"""Compare the models of this package on a real data set.

The script prints the training error, the 10-fold and leave-one-out errors and the log loss of each
model. Models that are fitted from moments read the rows once. Logistic regression, SVM and
perceptron are refitted for each fold, so their leave-one-out error is not computed.

Usage: python examples/compare.py [iris | wine | breast_cancer | digits]
"""

from __future__ import annotations

import math
import sys
import time
import warnings
from typing import Any

from sklearn import datasets

from discriminant import (
    LDA,
    QDA,
    RDA,
    SVM,
    Fisher,
    LaplaceNB,
    LeastSquares,
    Logistic,
    NearestMean,
    Perceptron,
    cross_validate,
    leave_one_out,
    moments,
)
from discriminant.errors import NoPosteriorWarning

MODELS = {
    "LDA": LDA(),
    "LDA, estimated shrinkage": LDA(shrinkage="auto"),
    "diagonal LDA": LDA(shrinkage=1.0),
    "nearest mean": NearestMean(),
    "QDA": QDA(),
    "RDA, pooling 0.5": RDA(pooling=0.5, shrinkage=0.1),
    "RDA, cross-validated": RDA(pooling="cv", shrinkage="cv"),
    "Fisher, 2 directions": Fisher(n_components=2),
    "least squares": LeastSquares(),
    "least squares, degree 2": LeastSquares(degree=2),
    "Laplace naive Bayes": LaplaceNB(),
    "logistic, ridge 0.01": Logistic(ridge=0.01),
    "logistic, lasso 0.01": Logistic(ridge=0.01, l1_ratio=1.0),
    "SVM": SVM(standardize=True),
    "perceptron": Perceptron(),
}

DATA_SETS = ("iris", "wine", "breast_cancer", "digits")


def main(name: str = "wine") -> None:
    """Print the comparison for one of scikit-learn's bundled data sets."""
    if name not in DATA_SETS:
        sys.exit(f"{name!r} is not one of {', '.join(DATA_SETS)}.")
    data = getattr(datasets, f"load_{name}")()
    X, y = data.data, data.target_names[data.target]
    summary = moments(X, y)
    sizes = ", ".join(f"{label} {n}" for label, n in zip(summary.labels, summary.rows, strict=True))
    print(f"{name}: {len(X)} rows, {X.shape[1]} features, rows per class: {sizes}\n")
    print(f"{'model':28}{'train':>8}{'10-fold':>9}{'LOO':>9}{'log loss':>10}{'seconds':>9}")
    notes = []
    for title, model in MODELS.items():
        if isinstance(model, Fisher) and len(summary.labels) < 3:
            model = Fisher()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.simplefilter("ignore", NoPosteriorWarning)  # the table shows "-"
            print(f"{title:28}{line(model, X, y)}", flush=True)
        first = {w.category: str(w.message) for w in reversed(caught)}  # first of each category
        notes += [(title, text) for text in first.values()]
    for title, note in dict((text, (title, text)) for title, text in notes).values():
        print(f"\n{title}: {note}")
    print("\n10-fold, LOO (leave-one-out) and log loss are computed on held-out rows.")


def line(model: Any, X: Any, y: Any) -> str:
    """Errors and log loss of one model, and the total time in seconds."""
    start = time.perf_counter()
    train = 1.0 - model.fit(X, y).score(X, y)
    held = cross_validate(model, X, y, folds=10)
    # leave-one-out would need N refits: too slow here
    refits = getattr(model, "needs_rows", False) or not hasattr(model, "fit_moments")
    loo = "-" if refits else f"{leave_one_out(model, X, y).error:.3f}"
    log_loss = held.log_loss if hasattr(model, "predict_log_proba") else math.nan
    loss = "-" if math.isnan(log_loss) else f"{log_loss:.4g}"
    seconds = time.perf_counter() - start
    return f"{train:8.3f}{held.error:9.3f}{loo:>9} {loss:>9}{seconds:9.2f}"


if __name__ == "__main__":
    main(*sys.argv[1:2])
