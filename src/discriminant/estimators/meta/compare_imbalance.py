"""What helps where a class is rare: every way on the same folds, by the same measures.

Rows are weighed, drawn and made up inside the training part of each fold alone. What a way says of
the held-out rows becomes an `Assessment`, and AUC and average precision beside it. These two, log
loss, Brier score and calibration are of the probabilities; F1, balanced error and cost are of the
decisions. So a way that only moves the threshold cannot change the first, and one that leaves
probabilities wrong shows it in the last three of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import has_fit_parameter

from discriminant.assessment.assessment import Assessment
from discriminant.assessment.inference.summary import PrintedResult, format_number, text_table
from discriminant.assessment.ranking.auc import auc
from discriminant.assessment.ranking.roc import average_precision
from discriminant.assessment.resampling.folds import FoldNumbers, fold_numbers, rows_by_fold
from discriminant.assessment.scorers import log_posterior_or_none
from discriminant.decision.actions import least_cost
from discriminant.decision.costs import Costs
from discriminant.errors import (
    LabelError,
    NoPosteriorWarning,
    OptionError,
    ResamplingError,
    TooFewRowsError,
    WayLeftOutWarning,
    WeightError,
    merge_warnings,
    warn,
)
from discriminant.estimators.meta.resampling import (
    EasyEnsemble,
    Resampled,
    Reweighted,
    as_indexable,
    class_ranking,
    encode_classes,
)
from discriminant.table.blocks import Codes, Floats, Labels, Places
from discriminant.table.cells import import_pandas

PLAIN, THRESHOLD = "plain", "threshold moved"  # the latter on posteriors of the former's fit
MEASURES = (
    "auc",
    "average_precision",
    "f1",
    "balanced_error",
    "cost",
    "log_loss",
    "brier",
    "calibration_error",
)
_HEAD = ("AUC", "AP", "F1", "bal. error", "cost", "log loss", "Brier", "calibration")
_TOO_FEW = (ResamplingError, TooFewRowsError, WeightError)  # of a class, in a training part


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ImbalanceComparison(PrintedResult):
    """What `compare_imbalance` found: `print` it, or ask for `frame()` or `to_dict()`."""

    ways: tuple[str, ...]  # W
    values: Floats  # (W, 8) in the order of MEASURES; NaN where there is none
    assessments: dict[str, Assessment]  # all else of the ways that could be fitted
    labels: Labels  # (K,)
    rows: tuple[int, ...]  # (K,) of each class
    positive: Any  # the class that F1, AUC, AP and calibration are of; None: of all classes
    folds: int

    @property
    def text(self) -> str:
        """A table: a line for each way."""
        counts = ", ".join(
            f"{n:,} of '{label}'" for n, label in zip(self.rows, self.labels, strict=True)
        )
        of = "means over classes" if self.positive is None else f"of '{self.positive}'"
        title = f"{counts}; {self.folds} folds; AUC, AP and F1 {of}"
        lines = zip(self.ways, self.values.tolist(), strict=True)
        cells = [[way, *(_cell(value) for value in line)] for way, line in lines]
        return "\n".join(text_table(title, ["", *_HEAD], cells))

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, lists and texts."""
        measured = {
            way: dict(zip(MEASURES, line, strict=True))
            for way, line in zip(self.ways, self.values.tolist(), strict=True)
        }
        return {
            "ways": measured,
            "labels": self.labels.tolist(),
            "rows": list(self.rows),
            "positive": self.positive,
            "folds": self.folds,
        }

    def frame(self) -> Any:
        """The table as a pandas frame."""
        frames = import_pandas()
        return frames.DataFrame(self.values, index=list(self.ways), columns=list(MEASURES))


def _cell(value: float) -> str:
    return "-" if np.isnan(value) else format_number(value, 4)


@dataclass(slots=True, eq=False)
class _StrategyPredictions:
    """What one way says of rows that were held out."""

    decided: Codes  # (N,)
    ranking: Floats  # (N, K) the higher the likelier; NaN if there is no such thing
    log_posterior: Floats | None  # (N, K)
    fitted: bool = True  # in every fold

    @classmethod
    def blank(cls, rows: int, classes: int) -> _StrategyPredictions:
        ranking, logs = np.full((2, rows, classes), -np.inf)
        return cls(np.zeros(rows, dtype=np.intp), ranking, logs)

    def put(self, model: Any, X: Any, rows: Places, labels: Labels) -> None:
        """Ask a fitted classifier about rows X, which have these numbers."""
        columns = np.searchsorted(labels, model.classes_)
        cells = np.ix_(rows, columns)
        self.decided[rows] = np.searchsorted(labels, model.predict(X))
        logs = log_posterior_or_none(model, X)
        if logs is not None and self.log_posterior is not None:
            self.log_posterior[cells] = self.ranking[cells] = logs
            return
        self.log_posterior = None
        decides = hasattr(model, "decision_function")
        self.ranking[cells] = class_ranking(model, X) if decides else np.nan


@np.errstate(under="ignore")
def compare_imbalance(
    estimator: Any,
    X: Any,
    y: Any,
    folds: Any = None,
    *,
    positive: Any = None,
    cost: Any = None,
    ways: Mapping[str, Any] | None = None,
    groups: Any = None,
    seed: Any = 0,
) -> ImbalanceComparison:
    """Held-out measures of a classifier, plain and with each treatment of rare classes.

    Parameters
    ----------
    estimator
        Any classifier.
    X, y
        Rows and labels.
    positive
        The class that F1, AUC, average precision and calibration are of; None: of two classes the
        rarer, of more the mean over the classes (AUC: of one against the rest; calibration: of
        the most probable class).
    cost
        What decisions cost where each class is true, as in `Decision`; actions must be classes.
        The moved threshold then is that of the least expected cost. None: an error costs 1, and
        the threshold of each class is its share in the training rows, y/(1-y) > m+/m-.
    ways
        {name: classifier}, to be compared with the plain fit and its moved threshold. None: the
        usual ones, which are `imbalance_ways(estimator)`; `imbalance_ways(estimator) | {...}` adds
        to them.
    folds, groups, seed
        As in `cross_validate`; the seed is that of draws too.

    A way that a fold leaves too few rows for is not measured, and a warning says so. Without
    probabilities AUC and average precision are those of `decision_function`.

    Examples
    --------
    >>> from discriminant import LDA
    >>> rng = np.random.default_rng(0)
    >>> rows = np.vstack([rng.normal(0, 1, (190, 2)), rng.normal(1.5, 1, (10, 2))])
    >>> found = compare_imbalance(LDA(), rows, [0] * 190 + [1] * 10, folds=5)
    >>> error = found.frame()["balanced_error"]
    >>> bool(error["reweighted"] < error["plain"])
    True
    """
    if isinstance(estimator, type) or not is_classifier(estimator):
        raise OptionError.of("estimator", estimator, "a classifier, such as LDA()")
    X = as_indexable(X)
    labels, codes = encode_classes(X, y)
    one = _positive(labels, codes, positive)
    costs = Costs.zero_one(labels) if cost is None else Costs.of(cost, labels)
    if costs.actions != tuple(labels.tolist()):
        raise OptionError.of("cost", list(costs.actions), "of actions that are classes")
    fold = fold_numbers(folds, codes, groups=groups, seed=seed, X=X)
    models = {
        PLAIN: estimator,
        **_checked(imbalance_ways(estimator, seed) if ways is None else ways),
    }
    with merge_warnings():
        held = _held_out(models, X, codes, labels, fold, cost)
    assessed = {
        way: Assessment.from_decisions(
            codes, said.decided, labels=labels, log_posterior=said.log_posterior
        )
        for way, said in held.items()
        if said.fitted
    }
    values = np.full((len(held), len(MEASURES)), np.nan)
    for w, (way, said) in enumerate(held.items()):
        if said.fitted:
            values[w] = [*_ranked(said, codes, one), *_measured(assessed[way], one, costs)]
    return ImbalanceComparison(
        tuple(held),
        values,
        assessed,
        labels,
        tuple(np.bincount(codes).tolist()),
        None if one is None else labels[one : one + 1].tolist()[0],
        int(fold.max()) + 1,
    )


def imbalance_ways(estimator: Any, seed: Any = 0) -> dict[str, Any]:
    """The usual treatments of rare classes, by name, each around the classifier.

    >>> from discriminant import LDA
    >>> list(imbalance_ways(LDA()))
    ['reweighted', 'under-sampled', 'over-sampled', 'SMOTE', 'EasyEnsemble']
    """
    found: dict[str, Any] = {}
    if has_fit_parameter(estimator, "sample_weight"):
        found["reweighted"] = Reweighted(estimator)
    for name, method in (("under-sampled", "under"), ("over-sampled", "over"), ("SMOTE", "smote")):
        found[name] = Resampled(estimator, method, random_state=seed)
    return found | {"EasyEnsemble": EasyEnsemble(estimator, random_state=seed)}


def _checked(ways: Any) -> dict[str, Any]:
    """Ways by names that are free."""
    if not isinstance(ways, Mapping):
        raise OptionError.of("ways", ways, "{name: classifier}")
    taken = [name for name in ways if name in (PLAIN, THRESHOLD)]
    if taken:
        allowed = f"of other names: '{PLAIN}' and '{THRESHOLD}' are always there"
        raise OptionError.of("ways", taken, allowed)
    return dict(ways)


def _ranked(held: _StrategyPredictions, codes: Codes, positive: int | None) -> tuple[float, float]:
    """AUC and average precision: of one class, or the mean over all."""
    if np.isnan(held.ranking).any():
        return np.nan, np.nan
    chosen = range(held.ranking.shape[1]) if positive is None else [positive]
    pairs = [(codes == k, held.ranking[:, k]) for k in chosen]
    areas = [auc(*pair, None, positive=True).value for pair in pairs]
    precisions = [average_precision(*pair, positive=True) for pair in pairs]
    return float(np.mean(areas)), float(np.mean(precisions))


def _measured(found: Assessment, positive: int | None, costs: Costs) -> list[float]:
    """The other measures, in their order."""
    one = None if positive is None else found.labels[positive : positive + 1].tolist()[0]
    likely = bool(found.scored.weight.any())
    return [
        found.average("f") if positive is None else float(found.f1[positive]),
        1.0 - found.balanced_accuracy,
        found.cost(costs),
        found.log_loss,
        found.brier,
        found.calibration_error(one) if likely else np.nan,
    ]


def _positive(labels: Labels, codes: Codes, positive: Any) -> int | None:
    if positive is not None and positive not in labels.tolist():
        raise LabelError.unknown([positive], labels.tolist())
    if positive is not None:
        return int(labels.tolist().index(positive))
    return int(np.bincount(codes).argmin()) if len(labels) == 2 else None


def _held_out(
    models: Mapping[str, Any], X: Any, codes: Codes, labels: Labels, fold: FoldNumbers, cost: Any
) -> dict[str, _StrategyPredictions]:
    """Every way's answers about every row, by classifiers that have not seen its fold."""
    order = [PLAIN, THRESHOLD, *(name for name in models if name != PLAIN)]
    found = {name: _StrategyPredictions.blank(len(codes), len(labels)) for name in order}
    for f, test in enumerate(rows_by_fold(fold)):
        train = np.setdiff1d(np.arange(len(codes)), test, assume_unique=True)
        rows, held, truth = _safe_indexing(X, train), _safe_indexing(X, test), labels[codes[train]]
        for name, model in models.items():
            if found[name].fitted and (fitted := _fitted(name, model, rows, truth, f)) is not None:
                found[name].put(fitted, held, test, labels)
            else:
                found[name].fitted = False
        _move(found, np.bincount(codes[train], minlength=len(labels)), test, labels, cost)
    unlikely = [name for name in order if found[name].fitted and found[name].log_posterior is None]
    if unlikely:
        warn(NoPosteriorWarning.of_measures(", ".join(f"'{name}'" for name in unlikely)))
    return found


def _fitted(name: str, model: Any, rows: Any, truth: Any, fold: int) -> Any:
    """A fitted clone; None, and a warning, where a treatment finds too few rows of a class."""
    try:
        return clone(model).fit(rows, truth)
    except _TOO_FEW as why:
        if name == PLAIN:
            raise
        warn(WayLeftOutWarning.of(name, fold, str(why)))
        return None


def _move(
    found: dict[str, _StrategyPredictions], count: Codes, test: Places, labels: Labels, cost: Any
) -> None:
    """The threshold of the plain fit, on its posteriors of some rows."""
    plain, moved = found[PLAIN], found[THRESHOLD]
    moved.ranking, moved.log_posterior = plain.ranking, plain.log_posterior
    moved.fitted = plain.log_posterior is not None
    if plain.log_posterior is not None:
        moved.decided[test] = _moved(plain.log_posterior[test], count, labels, cost)


def _moved(log_posterior: Floats, count: Codes, labels: Labels, cost: Any) -> Codes:
    """Decisions of least expected cost, or each class by its share in the training rows."""
    share = np.where(count > 0, count / count.sum(), 1.0)  # of no rows, the posterior is zero
    threshold = dict(zip(labels.tolist(), share.tolist(), strict=True))
    costs = Costs.of_threshold(threshold, labels) if cost is None else Costs.of(cost, labels)
    return least_cost(log_posterior, costs)[0]
