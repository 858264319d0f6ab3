"""Comparison of strategies for imbalanced classes, on the same folds and by the same measures.

Rows are reweighted, resampled and synthesised within the training set of each fold only. The
held-out predictions of each strategy are assessed by two groups of measures. AUC, average
precision, log loss, Brier score and calibration measure the probabilities; F1, balanced error and
cost measure the decisions. A strategy that only moves the threshold changes none of the ranking
measures. A strategy that distorts the probabilities has a higher log loss, Brier score and
calibration error.
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
from discriminant.assessment.printed_results import PrintedResult, format_number, text_table
from discriminant.assessment.ranking.auc import auc
from discriminant.assessment.ranking.roc import average_precision
from discriminant.assessment.resampling.folds import (
    MemoryFolds,
    estimator_with_class_order,
    fold_numbers,
)
from discriminant.assessment.resampling.held_out_folds import FoldModel, HeldOutScores, score_folds
from discriminant.decision.actions import least_cost
from discriminant.decision.costs import Costs
from discriminant.errors import (
    LabelError,
    NoPosteriorWarning,
    OptionError,
    ResamplingError,
    StrategyNotEvaluatedWarning,
    TooFewRowsError,
    WeightError,
    merge_warnings,
    warn,
)
from discriminant.estimators.meta.resampling import (
    EasyEnsemble,
    Resampled,
    Reweighted,
)
from discriminant.posterior import gives_posterior
from discriminant.table.blocks import Codes, Floats, Labels
from discriminant.table.column_cells import import_pandas
from discriminant.table.labels import declared_order
from discriminant.table.memory import as_indexable, encode_classes

# the same fit, with its own threshold and with a moved threshold
PLAIN, THRESHOLD = "plain", "threshold moved"
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
# errors of a fit to a fold with too few rows of a class
_TOO_FEW = (ResamplingError, TooFewRowsError, WeightError)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ImbalanceComparison(PrintedResult):
    """Result of `compare_imbalance`: print it, or call `frame()` or `to_dict()`."""

    strategies: tuple[str, ...]  # S names
    values: Floats  # (S, 8) columns in the order of MEASURES; NaN if not available
    assessments: dict[str, Assessment]  # only strategies that could be fitted
    labels: Labels  # (K,) class labels
    rows: tuple[int, ...]  # (K,) number of rows
    positive: Any  # class for F1, AUC, AP and calibration; None: means over all classes
    folds: int

    @property
    def text(self) -> str:
        """Comparison as a text table with one line per strategy."""
        counts = ", ".join(
            f"{n:,} of '{label}'" for n, label in zip(self.rows, self.labels, strict=True)
        )
        scope = "means over classes" if self.positive is None else f"of '{self.positive}'"
        title = f"{counts}; {self.folds} folds; AUC, AP and F1 {scope}"
        lines = zip(self.strategies, self.values.tolist(), strict=True)
        cells = [[name, *(_cell(value) for value in line)] for name, line in lines]
        return "\n".join(text_table(title, ["", *_HEAD], cells))

    @property
    def ways(self) -> tuple[str, ...]:
        """Deprecated name of `strategies`."""
        return self.strategies

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as a dict of plain numbers, lists and texts."""
        lines = zip(self.strategies, self.values.tolist(), strict=True)
        return {
            "ways": {name: dict(zip(MEASURES, line, strict=True)) for name, line in lines},
            "labels": self.labels.tolist(),
            "rows": list(self.rows),
            "positive": self.positive,
            "folds": self.folds,
        }

    def frame(self) -> Any:
        """Return the comparison as a pandas data frame."""
        pandas = import_pandas()
        return pandas.DataFrame(self.values, index=list(self.strategies), columns=list(MEASURES))


def _cell(value: float) -> str:
    return "-" if np.isnan(value) else format_number(value, 4)


@dataclass(frozen=True, slots=True, eq=False)
class _StrategyPredictions:
    """Held-out predictions of one strategy."""

    decided: Codes  # (N,) predicted class codes
    ranking: Floats | None  # (N, K) larger for likelier classes; None if the model cannot rank rows
    log_posterior: Floats | None  # (N, K) None if the model has no probabilities

    @classmethod
    def from_scores(cls, scores: HeldOutScores, *, probabilistic: bool) -> _StrategyPredictions:
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
    """Compare strategies for rare classes with the plain classifier, on held-out rows.

    Parameters
    ----------
    estimator : classifier
        Any classifier.
    X : array, sparse matrix or data frame of shape (n, d)
        Rows.
    y : array of shape (n,)
        Class labels.
    positive : label, optional
        Class for which F1, AUC, average precision and calibration are computed. None means the
        rarer of two classes; with more classes, these measures are averaged over the classes. AUC
        then compares each class with all others, and the calibration error is computed for the most
        probable class.
    cost : dict, array of shape (K, K) or data frame, optional
        Cost of each decision for each true class, as in `Decision`; actions must be classes. The
        moved threshold then minimises the expected cost. None means that every error costs 1 and
        that the moved threshold of each class is its share p of the training rows. With two
        classes, the positive class is predicted if its odds exceed p/(1-p).
    strategies : dict of str to classifier, optional
        Strategies to compare with the plain fit and with its moved threshold. None means those of
        `imbalance_strategies(estimator)`. To add strategies, pass `imbalance_strategies(estimator)
        | {...}`.
    folds, groups, seed
        As in `cross_validate`. The seed is used for resampling too.
    ways
        Deprecated name of `strategies`.

    Returns
    -------
    ImbalanceComparison

    Notes
    -----
    A strategy is skipped with a warning if a fold has too few rows for it. For a classifier without
    probabilities, AUC and average precision are computed from `decision_function`.

    Examples
    --------
    >>> from discriminant import LDA
    >>> rng = np.random.default_rng(0)
    >>> rows = np.vstack([rng.normal(0, 1, (190, 2)), rng.normal(1.5, 1, (10, 2))])
    >>> comparison = compare_imbalance(LDA(), rows, [0] * 190 + [1] * 10, folds=5)
    >>> error = comparison.frame()["balanced_error"]
    >>> bool(error["reweighted"] < error["plain"])
    True
    """
    if isinstance(estimator, type) or not is_classifier(estimator):
        raise OptionError.of("estimator", estimator, "a classifier, such as LDA()")
    X = as_indexable(X)
    labels, codes = encode_classes(X, y)
    code = _positive_code(labels, codes, positive)
    costs = Costs.zero_one(labels) if cost is None else Costs.of(cost, labels)
    if costs.actions != tuple(labels.tolist()):
        raise OptionError.of("cost", list(costs.actions), "costs of actions that are classes")
    fold = fold_numbers(folds, codes, groups=groups, seed=seed, X=X)
    if ways is not None:
        warnings.warn("ways= is deprecated: use strategies=.", FutureWarning, stacklevel=2)
        strategies = ways if strategies is None else strategies
    if strategies is None:
        strategies = imbalance_strategies(estimator, seed)
    models = {PLAIN: estimator, **_check_strategies(strategies)}
    order = declared_order(y)
    models = {name: estimator_with_class_order(model, order) for name, model in models.items()}
    with merge_warnings():
        folded = MemoryFolds.of_rows(X, labels, codes, None, fold)
        predictions = _predict_held_out(models, folded, cost)
    assessments: dict[str, Assessment] = {}
    values = np.full((len(predictions), len(MEASURES)), np.nan)
    for s, (name, held_out) in enumerate(predictions.items()):
        if held_out is not None:
            assessments[name] = Assessment.from_decisions(
                codes, held_out.decided, labels=labels, log_posterior=held_out.log_posterior
            )
            values[s] = [
                *_ranking_measures(held_out.ranking, codes, code),
                *_decision_measures(assessments[name], code, costs),
            ]
    return ImbalanceComparison(
        tuple(predictions),
        values,
        assessments,
        labels,
        tuple(np.bincount(codes).tolist()),
        None if code is None else labels.tolist()[code],
        int(fold.max()) + 1,
    )


def imbalance_ways(estimator: Any, seed: Any = 0) -> dict[str, Any]:
    """Return `imbalance_strategies(estimator, seed)`. This name is deprecated."""
    warnings.warn(
        "imbalance_ways is deprecated: use imbalance_strategies.", FutureWarning, stacklevel=2
    )
    return imbalance_strategies(estimator, seed)


def imbalance_strategies(estimator: Any, seed: Any = 0) -> dict[str, Any]:
    """Return the usual strategies for rare classes: a dict of wrapped classifiers by name.

    Parameters
    ----------
    estimator : classifier
        Any classifier. It is not fitted.
    seed : int or RandomState, default 0
        Seed of the strategies that draw rows.

    Returns
    -------
    dict of str to classifier

    Examples
    --------
    >>> from discriminant import LDA
    >>> list(imbalance_strategies(LDA()))
    ['reweighted', 'under-sampled', 'over-sampled', 'SMOTE', 'EasyEnsemble']
    """
    strategies: dict[str, Any] = {}
    if has_fit_parameter(estimator, "sample_weight"):
        strategies["reweighted"] = Reweighted(estimator)
    for name, method in (("under-sampled", "under"), ("over-sampled", "over"), ("SMOTE", "smote")):
        strategies[name] = Resampled(estimator, method, random_state=seed)
    return strategies | {"EasyEnsemble": EasyEnsemble(estimator, random_state=seed)}


def _check_strategies(strategies: Any) -> dict[str, Any]:
    if not isinstance(strategies, Mapping):
        raise OptionError.of("strategies", strategies, "{name: classifier}")
    reserved = [name for name in strategies if name in (PLAIN, THRESHOLD)]
    if reserved:
        allowed = f"other names: '{PLAIN}' and '{THRESHOLD}' are always compared"
        raise OptionError.of("strategies", reserved, allowed)
    return dict(strategies)


def _ranking_measures(
    ranking: Floats | None, codes: Codes, positive: int | None
) -> tuple[float, float]:
    """Return AUC and average precision of the positive class, or their means over all classes."""
    if ranking is None or np.isnan(ranking).any():
        return np.nan, np.nan
    classes = range(ranking.shape[1]) if positive is None else [positive]
    pairs = [(codes == k, ranking[:, k]) for k in classes]
    areas = [auc(*pair, None, positive=True).value for pair in pairs]
    precisions = [average_precision(*pair, positive=True) for pair in pairs]
    return float(np.mean(areas)), float(np.mean(precisions))


def _decision_measures(assessment: Assessment, positive: int | None, costs: Costs) -> list[float]:
    """Return the measures listed in MEASURES after AUC and average precision, in this order."""
    label = None if positive is None else assessment.labels.tolist()[positive]
    probabilistic = bool(assessment.scored.weight.any())
    return [
        assessment.average("f") if positive is None else float(assessment.f1[positive]),
        1.0 - assessment.balanced_accuracy,
        assessment.cost(costs),
        assessment.log_loss,
        assessment.brier,
        assessment.calibration_error(label) if probabilistic else np.nan,
    ]


def _positive_code(labels: Labels, codes: Codes, positive: Any) -> int | None:
    if positive is not None and positive not in labels.tolist():
        raise LabelError.unknown([positive], labels.tolist())
    if positive is not None:
        return int(labels.tolist().index(positive))
    return int(np.bincount(codes).argmin()) if len(labels) == 2 else None


def _predict_held_out(
    models: Mapping[str, Any], folded: MemoryFolds, cost: Any
) -> dict[str, _StrategyPredictions | None]:
    """Return the held-out predictions of every strategy (None if it cannot be fitted)."""

    def make_model(estimator: Any) -> FoldModel:
        ranks = partial(_lacks_posterior, estimator)
        return FoldModel(estimator, from_moments=False, decide=False, ranks=ranks)

    makers = {name: partial(make_model, model) for name, model in models.items()}
    predictions: dict[str, _StrategyPredictions | None] = {}
    for scores in score_folds(folded, makers):
        name = scores.name
        predictions[name] = None
        if scores.error is None:
            probabilistic = gives_posterior(models[name])
            predictions[name] = _StrategyPredictions.from_scores(
                scores, probabilistic=probabilistic
            )
        elif name == PLAIN or not isinstance(scores.error, _TOO_FEW):
            raise scores.error
        else:
            fold = scores.failed_fold
            warn(
                StrategyNotEvaluatedWarning.of(name, 0 if fold is None else fold, str(scores.error))
            )
        for warning in scores.warnings:
            # skipped strategies are named in a single warning below
            if not isinstance(warning, NoPosteriorWarning):
                warn(warning)
        if name == PLAIN:
            predictions[THRESHOLD] = _move_threshold(predictions[PLAIN], folded, cost)
    unscored = [
        f"'{name}'"
        for name, held_out in predictions.items()
        if held_out is not None and held_out.log_posterior is None
    ]
    if unscored:
        warn(NoPosteriorWarning.of_measures(", ".join(unscored)))
    return predictions


def _lacks_posterior(estimator: Any, fitted: Any) -> bool:
    return not gives_posterior(estimator)


def _move_threshold(
    plain: _StrategyPredictions | None, folded: MemoryFolds, cost: Any
) -> _StrategyPredictions | None:
    """Return the predictions of the plain fit with a moved threshold.

    Return None if the plain fit has no probabilities.
    """
    if plain is None or plain.log_posterior is None:
        return None
    K = len(folded.labels)
    decided = np.zeros(len(folded.codes), dtype=np.intp)
    total = np.bincount(folded.codes, minlength=K)
    for rows in folded.rows:
        training = total - np.bincount(folded.codes[rows], minlength=K)
        costs = _training_costs(training, folded.labels, cost)
        decided[rows] = least_cost(plain.log_posterior[rows], costs)[0]
    return _StrategyPredictions(decided, plain.ranking, plain.log_posterior)


def _training_costs(count: Codes, labels: Labels, cost: Any) -> Costs:
    """Return the costs given by `cost`.

    If `cost` is None, return costs whose thresholds are the training class shares.
    """
    if cost is not None:
        return Costs.of(cost, labels)
    # a class without rows has posterior 0, so its threshold does not matter
    share = np.where(count > 0, count / count.sum(), 1.0)
    return Costs.of_threshold(dict(zip(labels.tolist(), share.tolist(), strict=True)), labels)
