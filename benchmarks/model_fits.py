"""Mixtures, penalties, robust covariances and prediction sets against other libraries.

    OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 python benchmarks/model_fits.py [CASE ...]

All cases take about 8 minutes. CPU seconds, the best of some turns in which both libraries run one
after the other; a ratio above 1 means that this package is faster. MAPIE, and R with glmnet, are
used if they are installed. Nothing fails here.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import tempfile
import warnings
from pathlib import Path
from time import process_time

import numpy as np
from sklearn.covariance import MinCovDet
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegressionCV
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import LeaveOneOut

from discriminant import LDA, MDA, Logistic, PredictionSets, RobustLDA, RobustQDA

HERE = Path(__file__).resolve().parent
SEED = 1


def main() -> None:
    """Print a line for each comparison."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("case", nargs="*", choices=[[], *CASES], help="cases; default: all")
    warnings.simplefilter("ignore")
    print(f"load average {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores", flush=True)
    print("| case | other | seconds | discriminant | ratio | note |\n|---|---|---:|---:|---:|---|")
    for name in parser.parse_args().case or CASES:
        CASES[name]()


def turns(ours, other, count):
    """Return the least CPU seconds and the last result of each function, run in turns."""
    best, results = [np.inf, np.inf], [None, None]
    for _ in range(count):
        for i, run in enumerate((ours, other)):
            start = process_time()
            results[i] = run()
            best[i] = min(best[i], process_time() - start)
    return best, results


def line(case, other, seconds, note=""):
    """Print one line of the table."""
    ours, theirs = seconds
    numbers = f"{theirs:.3g} | {ours:.3g} | {theirs / ours:.2f}"
    print(f"| {case} | {other} | {numbers} | {note} |", flush=True)


def mixture_rows(apart, rng):
    """20,000 rows of 10 features: 3 classes of 3 components, each with its own covariance."""
    codes = rng.integers(9, size=20_000)
    means = apart * rng.normal(size=(9, 10))
    roots = np.eye(10) + 0.1 * rng.normal(size=(9, 10, 10))
    X = means[codes] + np.vecmat(rng.normal(size=(20_000, 10)), roots[codes])
    return X, codes // 3


def two_classes(n, d, rng):
    """Rows of two classes that overlap; half of the features have no effect."""
    X = rng.normal(size=(n, d)) @ (np.eye(d) + 0.2 * rng.normal(size=(d, d)) / np.sqrt(d))
    weight = rng.normal(size=d) * (np.arange(d) < d // 2)
    return X, (X @ weight + 2.0 * rng.logistic(size=n) > 0).astype(int)


def mda() -> None:
    """Mixtures of 3 components in 3 classes, 20,000 x 10, with components that overlap or not."""
    for name, apart in (("overlapping", 0.5), ("separate", 1.0)):
        X, y = mixture_rows(apart, np.random.default_rng(SEED))
        for starts in (1, 5):
            options = {"n_init": starts, "tol": 1e-6, "max_iter": 500, "random_state": 0}
            own = MDA(components=3, covariance="component", starts=starts)
            seconds, (model, others) = turns(
                lambda own=own, X=X, y=y: own.fit(X, y),
                lambda options=options, X=X, y=y: [
                    GaussianMixture(3, **options).fit(X[y == k]) for k in range(3)
                ],
                3,
            )
            other = sum(each.score(X[y == k]) * (y == k).sum() for k, each in enumerate(others))
            note = f"log likelihood {model.log_likelihood_:.2f}, other {other:.2f}"
            line(f"MDA, {name}, {starts} start(s)", "GaussianMixture", seconds, note)


def ridge() -> None:
    """Ridge by 10 folds, 50 values, and the lasso path."""
    for n, d in ((2_000, 50), (20_000, 30)):
        X, y = two_classes(n, d, np.random.default_rng(SEED))
        seconds, _ = turns(
            lambda X=X, y=y: Logistic(ridge="cv").fit(X, y),
            lambda X=X, y=y: LogisticRegressionCV(
                Cs=50, cv=10, scoring="neg_log_loss", use_legacy_attributes=False, l1_ratios=(0.0,)
            ).fit(X, y),
            2,
        )
        case = f"ridge='cv' {n:,} x {d}"
        line(case, "LogisticRegressionCV", seconds)
        if (glmnet := glmnet_seconds(X, y, 0.0, 50, 10)) is not None:
            line(case, "cv.glmnet", (seconds[0], glmnet))


def lasso() -> None:
    """Cross-validated paths of the lasso."""
    for n, d in ((2_000, 50), (20_000, 30)):
        X, y = two_classes(n, d, np.random.default_rng(SEED))
        fold = np.arange(n) % 10
        model = Logistic(ridge="cv", l1_ratio=1.0, folds=fold)
        seconds, _ = turns(lambda X=X, y=y, model=model: model.fit(X, y), lambda: None, 3)
        if (glmnet := glmnet_seconds(X, y, 1.0, 50, 10)) is not None:
            line(f"lasso by 10 folds {n:,} x {d}", "cv.glmnet", (seconds[0], glmnet))


def glmnet_seconds(X, y, alpha, penalties, folds):
    """Return the CPU seconds of glmnet; None without R or glmnet."""
    if shutil.which("Rscript") is None:
        return None
    with tempfile.NamedTemporaryFile() as file:
        file.write(np.asfortranarray(X).tobytes(order="F") + y.astype(float).tobytes())
        file.flush()
        given = [file.name, *X.shape, alpha, penalties, folds]
        command = ["Rscript", str(HERE / "model_fits.R"), *map(str, given)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    return float(done.stdout) if done.returncode == 0 else None


def robust() -> None:
    """Minimum covariance determinant of each class, and its breakdown."""
    rng = np.random.default_rng(SEED)
    X, y = rng.normal(size=(4_000, 20)), np.repeat([0, 1], 2_000)
    X[y == 1] += 1.0
    seconds, _ = turns(
        lambda: RobustQDA().fit(X, y),
        lambda: [MinCovDet(random_state=0).fit(X[y == k]) for k in (0, 1)],
        3,
    )
    line("RobustQDA 2 classes of 2,000 x 20", "MinCovDet of each class", seconds)
    accuracy = np.array([breakdown(np.random.default_rng(draw)) for draw in range(50)])
    plain, resistant = accuracy.mean(axis=0)
    print(f"accuracy with 8% of the rows shifted: LDA {plain:.3f}, RobustLDA {resistant:.3f}")


def breakdown(rng):
    """Return the accuracy of LDA and RobustLDA when 8% of the 600 training rows are shifted."""
    centres = 2.65 * np.eye(4)[:3]
    y, truth = np.repeat([0, 1, 2], 200), rng.integers(3, size=5_000)
    X, new = rng.normal(size=(600, 4)) + centres[y], rng.normal(size=(5_000, 4)) + centres[truth]
    X[rng.choice(600, 48, replace=False)] += [10.0, -10.0, 10.0, -10.0]
    return [np.mean(model.fit(X, y).predict(new) == truth) for model in (LDA(), RobustLDA())]


def sets() -> None:
    """Prediction sets of LDA, 1,000 x 10: fit and sets of 200 new rows."""
    try:
        from mapie.classification import CrossConformalClassifier
    except ImportError:
        print("MAPIE is not installed")
        return
    rng = np.random.default_rng(SEED)
    means = 0.7 * rng.normal(size=(3, 10))
    y = rng.integers(3, size=1_000)
    X, new = rng.normal(size=(1_000, 10)) + means[y], rng.normal(size=(200, 10)) + means[y[:200]]
    for name, options, cv, count in (
        ("5 folds", {"folds": 5}, 5, 30),
        ("10 folds", {"folds": 10}, 10, 20),
        ("each row a fold", {"method": "jackknife+"}, LeaveOneOut(), 1),
    ):
        seconds, (own, other) = turns(
            lambda options=options: PredictionSets(LDA(), **options).fit(X, y).predict_set(new),
            lambda cv=cv: (
                CrossConformalClassifier(LinearDiscriminantAnalysis(), confidence_level=0.9, cv=cv)
                .fit_conformalize(X, y)
                .predict_set(new)[1]
            ),
            count,
        )
        note = f"sets of {own.sum(axis=1).mean():.2f} classes, other {other.sum() / 200:.2f}"
        line(f"PredictionSets(LDA), {name}", "MAPIE", seconds, note)


CASES = {"mda": mda, "ridge": ridge, "lasso": lasso, "robust": robust, "sets": sets}

if __name__ == "__main__":
    main()
