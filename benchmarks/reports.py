"""The main job: a table in a file, every model compared by ten folds, a page about it.

Against reading the file alone, and against pandas and scikit-learn doing the same comparison: the
same models on the same folds with the same measures, of all that scikit-learn has. It has no naive
Bayes of Laplace densities, so that is left out for both; no RDA, so that 121 settings of what it
has between LDA and QDA are tried instead (shrinkage of LDA, reg_param of QDA), each scored on the
20,000 held-out rows that ours are; and no intervals of AUCs, which only ours works out.
"""

from __future__ import annotations

import atexit
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
from contest import OURS, Case, Contest, Goal, announce, announced
from rows import gaussian_rows
from threads import single_threaded

import discriminant

READ = "pyarrow.csv.read_csv"
PEER = "pandas + scikit-learn"
MOMENTS = ("lda", "lda_shrunk", "qda", "rda", "nearest_mean", "fisher", "least_squares")
ROWS = ("logistic", "logistic_ml", "svm", "perceptron")
_FOLDS = 10
_MOST = 50_000  # rows of each training part for what is not made from moments, as in a report
_BOTH = (
    200_000  # rows up to which it is tried both contenders: two folds at a time is faster beyond
)
_ROUNDS = 6
_SETTINGS = 121
_SCORED = 20_000  # held-out rows on which settings are scored


def moment_part(N, d, K):
    return Case(
        "report-large",
        "CSV file: reading, summing, 10-fold comparison of 7 models fitted from moments",
        f"{N:,} × {d}, {K} classes",
        _moments_contest(N, d, K),
        (Goal(READ, at_most=3.0),),
        peers=(),
    )


def whole_report(N, d, K):
    return Case(
        "report-whole",
        "`discriminant report`: all models, report and model file",
        f"{N:,} × {d}, {K} classes",
        _whole_contest(N, d, K),
        (Goal(READ, at_most=7.0),),
        memory_goal=1200.0,
        time_goal=6.0,
        peers=(),
    )


def small_report(N, d, K):
    """The command, against importing what any such program needs."""

    def prepare(share):
        path = _file(N, d, K)
        command = ["-m", "discriminant", "report", str(path), "--target", "label", "--quiet"]
        imports = "import sklearn.base, pyarrow.csv, jinja2"
        contenders = {
            OURS: lambda: _python(*command, "--out", str(path.with_suffix(".html"))),
            "imports": lambda: _python("-c", imports),
        }
        return Contest(contenders, lambda _: [], path.stat().st_size)

    return Case(
        "report-small",
        "`discriminant report`, compared with importing sklearn.base, pyarrow.csv and jinja2",
        f"{N:,} × {d}, {K} classes",
        prepare,
        (Goal("imports", beyond=0.8),),
        memory=False,
    )


def _python(*arguments):
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)


def comparison(name, N, d, K, models, *, long=False):
    moments = models == MOMENTS
    return Case(
        f"report-{name}",
        f"CSV file: reading, 10-fold comparison of {len(models)} models"
        f"{' fitted from moments' if moments else ''}",
        f"{N:,} × {d}, {K} classes",
        _peer_contest(N, d, K, models),
        (Goal(PEER, at_least=20.0),),
        peers=(),
        long=long,
    )


def _moments_contest(N, d, K):
    def prepare(share):
        import pyarrow.csv

        path = _file(int(N * share), d, K)

        def run():
            read = _Watch(lambda: pyarrow.csv.read_csv(path))
            parts = {"reading": _Watch(lambda: discriminant.study(path, target="label"))}
            for _ in range(_ROUNDS):
                read()
                study = parts["reading"]()
                parts.setdefault("summing", _Watch(lambda s: s.moments))(study)
                parts.setdefault("7 models", _Watch(lambda s: s.compare(MOMENTS)))(study)
            best = {OURS: sum(part.seconds for part in parts.values()), READ: read.seconds}
            said = ", ".join(f"{name} {part.seconds:.3g} s" for name, part in parts.items())
            ours = sum(part.worked for part in parts.values())
            said += f"; CPU time {ours:.3g} s, {ours / read.worked:.2f}× its CPU time"
            return {"best": best, "notes": {OURS: said}, "apart": None}

        def whole():
            return discriminant.study(path, target="label").compare(MOMENTS)

        return Contest({OURS: whole}, lambda result: [], path.stat().st_size, run)

    return prepare


class _Watch:
    """A call, and the least time that it took: of the clock, and of the processor."""

    def __init__(self, work):
        self.work, self.seconds, self.worked = work, np.inf, np.inf

    def __call__(self, *args):
        started, before = perf_counter(), process_time()
        found = self.work(*args)
        self.seconds = min(self.seconds, perf_counter() - started)
        self.worked = min(self.worked, process_time() - before)
        return found


def _whole_contest(N, d, K):
    def prepare(share):
        import pyarrow.csv

        path = _file(int(N * share), d, K)

        def run():
            best, notes = {OURS: np.inf, READ: np.inf}, {}
            for _ in range(3):
                seconds, _ = announced(READ, lambda: pyarrow.csv.read_csv(path))
                best[READ] = min(best[READ], seconds)
                announce(OURS)
                total, said = _reported(path)
                announce(OURS, total)
                if total < best[OURS]:
                    best[OURS], notes[OURS] = total, said
            return {"best": best, "notes": notes, "apart": None}

        return Contest({OURS: lambda: _reported(path)}, lambda _: [], path.stat().st_size, run)

    return prepare


def _reported(path):
    """Seconds of a whole report, and how they are split."""
    started = perf_counter()
    study = discriminant.study(path, target="label")
    read = perf_counter()
    study.compare()
    compared = perf_counter()
    study.report(path.with_suffix(".html"), save=path.with_suffix(".model"))
    ended = perf_counter()
    summed = dict(study.comparison.seconds)["summing"]
    parts = {
        "reading": read - started,
        "summing": summed,
        f"{len(study.comparison.results)} models": compared - read - summed,
        "page": ended - compared,
    }
    return ended - started, ", ".join(f"{name} {each:.3g} s" for name, each in parts.items())


def _peer_contest(N, d, K, models):
    def prepare(share):
        path = _file(int(N * share), d, K)

        def ours():
            found = discriminant.study(path, target="label").compare(models, most=_MOST)
            return {one.name: one.facts["error"] for one in found.results}

        def run():
            best, errors = {}, {}
            turns = [
                (f"{PEER}, two at a time", single_threaded(lambda: compared(path, models, jobs=2)))
            ]
            if N <= _BOTH:
                turns += [(f"{PEER}, one thread", single_threaded(lambda: compared(path, models)))]
            for name, way in turns:
                for who, work in ((OURS, ours), (name, way)):
                    seconds, errors[who] = announced(who, work)
                    best[who] = min(best.get(who, np.inf), seconds)
            alike = [m for m in models if m in MOMENTS and m != "rda"]  # of the same rows, exactly
            apart = max(abs(errors[OURS][m] - errors[turns[0][0]][m]) for m in alike)
            return {"best": best, "apart": apart}

        return Contest({OURS: ours}, lambda result: [], path.stat().st_size, run)

    return prepare


# --- the same comparison by pandas and scikit-learn ----------------------------------------------


def compared(path, models, jobs=None):
    """{model: held-out error}; the other measures are worked out as well."""
    import pandas

    from discriminant.assessment.resampling.folds import fold_numbers

    frame = pandas.read_csv(path, engine="pyarrow")  # its fastest
    y, labels = pandas.factorize(frame.pop("label"), sort=True)
    X = frame.to_numpy()
    fold = fold_numbers(_FOLDS, y, seed=0)  # the same as ours, so that errors can be compared
    splits = [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(_FOLDS)]
    found = {}
    for name in models:
        if name == "rda":
            said = _tried(X, y, splits, jobs)
        else:
            few = _drawn(splits) if name in ROWS else splits
            said = _held_out(_peer(name, len(few[0][0]), len(labels)), X, y, few, jobs)
        found[name] = _measures(y, *said)
    return {name: facts["error"] for name, facts in found.items()}


def _drawn(splits):
    draw = np.random.default_rng(0)
    return [(draw.permutation(train)[:_MOST], test) for train, test in splits]


def _held_out(model, X, y, splits, jobs):
    from sklearn.model_selection import cross_val_predict

    method = "predict_proba" if hasattr(model, "predict_proba") else "decision_function"
    said = cross_val_predict(model, X, y, cv=splits, method=method, n_jobs=jobs)
    return said, method == "predict_proba"


def _measures(y, said, able):
    from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

    K = int(y.max()) + 1
    column = said[:, 1] if able and K == 2 else said
    decided = said.argmax(axis=1) if said.ndim == 2 else (said > 0).astype(int)
    facts = {"error": float((decided != y).mean())}
    if able or K == 2:
        facts["auc"] = roc_auc_score(y, column, multi_class="ovr")
    if able:
        facts |= {"log_loss": log_loss(y, said), "brier": brier_score_loss(y, column)}
        facts["calibration"] = _calibration(y == decided, said.max(axis=1))
    return facts


def _calibration(right, p, bins=15):
    place = np.minimum((p * bins).astype(int), bins - 1)
    sums = [np.bincount(place, each, minlength=bins) for each in (right, p)]
    return float(np.abs(sums[0] - sums[1]).sum() / len(p))


def _peer(name, rows, K):
    from sklearn.discriminant_analysis import (
        LinearDiscriminantAnalysis,
        QuadraticDiscriminantAnalysis,
    )
    from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
    from sklearn.neighbors import NearestCentroid
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import LinearSVC

    even = np.full(K, 1 / K)
    return {
        "lda": lambda: LinearDiscriminantAnalysis(solver="lsqr"),
        "lda_shrunk": lambda: LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
        "qda": lambda: QuadraticDiscriminantAnalysis(solver="eigen"),
        "nearest_mean": NearestCentroid,
        "fisher": lambda: LinearDiscriminantAnalysis(solver="lsqr", priors=even),
        "least_squares": lambda: RidgeClassifier(alpha=1e-12, solver="cholesky"),
        "logistic": lambda: LogisticRegression(C=1 / (1e-4 * rows), max_iter=1000),
        "logistic_ml": lambda: LogisticRegression(C=np.inf, max_iter=1000),
        "svm": lambda: make_pipeline(StandardScaler(), LinearSVC(dual=False)),
        "perceptron": lambda: SGDClassifier(
            loss="perceptron",
            average=True,
            learning_rate="constant",
            eta0=1.0,
            penalty=None,
            max_iter=100,  # as many passes as ours
            tol=None,
        ),
    }[name]()


def _tried(X, y, splits, jobs):
    """Probabilities held out, by settings that are chosen for each fold on the others."""
    from joblib import Parallel, delayed

    losses = Parallel(jobs)(delayed(_losses)(X, y, *split) for split in splits)
    whole, tried = np.sum(losses, axis=0), _settings()
    said = np.empty((len(y), int(y.max()) + 1))
    best = [int(np.argmin(whole - own)) for own in losses]
    for i, (train, test) in zip(best, splits, strict=True):
        said[test] = tried[i].fit(X[train], y[train]).predict_proba(X[test])
    return said, True


def _losses(X, y, train, test):
    """(121,) log losses of the settings."""
    from sklearn.metrics import log_loss

    some = np.random.default_rng(0).permutation(test)[: _SCORED // _FOLDS]
    rows, labels, classes = X[train], y[train], np.arange(int(y.max()) + 1)
    fitted = (model.fit(rows, labels) for model in _settings())
    return [log_loss(y[some], model.predict_proba(X[some]), labels=classes) for model in fitted]


def _settings():
    from sklearn.discriminant_analysis import (
        LinearDiscriminantAnalysis,
        QuadraticDiscriminantAnalysis,
    )

    linear = [LinearDiscriminantAnalysis("lsqr", s) for s in np.linspace(0.0, 1.0, 11)]
    steps = np.linspace(0.0, 0.99, _SETTINGS - len(linear))
    return linear + [QuadraticDiscriminantAnalysis(reg_param=s, solver="eigen") for s in steps]


# --- rows ----------------------------------------------------------------------------------------


def _file(N, d, K):
    """A file of overlapping classes, six digits to a number, that goes when the process does."""
    import pyarrow as pa
    from pyarrow import csv

    X, y = gaussian_rows(N, d, K)
    X = np.round(X, 6)
    columns = {f"x{j}": X[:, j] for j in range(d)} | {"label": np.array(list("abcdefgh"))[y]}
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    csv.write_csv(pa.table(columns), folder / "rows.csv")
    return folder / "rows.csv"
