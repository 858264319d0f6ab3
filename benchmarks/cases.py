"""All cases, in the order of the table. A new one is added here."""

from __future__ import annotations

import numpy as np
from decompositions import codes, pairs
from elsewhere import larger_dask, larger_sql
from fits import big_moments, lda_fit, qda_fit, threads_fit, wide_fit
from glm import glm_fit
from imbalance import easy_ensemble, smote
from imports import start
from larger import larger_logistic, larger_moments
from logistic import big_logistic, logistic_fit, many_classes, separated, sparse_logistic
from margins import perceptron, sparse_perceptron, sparse_svm, svm
from predictions import batch, single
from ranking import auc, auc_interval, average_precision, roc
from reports import MOMENTS, ROWS, comparison, moment_part, small_report, whole_report
from selection import selection
from validations import leave_one_out, rda_grid

_ALL = {"lbfgs": 1.0, "newton-cholesky": 1.0, "liblinear": 1.0}

CASES = [
    batch("LDA", "predict", 200_000, 20, 2, goal=1.5),
    batch("Logistic", "predict", 200_000, 20, 2, goal=1.5),
    batch("SVM", "predict", 200_000, 20, 2, goal=1.5),
    batch("LDA", "predict_proba", 200_000, 20, 2, goal=1.5),
    batch("Logistic", "predict_proba", 200_000, 20, 2, goal=1.5),
    batch("LDA", "predict", 200_000, 20, 5, goal=1.2),
    batch("Logistic", "predict", 200_000, 20, 5, goal=1.2),
    batch("SVM", "predict", 200_000, 20, 5, goal=1.2),
    batch("LDA", "predict_proba", 200_000, 20, 5, goal=1.0),
    batch("QDA", "predict", 200_000, 20, 5, goal=1.0),
    batch("QDA", "predict_proba", 200_000, 20, 5, goal=1.0),
    single("LDA", "predict_proba", 20, 5, goal=5.0),
    single("QDA", "predict_proba", 20, 5, goal=5.0),
    single("LDA", "predict", 20, 5, goal=2.0, frame=True),
    single("QDA", "predict", 20, 5, goal=2.0, frame=True),
    single("Logistic", "predict", 20, 5, goal=2.0, frame=True),
    single("SVM", "predict", 20, 5, goal=2.0, frame=True),
    lda_fit(150, 4, 3, goal=2.5),
    lda_fit(2_000, 20, 3, goal=4.0),
    lda_fit(2_000, 20, 3, goal=4.0, frame=True),
    lda_fit(200_000, 100, 10, goal=8.0, gram=2.0),
    lda_fit(20_000, 784, 10, goal=3.0, gram=2.0),
    lda_fit(1_000_000, 20, 5, goal=8.0, gram=3.0),
    lda_fit(1_000_000, 20, 5, gram=1.5, dtype=np.float32),
    lda_fit(100_000, 50, 1000, goal=20.0, gram=1.5),
    lda_fit(200_000, 100, 10, gram=1.5, order="F"),
    wide_fit(100, 5_000, 3, goal=3.0),
    wide_fit(100, 2_000, 3, shrinkage="auto"),
    qda_fit(150, 4, 3, goal=1.5),
    qda_fit(2_000, 20, 3, goal=1.5, frame=True),
    qda_fit(1_000_000, 20, 5, goal=10.0),
    qda_fit(200_000, 100, 10, goal=10.0),
    qda_fit(100_000, 50, 1000, gram=5.0),
    logistic_fit(500, 10, 2, goals=_ALL),
    logistic_fit(20_000, 20, 2, goals={"lbfgs": 1.0}),
    logistic_fit(20_000, 30, 2, goals={"lbfgs": 1.0}),
    logistic_fit(200_000, 50, 2, goals={"lbfgs": 1.5}),
    logistic_fit(20_000, 20, 5, goals={"lbfgs": 1.5}),
    many_classes(2_250, 256, 30, ridge=1e-4, goal=2.0),
    many_classes(2_250, 256, 150, ridge=1e-4, goal=2.0, limit=150.0),
    many_classes(4_500, 256, 150, ridge=1e-3, goal=2.0, limit=150.0),
    logistic_fit(1_000_000, 20, 2, goals={"lbfgs": 2.0, "newton-cholesky": 2.0, "glum": 2.0}),
    logistic_fit(200_000, 100, 10, goals={"lbfgs": 2.0}, long=True),
    logistic_fit(200_000, 100, 10, goals={"lbfgs": 10.0}, scaled=True, long=True),
    logistic_fit(60_000, 784, 10, goals={"lbfgs": 2.0}, long=True),
    sparse_logistic(
        "Gaussian", 100_000, 100_000, 50, goals={"liblinear": 1.0, "liblinear dual": 1.0}
    ),
    sparse_logistic(
        "tf-idf", 100_000, 100_000, 50, goals={"liblinear": 1.0, "liblinear dual": 1.0}
    ),
    separated(500, 10, quasi=False, goal=1.0),
    separated(500, 10, quasi=True, goal=1.0),
    separated(20_000, 20, quasi=False, goal=1.0),
    separated(20_000, 20, quasi=True, goal=1.0),
    glm_fit("poisson", 2_000, 10, goals={"glum": 1.0, "lbfgs": 1.0, "newton-cholesky": 1.0}),
    glm_fit("gamma", 2_000, 10, goals={"glum": 1.0, "lbfgs": 1.0, "newton-cholesky": 1.0}),
    glm_fit("poisson", 200_000, 20, goals={"glum": 1.2, "lbfgs": 1.2, "newton-cholesky": 1.2}),
    glm_fit("gamma", 200_000, 20, goals={"glum": 1.2, "lbfgs": 1.2, "newton-cholesky": 1.2}),
    svm(500, 10),
    svm(200_000, 20),
    sparse_svm(100_000, 100_000, 50),
    perceptron(500, 10, 2, same_passes=False),
    perceptron(1_000_000, 20, 2),
    sparse_perceptron(100_000, 100_000, 50, same_passes=False),
    threads_fit(500_000, 20, 2, goal=1.7),
    rda_grid(5_000, 20, 3),
    leave_one_out(1_000, 20, 3),
    selection(5_000, 100, 3, taken=3, criterion="error"),
    pairs(50_000, 50, 20),
    codes(20_000, 50, 20, 100),
    smote(100_000, 20),
    easy_ensemble(100_000, 20),
    auc(2_000_000),
    auc_interval(2_000_000),
    roc(2_000_000),
    average_precision(2_000_000),
    larger_moments(4_000_000, 30, 5),
    larger_logistic(4_000_000, 30, 5),
    small_report(1_000, 10, 3),
    moment_part(1_000_000, 30, 2),
    whole_report(1_000_000, 30, 2),
    comparison("moments", 25_000, 30, 2, MOMENTS),
    start("import", "import discriminant"),
    start("import-lda", "from discriminant import LDA"),
    start("help", "import discriminant.cli as c; c.main(['--help'])", "`discriminant --help`"),
    # make bench-full
    comparison("all", 500_000, 30, 2, MOMENTS + ROWS, long=True),
    big_moments(1_000_000, 250, 5, order="C", dtype=np.float64),
    big_moments(1_000_000, 250, 5, order="F", dtype=np.float64),
    big_moments(2_000_000, 250, 5, order="C", dtype=np.float32),
    big_logistic(1_000_000, 250),
    larger_logistic(20_000_000, 30, 5, long=True),
    larger_dask(8_000_000, 30, 5),
    larger_sql(1_000_000, 50, 5),
]

NAMES = [case.name for case in CASES]
if repeated := {name for name in NAMES if NAMES.count(name) > 1}:
    # a worker finds its case by the name, so a second case would get the times of the first
    raise ValueError(f"Cases need different names; repeated: {', '.join(sorted(repeated))}.")
