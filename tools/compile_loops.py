"""Compile the loops of label trees, the perceptron and the support vector machine.

    python tools/compile_loops.py

Numba compiles a loop when it is first called, once per number type, and caches it on disk.
`make test` runs this script while the code is checked, so that two test processes do not both
compile every loop.
"""

from __future__ import annotations

import logging
import warnings

import numpy as np
from scipy import sparse

from discriminant import SVM, LabelTree, Perceptron
from discriminant.errors import DiscriminantWarning

WIDE = 70_000  # columns: more than two bytes can number


def compile_label_trees() -> None:
    """Train and search small trees of every precision and loss, with few and many columns."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 6, 60)
    entries = rng.random((60, 8)) * (rng.random((60, 8)) < 0.5)
    kinds = [(8, np.float32, precision) for precision in ("float16", "float32", "float64")]
    for width, dtype, precision in [
        *kinds,
        (8, np.float64, "float64"),
        (WIDE, np.float32, "float32"),
    ]:
        rows = sparse.csr_array(entries.astype(dtype))
        rows.resize((60, width))
        for loss in ("squared_hinge", "logistic"):
            model = LabelTree(trees=1, leaf=2, precision=precision, loss=loss).fit(rows, labels)
            model.predict_topk(rows, k=2)
            model.predict_topk(rows[:1], k=2)


def compile_linear_models() -> None:
    """Fit a perceptron and a dual support vector machine to dense and sparse rows."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 60)
    dense = rng.standard_normal((60, 4))
    for dtype in (np.float32, np.float64):
        rows = dense.astype(dtype)
        for X in (rows, sparse.csr_array(rows)):
            Perceptron(max_passes=2).fit(X, labels)
            SVM(solver="dual", max_steps=10).fit(X, labels)


if __name__ == "__main__":
    warnings.simplefilter("ignore", DiscriminantWarning)
    logging.getLogger("discriminant").setLevel(logging.ERROR)
    compile_label_trees()
    compile_linear_models()
