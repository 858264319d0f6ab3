"""From what M two-class classifiers say of a row to its class.

With f_m what classifier m says (positive for its positive side) and s = sign f the row's word:

    hamming    distance_k = sum_m (1 - s_m signs[k, m]) / 2; ties by sum_m f_m signs[k, m]
    euclidean  distance_k = |v - signs_k|,  v = 2 P(positive) - 1, or f cut to [-1, 1]
    loss       loss_k = sum_m loss(f_m signs[k, m]): what the row would cost if k were true

A classifier that leaves out class k is half wrong about it in the first. The loss is logistic,
log(1 + exp -z), for classifiers with probabilities, and else that of support vectors,
max(0, 1 - z). All are read so that the largest score wins.

A word is ambiguous where it is no class's own. With one against the rest, none or several say yes;
with pairs, no class wins against all others; those are the regions that lecture 4 draws.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from discriminant.models.codes import Signs
from discriminant.table.schema import Floats

Decoding = Literal["hamming", "euclidean", "loss"]
DECODINGS: tuple[Decoding, ...] = ("hamming", "euclidean", "loss")


@dataclass(frozen=True, slots=True, eq=False)
class Ambiguity:
    """How many classes claim each row, and where the nearest code word is not the only one."""

    claims: npt.NDArray[np.intp]  # (n,) classes that say yes, or whose code word it is
    tied: npt.NDArray[np.bool_]  # (n,) whether several classes are nearest, counting signs alone

    @property
    def none(self) -> float:
        """Share of rows that no class claims."""
        return float((self.claims == 0).mean())

    @property
    def several(self) -> float:
        """Share of rows that more than one class claims."""
        return float((self.claims > 1).mean())

    @property
    def tie(self) -> float:
        """Share of rows that signs alone cannot decide."""
        return float(self.tied.mean())

    def __repr__(self) -> str:
        """One line: the shares."""
        return (
            f"Ambiguity({len(self.claims)} rows: none says yes {self.none:.2%}, "
            f"several {self.several:.2%}, tied {self.tie:.2%})"
        )


def hamming(said: Floats, signs: Signs) -> Floats:
    """(n, K) less the number of classifiers that say otherwise, and a little for confidence.

    Lecture 5, figure 3.5: one of five classifiers errs, and the word still is that of class 2.

    >>> signs = [[-1, 1, -1, 1, 1], [1, -1, -1, 1, -1], [-1, 1, 1, -1, 1], [-1, -1, 1, 1, -1]]
    >>> word = np.array([[-1.0, -1.0, 1.0, -1.0, 1.0]])
    >>> hamming(word, np.array(signs)).round().tolist()
    [[-3.0, -4.0, -1.0, -2.0]]
    """
    real = signs.T.astype(np.float64)
    scores = np.dot(np.sign(said), real)
    scores -= signs.shape[1]
    scores /= 2
    sure = np.dot(said, real)
    most = np.abs(sure).max(axis=1, keepdims=True)
    scores += sure / (6.0 * np.where(most > 0, most, 1.0))  # less than half of the least step
    return np.asarray(scores)


def euclidean(word: Floats, signs: Signs) -> Floats:
    """(n, K) less the distance of words in [-1, 1] from those of the classes."""
    real = signs.T.astype(np.float64)
    squares = (word**2).sum(axis=1)[:, None] - 2 * np.dot(word, real) + (real**2).sum(axis=0)
    return np.asarray(-np.sqrt(np.maximum(squares, 0.0)))


def by_loss(said: Floats, signs: Signs, *, logistic: bool) -> Floats:
    """(n, K) less the sum of losses, up to what is common to all classes.

    log(1 + exp -z s) = log(2 cosh z/2) - z s / 2, so that without zeros only z s counts: then
    linear members make a linear rule.
    """
    if logistic:
        return _by_logistic(said, signs)
    plus, minus = ((signs == side).T.astype(np.float64) for side in (1, -1))
    scores = np.dot(np.maximum(0.0, 1.0 - said), plus)
    scores += np.dot(np.maximum(0.0, 1.0 + said), minus)
    return np.asarray(-scores - (signs == 0).sum(axis=1))


def _by_logistic(said: Floats, signs: Signs) -> Floats:
    scores = np.dot(0.5 * said, signs.T.astype(np.float64))
    if signs.all():
        return np.asarray(scores)
    even = np.abs(said)
    even = 0.5 * even + np.log1p(np.exp(-even))
    scores -= np.dot(even, np.abs(signs).T.astype(np.float64))
    return np.asarray(scores - (signs == 0).sum(axis=1) * np.log(2.0))


def ambiguity(said: Floats, signs: Signs, *, rest: bool) -> Ambiguity:
    """Who claims rows: those that say yes (one against the `rest`), or those whose word it is."""
    real = signs.T.astype(np.float64)
    agree = np.dot(np.sign(said), real)
    apart = np.abs(signs).sum(axis=1) - agree  # twice as many as say otherwise
    yes = said > 0 if rest else apart == 0
    nearest = agree == agree.max(axis=1, keepdims=True)
    return Ambiguity(yes.sum(axis=1), nearest.sum(axis=1) > 1)
