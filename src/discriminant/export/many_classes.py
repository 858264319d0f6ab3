"""Many classes from two, in steps: what members say, and how that is decoded.

See `models.decomposition` and `models.decoding` for the formulas. Coupled probabilities of three or
more classes are a search for each row, which no step can say.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from discriminant.errors import ExportError
from discriminant.export import rules
from discriminant.export.answers import (
    Answer,
    answer_of,
    decided,
    name_of,
    regresses,
    scores_of,
    texts,
    value_of,
)
from discriminant.export.links import LINKS
from discriminant.export.steps import Step, constant, greater, stack
from discriminant.models.decoding import Decoding
from discriminant.models.decomposition import Members
from discriminant.models.indicator import IndicatorRule
from discriminant.table.schema import Floats


def decomposed(model: Any, x: Step) -> Answer:
    """What members say, decoded; coupled probabilities of three or more classes are a search."""
    labels, base = tuple(model.classes_.tolist()), model.base_
    signs = model.code_.astype(np.float64)
    said, pairs = _said(model.members_, x)
    sure = hasattr(base, "predict_proba")
    if signs.shape == (2, 1):
        score = (said * 0.5).affine(signs, np.zeros(2)).named("score", texts(labels))
        found = Answer(labels, score, decided(score))
        return _two_sided(found, pairs[0], signs[1, 0]) if sure else found
    score = _decode(model, said, pairs, signs).named("score", texts(labels))
    why = (name_of(model), "they are coupled by a search for each row") if sure else None
    return Answer(labels, score, decided(score), unable=why)


@dataclass(frozen=True, slots=True, eq=False)
class _Pair:
    """What a member says of its two sides: log odds of the second, or shares of both."""

    odds: Step | None  # (1,)
    shares: Step | None = None  # (2,)

    def word(self) -> Step:
        """(1,) P(second) - P(first)."""
        if self.shares is not None:
            return (self.shares[1] - self.shares[0]) / self.shares.sum()
        assert self.odds is not None
        return _tanh_half(self.odds)


def _two_sided(found: Answer, pair: _Pair, side: float) -> Answer:
    if pair.shares is not None:
        return replace(found, shares=pair.shares.pick([0, 1] if side > 0 else [1, 0]))
    assert pair.odds is not None
    return replace(found, logs=LINKS["logit"](pair.odds * side))


def _said(members: Any, x: Step) -> tuple[Step, list[_Pair]]:
    """(M,) what members say, and what each says of its sides."""
    if not isinstance(members, Members):
        both = [_said_by(member, x) for member in members.fitted]
        return stack([said for said, _ in both]), [pair for _, pair in both]
    pairs = [_pair_of(x, rule, m) for m, rule in enumerate(members.rules)]
    if members.line is None:
        return stack([pair.odds for pair in pairs if pair.odds is not None]), pairs
    said = rules.linear(x, members.line, (), "said")
    return said, pairs or [_Pair(said[m]) for m in range(said.width)]


def _pair_of(x: Step, rule: Any, member: int) -> _Pair:
    sides = (f"{member}_no", f"{member}_yes")
    if isinstance(rule, IndicatorRule):
        return _Pair(None, rules.memberships(rules.fitted(x, rule, sides), rule))
    return _Pair(_between(scores_of(x, rule, sides)))


def _said_by(member: Any, x: Step) -> tuple[Step, _Pair]:
    """What a fitted member says of rows; as `estimators.members` has it."""
    if regresses(member):
        return value_of(member, x) * 2.0 - 1.0, _Pair(None)
    found = answer_of(member, x)
    odds = None if found.logs is None else _between(found.logs)
    pair = _Pair(odds, found.shares if odds is None else None)
    if hasattr(member, "decision_function") and found.score is not None:
        score = found.score
        return (score if score.width == 1 else score[1] - score[0]), pair
    if odds is None:
        part = f"{name_of(member)} as a member of a code"
        raise ExportError.of_part(part, "it has no scores", "Choose another classifier.")
    return odds, pair


def _between(score: Step) -> Step:
    """(1,) second less first, cut where no probability is left."""
    odds = score if score.width == 1 else score[1] - score[0]
    return odds.smaller(745.0).larger(-745.0)


def _decode(model: Any, said: Step, pairs: list[_Pair], signs: Floats) -> Step:
    """(K,) scores; see `models.decoding`."""
    kind = name_of(model)
    if kind == "OneVsRest":
        return said
    decoding: Decoding = "hamming" if kind == "OneVsOne" else model.decoding
    sure, none = hasattr(model.base_, "predict_proba"), np.zeros(len(signs))
    said = said.named("said")
    if decoding == "hamming":
        votes = said.sign().affine(0.5 * signs, np.full(len(signs), -0.5 * signs.shape[1]))
        weighed = said.affine(signs, none).named("weighed")
        most = weighed.abs().max().named("most")
        return votes + weighed / (greater(most, 0.0, most, 1.0) * 6.0)
    if decoding == "loss":
        return _by_loss(said, signs, logistic=sure)
    word = stack([pair.word() for pair in pairs]) if sure else said.smaller(1.0).larger(-1.0)
    word = word.named("word")
    length = word.squares().named("word_squared")
    squares = word.affine(-2.0 * signs, (signs**2).sum(axis=1)) + length
    return squares.larger(0.0).sqrt() * -1.0


def _by_loss(said: Step, signs: Floats, *, logistic: bool) -> Step:
    K = len(signs)
    if logistic:
        score = said.affine(0.5 * signs, -(signs == 0).sum(axis=1) * np.log(2.0))
        if signs.all():
            return score
        away = said.abs().named("away")
        even = away * 0.5 + ((constant(0.0) - away).exp() + 1.0).log()
        return score - even.named("even").affine(np.abs(signs), np.zeros(K))
    plus = (constant(1.0) - said).larger(0.0).affine((signs == 1) * -1.0, np.zeros(K))
    minus = (said + 1.0).larger(0.0).affine((signs == -1) * -1.0, np.zeros(K))
    found: Step = plus + minus - (signs == 0).sum(axis=1)
    return found


def _tanh_half(odds: Step) -> Step:
    """tanh(z / 2) = sign(z) (1 - e^-|z|) / (1 + e^-|z|)."""
    small = (constant(0.0) - odds.abs()).exp().named("odds_small")
    return odds.sign() * (constant(1.0) - small) / (small + 1.0)
