"""Expressions of fitted models for export: scores, posteriors and the predicted class.

A posterior is represented as exp(logs) * shares / sum, where one of the factors, `logs` or
`shares`, may be absent. Most models compute the logarithm of the posterior; least squares and
averages compute the posterior itself, which may be zero.

The function for an estimator is looked up by the package and the name of its class or nearest base
class, so that this module need not import the estimators. Only fitted attributes are read; rules
have their own expressions (`Rule.expression`). A model without a formula raises an `ExportError`.
Coupled probabilities of three or more classes have no formula, since they are computed by an
iteration for each row (`multiclass.decode` has the formulas of decoding).
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
    inverse_link_expression,
    stack,
    where_greater,
)
from discriminant.models.gaussian.family import validate_prior
from discriminant.models.linear.least_squares import IndicatorRule
from discriminant.models.multiclass.binary_rules import BinaryRules
from discriminant.models.multiclass.codes import Decoding
from discriminant.models.rules import LinearRule
from discriminant.moments.probability_scores import TIE
from discriminant.posterior import not_probabilistic
from discriminant.table.blocks import Floats

T = TypeVar("T")
_LEAST = 1e-300  # probabilities are raised to this before their logarithm


@dataclass(frozen=True, slots=True, eq=False)
class ClassifierExpressions:
    """Expressions of a classifier: scores, predicted class and posterior."""

    labels: tuple[Any, ...]  # K labels
    score: Expression | None  # (K,) scores, or (1,) for two classes, which `predict` compares
    code: Expression  # (1,) index of the predicted class
    logs: Expression | None = None  # (K,) log posterior, up to a term that all classes share
    shares: Expression | None = None  # (K,) factors of the posterior; they need not sum to one
    # the model that has no formula, and the reason why
    why_no_probabilities: tuple[str, str] | None = None

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names of the classes, as text."""
        return label_texts(self.labels)

    def posterior(self) -> tuple[Expression | None, Expression]:
        """Return two (K,) expressions: the log posterior and the posterior.

        The log posterior is None if the posterior is computed from shares.
        """
        names, weights, shifted = self.class_names, self.shares, None
        if self.logs is not None:
            shifted = (self.logs - self.logs.max().with_name("top")).with_name("shifted", names)
            exponentials = shifted.exp()
            weights = exponentials if weights is None else exponentials * weights
        assert weights is not None
        weights = weights.with_name("weight", names)
        total = weights.sum().with_name("total")
        p = (weights / total).with_name("p", names)
        if shifted is None or self.shares is not None:
            return None, p
        log_p = shifted - total.log().with_name("log_total")
        return log_p.with_name("log_p", names), p

    def with_prior(self, old: Floats, new: Floats) -> ClassifierExpressions:
        """Return the expressions under other priors; the predicted class does not change."""
        if self.logs is not None:
            return replace(self, logs=self.logs + (np.log(new) - np.log(old)))
        assert self.shares is not None
        return replace(self, shares=self.shares * (new / old))

    @property
    def has_probabilities(self) -> bool:
        """Whether there are probabilities."""
        return self.logs is not None or self.shares is not None


def label_texts(labels: tuple[Any, ...]) -> tuple[str, ...]:
    """Return the labels as text."""
    return tuple(str(label) for label in labels)


def classifier_expressions(model: Any, x: Expression) -> ClassifierExpressions:
    """Return the expressions of a fitted classifier for features `x`."""
    return _exporter(model, _CLASSIFIERS)(model, x)


def regressor_expression(model: Any, x: Expression) -> Expression:
    """Return the (m,) predictions of a fitted regressor, one for each response."""
    return _exporter(model, _REGRESSORS)(model, x)


def class_name(model: Any) -> str:
    """Return the name of the Python class of a model."""
    return type(model).__name__


def model_title(model: Any) -> str:
    """Return the name of the model in an encoding; for a `Decision`, with its classifier."""
    if class_name(model) not in ("Encoded", "Decision") or not hasattr(model, "estimator_"):
        return class_name(model)
    inner = model_title(model.estimator_)
    return f"Decision by {inner}" if class_name(model) == "Decision" else inner


def is_regressor(model: Any) -> bool:
    """Whether a model is a regressor, or a pipeline whose last step is one."""
    tagged = hasattr(model, "__sklearn_tags__")
    return tagged and bool(get_tags(model).estimator_type == "regressor")


def _exporter(model: Any, table: dict[tuple[str, str], Callable[..., T]]) -> Callable[..., T]:
    """Return the function for the class of a model, or for its nearest base class.

    Functions are looked up by package and class name.
    """
    for kind in type(model).__mro__:
        key = kind.__module__.partition(".")[0], kind.__name__
        if key in table:
            return table[key]
    raise ExportError.of_model(class_name(model))


# --- single models -------------------------------------------------------------------------------


def _moment_classifier(model: Any, x: Expression) -> ClassifierExpressions:
    """Return the expressions of a classifier whose scores are log posteriors."""
    labels = tuple(model.classes_.tolist())
    score = score_expression(x, model.rule_, label_texts(labels))
    return ClassifierExpressions(labels, score, class_code(score), logs=score)


def score_expression(x: Expression, rule: Any, names: tuple[str, ...]) -> Expression:
    """Return the (K,) scores of a rule; raise an error if it has no expression."""
    if not hasattr(rule, "expression"):
        raise ExportError.of_model(type(rule).__name__)
    scores: Expression = rule.expression(x, names)
    return scores


def _least_squares(model: Any, x: Expression) -> ClassifierExpressions:
    """Return the expressions of least squares.

    Scores are the fitted values; posteriors are their positive parts, normalised.
    """
    labels, rule = tuple(model.classes_.tolist()), model.rule_
    assert isinstance(rule, IndicatorRule)
    score = rule.expression(x, label_texts(labels))
    shares = rule.membership_expression(score)
    return ClassifierExpressions(labels, score, class_code(score), shares=shares)


def _linear(model: Any, x: Expression) -> ClassifierExpressions:
    """Return the expressions of a perceptron or an SVM: scores without posteriors."""
    labels = tuple(model.classes_.tolist())
    score = model.rule_.expression(x, label_texts(labels))
    return ClassifierExpressions(labels, score, class_code(score))


def class_code(score: Expression) -> Expression:
    """Return the (1,) index of the largest score; for a single score, 1 if it is positive."""
    if score.width > 1:
        return score.first_max().with_name("code")
    return where_greater(score, 0.0, 1.0, 0.0).with_name("code")


def _logistic(model: Any, x: Expression) -> ClassifierExpressions:
    """Return the expressions of logistic regression.

    The link function gives the posteriors; class costs affect only the decision.
    """
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


def _bayesian_logistic(model: Any, x: Expression) -> ClassifierExpressions:
    """Return the expressions of Bayesian logistic regression at the mode of the posterior."""
    if model.predictive != "mode":
        raise ExportError.of_part(
            "BayesianLogistic",
            "its probabilities integrate over the coefficients, which has no formula here",
            'Fit BayesianLogistic(predictive="mode"), or Logistic with ridge=model.precision_ / n '
            "for n rows.",
        )
    labels = tuple(model.classes_.tolist())
    line = model.rule_.expression(x, label_texts(labels), name="score")
    logs = line if line.width > 1 else LINK_EXPRESSIONS["logit"](line)
    return ClassifierExpressions(labels, line, class_code(line), logs=logs)


# --- models that contain models ------------------------------------------------------------------


def _rebalanced(model: Any, x: Expression) -> ClassifierExpressions:
    """Return the expressions of a rebalancing wrapper.

    Predictions equal those of the fitted model; posteriors are corrected to the original class
    shares.
    """
    return _with_original_prior(model, classifier_expressions(model.estimator_, x))


def _with_original_prior(model: Any, classifier: ClassifierExpressions) -> ClassifierExpressions:
    if not (classifier.has_probabilities and model.keep_probabilities):
        return classifier
    if not_probabilistic(model) is not None:  # without a posterior there is nothing to correct
        return replace(classifier, logs=None, shares=None)
    return classifier.with_prior(model.fitted_prior_, model.class_shares_)


def _logit_adjusted(model: Any, x: Expression) -> ClassifierExpressions:
    """Return the expressions of LogitAdjusted: posterior / shares^tau, normalised."""
    inner = classifier_expressions(model.estimator_, x)
    adjusted = inner.with_prior(model.class_shares_, model.fitted_prior_)
    logs, p = adjusted.posterior()
    logs = p.larger(1e-300).log() if logs is None else logs  # SQL has no logarithm of zero
    score = logs.with_name("score", label_texts(inner.labels))
    posterior = inner if model.keep_probabilities else adjusted
    return replace(posterior, score=score, code=class_code(score))


def _easy_ensemble(model: Any, x: Expression) -> ClassifierExpressions:
    """Return the expressions of EasyEnsemble: the mean of the posteriors, or the sum of votes."""
    members = [classifier_expressions(member, x) for member in model.estimators_]
    labels, K, n_members = members[0].labels, len(members[0].labels), len(members)
    parts = stack(
        [
            member.posterior()[1] if member.has_probabilities else _vote(member.code, K)
            for member in members
        ]
    )
    sums = np.tile(np.eye(K), n_members)
    if not members[0].has_probabilities:
        score = _break_ties(parts.affine(sums, np.zeros(K)), members)
        score = score.with_name("score", label_texts(labels))
        return ClassifierExpressions(labels, score, class_code(score))
    mean = parts.affine(sums / n_members, np.zeros(K)).with_name("mean_p", label_texts(labels))
    ensemble = ClassifierExpressions(labels, mean, class_code(mean), shares=mean)
    return _with_original_prior(model, ensemble)


def _vote(code: Expression, classes: int) -> Expression:
    """Return the vote for the predicted class: (K,) zeros with a one for that class."""
    return stack([where_greater((code - float(k)).abs(), 0.5, 0.0, 1.0) for k in range(classes)])


def _break_ties(votes: Expression, members: list[ClassifierExpressions]) -> Expression:
    """Break ties of the (K,) votes by the mean scores, which add less than half a vote."""
    K, n_members = votes.width, len(members)
    scores = [_class_scores(member.score, K) for member in members if member.score is not None]
    if len(scores) < n_members:
        return votes
    weights = np.tile(np.eye(K) / n_members, n_members)
    mean = stack(scores).affine(weights, np.zeros(K)).with_name("sure")
    return votes + mean / ((mean.abs() + 1.0) * 3.0)


def _class_scores(score: Expression, classes: int) -> Expression:
    """Return the (K,) scores, which for two classes are minus and plus their difference."""
    if classes > 2:
        return score
    return _difference(score).affine(np.array([[-1.0], [1.0]]), np.zeros(2))


def _difference(score: Expression) -> Expression:
    """Return the (1,) score of the second class minus the score of the first."""
    return score if score.width == 1 else score[1] - score[0]


def _fusion(model: Any, x: Expression) -> ClassifierExpressions:
    """Return the expressions of Fusion: `P(k|x) ~ prior_k prod_i P_i(k|x_i) / prior_ik`."""
    labels, prior = tuple(model.classes_.tolist()), np.asarray(model.prior_)
    logs: Expression | None = None
    shares: Expression | None = None
    lift = np.log(prior)
    for member, columns, old in zip(
        model.estimators_, model.columns_, model.estimator_priors_, strict=True
    ):
        expressions = classifier_expressions(member, x.pick(columns))
        _require_probabilities(expressions, class_name(member))
        lift = lift - np.log(old)
        if expressions.logs is not None:
            logs = expressions.logs if logs is None else logs + expressions.logs
        if expressions.shares is not None:
            shares = expressions.shares if shares is None else shares * expressions.shares
    logs = (constant(lift) if logs is None else logs + lift).with_name("score", label_texts(labels))
    code = logs.first_max().with_name("code")
    fusion = ClassifierExpressions(labels, logs, code, logs=logs, shares=shares)
    if shares is None:
        return fusion
    _, p = fusion.posterior()
    return ClassifierExpressions(labels, p, p.first_max().with_name("code"), shares=p)


def _pool(model: Any, x: Expression) -> ClassifierExpressions:
    """Return the expressions of Pool: `P(k|x) = sum_m w_m P_m(k|x)`."""
    parts = []
    for member in model.estimators_:
        expressions = classifier_expressions(member, x)
        _require_probabilities(expressions, class_name(member))
        parts.append(expressions.posterior()[1])
    labels = tuple(model.classes_.tolist())
    weights = np.hstack([weight * np.eye(len(labels)) for weight in model.weights_])
    mean = stack(parts).affine(weights, np.zeros(len(labels)))
    mean = mean.with_name("mean_p", label_texts(labels))
    return ClassifierExpressions(labels, mean, class_code(mean), shares=mean)


def _require_probabilities(classifier: ClassifierExpressions, name: str) -> None:
    if not classifier.has_probabilities:
        part, why = classifier.why_no_probabilities or (name, "it has none")
        raise ExportError.of_part(
            f"The probabilities of {part}", why, "Choose a member that has some."
        )


def _decision(model: Any, x: Expression) -> ClassifierExpressions:
    """Return expressions for a `Decision`: posteriors with its priors, and the least-cost class."""
    classifier = classifier_expressions(model.estimator_, x)
    _require_probabilities(classifier, class_name(model.estimator_))
    if model.prior is not None:
        new = validate_prior(model.prior, model.classes_)
        classifier = classifier.with_prior(model.known_prior(), new)
    costs = model.costs()
    class_costs = None if costs is None else costs.classes_only()
    log_p, p = classifier.posterior()
    if class_costs is None:
        code = (p if log_p is None else log_p).first_max()
    else:
        code = argmin_cost(expected_costs(p, class_costs.cost))
    return replace(classifier, code=code.with_name("code"))


def _calibrated(model: Any, x: Expression) -> ClassifierExpressions:
    """Return the expressions of Calibrated: its calibrator applied to the classifier's scores."""
    inner, name = classifier_expressions(model.estimator_, x), class_name(model.estimator_)
    labels = tuple(model.classes_.tolist())
    if model.from_posteriors_:
        _require_probabilities(inner, name)
        scores = inner.logs
        if scores is None or inner.shares is not None:
            scores = inner.posterior()[1].larger(_LEAST).log()
    else:
        scores = inner.score
        if scores is None:
            raise ExportError.of_part(name, "it has no scores", "Choose another classifier.")
        scores = _difference(scores) if len(labels) == 2 else scores
    logs, shares = model.calibrator_.expression(scores, posterior=model.from_posteriors_)
    names = label_texts(labels)
    if logs is None:
        shares = shares.with_name("calibrated", names)
        return ClassifierExpressions(labels, None, shares.first_max(), shares=shares)
    logs = logs.with_name("calibrated", names)
    return ClassifierExpressions(labels, None, class_code(logs), logs=logs)


def _prediction_sets(model: Any, x: Expression) -> ClassifierExpressions:
    """Raise an error: a set of classes is not one of the outputs of an export."""
    raise ExportError.of_part(
        "PredictionSets",
        "a set of classes is not an output of exported models",
        "To export the classifier inside, pass model.estimator_.",
    )


def expected_costs(p: Expression, cost: Floats) -> Expression:
    """Return the (A,) expected cost of each action."""
    return p.affine(cost, np.zeros(len(cost)))


def argmin_cost(cost: Expression) -> Expression:
    """Return the (1,) index of the first action whose cost is within `TIE` of the least cost."""
    bound = (cost * -1.0).max() * -(1.0 + TIE)
    return where_greater(cost, bound.with_name("bound"), 0.0, 1.0).first_max()


def _pipeline_features(model: Any, x: Expression) -> Expression:
    """Apply the transformers of a pipeline to the features."""
    for _, stage in model.steps[:-1]:
        if stage is not None and stage != "passthrough":
            x = _transform(stage, x)
    return x


def _transform(stage: Any, x: Expression) -> Expression:
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
        "Apply this step to the table before fitting, and fit a pipeline without it.",
    )


def _encoded_features(model: Any, x: Expression) -> Expression:
    """Return the features; raise an error if they are not those of the encoding."""
    if x.components != model.encoding_.features:
        raise ExportError.of_part(
            "Encoded, inside another model that gives it some of the columns",
            "each has an encoding of its own",
            "Wrap the whole model in one Encoded.",
        )
    return x


# --- regressors ----------------------------------------------------------------------------------


def _linear_regression(model: Any, x: Expression, name: str = "value") -> Expression:
    rule: LinearRule = model.rule_
    return rule.expression(x, name=name)


def _generalised_linear(model: Any, x: Expression) -> Expression:
    return inverse_link_expression(_linear_predictor(model, x), model.link_).with_name("value")


def _log_linear(model: Any, x: Expression) -> Expression:
    factors = {"median": 1.0, "mean": np.exp(0.5 * model.dispersion_), "smearing": model.smearing_}
    value: Expression = _linear_predictor(model, x).exp() * factors[model.predicted]
    return value.with_name("value")


def _linear_predictor(model: Any, x: Expression) -> Expression:
    if model.with_offset_:
        why = "it was fitted with an offset, which is not a column"
        raise ExportError.of_part(class_name(model), why, "Fit the offset as a column.")
    return _linear_regression(model, x, "linear")


# --- classifiers from two-class classifiers ------------------------------------------------------


def _decomposition(model: Any, x: Expression) -> ClassifierExpressions:
    """Return the expressions of OneVsRest, OneVsOne or OutputCodes.

    The outputs of their two-class classifiers are decoded.
    """
    labels, signs = tuple(model.classes_.tolist()), model.code_.astype(np.float64)
    values, sides = _binary_outputs(model.binary_rules_, x)
    probabilistic = hasattr(model.base_, "predict_proba")
    if signs.shape == (2, 1):
        score = (values * 0.5).affine(signs, np.zeros(2)).with_name("score", label_texts(labels))
        classifier = ClassifierExpressions(labels, score, class_code(score))
        if not probabilistic:
            return classifier
        shares, second = sides[0].shares, signs[1, 0]
        if shares is not None:
            return replace(classifier, shares=shares.pick([0, 1] if second > 0 else [1, 0]))
        assert sides[0].odds is not None
        return replace(classifier, logs=LINK_EXPRESSIONS["logit"](sides[0].odds * second))
    score = _decode(model, values, sides, signs).with_name("score", label_texts(labels))
    coupled = (class_name(model), "they are coupled by a search for each row")
    reason = coupled if probabilistic else None
    return ClassifierExpressions(labels, score, class_code(score), why_no_probabilities=reason)


@dataclass(frozen=True, slots=True, eq=False)
class _TwoSides:
    """Output of a two-class classifier: log odds of the second side, or both probabilities."""

    odds: Expression | None  # (1,) log odds
    shares: Expression | None = None  # (2,) shares

    def probability_difference(self) -> Expression:
        """Return the difference of probabilities, `P(second) - P(first)`, (1,)."""
        if self.shares is not None:
            return (self.shares[1] - self.shares[0]) / self.shares.sum()
        assert self.odds is not None
        return _tanh_half(self.odds)


def _binary_outputs(members: Any, x: Expression) -> tuple[Expression, list[_TwoSides]]:
    """Return the (M,) decision values and the outputs of M two-class classifiers."""
    if not isinstance(members, BinaryRules):
        outputs = [_member_output(member, x) for member in members.fitted]
        return stack([value for value, _ in outputs]), [sides for _, sides in outputs]
    pairs = [_rule_sides(x, rule, m) for m, rule in enumerate(members.rules)]
    if members.line is None:
        return stack([pair.odds for pair in pairs if pair.odds is not None]), pairs
    values = members.line.expression(x, name="said")
    return values, pairs or [_TwoSides(values[m]) for m in range(values.width)]


def _rule_sides(x: Expression, rule: Any, member: int) -> _TwoSides:
    names = (f"{member}_no", f"{member}_yes")
    if isinstance(rule, IndicatorRule):
        return _TwoSides(None, rule.membership_expression(rule.expression(x, names)))
    return _TwoSides(_clipped_odds(score_expression(x, rule, names)))


def _member_output(member: Any, x: Expression) -> tuple[Expression, _TwoSides]:
    """Return the decision value and the output of a fitted two-class classifier."""
    if is_regressor(member):
        return regressor_expression(member, x) * 2.0 - 1.0, _TwoSides(None)
    classifier = classifier_expressions(member, x)
    odds = None if classifier.logs is None else _clipped_odds(classifier.logs)
    sides = _TwoSides(odds, classifier.shares if odds is None else None)
    if hasattr(member, "decision_function") and classifier.score is not None:
        return _difference(classifier.score), sides
    if odds is None:
        part = f"{class_name(member)} as a member of a code"
        raise ExportError.of_part(part, "it has no scores", "Choose another classifier.")
    return odds, sides


def _clipped_odds(score: Expression) -> Expression:
    """Return the (1,) log odds, clipped to the range in which no probability underflows."""
    return _difference(score).smaller(745.0).larger(-745.0)


def _decode(model: Any, values: Expression, sides: list[_TwoSides], signs: Floats) -> Expression:
    """Return the (K,) scores decoded from two-class outputs; see `multiclass.decode`."""
    kind, K = class_name(model), len(signs)
    if kind == "OneVsRest":
        return values
    decoding: Decoding = "hamming" if kind == "OneVsOne" else model.decoding
    probabilistic = hasattr(model.base_, "predict_proba")
    values = values.with_name("said")
    if decoding == "hamming":
        votes = values.sign().affine(0.5 * signs, np.full(K, -0.5 * signs.shape[1]))
        weighted = values.affine(signs, np.zeros(K)).with_name("weighed")
        largest = weighted.abs().max().with_name("most")
        return votes + weighted / (where_greater(largest, 0.0, largest, 1.0) * 6.0)
    if decoding == "loss":
        return _decode_by_loss(values, signs, logistic=probabilistic)
    if probabilistic:
        word = stack([pair.probability_difference() for pair in sides])
    else:
        word = values.smaller(1.0).larger(-1.0)
    word = word.with_name("word")
    length = word.squares().with_name("word_squared")
    squares = word.affine(-2.0 * signs, (signs**2).sum(axis=1)) + length
    return squares.larger(0.0).sqrt() * -1.0


def _decode_by_loss(values: Expression, signs: Floats, *, logistic: bool) -> Expression:
    K = len(signs)
    score: Expression
    if logistic:
        score = values.affine(0.5 * signs, -(signs == 0).sum(axis=1) * np.log(2.0))
        if signs.all():
            return score
        size = values.abs().with_name("away")
        even = size * 0.5 + ((constant(0.0) - size).exp() + 1.0).log()
        return score - even.with_name("even").affine(np.abs(signs), np.zeros(K))
    plus = (constant(1.0) - values).larger(0.0).affine((signs == 1) * -1.0, np.zeros(K))
    minus = (values + 1.0).larger(0.0).affine((signs == -1) * -1.0, np.zeros(K))
    score = plus + minus - (signs == 0).sum(axis=1)
    return score


def _tanh_half(odds: Expression) -> Expression:
    """Return `tanh(z / 2) = sign(z) (1 - e^-|z|) / (1 + e^-|z|)`."""
    small = (constant(0.0) - odds.abs()).exp().with_name("odds_small")
    return odds.sign() * (constant(1.0) - small) / (small + 1.0)


# --- exporters by class --------------------------------------------------------------------------

_CLASSIFIERS: dict[tuple[str, str], Callable[..., ClassifierExpressions]] = {
    ("discriminant", "MomentClassifier"): _moment_classifier,
    ("discriminant", "MDA"): _moment_classifier,
    ("discriminant", "OrderedLogistic"): _moment_classifier,
    ("discriminant", "LeastSquares"): _least_squares,
    ("discriminant", "Logistic"): _logistic,
    ("discriminant", "BayesianLogistic"): _bayesian_logistic,
    ("discriminant", "LinearClassifier"): _linear,
    ("discriminant", "EasyEnsemble"): _easy_ensemble,
    ("discriminant", "LogitAdjusted"): _logit_adjusted,
    ("discriminant", "RebalancingClassifier"): _rebalanced,
    ("discriminant", "Fusion"): _fusion,
    ("discriminant", "Pool"): _pool,
    ("discriminant", "Decision"): _decision,
    ("discriminant", "Calibrated"): _calibrated,
    ("discriminant", "PredictionSets"): _prediction_sets,
    ("discriminant", "Decomposition"): _decomposition,
    ("sklearn", "Pipeline"): lambda model, x: classifier_expressions(
        model.steps[-1][1], _pipeline_features(model, x)
    ),
    ("sklearn", "FrozenEstimator"): lambda model, x: classifier_expressions(model.estimator, x),
    ("discriminant", "Encoded"): lambda model, x: classifier_expressions(
        model.estimator_, _encoded_features(model, x)
    ),
}
_REGRESSORS: dict[tuple[str, str], Callable[..., Expression]] = {
    ("discriminant", "LinearRegression"): _linear_regression,
    ("discriminant", "LogLinear"): _log_linear,
    ("discriminant", "GeneralisedLinearModel"): _generalised_linear,
    ("sklearn", "Pipeline"): lambda model, x: regressor_expression(
        model.steps[-1][1], _pipeline_features(model, x)
    ),
    ("sklearn", "FrozenEstimator"): lambda model, x: regressor_expression(model.estimator, x),
    ("discriminant", "Encoded"): lambda model, x: regressor_expression(
        model.estimator_, _encoded_features(model, x)
    ),
}
