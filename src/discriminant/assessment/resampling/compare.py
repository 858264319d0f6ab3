"""Whether one model is better than another, on rows that neither was fitted to.

Corrected resampled t (Nadeau and Bengio 2003). With d_1 ... d_J the differences of the losses of
two models over J folds, of all repetitions, and n_test / n_train the rows held out over the others:

    t = mean d / sqrt((1 / J + n_test / n_train) s^2),   s^2 = sum (d - mean d)^2 / (J - 1)

on J - 1 degrees of freedom. Training parts share rows, so fold losses are not independent: the
plain t has 1 / J alone and finds differences where there are none.

McNemar, one repetition. With b rows that only the first model gets wrong, c only the second:

    exact   2 P(Binomial(b + c, 1/2) <= min(b, c)), at most 1
    chi2    (|b - c| - 1)^2 / (b + c) on 1 degree of freedom; 0 if b = c (as R's mcnemar.test)

It says how sure the choice between these fitted models is, not how they vary with training rows.

More than two models: all pairs, and Holm's p-values, which hold for all of them together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np
from scipy import special

from discriminant.assessment.inference.summary import format_number, format_p, text_table
from discriminant.assessment.intervals import check_level
from discriminant.assessment.resampling.held_out import HeldOutPredictions
from discriminant.errors import (
    ComparisonError,
    NoSpreadWarning,
    OptionError,
    PosteriorError,
    warn,
)
from discriminant.table.blocks import Floats
from discriminant.table.cells import import_pandas
from discriminant.table.labels import same_labels

Test = Literal["resampled_t", "mcnemar", "mcnemar_chi2"]
Loss = Literal["error", "log_loss"]


@dataclass(frozen=True, slots=True)
class PairComparison:
    """Two models."""

    first: Any  # name
    second: Any  # name
    difference: float  # loss of the first less that of the second: negative, the first is better
    standard_error: float  # NaN for McNemar
    low: float  # interval of the difference; NaN for McNemar
    high: float
    statistic: float  # t, chi-square, or the lesser of b and c
    df: float  # NaN for an exact test
    p: float
    p_holm: float  # holds for all pairs together
    only_first: float  # weight of rows that only the second gets wrong (over all repetitions)
    only_second: float  # and that only the first gets wrong


@dataclass(frozen=True, slots=True, eq=False)
class ModelComparison:
    """What `compare_models` returns: print it, or ask for `frame()` or `to_dict()`."""

    test: Test
    loss: Loss
    losses: dict[Any, float]  # over all held-out rows, of each model
    pairs: tuple[PairComparison, ...]

    def __str__(self) -> str:
        """The losses, then the pairs."""
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

    __repr__ = __str__

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, lists and texts."""
        names = PairComparison.__slots__
        pairs = [{name: getattr(pair, name) for name in names} for pair in self.pairs]
        return {"test": self.test, "loss": self.loss, "losses": dict(self.losses), "pairs": pairs}

    def frame(self) -> Any:
        """The pairs as a pandas data frame."""
        return import_pandas().DataFrame(self.to_dict()["pairs"])


_TITLES = {
    "resampled_t": "Corrected resampled t",
    "mcnemar": "McNemar, exact,",
    "mcnemar_chi2": "McNemar, chi-square,",
}


@np.errstate(under="ignore")
def compare_models(
    held: Mapping[Any, HeldOutPredictions | Sequence[HeldOutPredictions]],
    *,
    test: Test = "resampled_t",
    loss: Loss = "error",
    level: float = 0.95,
) -> ModelComparison:
    """Compare models by what they say of rows that they have not seen.

    Parameters
    ----------
    held
        {name: what `cross_validate` returned}, all of the same rows and folds; or {name: several of
        them}, one for each repetition with other folds.
    test
        "resampled_t": Nadeau and Bengio's corrected t over folds. "mcnemar", "mcnemar_chi2": on the
        rows that one model has right and the other wrong.
    loss
        "error", of the decided rows where a model rejects some, or "log_loss" for the t.
    level
        Of the interval of the difference.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from discriminant import LDA, QDA, cross_validate
    >>> X, y = load_wine(return_X_y=True)
    >>> fold = np.arange(len(y)) % 10
    >>> held = {m: cross_validate(m(), X[:, :3], y, fold) for m in (LDA, QDA)}
    >>> pair = compare_models({m.__name__: found for m, found in held.items()}).pairs[0]
    >>> pair.first, pair.second, bool(pair.p > 0.05)
    ('LDA', 'QDA', True)
    """
    _check(test, loss)
    level = check_level(level)
    if not isinstance(held, Mapping):
        raise ComparisonError.not_named(type(held).__name__)
    runs = {name: _listed(name, found) for name, found in held.items()}
    if len(runs) < 2:
        raise ComparisonError.too_few(len(runs))
    _check_alike(runs)
    if loss == "log_loss":
        for name, found in runs.items():
            if not all(one.probabilistic for one in found):
                raise PosteriorError.not_probabilities(str(name), "a log loss")
    if test == "resampled_t":
        fold_losses = {name: _fold_losses(found, loss, name) for name, found in runs.items()}
        pairs = [
            _resampled_t(first, second, fold_losses, runs, level, loss)
            for first, second in combinations(runs, 2)
        ]
    else:
        pairs = [_mcnemar(first, second, runs, test) for first, second in combinations(runs, 2)]
    losses = {
        name: float(np.mean([getattr(one, loss) for one in found])) for name, found in runs.items()
    }
    return ModelComparison(test, loss, losses, tuple(_with_holm(pairs)))


def corrected_t(differences: Floats, ratio: float) -> tuple[float, float]:
    """Standard error and t of a mean of J differences; ratio is n_test / n_train.

    >>> spread, t = corrected_t(np.array([1.0, 2.0, 3.0]), 0.5)  # s^2 = 1
    >>> round(spread**2, 6), round(t**2, 6)  # 1 / 3 + 1 / 2, and 4 over that
    (0.833333, 4.8)
    """
    J, mean = len(differences), float(differences.mean())
    spread = float(np.sqrt((1.0 / J + ratio) * differences.var(ddof=1)))
    if spread <= 1e-15 * np.abs(differences).max():
        warn(NoSpreadWarning.of_comparison(mean))
        return 0.0, float(np.copysign(np.inf, mean)) if mean else 0.0
    return spread, mean / spread


def _resampled_t(
    first: Any,
    second: Any,
    losses: Mapping[Any, Floats],
    runs: Mapping[Any, Sequence[HeldOutPredictions]],
    level: float,
    loss: Loss,
) -> PairComparison:
    differences = losses[first] - losses[second]
    df = float(len(differences) - 1)
    spread, t = corrected_t(differences, _ratio(runs[first]))
    mean = float(differences.mean())
    reach = spread * float(special.stdtrit(df, 0.5 + 0.5 * level))
    p = 2.0 * float(special.stdtr(df, -abs(t)))
    only = _only(runs[first], runs[second])
    bound = 1.0 if loss == "error" else np.inf  # of a difference of two errors
    ends = max(mean - reach, -bound), min(mean + reach, bound)
    return PairComparison(first, second, mean, spread, *ends, t, df, p, p, *only)


def _mcnemar(
    first: Any, second: Any, runs: Mapping[Any, Sequence[HeldOutPredictions]], test: Test
) -> PairComparison:
    one, two = runs[first], runs[second]
    if len(one) > 1:
        raise ComparisonError.repeated(first, len(one))
    weight = one[0].weight
    if weight is not None and (weight != np.floor(weight)).any():
        raise ComparisonError.fractional_weight()
    c, b = _only(one, two)
    gap = one[0].error - two[0].error
    statistic, df, p = mcnemar(b, c, exact=test == "mcnemar")
    none = float("nan")
    return PairComparison(first, second, gap, none, none, none, statistic, df, p, p, c, b)


def mcnemar(b: float, c: float, *, exact: bool) -> tuple[float, float, float]:
    """Statistic, degrees of freedom and p-value of b against c rows.

    >>> round(mcnemar(1, 5, exact=True)[2], 12)  # 2 (1 + 6) / 2^6
    0.21875
    """
    if exact:
        least = min(b, c)
        p = min(1.0, 2.0 * float(special.bdtr(least, int(b + c), 0.5))) if b + c else 1.0
        return least, float("nan"), p
    off = 0.0 if b == c else abs(b - c) - 1.0
    statistic = off**2 / (b + c) if b + c else 0.0
    return statistic, 1.0, float(special.chdtrc(1.0, statistic))


def _fold_losses(found: Sequence[HeldOutPredictions], loss: Loss, name: Any) -> Floats:
    """(J,) loss of each fold of each repetition."""
    each = []
    for one in found:
        rows = np.arange(len(one.codes))
        paid = one.wrong.astype(np.float64)
        if loss == "log_loss":
            paid = -one.log_posterior[rows, one.codes]
        weight = np.ones(len(rows)) if one.weight is None else one.weight
        if loss == "error":  # of the decided rows
            every, weight = weight, weight * (one.decided < len(one.labels))
            none = np.bincount(one.fold, weight) == 0
            for fold in np.flatnonzero(none & (np.bincount(one.fold, every) > 0))[:1]:
                raise ComparisonError.nothing_decided(name, int(fold))
        with np.errstate(invalid="ignore"):
            sums = np.bincount(one.fold, np.where(weight > 0, weight * paid, 0.0))
        for fold in np.flatnonzero(~np.isfinite(sums))[:1]:
            raise ComparisonError.infinite_loss(name, int(fold))
        total = np.bincount(one.fold, weight)
        each.append(sums[total > 0] / total[total > 0])
    return np.concatenate(each)


def _ratio(found: Sequence[HeldOutPredictions]) -> float:
    """Mean weight of held-out over that of training rows, of all folds."""
    each = []
    for one in found:
        held = np.bincount(one.fold, one.weight).astype(np.float64)
        held = held[held > 0]
        each.append(held / (held.sum() - held))
    return float(np.concatenate(each).mean())


def _only(
    first: Sequence[HeldOutPredictions], second: Sequence[HeldOutPredictions]
) -> tuple[float, float]:
    """Weight of the rows that only the second gets wrong, and only the first."""
    total = np.zeros(2)
    for one, two in zip(first, second, strict=True):
        weight = np.ones(len(one.codes)) if one.weight is None else one.weight
        total += weight @ (two.wrong & ~one.wrong), weight @ (one.wrong & ~two.wrong)
    return float(total[0]), float(total[1])


def _with_holm(pairs: Sequence[PairComparison]) -> list[PairComparison]:
    """The pairs with the p-values of Holm (1979)."""
    order = np.argsort([pair.p for pair in pairs], kind="stable")
    most, adjusted = 0.0, np.empty(len(pairs))
    for rank, place in enumerate(order):
        most = max(most, min(1.0, (len(pairs) - rank) * pairs[place].p))
        adjusted[place] = most
    return [replace(pair, p_holm=float(p)) for pair, p in zip(pairs, adjusted, strict=True)]


def _listed(
    name: Any, found: HeldOutPredictions | Sequence[HeldOutPredictions]
) -> list[HeldOutPredictions]:
    each: list[Any] = list(found) if isinstance(found, list | tuple) else [found]
    for one in each:
        if not isinstance(one, HeldOutPredictions):
            raise ComparisonError.not_held_out(name, type(one).__name__)
    if not each:
        raise ComparisonError.none_held_out(name)
    return each


def _check_alike(runs: Mapping[Any, Sequence[HeldOutPredictions]]) -> None:
    """Refuse models that were held out by different folds or on different rows."""
    (name, base), *others = runs.items()
    for other, found in others:
        if len(found) != len(base):
            raise ComparisonError.of_repeats(name, len(base), other, len(found))
        for one, two in zip(base, found, strict=True):
            mine, theirs = (np.ones(1) if w is None else w for w in (one.weight, two.weight))
            for what, same in (
                ("classes", same_labels(one.labels, two.labels)),
                ("true classes", np.array_equal(one.codes, two.codes)),
                ("folds", np.array_equal(one.fold, two.fold)),
                ("weights", np.array_equal(mine, theirs)),
            ):
                if not same:
                    raise ComparisonError.of_rows(name, other, what)


def _check(test: str, loss: str) -> None:
    if test not in ("resampled_t", "mcnemar", "mcnemar_chi2"):
        raise OptionError.of("test", test, "'resampled_t', 'mcnemar' or 'mcnemar_chi2'")
    if loss not in ("error", "log_loss"):
        raise OptionError.of("loss", loss, "'error' or 'log_loss'")
    if loss == "log_loss" and test != "resampled_t":
        raise OptionError.of("loss", loss, "'error' with McNemar's test, which counts errors")
