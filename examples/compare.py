"""Compare every model of the family on a real data set.

Those made from moments read the rows once, and the rest is algebra. Logistic regression, support
vectors and the perceptron are fitted again for each fold, so they are not left-one-out here.

python examples/compare.py [iris | wine | breast_cancer | digits]
"""

from __future__ import annotations

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
    "LDA, best shrinkage": LDA(shrinkage="auto"),
    "diagonal LDA": LDA(shrinkage=1.0),
    "nearest mean": NearestMean(),
    "QDA": QDA(),
    "RDA, half way": RDA(pooling=0.5, shrinkage=0.1),
    "RDA, cross-validated": RDA(pooling="cv", shrinkage="cv"),
    "Fisher, 2 directions": Fisher(n_components=2),
    "least squares": LeastSquares(),
    "least squares, squares too": LeastSquares(degree=2),
    "Laplace": LaplaceNB(),
    "logistic, ridge 0.01": Logistic(ridge=0.01),
    "logistic, lasso 0.01": Logistic(ridge=0.01, l1_ratio=1.0),
    "support vectors": SVM(standardize=True),
    "perceptron": Perceptron(),
}

SETS = ("iris", "wine", "breast_cancer", "digits")


def main(name: str = "wine") -> None:
    """Print the table for one of scikit-learn's bundled sets."""
    if name not in SETS:
        sys.exit(f"{name!r} is not one of {', '.join(SETS)}.")
    rows = getattr(datasets, f"load_{name}")()
    X, y = rows.data, rows.target_names[rows.target]
    read = moments(X, y)
    shares = ", ".join(f"{label} {n}" for label, n in zip(read.labels, read.rows, strict=True))
    print(f"{name}: {len(X)} rows, {X.shape[1]} features, classes {shares}\n")
    print(f"{'model':28}{'train':>8}{'10-fold':>9}{'one out':>9}{'log loss':>10}{'seconds':>9}")
    notes = []
    for title, model in MODELS.items():
        if isinstance(model, Fisher) and len(read.labels) < 3:
            model = Fisher()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.simplefilter("ignore", NoPosteriorWarning)  # "-" says it
            print(f"{title:28}{line(model, X, y)}", flush=True)
        first = {w.category: str(w.message) for w in reversed(caught)}  # of each kind, the first
        notes += [(title, text) for text in first.values()]
    for title, note in dict((text, (who, text)) for who, text in notes).values():
        print(f"\n{title}: {note}")
    print("\nErrors are shares of rows; 10-fold, one-out and log loss are of rows held out.")


def line(model: Any, X: Any, y: Any) -> str:
    """Errors of one model, and the seconds that all of them took."""
    start = time.perf_counter()
    train = 1.0 - model.fit(X, y).score(X, y)
    held = cross_validate(model, X, y, folds=10)
    # N refits with all rows: not for a quick look
    refits = getattr(model, "needs_rows", False) or not hasattr(model, "fit_moments")
    alone = "-" if refits else f"{leave_one_out(model, X, y).error:.3f}"
    loss = f"{held.log_loss:.4g}" if hasattr(model, "predict_log_proba") else "-"
    seconds = time.perf_counter() - start
    return f"{train:8.3f}{held.error:9.3f}{alone:>9} {loss:>9}{seconds:9.2f}"


if __name__ == "__main__":
    main(*sys.argv[1:2])
