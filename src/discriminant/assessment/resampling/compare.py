"""Comparison of models on held-out rows: corrected resampled t test and McNemar's test.

Corrected resampled t (Nadeau and Bengio 2003). With d_1 ... d_J the differences of the losses of
two models over J folds (of all repetitions) and n_test / n_train the ratio of held-out to training
rows:

    t = mean d / sqrt((1 / J + n_test / n_train) s^2),   s^2 = sum (d - mean d)^2 / (J - 1)

on J - 1 degrees of freedom. Training sets share rows, so fold losses are not independent: the
uncorrected t, with 1 / J only, finds differences where there are none.

McNemar's test, for one repetition. With b rows that only the first model misclassifies, and c rows
that only the second does:

    exact   2 P(Binomial(b + c, 1/2) <= min(b, c)), at most 1
    chi2    (|b - c| - 1)^2 / (b + c) on 1 degree of freedom; 0 if b = c (as R's mcnemar.test)

McNemar's test compares the fitted models and ignores that they vary with the training rows.

With more than two models all pairs are tested, and Holm's p-values are adjusted for the number of
tests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np
from scipy import special

from discriminant.assessment.intervals import check_level
from discriminant.assessment.printed_results import (
    PrintedResult,
    format_number,
    format_p,
    text_table,
)
from discriminant.assessment.resampling.held_out_folds import HeldOutPredictions
from discriminant.errors import (
    ComparisonError,
    NoSpreadWarning,
    OptionError,
    PosteriorError,
    warn,
)
from discriminant.table.blocks import Floats
from discriminant.table.column_cells import import_pandas
from discriminant.table.labels import same_labels

Test = Literal["resampled_t", "mcnemar", "mcnemar_chi2"]
Loss = Literal["error", "log_loss"]
Runs = Mapping[Any, Sequence[HeldOutPredictions]]  # {model: predictions of each repetition}


@dataclass(frozen=True, slots=True)
class PairComparison:
    """Comparison of two models."""

    first: Any  # name of a model
    second: Any  # name of the other model
    difference: float  # loss of the first minus that of the second; negative: the first is better
    standard_error: float  # NaN for McNemar
    low: float  # interval of the difference; NaN for McNemar
    high: float
    statistic: float  # t, chi-square, or the smaller of b and c
    df: float  # degrees of freedom; NaN for an exact test
    p: float
    p_holm: float  # Holm's p-value, adjusted for all pairs
    only_first: float  # weight of rows that only the first classifies correctly (all repetitions)
    only_second: float  # weight of rows that only the second classifies correctly


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ModelComparison(PrintedResult):
    """Result of `compare_models`: losses of the models and tests of all pairs."""

    test: Test
    loss: Loss
    losses: dict[Any, float]  # loss of each model over all held-out rows
    pairs: tuple[PairComparison, ...]

    @property
    def text(self) -> str:
        """The losses of the models, then the tests of pairs."""
        losses = [[str(name), format_number(value)] for name, value in self.losses.items()]
        pairs = [
            [
                f"{pair.first} - {pair.second}",
                format_number(pair.difference),
                format_number(pair.statistic, 4),
                format_p(pair.p),
                format_p(pair.p_holm),
            ]
            for pair in self.pairs
        ]
        title = f"{_TITLES[self.test]} of held-out {self.loss.replace('_', ' ')}"
        head = ["Pair", "Difference", "Statistic", "p", "p (Holm)"]
        loss = text_table("", ["Model", self.loss], losses)
        return "\n".join([*loss, "", *text_table(title, head, pairs)])

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a dictionary of plain numbers, lists and texts."""
        pairs = [asdict(pair) for pair in self.pairs]
        return {"test": self.test, "loss": self.loss, "losses": dict(self.losses), "pairs": pairs}

    def frame(self) -> Any:
        """Return a pandas frame with a row for each pair."""
        return import_pandas().DataFrame(self.to_dict()["pairs"])


_TITLES = {
    "resampled_t": "Corrected resampled t",
    "mcnemar": "McNemar, exact,",
    "mcnemar_chi2": "McNemar, chi-square,",
}


@np.errstate(under="ignore")
def compare_models(
    held: Mapping[Any, HeldOutPredictions | Sequence[HeldOutPredictions]],
    *others: Any,
    test: Test = "resampled_t",
    loss: Loss = "error",
    level: float = 0.95,
) -> ModelComparison:
    """Compare models by their held-out predictions.

    Parameters
    ----------
    held : mapping
        {name: result of `cross_validate`}, all for the same rows and folds. For repeated
        cross-validation, pass {name: list of results}, with one result for each repetition.
    others
        No further positional arguments are accepted: rows and labels belong to `cross_validate`.
    test : {'resampled_t', 'mcnemar', 'mcnemar_chi2'}
        'resampled_t': Nadeau and Bengio's corrected t over folds. 'mcnemar', 'mcnemar_chi2': on the
        rows that exactly one of the two models classifies correctly.
    loss : {'error', 'log_loss'}
        'error' is the error of the decided rows, if a model rejects some. 'log_loss' is available
        only with 'resampled_t'.
    level : float, default=0.95
        Confidence level of the interval of the difference.

    Returns
    -------
    ModelComparison

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discriminant import LDA, QDA, cross_validate
    >>> X, y = load_wine(return_X_y=True)
    >>> fold = np.arange(len(y)) % 10
    >>> held = {m: cross_validate(m(), X[:, :3], y, fold) for m in (LDA, QDA)}
    >>> pair = compare_models({m.__name__: rows for m, rows in held.items()}).pairs[0]
    >>> pair.first, pair.second, bool(pair.p > 0.05)
    ('LDA', 'QDA', True)
    """
    if test not in ("resampled_t", "mcnemar", "mcnemar_chi2"):
        raise OptionError.of("test", test, "'resampled_t', 'mcnemar' or 'mcnemar_chi2'")
    if loss not in ("error", "log_loss"):
        raise OptionError.of("loss", loss, "'error' or 'log_loss'")
    if loss == "log_loss" and test != "resampled_t":
        raise OptionError.of("loss", loss, "'error' with McNemar's test, which counts errors")
    level = check_level(level)
    if others:
        raise ComparisonError.not_named(f"call with {len(others) + 1} positional arguments")
    if not isinstance(held, Mapping):
        raise ComparisonError.not_named(type(held).__name__)
    runs = {name: _as_repetitions(name, held_out) for name, held_out in held.items()}
    if len(runs) < 2:
        raise ComparisonError.too_few(len(runs))
    _check_same_rows(runs)
    if loss == "log_loss":
        for name, repetitions in runs.items():
            if not all(run.probabilistic for run in repetitions):
                raise PosteriorError.not_probabilities(str(name), "a log loss")
    if test == "resampled_t":
        fold_losses = {name: _fold_losses(name, runs[name], loss) for name in runs}
        pairs = [
            _resampled_t(first, second, fold_losses, runs, level, loss)
            for first, second in combinations(runs, 2)
        ]
    else:
        pairs = [_mcnemar(first, second, runs, test) for first, second in combinations(runs, 2)]
    losses = {name: float(np.mean([getattr(run, loss) for run in runs[name]])) for name in runs}
    return ModelComparison(test, loss, losses, tuple(_with_holm(pairs)))


def corrected_t(differences: Floats, ratio: float) -> tuple[float, float]:
    """Return the standard error and t of a mean of J differences.

    `ratio` is `n_test / n_train`.

    >>> se, t = corrected_t(np.array([1.0, 2.0, 3.0]), 0.5)  # s^2 = 1
    >>> round(se**2, 6), round(t**2, 6)  # 1 / 3 + 1 / 2, and 4 over that
    (0.833333, 4.8)
    """
    J, mean = len(differences), float(differences.mean())
    se = float(np.sqrt((1.0 / J + ratio) * differences.var(ddof=1)))
    if se <= 1e-15 * np.abs(differences).max():
        warn(NoSpreadWarning.of_comparison(mean))
        return 0.0, float(np.copysign(np.inf, mean)) if mean else 0.0
    return se, mean / se


def _resampled_t(
    first: Any,
    second: Any,
    losses: Mapping[Any, Floats],
    runs: Runs,
    level: float,
    loss: Loss,
) -> PairComparison:
    differences = losses[first] - losses[second]
    df = float(len(differences) - 1)
    se, t = corrected_t(differences, _test_train_ratio(runs[first]))
    mean = float(differences.mean())
    reach = se * float(special.stdtrit(df, 0.5 + 0.5 * level))
    p = 2.0 * float(special.stdtr(df, -abs(t)))
    only = _only_one_correct(runs[first], runs[second])
    bound = 1.0 if loss == "error" else np.inf  # the largest difference of two errors
    ends = max(mean - reach, -bound), min(mean + reach, bound)
    return PairComparison(first, second, mean, se, *ends, t, df, p, p, *only)


def _mcnemar(first: Any, second: Any, runs: Runs, test: Test) -> PairComparison:
    if len(runs[first]) > 1:
        raise ComparisonError.repeated(first, len(runs[first]))
    weight = runs[first][0].weight
    if weight is not None and (weight != np.floor(weight)).any():
        raise ComparisonError.fractional_weight()
    c, b = _only_one_correct(runs[first], runs[second])
    difference = runs[first][0].error - runs[second][0].error
    statistic, df, p = mcnemar(b, c, exact=test == "mcnemar")
    nan = float("nan")
    return PairComparison(first, second, difference, nan, nan, nan, statistic, df, p, p, c, b)


def mcnemar(b: float, c: float, *, exact: bool) -> tuple[float, float, float]:
    """Return statistic, degrees of freedom and p-value of McNemar's test for counts b and c.

    >>> round(mcnemar(1, 5, exact=True)[2], 12)  # 2 (1 + 6) / 2^6
    0.21875
    """
    if exact:
        smaller = min(b, c)
        p = min(1.0, 2.0 * float(special.bdtr(smaller, int(b + c), 0.5))) if b + c else 1.0
        return smaller, float("nan"), p
    excess = 0.0 if b == c else abs(b - c) - 1.0
    statistic = excess**2 / (b + c) if b + c else 0.0
    return statistic, 1.0, float(special.chdtrc(1.0, statistic))


def _fold_losses(name: Any, repetitions: Sequence[HeldOutPredictions], loss: Loss) -> Floats:
    """Return the loss of each fold of each repetition, (J,)."""
    losses = []
    for run in repetitions:
        rows = np.arange(len(run.codes))
        weight = np.ones(len(rows)) if run.weight is None else run.weight
        if loss == "log_loss":
            row_losses = -run.log_posterior[rows, run.codes]
        else:
            row_losses = run.wrong.astype(np.float64)
            all_weight, weight = weight, weight * (run.decided < len(run.labels))
            undecided = np.bincount(run.fold, weight) == 0
            for fold in np.flatnonzero(undecided & (np.bincount(run.fold, all_weight) > 0))[:1]:
                raise ComparisonError.nothing_decided(name, int(fold))
        with np.errstate(invalid="ignore"):
            sums = np.bincount(run.fold, np.where(weight > 0, weight * row_losses, 0.0))
        for fold in np.flatnonzero(~np.isfinite(sums))[:1]:
            raise ComparisonError.infinite_loss(name, int(fold))
        total = np.bincount(run.fold, weight)
        losses.append(sums[total > 0] / total[total > 0])
    return np.concatenate(losses)


def _test_train_ratio(repetitions: Sequence[HeldOutPredictions]) -> float:
    """Return the ratio of held-out to training weight, averaged over all folds."""
    ratios = []
    for run in repetitions:
        held = np.bincount(run.fold, run.weight).astype(np.float64)
        held = held[held > 0]
        ratios.append(held / (held.sum() - held))
    return float(np.concatenate(ratios).mean())


def _only_one_correct(
    first: Sequence[HeldOutPredictions], second: Sequence[HeldOutPredictions]
) -> tuple[float, float]:
    """Return two weights of rows that exactly one of two models classifies correctly.

    The first is the weight of the rows that only the first model classifies correctly, the second
    the weight of the rows that only the second model classifies correctly.
    """
    total = np.zeros(2)
    for a, b in zip(first, second, strict=True):
        weight = np.ones(len(a.codes)) if a.weight is None else a.weight
        total += weight @ (b.wrong & ~a.wrong), weight @ (a.wrong & ~b.wrong)
    return float(total[0]), float(total[1])


def _with_holm(pairs: Sequence[PairComparison]) -> list[PairComparison]:
    """Return the pairs with p-values adjusted by Holm's method (1979)."""
    order = np.argsort([pair.p for pair in pairs], kind="stable")
    largest, adjusted = 0.0, np.empty(len(pairs))
    for rank, place in enumerate(order):
        largest = max(largest, min(1.0, (len(pairs) - rank) * pairs[place].p))
        adjusted[place] = largest
    return [replace(pair, p_holm=float(p)) for pair, p in zip(pairs, adjusted, strict=True)]


def _as_repetitions(name: Any, held_out: Any) -> list[HeldOutPredictions]:
    repetitions = list(held_out) if isinstance(held_out, list | tuple) else [held_out]
    for run in repetitions:
        if not isinstance(run, HeldOutPredictions):
            raise ComparisonError.not_held_out(name, type(run).__name__)
    if not repetitions:
        raise ComparisonError.none_held_out(name)
    return repetitions


def _check_same_rows(runs: Runs) -> None:
    """Raise an error if the results of the models are not for the same rows and folds."""
    (name, base), *others = runs.items()
    for other, repetitions in others:
        if len(repetitions) != len(base):
            raise ComparisonError.of_repeats(name, len(base), other, len(repetitions))
        for a, b in zip(base, repetitions, strict=True):
            weight_a, weight_b = (np.ones(1) if w is None else w for w in (a.weight, b.weight))
            for what, same in (
                ("classes", same_labels(a.labels, b.labels)),
                ("true classes", np.array_equal(a.codes, b.codes)),
                ("folds", np.array_equal(a.fold, b.fold)),
                ("weights", np.array_equal(weight_a, weight_b)),
            ):
                if not same:
                    raise ComparisonError.of_rows(name, other, what)
