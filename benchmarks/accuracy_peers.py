"""Contenders of `make contest`: what `report` selects, and classifiers of scikit-learn and glmnet.

A contender is a function of the training rows, the test rows and the target that returns an
`Answer`: class probabilities of the test rows (None if it has none) and predicted labels. Peers are
set up as their guides recommend: numbers imputed by their mean and standardised, categories one-hot
encoded, the amount of regularisation chosen by cross-validation within the training rows.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

OURS = "discriminant"
_GLMNET = Path(__file__).with_name("accuracy_glmnet.R")


@dataclass(frozen=True)
class Answer:
    """Predictions of one contender for the test rows."""

    labels: np.ndarray  # (n,) predicted
    classes: np.ndarray  # (K,)
    probabilities: np.ndarray | None  # (n, K)
    headline: dict[str, float] | None = None  # of our comparison: corrected measures
    selected: str = ""


Contender = Callable[[pd.DataFrame, pd.DataFrame, str], Answer]


def contenders() -> dict[str, Contender]:
    """Return every contender by name; glmnet only where R has it."""
    named: dict[str, Contender] = {
        OURS: _ours,
        "LogisticRegressionCV": _scikit_learn(_logistic),
        "LDA, lsqr, auto": _scikit_learn(_lda),
        "QDA, regularised": _scikit_learn(_qda),
        "RidgeClassifierCV": _scikit_learn(_ridge),
        "LinearSVC, calibrated": _scikit_learn(_svc),
    }
    if has_glmnet():
        named["cv.glmnet"] = _cv_glmnet
    return named


def has_glmnet() -> bool:
    """Whether R and its package glmnet are installed."""
    if shutil.which("Rscript") is None:
        return False
    command = ["Rscript", "-e", "library(glmnet)"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _ours(train: pd.DataFrame, test: pd.DataFrame, target: str) -> Answer:
    """Select a model as `discriminant report` does."""
    import discriminant as dd

    missing = "mean" if train.isna().any(axis=None) or test.isna().any(axis=None) else "error"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study = dd.study(train, target=target, missing=missing, unseen="ignore")
        choice = study.choose()
        model = study.model()
        rows = test.drop(columns=target)
        proba = model.predict_proba(rows)
        labels = model.predict(rows)
    headline = study.comparison.section(choice).get("headline")
    return Answer(labels, np.asarray(model.classes_), proba, headline, choice.name)


def _scikit_learn(make: Callable[[int], object]) -> Contender:
    def evaluate(train: pd.DataFrame, test: pd.DataFrame, target: str) -> Answer:
        from sklearn.pipeline import make_pipeline

        rows, y = train.drop(columns=target), train[target].to_numpy(dtype=str)
        smallest = int(pd.Series(y).value_counts().min())
        model = make_pipeline(_encoder(rows, scale=True), make(smallest))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(rows, y)
        test_rows = test.drop(columns=target)
        proba = model.predict_proba(test_rows) if hasattr(model, "predict_proba") else None
        return Answer(model.predict(test_rows), model.classes_, proba)

    return evaluate


def _encoder(rows: pd.DataFrame, *, scale: bool) -> object:
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    numbers = [name for name in rows if pd.api.types.is_numeric_dtype(rows[name])]
    categories = [name for name in rows if name not in numbers]
    impute = SimpleImputer(strategy="mean")
    one_hot = OneHotEncoder(handle_unknown="ignore", drop="first", sparse_output=False)
    return make_column_transformer(
        (make_pipeline(impute, StandardScaler()) if scale else impute, numbers),
        (make_pipeline(SimpleImputer(strategy="most_frequent"), one_hot), categories),
        sparse_threshold=0,
    )


def _folds(smallest: int) -> int:
    return max(2, min(5, smallest))


def _logistic(smallest: int) -> object:
    from sklearn.linear_model import LogisticRegressionCV

    return LogisticRegressionCV(
        Cs=10,
        cv=_folds(smallest),
        scoring="neg_log_loss",
        max_iter=2000,
        l1_ratios=(0.0,),
        use_legacy_attributes=False,
    )


def _lda(_: int) -> object:
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    return LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")


def _qda(smallest: int) -> object:
    from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
    from sklearn.model_selection import GridSearchCV

    grid = {"shrinkage": [0.001, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 0.99]}
    model = QuadraticDiscriminantAnalysis(solver="eigen")
    return GridSearchCV(model, grid, scoring="neg_log_loss", cv=_folds(smallest))


def _ridge(_: int) -> object:
    from sklearn.linear_model import RidgeClassifierCV

    return RidgeClassifierCV(alphas=np.logspace(-3, 3, 13))


def _svc(smallest: int) -> object:
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.svm import LinearSVC

    return CalibratedClassifierCV(LinearSVC(dual="auto"), cv=_folds(smallest))


def _cv_glmnet(train: pd.DataFrame, test: pd.DataFrame, target: str) -> Answer:
    """Fit cv.glmnet with its default options (lasso, 10 folds, deviance, lambda.min)."""
    rows, y = train.drop(columns=target), train[target].to_numpy(dtype=str)
    encoder = _encoder(rows, scale=False)
    X, Z = encoder.fit_transform(rows), encoder.transform(test.drop(columns=target))
    classes, codes = np.unique(y, return_inverse=True)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        np.savetxt(place / "x.csv", X, delimiter=",")
        np.savetxt(place / "z.csv", Z, delimiter=",")
        np.savetxt(place / "y.csv", codes, fmt="%d")
        command = ["Rscript", "--vanilla", str(_GLMNET), folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"cv.glmnet failed: {done.stderr.strip()[-300:]}")
        proba = np.loadtxt(place / "p.csv", delimiter=",", ndmin=2)
    if len(classes) == 2:
        proba = np.column_stack([1 - proba[:, 0], proba[:, 0]])
    return Answer(classes[proba.argmax(axis=1)], classes, proba)
