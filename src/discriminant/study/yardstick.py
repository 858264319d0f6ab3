"""Yardstick of a comparison: scikit-learn's boosted trees on the same folds, never selected.

If boosted trees predict much better than the selected model, the boundary between the classes is
not linear, and the report says so. The trees are fitted to at most `_MAX_ROWS` rows, in up to five
folds. Each of these joins several folds of the comparison, so that rows that were held out together
stay together. Both models are compared on the held-out rows of that sample by the corrected
resampled t test.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
from scipy import special
from threadpoolctl import ThreadpoolController

from discriminant.assessment.resampling.compare import corrected_t
from discriminant.assessment.resampling.folds import FoldNumbers, RowNumbers, sample_rows
from discriminant.assessment.resampling.held_out_folds import HeldOutPredictions
from discriminant.errors import capture_warnings
from discriminant.report.fact_types import YardstickFacts
from discriminant.report.format import loss, number, percent
from discriminant.table.blocks import Codes, Floats, dense

if TYPE_CHECKING:
    from discriminant.study.compare import ComparisonRun
    from discriminant.study.models import ModelResult

LABEL = "Boosted trees (scikit-learn)"
_MAX_ROWS = 20_000
_MAX_CELLS = 600_000  # rows times classes and the square root of the features, to limit the time
_FOLDS = 5
_ROUNDS = 100
_CLEAR = 0.95  # trees are much better if their log loss is below this share, and significantly so
_LEAST_GAIN = 0.005  # difference of the log losses below which trees are not much better
_LITTLE = 1.02  # ratio of the log losses up to which little is lost
_SIGNIFICANT = 0.05
_LEAST = 1e-15  # least probability


@contextmanager
def start_boosted_trees(
    run: ComparisonRun, selected: ModelResult
) -> Iterator[Future[YardstickFacts | None]]:
    """Fit boosted trees in another thread within a `with` block; see `boosted_trees`.

    The warnings of scikit-learn on rare classes are ignored within the block, in this thread,
    because filters of warnings are those of the process.
    """
    with warnings.catch_warnings(), ThreadPoolExecutor(1) as pool:
        warnings.filterwarnings("ignore", module=r"sklearn\.")
        yield pool.submit(boosted_trees, run, selected)


def boosted_trees(run: ComparisonRun, selected: ModelResult) -> YardstickFacts | None:
    """Return the held-out error and log loss of boosted trees, compared with the selected model.

    Return None if the trees cannot be fitted: fewer than two classes in a training set, or sparse
    rows.
    """
    started = time.perf_counter()
    held = selected.predictions
    folded = run.in_memory
    table, fold = folded.table, folded.fold
    K = len(folded.labels)
    assert table is not None
    rows = np.arange(len(fold))
    work = _MAX_CELLS / (max(K, 2) * np.sqrt(table.width))
    most = int(min(_MAX_ROWS, max(work, 1_000)))
    rows = sample_rows(rows, most, np.random.default_rng(run.seed))
    codes = folded.codes[rows].astype(np.intp)
    features = np.asarray(dense(table.features[rows]), dtype=np.float64)
    weight = None if folded.weight is None else folded.weight[rows]
    F = min(_FOLDS, folded.n_folds)
    joined = np.where(fold[rows] < 0, -1, fold[rows] * F // folded.n_folds)
    losses, wrong = np.full(len(rows), np.nan), np.zeros(len(rows))
    # one thread: the report uses the other cores, and waiting threads would slow it down
    # `threadpool_limits` would restore BLAS too, which another thread may have limited meanwhile
    openmp = ThreadpoolController().select(user_api="openmp")
    with openmp.limit(limits=1), capture_warnings():
        for f in range(F):
            train = joined < f if run.forward else joined != f
            test = np.flatnonzero(joined == f)
            if not len(test) or len(np.unique(codes[train])) < 2:
                continue
            own = None if weight is None else weight[train]
            proba, known = _fit(features[train], codes[train], own, features[test], run.seed)
            is_known = np.isin(codes[test], known)
            wrong[test] = known[proba.argmax(axis=1)] != codes[test]
            place = np.searchsorted(known, codes[test])
            own_proba = proba[np.arange(len(test)), np.where(is_known, place, 0)]
            losses[test] = np.where(is_known, -np.log(np.maximum(own_proba, _LEAST)), np.nan)
    used = np.flatnonzero(np.isfinite(losses))
    if len(used) < 10:
        return None
    share: Floats = np.ones(len(used)) if weight is None else weight[used]
    log_loss = float(np.average(losses[used], weights=share))
    error = float(np.average(wrong[used], weights=share))
    ours = selected.value("log_loss")
    p: float | None = None
    if held is not None and ours is not None:
        runs = (held, *selected.repetitions)  # the mean, as in the table of the models
        own_losses = np.mean([_own_losses(run, fold, rows) for run in runs], axis=0)
        both = used[np.isfinite(own_losses[used])]
        share = np.ones(len(both)) if weight is None else weight[both]
        ours = float(np.average(own_losses[both], weights=share))
        difference: Floats = losses[both] - own_losses[both]
        p = _p_of(difference, share, joined[both], F)
    significant = p is not None and p < _SIGNIFICANT
    better = bool(
        ours is not None and log_loss < min(_CLEAR * ours, ours - _LEAST_GAIN) and significant
    )
    return YardstickFacts(
        label=LABEL,
        error=error,
        log_loss=log_loss,
        rows=len(used),
        folds=F,
        seconds=time.perf_counter() - started,
        better=better,
        text=_text(log_loss, ours, error, selected, better, p, len(rows) < len(fold)),
    )


def _fit(
    train: Floats, codes: Codes, weight: Floats | None, test: Floats, seed: int
) -> tuple[Floats, Codes]:
    from sklearn.ensemble import HistGradientBoostingClassifier

    few = bool(np.bincount(codes)[np.unique(codes)].min() < 2) or len(codes) < 50
    trees = HistGradientBoostingClassifier(
        max_iter=_ROUNDS,
        early_stopping=not few,
        n_iter_no_change=5,
        random_state=seed,
    )
    trees.fit(train, codes, sample_weight=weight)
    return np.asarray(trees.predict_proba(test)), np.asarray(trees.classes_)


def _own_losses(held: HeldOutPredictions, fold: FoldNumbers, rows: RowNumbers) -> Floats:
    """Return the losses of the selected model on some rows; NaN where it was not measured."""
    losses: Floats = -held.log_posterior[np.arange(len(held.codes)), held.codes]
    every: Floats = np.full(len(fold), np.nan)
    every[fold >= 0] = losses
    own: Floats = every[rows]
    return own


def _p_of(difference: Floats, share: Floats, fold: FoldNumbers, folds: int) -> float:
    """Return the p-value of the corrected resampled t test of the mean difference."""
    total = np.bincount(fold, share, minlength=folds)
    sums = np.bincount(fold, share * difference, minlength=folds)
    means = sums[total > 0] / total[total > 0]
    if len(means) < 2:
        return 1.0
    with capture_warnings():
        _, t = corrected_t(means, 1.0 / (len(means) - 1))
    return float(2.0 * special.stdtr(len(means) - 1, -abs(t)))


def _text(
    trees: float,
    ours: float | None,
    error: float,
    selected: ModelResult,
    better: bool,
    p: float | None,
    sampled: bool,
) -> str:
    rows = " on a sample of the rows" if sampled else ""
    if ours is None:
        shares = percent(error), percent(selected.facts["error"])
        return f"Boosted trees misclassify {shares[0]} of held-out rows, the selected {shares[1]}."
    figures = f"Boosted trees have a log loss of {loss(trees)}{rows}, {_compared(trees, ours)}"
    if better:
        return (
            f"{figures}: trees do much better, so the boundary is not of the kind that these "
            "models can draw; consider trees."
        )
    if ours <= trees or loss(ours) == loss(trees):
        return f"{figures}: nothing is lost by not using trees."
    if ours <= _LITTLE * trees:
        return f"{figures}: little is lost by not using trees."
    if p is None:
        return f"{figures}: trees look better; the difference was not tested."
    if p < _SIGNIFICANT:
        return f"{figures}: trees do better, but not by much."
    return f"{figures}: trees look better, but the difference may be chance (p = {number(p, 2)})."


def _compared(trees: float, ours: float) -> str:
    """Compare the log loss of trees with that of the selected model on the same rows.

    Ratios are those of the figures as shown.

    >>> _compared(0.66, 0.6), _compared(0.0408, 0.0212)
    ('10% above the 0.600 of the selected model', '92% above the 0.0212 of the selected model')
    >>> _compared(0.2, 0.02), _compared(0.2, 0.0)
    ('10 times the 0.0200 of the selected model', 'that of the selected model is below 0.001')
    """
    figure = loss(ours)
    if loss(trees) == figure:
        return "the same as the selected model"
    if ours < 0.001:
        return "that of the selected model is below 0.001"
    model = f"the {figure} of the selected model"
    ratio = float(f"{trees:.3g}") / float(f"{ours:.3g}")
    if ratio >= 2.0:
        return f"{ratio:.2g} times {model}"
    share = abs(ratio - 1.0)
    side = "above" if trees > ours else "below"
    return f"{percent(share, 0 if share >= 0.1 else 1)} {side} {model}"
