"""All cases, in the order of the table. A new one joins by being added here."""

from __future__ import annotations

import numpy as np
from decompositions import codes, pairs
from elsewhere import larger_dask, larger_sql
from fits import big_moments, lda_fit, qda_fit, wide_fit
from imbalance import easy_ensemble, smote
from imports import start
from larger import larger_logistic, larger_moments
from logistic import big_logistic, logistic_fit, sparse_logistic
from margins import perceptron, sparse_perceptron, sparse_svm, svm
from predictions import batch, single
from ranking import auc, auc_interval, average_precision, roc
from reports import MOMENTS, ROWS, comparison, moment_part, whole_report
from selection import selection
from validations import leave_one_out, rda_grid

CASES = [
    lda_fit(1_000_000, 20, 5, goal=8.0),
    lda_fit(200_000, 100, 10, goal=8.0),
    lda_fit(60_000, 784, 10, goal=3.0),
    lda_fit(100_000, 50, 1000, goal=20.0),
    qda_fit(1_000_000, 20, 5, goal=10.0),
    qda_fit(200_000, 100, 10, goal=10.0),
    qda_fit(60_000, 784, 10, goal=10.0),
    wide_fit(100, 2_000, 3),
    wide_fit(100, 20_000, 3),
    rda_grid(5_000, 20, 3),
    rda_grid(5_000, 50, 3),
    leave_one_out(2_000, 20, 3),
    selection(10_000, 300, 3, taken=3, criterion="error"),
    selection(10_000, 300, 3, taken=3, criterion="log_loss"),
    batch("LDA", "predict_proba", 1_000_000, 20, 5),
    batch("LDA", "predict_proba", 200_000, 100, 10),
    batch("LDA", "predict", 1_000_000, 20, 5),
    batch("LDA", "predict", 200_000, 100, 10),
    batch("QDA", "predict_proba", 1_000_000, 20, 5),
    batch("QDA", "predict_proba", 200_000, 100, 10),
    batch("QDA", "predict", 1_000_000, 20, 5),
    batch("QDA", "predict", 200_000, 100, 10),
    single("LDA", "predict_proba", 20, 5),
    single("QDA", "predict_proba", 20, 5),
    big_moments(1_000_000, 250, 5, order="C", dtype=np.float64),
    big_moments(1_000_000, 250, 5, order="F", dtype=np.float64),
    big_moments(2_000_000, 250, 5, order="C", dtype=np.float32),
    larger_moments(20_000_000, 30, 5),
    larger_logistic(20_000_000, 30, 5),
    larger_dask(8_000_000, 30, 5),
    larger_sql(1_000_000, 50, 5),
    perceptron(1_000_000, 20, 2),
    perceptron(200_000, 100, 10),
    sparse_perceptron(100_000, 100_000, 50),
    svm(200_000, 100),
    sparse_svm(100_000, 100_000, 50),
    logistic_fit(1_000_000, 20, 2),
    logistic_fit(1_000_000, 20, 2, scaled=True),
    logistic_fit(200_000, 100, 10),
    logistic_fit(200_000, 100, 10, scaled=True),
    logistic_fit(60_000, 784, 10),
    logistic_fit(60_000, 784, 10, scaled=True),
    sparse_logistic(100_000, 100_000, 50),
    big_logistic(1_000_000, 250),
    auc(10_000_000),
    auc_interval(10_000_000),
    roc(10_000_000),
    average_precision(10_000_000),
    smote(100_000, 20),
    smote(100_000, 50),
    easy_ensemble(100_000, 20),
    easy_ensemble(100_000, 50),
    pairs(100_000, 50, 30),
    codes(100_000, 50, 30, 300),
    moment_part(1_000_000, 30, 2),
    whole_report(1_000_000, 30, 2),
    comparison("peers", 500_000, 30, 2, MOMENTS + ROWS),
    comparison("peers-moments", 100_000, 30, 2, MOMENTS),
    start("import", "import discriminant"),
    start("import-lda", "from discriminant import LDA"),
    start("help", "import discriminant.cli as c; c.main(['--help'])", "`discriminant --help`"),
]
