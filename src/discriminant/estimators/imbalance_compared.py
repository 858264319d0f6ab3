"""What helps where a class is rare: every way on the same folds, by the same measures.

Rows are weighed, drawn and made up inside the training part of each fold alone. AUC, average
precision, log loss, Brier score and calibration are of the probabilities; F1, balanced error and
cost are of the decisions. So a way that only moves the threshold cannot change the first, and
one that leaves probabilities wrong shows it in the last three of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import has_fit_parameter

from discriminant.assessment.folds import FoldNumbers, fold_numbers, rows_by_fold
from discriminant.assessment.layout import number, table
from discriminant.decision.actions import least_cost
from discriminant.decision.costs import Costs
from discriminant.errors import LabelError, OptionError, gathered
from discriminant.estimators.easy_ensemble import EasyEnsemble
from discriminant.estimators.imbalance import Resampled, Reweighted
from discriminant.estimators.rebalanced import arrayed, classes_of, posterior_or_vote
from discriminant.table.schema import Codes, Floats, Labels

THRESHOLD = "threshold moved"  # on the posteriors of the plain fit: it is not fitted again
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
_BINS = 10


@dataclass(frozen=True, slots=True, eq=False)
class ImbalanceComparison:
    """What `compare_imbalance` found: `print` it, or ask for `frame()` or `to_dict()`."""

    ways: tuple[str, ...]  # W
    values: Floats  # (W, 8) in the order of MEASURES
    labels: Labels  # (K,)
    rows: tuple[int, ...]  # (K,) of each class
    positive: Any  # the class that F1, AUC and AP are of; None: means over the classes
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
        cells = [[way, *(number(value, 4) for value in line)] for way, line in lines]
        return "\n".join(table(title, ["", *_HEAD], cells))

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return self.text

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
        pandas = import_module("pandas")
        return pandas.DataFrame(self.values, index=list(self.ways), columns=list(MEASURES))


@dataclass(frozen=True, slots=True, eq=False)
class _Held:
    """What one way says of rows that were held out."""

    decided: Codes  # (N,)
    posterior: Floats  # (N, K)


def compare_imbalance(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    positive: Any = None,
    cost: Any = None,
    ways: Mapping[str, Any] | None = None,
    folds: Any = None,
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
        The class that F1, AUC and average precision are of, of two; None: the rarer. Of more than
        two classes these are means over the classes (AUC: of one against the rest).
    cost
        What decisions cost where each class is true, as in `Decision`; actions must be classes.
        The moved threshold then is that of the least expected cost. None: an error costs 1, and
        the threshold of each class is its share in the training rows, y/(1-y) > m+/m-.
    ways
        {name: classifier} in place of the usual ones: `imbalance_ways(estimator)`.
    folds, groups, seed
        As in `cross_validate`; the seed is that of draws too.

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
    X = arrayed(X)
    labels, codes = classes_of(X, y)
    one = _positive(labels, codes, positive)
    costs = Costs.zero_one(labels) if cost is None else Costs.of(cost, labels)
    if costs.actions != tuple(labels.tolist()):
        raise OptionError.of("cost", list(costs.actions), "of actions that are classes")
    fold = fold_numbers(folds, codes, groups=groups, seed=seed, X=X)
    models = {"plain": estimator, **(imbalance_ways(estimator, seed) if ways is None else ways)}
    with gathered():
        held = _held_out(models, X, codes, labels, fold, cost)
    measured = [measures(way, codes, positive=one, cost=costs.cost) for way in held.values()]
    return ImbalanceComparison(
        tuple(held),
        np.array(measured),
        labels,
        tuple(np.bincount(codes).tolist()),
        None if one is None else labels[one : one + 1].tolist()[0],
        int(fold.max()) + 1,
    )


def imbalance_ways(estimator: Any, seed: Any = 0) -> dict[str, Any]:
    """The usual treatments of rare classes, by name, each around the classifier."""
    found: dict[str, Any] = {}
    if has_fit_parameter(estimator, "sample_weight"):
        found["reweighted"] = Reweighted(estimator)
    for name, method in (("under-sampled", "under"), ("over-sampled", "over"), ("SMOTE", "smote")):
        found[name] = Resampled(estimator, method, random_state=seed)
    return found | {"EasyEnsemble": EasyEnsemble(estimator, random_state=seed)}


def measures(held: _Held, codes: Codes, *, positive: int | None, cost: Floats) -> list[float]:
    """The measures of held-out decisions and probabilities, in the order of MEASURES."""
    truth = np.eye(len(cost))[codes]
    chosen = slice(None) if positive is None else slice(positive, positive + 1)
    pairs = list(zip(truth.T[chosen], held.posterior.T[chosen], strict=True))
    recall = np.bincount(codes[held.decided == codes], minlength=len(cost)) / truth.sum(axis=0)
    f1 = f1_score(truth, np.eye(len(cost))[held.decided], average=None, zero_division=0.0)
    brier = ((held.posterior - truth) ** 2).sum(axis=1).mean()
    with np.errstate(divide="ignore"):
        log_loss = -np.log(held.posterior[np.arange(len(codes)), codes]).mean()
    found = [
        np.mean([roc_auc_score(*pair) for pair in pairs]),
        np.mean([average_precision_score(*pair) for pair in pairs]),
        f1[chosen].mean(),
        1.0 - recall.mean(),
        cost[held.decided, codes].mean(),
        log_loss,
        brier if positive is None else brier / 2,  # of two classes, that of one
        np.mean([_miscalibrated(*pair) for pair in pairs]),
    ]
    return [float(value) for value in found]


def _miscalibrated(truth: Floats, posterior: Floats) -> float:
    """Mean distance of posterior and share of the class, over ten bins of as many rows."""
    bins = np.array_split(np.argsort(posterior, kind="stable"), min(_BINS, len(posterior)))
    apart = [abs(posterior[rows].sum() - truth[rows].sum()) for rows in bins]
    return float(np.sum(apart) / len(truth))


def _positive(labels: Labels, codes: Codes, positive: Any) -> int | None:
    if positive is not None and positive not in labels.tolist():
        raise LabelError.unknown([positive], labels.tolist())
    if positive is not None:
        return int(labels.tolist().index(positive))
    return int(np.bincount(codes).argmin()) if len(labels) == 2 else None


def _held_out(
    models: Mapping[str, Any], X: Any, codes: Codes, labels: Labels, fold: FoldNumbers, cost: Any
) -> dict[str, _Held]:
    """Every way's answers about every row, by classifiers that have not seen its fold."""
    order = ["plain", THRESHOLD, *(name for name in models if name != "plain")]
    shape = len(codes), len(labels)
    found = {name: _Held(np.empty(shape[0], dtype=np.intp), np.zeros(shape)) for name in order}
    for test in rows_by_fold(fold):
        train = np.setdiff1d(np.arange(len(codes)), test, assume_unique=True)
        rows, held, truth = _safe_indexing(X, train), _safe_indexing(X, test), labels[codes[train]]
        for name, model in models.items():
            fitted = clone(model).fit(rows, truth)
            _answer(found[name], fitted, held, test, labels)
        count = np.bincount(codes[train], minlength=shape[1])
        found[THRESHOLD].posterior[test] = found["plain"].posterior[test]
        found[THRESHOLD].decided[test] = _moved(found["plain"].posterior[test], count, labels, cost)
    return found


def _moved(posterior: Floats, count: Codes, labels: Labels, cost: Any) -> Codes:
    """Decisions of least expected cost, or each class by its share in the training rows."""
    share = np.where(count > 0, count / count.sum(), 1.0)  # of no rows, the posterior is zero
    threshold = dict(zip(labels.tolist(), share.tolist(), strict=True))
    costs = Costs.of_threshold(threshold, labels) if cost is None else Costs.of(cost, labels)
    with np.errstate(divide="ignore"):
        return least_cost(np.log(posterior), costs)[0]


def _answer(found: _Held, model: Any, rows: Any, test: Any, labels: Labels) -> None:
    columns = np.searchsorted(labels, model.classes_)
    found.posterior[np.ix_(test, columns)] = posterior_or_vote(model, rows)
    found.decided[test] = np.searchsorted(labels, model.predict(rows))
