"""Expressions of fitted estimators: scores, posteriors and the predicted class.

A posterior is stored as  exp(logs) shares / sum,  either factor of which may be absent: most models
compute its logarithm; least squares and averages compute it directly, and may be zero.

An estimator is looked up by its package and class name, or those of its nearest base class, so that
this module need not import the estimators; only fitted attributes are read, and rules give their
own expressions (`Rule.expression`). A model without a formula raises an `ExportError`. Coupled
probabilities of three or more classes are the result of an iteration for each row, so they have
none (`multiclass.decode` has the formulas of decoding).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from sklearn.utils import get_tags

from discriminant.errors import ExportError
from discriminant.models.expressions import (
    LINK_EXPRESSIONS,
    Expression,
    basis_expression,
    constant,
    greater,
    mean_expression,
    stack,
)
from discriminant.models.gaussian.family import validate_prior
from discriminant.models.linear.least_squares import IndicatorRule
from discriminant.models.multiclass.binary_rules import BinaryRules
from discriminant.models.multiclass.decode import Decoding
from discriminant.models.rules import LinearRule
from discriminant.moments.probability_scores import TIE
from discriminant.posterior import not_probabilistic
from discriminant.table.blocks import Floats

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class ClassifierExpressions:
    """Expressions of a classifier: scores, predicted class and posterior."""

    labels: tuple[Any, ...]  # K
    score: Expression | None  # (K,), or (1,) for two classes: what `predict` compares
    code: Expression  # (1,) index of the predicted class
    logs: Expression | None = None  # (K,) of the posterior, up to what is common to all classes
    shares: Expression | None = None  # (K,) factors of the posterior, of any sum
    why_no_probabilities: tuple[str, str] | None = (
        None  # model without a formula of probabilities, and why
    )

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes, as text."""
        return label_texts(self.labels)

    def posterior(self) -> tuple[Expression | None, Expression]:
        """(K,) log posterior, where there are only logs, and posterior."""
        weights, shifted = self.shares, None
        if self.logs is not None:
            shifted = (self.logs - self.logs.max().with_name("top")).with_name(
                "shifted", self.class_names
            )
            raised = shifted.exp()
            weights = raised if weights is None else raised * weights
        assert weights is not None
        weights = weights.with_name("weight", self.class_names)
        total = weights.sum().with_name("total")
        p = (weights / total).with_name("p", self.class_names)
        if shifted is None or self.shares is not None:
            return None, p
        return (shifted - total.log().with_name("log_total")).with_name(
            "log_p", self.class_names
        ), p

    def with_prior(self, old: Floats, new: Floats) -> ClassifierExpressions:
        """The same with other priors; the predicted class is unchanged."""
        if self.logs is not None:
            return replace(self, logs=self.logs + (np.log(new) - np.log(old)))
        assert self.shares is not None
        return replace(self, shares=self.shares * (new / old))

    @property
    def has_probabilities(self) -> bool:
        """Whether there are probabilities."""
        return self.logs is not None or self.shares is not None


def label_texts(labels: tuple[Any, ...]) -> tuple[str, ...]:
    """Labels as text."""
    return tuple(str(label) for label in labels)


def classifier_expressions(model: Any, x: Expression) -> ClassifierExpressions:
    """Expressions of a fitted classifier for features `x`."""
    return _exporter(model, _ANSWERS)(model, x)


def regressor_expression(model: Any, x: Expression) -> Expression:
    """(m,) prediction of a fitted regressor for each of its m responses."""
    return _exporter(model, _VALUES)(model, x)


def class_name(model: Any) -> str:
    """The name of the class of a model."""
    return type(model).__name__


def model_title(model: Any) -> str:
    """Name of a model without its encoding; of a `Decision`, with that of its classifier."""
    if class_name(model) not in ("Encoded", "Decision") or not hasattr(model, "estimator_"):
        return class_name(model)
    inner = model_title(model.estimator_)
    return f"Decision by {inner}" if class_name(model) == "Decision" else inner


def is_regressor(model: Any) -> bool:
    """Whether a model is a regressor, or a pipeline that ends in one."""
    tagged = hasattr(model, "__sklearn_tags__")
    return tagged and bool(get_tags(model).estimator_type == "regressor")


def _exporter(model: Any, table: dict[tuple[str, str], Callable[..., T]]) -> Callable[..., T]:
    """Look up the class of a model, or the nearest base class, by package and class name."""
    for kind in type(model).__mro__:
        key = kind.__module__.partition(".")[0], kind.__name__
        if key in table:
            return table[key]
    raise ExportError.of_model(class_name(model))


# --- one model -----------------------------------------------------------------------------------


def _by_moments(model: Any, x: Expression) -> ClassifierExpressions:
    """LDA, QDA, RDA, NearestMean, Fisher, LaplaceNB."""
    labels = tuple(model.classes_.tolist())
    score = score_expression(x, model.rule_, label_texts(labels))
    return ClassifierExpressions(labels, score, class_code(score), logs=score)


def score_expression(x: Expression, rule: Any, names: tuple[str, ...]) -> Expression:
    """(K,) scores of a rule that has an expression."""
    if not hasattr(rule, "expression"):
        raise ExportError.of_model(type(rule).__name__)
    scores: Expression = rule.expression(x, names)
    return scores


def _least_squares(model: Any, x: Expression) -> ClassifierExpressions:
    """Fitted values decide; memberships are their positive parts, normalised."""
    labels, rule = tuple(model.classes_.tolist()), model.rule_
    assert isinstance(rule, IndicatorRule)
    score = rule.expression(x, label_texts(labels))
    shares = rule.membership_expression(score)
    return ClassifierExpressions(labels, score, class_code(score), shares=shares)


def _linear(model: Any, x: Expression) -> ClassifierExpressions:
    """Perceptron and SVM: scores alone."""
    labels = tuple(model.classes_.tolist())
    score = model.rule_.expression(x, label_texts(labels))
    return ClassifierExpressions(labels, score, class_code(score))


def class_code(score: Expression) -> Expression:
    """(1,) index of the largest score; of a single score, 1 where it is positive."""
    if score.width > 1:
        return score.first_max().with_name("code")
    return greater(score, 0.0, 1.0, 0.0).with_name("code")


def _logistic(model: Any, x: Expression) -> ClassifierExpressions:
    """Posteriors by the link; class costs affect the decision only."""
    labels, link = tuple(model.classes_.tolist()), model.link_
    plain = link == "logit" and not np.any(model.cost_lift_)
    line = model.rule_.expression(x, label_texts(labels), name="score" if plain else "linear")
    logs = line if line.width > 1 else LINK_EXPRESSIONS[link](line)
    if plain:
        return ClassifierExpressions(labels, line, class_code(line), logs=logs)
    if link != "logit":
        logs = logs + model.prior_lift_
    score = (logs + model.cost_lift_).with_name("score", label_texts(labels))
    return ClassifierExpressions(labels, score, class_code(score), logs=logs)


# --- models of models ----------------------------------------------------------------------------


def _rebalanced(model: Any, x: Expression) -> ClassifierExpressions:
    """Decisions as fitted, posteriors for the original class shares."""
    return _as_they_came(model, classifier_expressions(model.estimator_, x))


def _as_they_came(model: Any, found: ClassifierExpressions) -> ClassifierExpressions:
    if not (found.has_probabilities and model.keep_probabilities):
        return found
    if not_probabilistic(model) is not None:  # there is no posterior to bring back
        return replace(found, logs=None, shares=None)
    return found.with_prior(model.fitted_prior_, model.class_shares_)


def _easy_ensemble(model: Any, x: Expression) -> ClassifierExpressions:
    """The mean of posteriors, or of votes."""
    members = [classifier_expressions(member, x) for member in model.estimators_]
    K, many = len(members[0].labels), len(members)
    said = [
        member.posterior()[1] if member.has_probabilities else _vote(member.code, K)
        for member in members
    ]
    labels, sums = members[0].labels, np.tile(np.eye(K), many)
    if not members[0].has_probabilities:
        score = _votes(stack(said).affine(sums, np.zeros(K)), members)
        score = score.with_name("score", label_texts(labels))
        return ClassifierExpressions(labels, score, class_code(score))
    mean = stack(said).affine(sums / many, np.zeros(K)).with_name("mean_p", label_texts(labels))
    return _as_they_came(model, ClassifierExpressions(labels, mean, class_code(mean), shares=mean))


def _votes(votes: Expression, members: list[ClassifierExpressions]) -> Expression:
    """(K,) votes, plus less than half a vote from the mean scores."""
    K, many = votes.width, len(members)
    each = [_ranking(member, K) for member in members if member.score is not None]
    if len(each) < many:
        return votes
    sure = stack(each).affine(np.tile(np.eye(K) / many, many), np.zeros(K)).with_name("sure")
    return votes + sure / ((sure.abs() + 1.0) * 3.0)


def _ranking(member: ClassifierExpressions, classes: int) -> Expression:
    """(K,) scores; of two classes their difference, and its negative for the first."""
    score = member.score
    assert score is not None
    if classes > 2:
        return score
    second = score if score.width == 1 else score[1] - score[0]
    return second.affine(np.array([[-1.0], [1.0]]), np.zeros(2))


def _vote(code: Expression, classes: int) -> Expression:
    """(K,) one for the predicted class."""
    each = [greater((code - float(k)).abs(), 0.5, 0.0, 1.0) for k in range(classes)]
    return stack(each)


def _fusion(model: Any, x: Expression) -> ClassifierExpressions:
    """P(k|x) ~ prior_k prod_i P_i(k|x_i) / prior_ik."""
    labels, prior = tuple(model.classes_.tolist()), np.asarray(model.prior_)
    logs: Expression | None = None
    shares: Expression | None = None
    lift = np.log(prior)
    for member, columns, old in zip(
        model.estimators_, model.columns_, model.estimator_priors_, strict=True
    ):
        found = classifier_expressions(member, x.pick(columns))
        _need_probabilities(found, class_name(member))
        lift = lift - np.log(old)
        if found.logs is not None:
            logs = found.logs if logs is None else logs + found.logs
        if found.shares is not None:
            shares = found.shares if shares is None else shares * found.shares
    logs = (constant(lift) if logs is None else logs + lift).with_name("score", label_texts(labels))
    found = ClassifierExpressions(
        labels, logs, logs.first_max().with_name("code"), logs=logs, shares=shares
    )
    if shares is None:
        return found
    _, p = found.posterior()
    return ClassifierExpressions(labels, p, p.first_max().with_name("code"), shares=p)


def _need_probabilities(found: ClassifierExpressions, name: str) -> None:
    if not found.has_probabilities:
        part, why = found.why_no_probabilities or (name, "it has none")
        raise ExportError.of_part(
            f"The probabilities of {part}", why, "Choose a member that has some."
        )


def _decision(model: Any, x: Expression) -> ClassifierExpressions:
    """Posteriors under the decision's priors; the class of least expected cost."""
    found = classifier_expressions(model.estimator_, x)
    _need_probabilities(found, class_name(model.estimator_))
    if model.prior is not None:
        new = validate_prior(model.prior, model.classes_)
        found = found.with_prior(model.known_prior(), new)
    costs = model.costs()
    only = None if costs is None else costs.classes_only()
    log_p, p = found.posterior()
    ranked = log_p if log_p is not None else p
    code = ranked.first_max() if only is None else argmin_cost(expected_costs(p, only.cost))
    return replace(found, code=code.with_name("code"))


def expected_costs(p: Expression, cost: Floats) -> Expression:
    """(A,) expected cost of each action."""
    return p.affine(cost, np.zeros(len(cost)))


def argmin_cost(cost: Expression) -> Expression:
    """(1,) index of the first action whose cost is within `TIE` of the least, as `least_cost`."""
    bound = (cost * -1.0).max() * -(1.0 + TIE)
    return greater(cost, bound.with_name("bound"), 0.0, 1.0).first_max()


def _pipeline(model: Any, x: Expression) -> ClassifierExpressions:
    return classifier_expressions(model.steps[-1][1], _through(model, x))


def _through(model: Any, x: Expression) -> Expression:
    """Features after the transformers of a pipeline."""
    for _, stage in model.steps[:-1]:
        if stage is None or stage == "passthrough":
            continue
        x = _transformed(stage, x)
    return x


def _transformed(stage: Any, x: Expression) -> Expression:
    title = class_name(stage)
    if title == "Basis" and type(stage).__module__.startswith("discriminant."):
        return basis_expression(x, stage.basis_)
    if title == "StandardScaler" and type(stage).__module__.startswith("sklearn."):
        mean = 0.0 if stage.mean_ is None else stage.mean_
        scale = 1.0 if stage.scale_ is None else stage.scale_
        return ((x - mean) / scale).with_name("standard", x.components)
    raise ExportError.of_part(
        f"The step {title} of a pipeline",
        "it is neither Basis nor StandardScaler",
        "Put what it does into the table, and fit without it.",
    )


def _frozen(model: Any, x: Expression) -> ClassifierExpressions:
    return classifier_expressions(model.estimator, x)


def _encoded(model: Any, x: Expression) -> ClassifierExpressions:
    return classifier_expressions(model.estimator_, _encoding_of(model, x))


def _encoding_of(model: Any, x: Expression) -> Expression:
    """Return the features; raise if they are not those of the encoding."""
    if x.components != model.encoding_.features:
        raise ExportError.of_part(
            "Encoded, inside another model that gives it some of the columns",
            "each has an encoding of its own",
            "Put one Encoded around the whole.",
        )
    return x


def _decomposition(model: Any, x: Expression) -> ClassifierExpressions:
    return decomposed(model, x)


_ANSWERS: dict[tuple[str, str], Callable[..., ClassifierExpressions]] = {
    ("discriminant", "MomentClassifier"): _by_moments,
    ("discriminant", "LeastSquares"): _least_squares,
    ("discriminant", "Logistic"): _logistic,
    ("discriminant", "LinearClassifier"): _linear,
    ("discriminant", "EasyEnsemble"): _easy_ensemble,
    ("discriminant", "RebalancingClassifier"): _rebalanced,
    ("discriminant", "Fusion"): _fusion,
    ("discriminant", "Decision"): _decision,
    ("discriminant", "Decomposition"): _decomposition,
    ("sklearn", "Pipeline"): _pipeline,
    ("sklearn", "FrozenEstimator"): _frozen,
    ("discriminant", "Encoded"): _encoded,
}


# --- regressors ----------------------------------------------------------------------------------


def _line(model: Any, x: Expression, name: str = "value") -> Expression:
    rule: LinearRule = model.rule_
    return rule.expression(x, name=name)


def _generalised(model: Any, x: Expression) -> Expression:
    return mean_expression(_linear_predictor(model, x), model.link_).with_name("value")


def _log_linear(model: Any, x: Expression) -> Expression:
    factors = {"median": 1.0, "mean": np.exp(0.5 * model.dispersion_), "smearing": model.smearing_}
    value: Expression = _linear_predictor(model, x).exp() * factors[model.predicted]
    return value.with_name("value")


def _linear_predictor(model: Any, x: Expression) -> Expression:
    if model.with_offset_:
        why = "it was fitted with an offset, which is no column"
        raise ExportError.of_part(class_name(model), why, "Fit the offset as a column.")
    return _line(model, x, "linear")


_VALUES: dict[tuple[str, str], Callable[..., Expression]] = {
    ("discriminant", "LinearRegression"): _line,
    ("discriminant", "LogLinear"): _log_linear,
    ("discriminant", "GeneralisedLinearModel"): _generalised,
    ("sklearn", "Pipeline"): lambda model, x: regressor_expression(
        model.steps[-1][1], _through(model, x)
    ),
    ("sklearn", "FrozenEstimator"): lambda model, x: regressor_expression(model.estimator, x),
    ("discriminant", "Encoded"): lambda model, x: regressor_expression(
        model.estimator_, _encoding_of(model, x)
    ),
}


def decomposed(model: Any, x: Expression) -> ClassifierExpressions:
    """Decoded outputs of the two-class classifiers."""
    labels, base = tuple(model.classes_.tolist()), model.base_
    signs = model.code_.astype(np.float64)
    said, pairs = _said(model.binary_rules_, x)
    sure = hasattr(base, "predict_proba")
    if signs.shape == (2, 1):
        score = (said * 0.5).affine(signs, np.zeros(2)).with_name("score", label_texts(labels))
        found = ClassifierExpressions(labels, score, class_code(score))
        return _two_sided(found, pairs[0], signs[1, 0]) if sure else found
    score = _decode(model, said, pairs, signs).with_name("score", label_texts(labels))
    why = (class_name(model), "they are coupled by a search for each row") if sure else None
    return ClassifierExpressions(labels, score, class_code(score), why_no_probabilities=why)


@dataclass(frozen=True, slots=True, eq=False)
class _TwoSides:
    """Output of a two-class classifier: log odds of the second side, or shares of both."""

    odds: Expression | None  # (1,)
    shares: Expression | None = None  # (2,)

    def word(self) -> Expression:
        """(1,) P(second) - P(first)."""
        if self.shares is not None:
            return (self.shares[1] - self.shares[0]) / self.shares.sum()
        assert self.odds is not None
        return _tanh_half(self.odds)


def _two_sided(found: ClassifierExpressions, pair: _TwoSides, side: float) -> ClassifierExpressions:
    if pair.shares is not None:
        return replace(found, shares=pair.shares.pick([0, 1] if side > 0 else [1, 0]))
    assert pair.odds is not None
    return replace(found, logs=LINK_EXPRESSIONS["logit"](pair.odds * side))


def _said(members: Any, x: Expression) -> tuple[Expression, list[_TwoSides]]:
    """(M,) decision values of the two-class classifiers, and their two sides."""
    if not isinstance(members, BinaryRules):
        both = [_said_by(member, x) for member in members.fitted]
        return stack([said for said, _ in both]), [pair for _, pair in both]
    pairs = [_pair_of(x, rule, m) for m, rule in enumerate(members.rules)]
    if members.line is None:
        return stack([pair.odds for pair in pairs if pair.odds is not None]), pairs
    said = members.line.expression(x, name="said")
    return said, pairs or [_TwoSides(said[m]) for m in range(said.width)]


def _pair_of(x: Expression, rule: Any, member: int) -> _TwoSides:
    sides = (f"{member}_no", f"{member}_yes")
    if isinstance(rule, IndicatorRule):
        return _TwoSides(None, rule.membership_expression(rule.expression(x, sides)))
    return _TwoSides(_between(score_expression(x, rule, sides)))


def _said_by(member: Any, x: Expression) -> tuple[Expression, _TwoSides]:
    """Decision value and sides of a fitted two-class classifier."""
    if is_regressor(member):
        return regressor_expression(member, x) * 2.0 - 1.0, _TwoSides(None)
    found = classifier_expressions(member, x)
    odds = None if found.logs is None else _between(found.logs)
    pair = _TwoSides(odds, found.shares if odds is None else None)
    if hasattr(member, "decision_function") and found.score is not None:
        score = found.score
        return (score if score.width == 1 else score[1] - score[0]), pair
    if odds is None:
        part = f"{class_name(member)} as a member of a code"
        raise ExportError.of_part(part, "it has no scores", "Choose another classifier.")
    return odds, pair


def _between(score: Expression) -> Expression:
    """(1,) second minus first, clipped where a probability underflows."""
    odds = score if score.width == 1 else score[1] - score[0]
    return odds.smaller(745.0).larger(-745.0)


def _decode(model: Any, said: Expression, pairs: list[_TwoSides], signs: Floats) -> Expression:
    """(K,) scores; see `multiclass.decode`."""
    kind = class_name(model)
    if kind == "OneVsRest":
        return said
    decoding: Decoding = "hamming" if kind == "OneVsOne" else model.decoding
    sure, none = hasattr(model.base_, "predict_proba"), np.zeros(len(signs))
    said = said.with_name("said")
    if decoding == "hamming":
        votes = said.sign().affine(0.5 * signs, np.full(len(signs), -0.5 * signs.shape[1]))
        weighed = said.affine(signs, none).with_name("weighed")
        most = weighed.abs().max().with_name("most")
        return votes + weighed / (greater(most, 0.0, most, 1.0) * 6.0)
    if decoding == "loss":
        return _by_loss(said, signs, logistic=sure)
    word = stack([pair.word() for pair in pairs]) if sure else said.smaller(1.0).larger(-1.0)
    word = word.with_name("word")
    length = word.squares().with_name("word_squared")
    squares = word.affine(-2.0 * signs, (signs**2).sum(axis=1)) + length
    return squares.larger(0.0).sqrt() * -1.0


def _by_loss(said: Expression, signs: Floats, *, logistic: bool) -> Expression:
    K = len(signs)
    if logistic:
        score = said.affine(0.5 * signs, -(signs == 0).sum(axis=1) * np.log(2.0))
        if signs.all():
            return score
        away = said.abs().with_name("away")
        even = away * 0.5 + ((constant(0.0) - away).exp() + 1.0).log()
        return score - even.with_name("even").affine(np.abs(signs), np.zeros(K))
    plus = (constant(1.0) - said).larger(0.0).affine((signs == 1) * -1.0, np.zeros(K))
    minus = (said + 1.0).larger(0.0).affine((signs == -1) * -1.0, np.zeros(K))
    found: Expression = plus + minus - (signs == 0).sum(axis=1)
    return found


def _tanh_half(odds: Expression) -> Expression:
    """tanh(z / 2) = sign(z) (1 - e^-|z|) / (1 + e^-|z|)."""
    small = (constant(0.0) - odds.abs()).exp().with_name("odds_small")
    return odds.sign() * (constant(1.0) - small) / (small + 1.0)
