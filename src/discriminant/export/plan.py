"""Plan of an export: the sources of the features, the expressions, and the outputs.

    encode      from columns to features                   `export.feature_columns`
    affine      (x - origin) / unit, then W u + b          `Rule.expression`
    quadratic   sums of squares of affine forms            `Rule.expression`
    link        from a score to two log probabilities      `models.expressions`
    normalise   exp(log - largest) divided by its sum      `export.model_expressions`
    choose      largest score or least expected cost; reject; outlier

The outputs of a classifier are score, log_odds (of the second of two classes), log_p, p and label;
a `Decision` also has cost and action. The output of a regression is value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
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
    share_subexpressions,
    topological_order,
    where_greater,
)
from discriminant.moments.probability_scores import TIE
from discriminant.table.blocks import numbered_names

Number = tuple[Expression, int]  # an expression, and the index of one of its numbers


@dataclass(frozen=True, slots=True, eq=False)
class Output:
    """One output of an exported model."""

    name: str
    expression: Expression
    components: tuple[str, ...] = ()  # names of the numbers, if there are several
    choices: tuple[Any, ...] = ()  # possible values, if the expression is an index into them


@dataclass(frozen=True, slots=True, eq=False)
class ExportPlan:
    """Features, expressions and outputs of a model, for export to any language."""

    title: str
    sources: tuple[FeatureSource, ...]  # sources of the numbers in `x`
    checks: tuple[FeatureSource, ...]  # columns whose categories must be known
    x: Expression  # the features
    named: bool  # whether the columns have names
    outputs: tuple[Output, ...]

    def steps(self) -> list[Expression]:
        """Return all expressions, sorted so that each comes after its operands."""
        return topological_order([output.expression for output in self.outputs])

    def __getitem__(self, name: str) -> Output:
        return next(output for output in self.outputs if output.name == name)

    def __contains__(self, name: str) -> bool:
        return any(output.name == name for output in self.outputs)


def number_at(step: Expression, index: int) -> Number:
    """Return the expression that computes a component, and the index of the component in it.

    Expressions that only pick or stack components are followed to their operands. An expression of
    width one has the same value at every index.
    """
    index = 0 if step.width == 1 else index
    while step.op in ("pick", "stack"):
        if step.op == "pick":
            step, index = step.operands[0], int(step.constants[0][index])
        else:
            for part in step.operands:
                if index < part.width:
                    break
                index -= part.width
            step = part
        index = 0 if step.width == 1 else index
    return step, index


def make_plan(model: Any, outputs: Sequence[str] | None = None) -> ExportPlan:
    """Return the plan of a fitted model with the given outputs (default: all outputs of the model).

    Raises
    ------
    ExportError
        If the model is not fitted, has no formula or lacks an output, or a number is not finite.
    """
    if hasattr(model, "__sklearn_is_fitted__") and not model.__sklearn_is_fitted__():
        raise ExportError.not_fitted(class_name(model))
    sources = _sources(model)
    x = sources.as_expression()
    if is_regressor(model):
        value = regressor_expression(model, x)  # one number, or one number for each response
        responses = tuple(map(str, range(value.width))) if value.width > 1 else ()
        available = [Output("value", value, responses)]
    else:
        available = _classifier_outputs(model, x, sources, outputs)
    selected = _select(available, outputs)
    steps = share_subexpressions([x, *(output.expression for output in selected)])
    plan = ExportPlan(
        model_title(model),
        (*sources.features, *sources.unseen),
        sources.checks,
        steps[0],
        sources.named,
        tuple(replace(o, expression=s) for o, s in zip(selected, steps[1:], strict=True)),
    )
    for step in plan.steps():
        if not all(np.isfinite(constant).all() for constant in step.constants):
            raise ExportError.not_finite(f"The step '{step.name or step.op}' of {plan.title}")
    return plan


def _sources(model: Any) -> FeatureSources:
    """Return the sources of the features, taken from the model's encoding or from its columns."""
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


def _select(available: list[Output], outputs: Sequence[str] | None) -> list[Output]:
    if outputs is None:
        return available
    known = {output.name: output for output in available}
    for name in outputs:
        if name not in known:
            raise ExportError.of_output(name, tuple(known))
    return [known[name] for name in dict.fromkeys(outputs)]


# --- classifiers ---------------------------------------------------------------------------------


def _classifier_outputs(
    model: Any, x: Expression, sources: FeatureSources, requested: Sequence[str] | None
) -> list[Output]:
    features = x.pick(np.arange(len(sources.features)))
    classifier = classifier_expressions(model, features)
    if classifier.why_no_probabilities is not None and (
        requested is None or {"p", "log_p", "log_odds"} & set(requested)
    ):
        reason = classifier.why_no_probabilities
        raise ExportError.of_probabilities(*reason, left=("score", "label"))
    steps, logs = {"score": classifier.score}, classifier.logs
    if logs is not None and classifier.shares is None and len(classifier.labels) == 2:
        steps["log_odds"] = (logs[1] - logs[0]).with_name("log_odds")
    if classifier.has_probabilities:
        steps["log_p"], steps["p"] = classifier.posterior()
    outputs = [
        Output(name, step, classifier.class_names if step.width > 1 else ())
        for name, step in steps.items()
        if step is not None
    ]
    for label in classifier.labels:
        if not isinstance(label, str | int | float):
            raise ExportError.of_label(label)
    outputs.append(Output("label", classifier.code, choices=classifier.labels))
    return [*outputs, *_action_outputs(model, x, sources, classifier, features)]


def _action_outputs(
    model: Any,
    x: Expression,
    sources: FeatureSources,
    classifier: ClassifierExpressions,
    features: Expression,
) -> list[Output]:
    """Return the outputs for costs and action of a decision.

    If the action is always the label, the list of outputs is empty.
    """
    inner = model
    while class_name(inner) in ("Encoded", "FrozenEstimator"):
        inner = getattr(inner, "estimator_", None) or inner.estimator
    decides = class_name(inner) == "Decision"
    if not decides and not (sources.unseen and hasattr(model, "decide")):
        return []
    if decides:
        outputs = _decision_outputs(inner, features, classifier)
    else:
        outputs = [Output("action", classifier.code, choices=classifier.labels)]
    action = outputs.pop()
    actions, code = action.choices, action.expression
    if sources.unseen:
        first = len(sources.features)
        unseen = x.pick(np.arange(first, x.width)).sum().with_name("unseen")
        code = where_greater(unseen, 0.5, float(len(actions)), code).with_name("choice")
    used = {
        REJECT.name: (decides and inner.reject is not None) or bool(sources.unseen),
        OUTLIER.name: decides and bool(inner.outlier),
    }
    for name, is_used in used.items():
        if is_used and name in label_texts(actions):
            raise ExportError.reserved_class(name)
    verdicts = tuple(used) if any(used.values()) else ()  # for rows without a decision
    return [*outputs, Output("action", code, choices=(*actions, *verdicts))]


def _decision_outputs(model: Any, x: Expression, classifier: ClassifierExpressions) -> list[Output]:
    """Return the expected costs and the action.

    The action is the one of least cost, or for some rows REJECT or OUTLIER.
    """
    costs = model.costs()
    log_p, p = classifier.posterior()
    outputs = []
    largest = p.max().with_name("p_largest")
    if costs is None:
        actions: tuple[Any, ...] = classifier.labels
        code = (p if log_p is None else log_p).first_max()
        least = (largest * -1.0) + 1.0
    else:
        actions = tuple(costs.actions)
        cost = expected_costs(p, costs.cost).with_name("cost", label_texts(actions))
        outputs.append(Output("cost", cost, label_texts(actions)))
        code, least = argmin_cost(cost), (cost * -1.0).max() * -1.0
    reject_code, outlier_code = float(len(actions)), float(len(actions) + 1)
    code = code.with_name("choice")
    if model.reject is not None:
        least = least.with_name("least_cost")
        code = _with_reject(code, least, largest, Reject.of(model.reject), reject_code)
    if model.outlier:
        code = _with_outliers(code, model, x, classifier.class_names, outlier_code)
    return [*outputs, Output("action", code, choices=actions)]


def _with_reject(
    code: Expression, least: Expression, largest: Expression, reject: Reject, reject_code: float
) -> Expression:
    if reject.cost == 0.0:
        return where_greater(largest, -1.0, reject_code, code).with_name("choice")
    if np.isfinite(reject.cost):
        code = where_greater(least, reject.cost * (1.0 + TIE), reject_code, code)
    if reject.threshold > 0.0:
        bound = (1.0 - reject.threshold) * (1.0 + TIE)
        code = where_greater((largest * -1.0) + 1.0, bound, reject_code, code)
    return code.with_name("choice")


def _with_outliers(
    code: Expression, model: Any, x: Expression, class_names: Sequence[str], outlier_code: float
) -> Expression:
    """Return the action with outliers marked.

    A row is an outlier if its squared distance to every class exceeds the distance that corresponds
    to the level of the p-value.
    """
    from scipy.stats import f

    moments, rule, width = model.gaussian_classes()
    if len(moments.features) != x.width:
        why = "its distances are those of columns that the classifier does not have"
        raise ExportError.of_part("outlier", why, "Leave it out.")
    degrees = float(moments.weight.sum()) - len(moments.labels)
    df2 = degrees - width + 1
    scale = moments.weight / (moments.weight + 1.0) * df2 / (width * degrees)
    limit = f.isf(float(model.outlier), width, df2) / scale
    within = rule.distance_expression(x, class_names) * -1.0 + limit
    nearest = within.max().with_name("within_limit")
    return where_greater(0.0, nearest, outlier_code, code).with_name("choice")
