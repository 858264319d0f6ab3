"""Compare strategies for rare classes on the same folds and by the same measures.

Rows are reweighted, resampled and synthesised within the training set of each fold only. The
held-out predictions of a strategy give an `Assessment`, and AUC and average precision beside it.
These two, log loss, Brier score and calibration measure the probabilities; F1, balanced error and
cost measure the decisions. So a strategy that only moves the threshold cannot change the former,
and one that distorts the probabilities shows it in log loss, Brier score and calibration.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import has_fit_parameter

from discriminant.assessment.assessment import Assessment
from discriminant.assessment.inference.summary import PrintedResult, format_number, text_table
from discriminant.assessment.ranking.auc import auc
from discriminant.assessment.ranking.roc import average_precision
from discriminant.assessment.resampling.folds import MemoryFolds, fold_numbers
from discriminant.assessment.resampling.held_out import FoldModel, HeldOutScores, score_folds
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
    encode_classes,
)
from discriminant.posterior import gives_posterior
from discriminant.table.blocks import Codes, Floats, Labels
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
    """Result of `compare_imbalance`: print it, or call `frame()` or `to_dict()`."""

    strategies: tuple[str, ...]  # S
    values: Floats  # (S, 8) in the order of MEASURES; NaN where there is none
    assessments: dict[str, Assessment]  # of the strategies that could be fitted
    labels: Labels  # (K,)
    rows: tuple[int, ...]  # (K,) of each class
    positive: Any  # the class that F1, AUC, AP and calibration are of; None: of all classes
    folds: int

    @property
    def text(self) -> str:
        """Table with a line for each strategy."""
        counts = ", ".join(
            f"{n:,} of '{label}'" for n, label in zip(self.rows, self.labels, strict=True)
        )
        of = "means over classes" if self.positive is None else f"of '{self.positive}'"
        title = f"{counts}; {self.folds} folds; AUC, AP and F1 {of}"
        lines = zip(self.strategies, self.values.tolist(), strict=True)
        cells = [[way, *(_cell(value) for value in line)] for way, line in lines]
        return "\n".join(text_table(title, ["", *_HEAD], cells))

    @property
    def ways(self) -> tuple[str, ...]:
        """Deprecated name of `strategies`."""
        return self.strategies

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, lists and texts."""
        measured = {
            way: dict(zip(MEASURES, line, strict=True))
            for way, line in zip(self.strategies, self.values.tolist(), strict=True)
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
        return frames.DataFrame(self.values, index=list(self.strategies), columns=list(MEASURES))


def _cell(value: float) -> str:
    return "-" if np.isnan(value) else format_number(value, 4)


@dataclass(frozen=True, slots=True, eq=False)
class _StrategyPredictions:
    """Held-out predictions of one strategy."""

    decided: Codes  # (N,)
    ranking: Floats | None  # (N, K) larger for likelier classes, where a model ranks rows
    log_posterior: Floats | None  # (N, K) of a model with probabilities

    @classmethod
    def of(cls, scores: HeldOutScores, *, probabilistic: bool) -> _StrategyPredictions:
        predictions = scores.predictions
        assert predictions is not None
        logs = predictions.log_posterior if probabilistic else None
        ranking = logs if probabilistic else scores.class_scores
        return cls(predictions.decided, ranking, logs)


@np.errstate(under="ignore")
def compare_imbalance(
    estimator: Any,
    X: Any,
    y: Any,
    folds: Any = None,
    *,
    positive: Any = None,
    cost: Any = None,
    strategies: Mapping[str, Any] | None = None,
    groups: Any = None,
    seed: Any = 0,
    ways: Mapping[str, Any] | None = None,
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
    strategies : dict of str to classifier, optional
        Strategies to compare with the plain fit and its moved threshold. None:
        `imbalance_strategies(estimator)`; `imbalance_strategies(estimator) | {...}` adds to them.
    folds, groups, seed
        As in `cross_validate`; the seed is also that of the resampling.
    ways
        Deprecated name of `strategies`.

    Notes
    -----
    A strategy for which a fold leaves too few rows is not measured, and a warning says so. Without
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
    if ways is not None:
        warnings.warn("ways= is deprecated: use strategies=.", FutureWarning, stacklevel=2)
        strategies = ways if strategies is None else strategies
    if strategies is None:
        strategies = imbalance_strategies(estimator, seed)
    models = {PLAIN: estimator, **_check_strategies(strategies)}
    with merge_warnings():
        folded = MemoryFolds.of_rows(X, labels, codes, None, fold)
        predictions = _held_out(models, folded, cost)
    assessments = {
        name: Assessment.from_decisions(
            codes, one.decided, labels=labels, log_posterior=one.log_posterior
        )
        for name, one in predictions.items()
        if one is not None
    }
    values = np.full((len(predictions), len(MEASURES)), np.nan)
    for s, (name, held_out) in enumerate(predictions.items()):
        if held_out is not None:
            values[s] = [
                *_ranking_measures(held_out.ranking, codes, one),
                *_measured(assessments[name], one, costs),
            ]
    return ImbalanceComparison(
        tuple(predictions),
        values,
        assessments,
        labels,
        tuple(np.bincount(codes).tolist()),
        None if one is None else labels[one : one + 1].tolist()[0],
        int(fold.max()) + 1,
    )


def imbalance_ways(estimator: Any, seed: Any = 0) -> dict[str, Any]:
    """Return the usual strategies for rare classes: deprecated name of `imbalance_strategies`."""
    warnings.warn(
        "imbalance_ways is deprecated: use imbalance_strategies.", FutureWarning, stacklevel=2
    )
    return imbalance_strategies(estimator, seed)


def imbalance_strategies(estimator: Any, seed: Any = 0) -> dict[str, Any]:
    """Return the usual strategies for rare classes, each around the classifier, by name.

    >>> from discriminant import LDA
    >>> list(imbalance_strategies(LDA()))
    ['reweighted', 'under-sampled', 'over-sampled', 'SMOTE', 'EasyEnsemble']
    """
    found: dict[str, Any] = {}
    if has_fit_parameter(estimator, "sample_weight"):
        found["reweighted"] = Reweighted(estimator)
    for name, method in (("under-sampled", "under"), ("over-sampled", "over"), ("SMOTE", "smote")):
        found[name] = Resampled(estimator, method, random_state=seed)
    return found | {"EasyEnsemble": EasyEnsemble(estimator, random_state=seed)}


def _check_strategies(strategies: Any) -> dict[str, Any]:
    if not isinstance(strategies, Mapping):
        raise OptionError.of("strategies", strategies, "{name: classifier}")
    reserved = [name for name in strategies if name in (PLAIN, THRESHOLD)]
    if reserved:
        allowed = f"of other names: '{PLAIN}' and '{THRESHOLD}' are always there"
        raise OptionError.of("strategies", reserved, allowed)
    return dict(strategies)


def _ranking_measures(
    ranking: Floats | None, codes: Codes, positive: int | None
) -> tuple[float, float]:
    """AUC and average precision of one class, or their means over all classes."""
    if ranking is None or np.isnan(ranking).any():
        return np.nan, np.nan
    classes = range(ranking.shape[1]) if positive is None else [positive]
    pairs = [(codes == k, ranking[:, k]) for k in classes]
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
    models: Mapping[str, Any], folded: MemoryFolds, cost: Any
) -> dict[str, _StrategyPredictions | None]:
    """Held-out predictions of every strategy; None of one that could not be fitted."""

    def make(estimator: Any) -> FoldModel:
        ranks = partial(_lacks_posterior, estimator)
        return FoldModel(estimator, from_moments=False, decide=False, ranks=ranks)

    makers = {name: partial(make, model) for name, model in models.items()}
    predictions: dict[str, _StrategyPredictions | None] = {}
    for scores in score_folds(folded, makers):
        name = scores.name
        predictions[name] = None
        if scores.error is None:
            probabilistic = gives_posterior(models[name])
            predictions[name] = _StrategyPredictions.of(scores, probabilistic=probabilistic)
        elif name == PLAIN or not isinstance(scores.error, _TOO_FEW):
            raise scores.error
        else:
            fold = scores.failed_fold
            warn(WayLeftOutWarning.of(name, 0 if fold is None else fold, str(scores.error)))
        for warning in scores.warnings:
            if not isinstance(warning, NoPosteriorWarning):  # one warning below names them all
                warn(warning)
        if name == PLAIN:
            predictions[THRESHOLD] = _move_threshold(predictions[PLAIN], folded, cost)
    without = [
        f"'{name}'"
        for name, one in predictions.items()
        if one is not None and one.log_posterior is None
    ]
    if without:
        warn(NoPosteriorWarning.of_measures(", ".join(without)))
    return predictions


def _lacks_posterior(estimator: Any, fitted: Any) -> bool:
    return not gives_posterior(estimator)


def _move_threshold(
    plain: _StrategyPredictions | None, folded: MemoryFolds, cost: Any
) -> _StrategyPredictions | None:
    """The plain fit with its threshold moved, which needs probabilities."""
    if plain is None or plain.log_posterior is None:
        return None
    K = len(folded.labels)
    decided = np.zeros(len(folded.codes), dtype=np.intp)
    every = np.bincount(folded.codes, minlength=K)
    for rows in folded.rows:
        training = every - np.bincount(folded.codes[rows], minlength=K)
        decided[rows] = _moved(plain.log_posterior[rows], training, folded.labels, cost)
    return _StrategyPredictions(decided, plain.ranking, plain.log_posterior)


def _moved(log_posterior: Floats, count: Codes, labels: Labels, cost: Any) -> Codes:
    """Decisions of least expected cost, or each class by its share in the training rows."""
    share = np.where(count > 0, count / count.sum(), 1.0)  # of no rows, the posterior is zero
    threshold = dict(zip(labels.tolist(), share.tolist(), strict=True))
    costs = Costs.of_threshold(threshold, labels) if cost is None else Costs.of(cost, labels)
    return least_cost(log_posterior, costs)[0]
