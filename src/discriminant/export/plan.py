"""Plan of an export: where features come from, their expressions, and the outputs.

    encode      columns to features                        `export.features`
    affine      (x - origin) / unit, then W u + b          `Rule.expression`
    quadratic   sums of squares of affine forms            `Rule.expression`
    link        a score to two log probabilities           `models.expressions`
    normalise   exp(log - largest) over its sum            `export.models`
    choose      the largest; the least expected cost; reject; outlier

Outputs of a classifier: score, log_odds (of the second of two classes), log_p, p, label; of a
`Decision` also cost and action. Output of a regression: value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discriminant.decision.actions import OUTLIER, REJECT, Reject
from discriminant.errors import ExportError
from discriminant.export.feature_columns import (
    FeatureSource,
    FeatureSources,
    encoding_sources,
    number_columns,
)
from discriminant.export.model_expressions import (
    ClassifierExpressions,
    argmin_cost,
    class_name,
    classifier_expressions,
    expected_costs,
    is_regressor,
    label_texts,
    model_title,
    regressor_expression,
)
from discriminant.models.expressions import (
    Expression,
    greater,
    share_subexpressions,
    topological_order,
)
from discriminant.moments.probability_scores import TIE
from discriminant.table.blocks import numbered_names


@dataclass(frozen=True, slots=True, eq=False)
class Output:
    """One output of an exported model."""

    name: str
    expression: Expression
    components: tuple[str, ...] = ()  # names of its numbers, if several
    choices: tuple[Any, ...] = ()  # its possible values, if the expression is an index into them


@dataclass(frozen=True, slots=True, eq=False)
class ExportPlan:
    """Features, expressions and outputs of a model, for any target."""

    title: str
    sources: tuple[FeatureSource, ...]  # of the numbers of `x`
    checks: tuple[FeatureSource, ...]  # categories that must be known
    x: Expression  # the features
    named: bool  # whether the columns have names of their own
    outputs: tuple[Output, ...]

    def steps(self) -> list[Expression]:
        """All expressions, each after its operands."""
        return topological_order([output.expression for output in self.outputs])

    def __getitem__(self, name: str) -> Output:
        return next(output for output in self.outputs if output.name == name)

    def __contains__(self, name: str) -> bool:
        return any(output.name == name for output in self.outputs)


def make_plan(model: Any, outputs: Sequence[str] | None = None) -> ExportPlan:
    """Plan of a fitted model with these outputs; None is all that it has."""
    if hasattr(model, "__sklearn_is_fitted__") and not model.__sklearn_is_fitted__():
        raise ExportError.not_fitted(class_name(model))
    sources = _sources(model)
    x = sources.as_step()
    if is_regressor(model):
        found = _of_regression(model, x)
    else:
        found = _of_classifier(model, x, sources, outputs)
    chosen = _chosen(found, outputs)
    steps = share_subexpressions([x, *(output.expression for output in chosen)])
    made = tuple(
        Output(output.name, step, output.components, output.choices)
        for output, step in zip(chosen, steps[1:], strict=True)
    )
    every = (*sources.features, *sources.unseen)
    plan = ExportPlan(model_title(model), every, sources.checks, steps[0], sources.named, made)
    _check_finite(plan)
    return plan


def _sources(model: Any) -> FeatureSources:
    """Sources of the features: the encoding inside the model, or its columns."""
    inside = model
    while inside is not None:
        if hasattr(inside, "encoding_"):
            return encoding_sources(inside.encoding_)
        inside = getattr(inside, "estimator_", None)
    if not hasattr(model, "n_features_in_"):
        raise ExportError.of_model(class_name(model))
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return number_columns(numbered_names(int(model.n_features_in_)), named=False)
    return number_columns([str(name) for name in names], named=True)


def _chosen(found: list[Output], outputs: Sequence[str] | None) -> list[Output]:
    if outputs is None:
        return found
    known = {output.name: output for output in found}
    for name in outputs:
        if name not in known:
            raise ExportError.of_output(name, tuple(known))
    return [known[name] for name in dict.fromkeys(outputs)]


def _check_finite(plan: ExportPlan) -> None:
    for step in plan.steps():
        if not all(np.isfinite(one).all() for one in step.constants):
            raise ExportError.not_finite(f"The step '{step.name or step.op}' of {plan.title}")


# --- classifiers ---------------------------------------------------------------------------------


def _of_classifier(
    model: Any, x: Expression, sources: FeatureSources, asked: Sequence[str] | None
) -> list[Output]:
    features = x.pick(np.arange(len(sources.features)))
    found = classifier_expressions(model, features)
    if found.why_no_probabilities is not None and (
        asked is None or {"p", "log_p", "log_odds"} & set(asked)
    ):
        raise ExportError.of_probabilities(*found.why_no_probabilities, left=("score", "label"))
    outputs = [] if found.score is None else [_output("score", found.score, found)]
    if found.logs is not None and found.shares is None and len(found.labels) == 2:
        outputs.append(Output("log_odds", (found.logs[1] - found.logs[0]).with_name("log_odds")))
    if found.has_probabilities:
        log_p, p = found.posterior()
        if log_p is not None:
            outputs.append(_output("log_p", log_p, found))
        outputs.append(_output("p", p, found))
    for label in found.labels:
        if not isinstance(label, str | int | float):
            raise ExportError.of_label(label)
    outputs.append(Output("label", found.code, choices=found.labels))
    return [*outputs, *_actions(model, x, sources, found, features)]


def _actions(
    model: Any,
    x: Expression,
    sources: FeatureSources,
    found: ClassifierExpressions,
    features: Expression,
) -> list[Output]:
    """Outputs of a decision: costs and the action, unless that is just the label."""
    deciding = model
    while class_name(deciding) in ("Encoded", "FrozenEstimator"):
        deciding = getattr(deciding, "estimator_", None) or deciding.estimator
    decides = class_name(deciding) == "Decision"
    if not decides and not (sources.unseen and hasattr(model, "decide")):
        return []
    if decides:
        outputs = _decision(deciding, features, found)
    else:
        outputs = [Output("action", found.code, choices=found.labels)]
    action = outputs.pop()
    actions, code = action.choices, action.expression
    if sources.unseen:
        first = len(sources.features)
        unseen = x.pick(np.arange(first, x.width)).sum().with_name("unseen")
        code = greater(unseen, 0.5, float(len(actions)), code).with_name("choice")
    used = {
        REJECT.name: (decides and deciding.reject is not None) or bool(sources.unseen),
        OUTLIER.name: decides and bool(deciding.outlier),
    }
    return [*outputs, Output("action", code, choices=(*actions, *_verdicts(actions, used)))]


def _output(name: str, step: Expression, found: ClassifierExpressions) -> Output:
    return Output(name, step, found.class_names if step.width > 1 else ())


def _decision(model: Any, x: Expression, found: ClassifierExpressions) -> list[Output]:
    """Expected costs, and the action: least cost, then reject, then outlier."""
    costs = model.costs()
    log_p, p = found.posterior()
    outputs = []
    largest = p.max().with_name("p_largest")
    if costs is None:
        actions: tuple[Any, ...] = found.labels
        code = (p if log_p is None else log_p).first_max()
        least = (largest * -1.0) + 1.0
    else:
        actions = tuple(costs.actions)
        cost = expected_costs(p, costs.cost).with_name("cost", label_texts(actions))
        outputs.append(Output("cost", cost, label_texts(actions)))
        code, least = argmin_cost(cost), (cost * -1.0).max() * -1.0
    places = float(len(actions)), float(len(actions) + 1)
    code = code.with_name("choice")
    if model.reject is not None:
        code = _rejected(
            code, least.with_name("least_cost"), largest, Reject.of(model.reject), places[0]
        )
    if model.outlier:
        code = _outlying(code, model, x, found.class_names, places[1])
    return [*outputs, Output("action", code, choices=actions)]


def _verdicts(actions: tuple[Any, ...], used: dict[str, bool]) -> tuple[str, ...]:
    """Names of the verdicts on undecided rows; raise if a class has such a name."""
    for name, asked in used.items():
        if asked and name in label_texts(actions):
            raise ExportError.reserved_class(name)
    return tuple(used) if any(used.values()) else ()


def _rejected(
    code: Expression, least: Expression, largest: Expression, reject: Reject, place: float
) -> Expression:
    if reject.cost == 0.0:
        return greater(largest, -1.0, place, code).with_name("choice")
    if np.isfinite(reject.cost):
        code = greater(least, reject.cost * (1.0 + TIE), place, code)
    if reject.threshold > 0.0:
        bound = (1.0 - reject.threshold) * (1.0 + TIE)
        code = greater((largest * -1.0) + 1.0, bound, place, code)
    return code.with_name("choice")


def _outlying(
    code: Expression, model: Any, x: Expression, parts: Sequence[str], place: float
) -> Expression:
    """Mark rows as outliers where every squared distance exceeds the limit of its p-value."""
    from scipy.stats import f

    moments, rule, width = model.gaussian_classes()
    if len(moments.features) != x.width:
        why = "its distances are those of other columns than the classifier has"
        raise ExportError.of_part("outlier", why, "Leave it out.")
    degrees = float(moments.weight.sum()) - len(moments.labels)
    below = degrees - width + 1
    scale = moments.weight / (moments.weight + 1.0) * below / (width * degrees)
    limit = f.isf(float(model.outlier), width, below) / scale
    within = rule.distance_expression(x, parts) * -1.0 + limit
    nearest = within.max().with_name("within_limit")
    return greater(0.0, nearest, place, code).with_name("choice")


# --- regressions ---------------------------------------------------------------------------------


def _of_regression(model: Any, x: Expression) -> list[Output]:
    """One number, or one for each response."""
    value = regressor_expression(model, x)
    return [Output("value", value, tuple(map(str, range(value.width))) * (value.width > 1))]
