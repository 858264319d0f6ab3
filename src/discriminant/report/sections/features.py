"""Section 5 of the report, features: their coefficients, and findings of data checks.

Coefficients with intervals are computed from moments alone. For class k against all others they are
those of the least-squares regression of the indicator of k on the features, per standard deviation
(over all rows) of each feature:

    T = total scatter, c_k = weight_k (mean_k - mean)       b = T^-1 c_k      value_j = b_j sd_j
    s^2 = (weight_k (1 - weight_k / n) - c_k' b) / (n - d - 1)
    b_j -+ t s sqrt((T^-1)_jj)

A value of 0.2 means that an increase of the feature by one standard deviation raises the
probability of k by about 20 percentage points, if the other features do not change. For two classes
b has the direction of LDA. Weights count as numbers of rows. `coefficients_of` uses the
coefficients of a fitted Logistic or GLM instead.

Data checks (findings):

imbalance    the rarest class has less than 0.3 of an even share of the rows
masked       a class with a recall near zero on held-out rows, or never predicted in training
collinear    features with a variance inflation factor 1 / (1 - R^2) of at least 10 within classes
outliers     rows far from the mean of their class, by the chi-squared law of a Gaussian class
surprising   held-out rows whose own class has a probability below 0.01 and below a tenth of the
             frequency of the class
wide         fewer rows than features, or nearly so: some sections are left out
...          warnings raised during fitting
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from scipy.special import chdtri
from scipy.stats import t as student

from discriminant.assessment.inference.coefficient_summary import Inference
from discriminant.assessment.inference.manova import check_products, standardise
from discriminant.assessment.resampling.held_out_folds import HeldOutPredictions
from discriminant.assessment.selection.stepwise import Stepwise
from discriminant.engines.local import one_blas_thread, threads_for
from discriminant.errors import DiscriminantError, InferenceError
from discriminant.models.gaussian.covariance import factorise, rounding_variance
from discriminant.moments.class_moments import ClassMoments
from discriminant.report.fact_types import (
    CoefficientFacts,
    CoefficientsFacts,
    FindingFacts,
    MattersFacts,
)
from discriminant.report.format import count_with_noun, name_list, number, percent
from discriminant.report.sections.data import warning_text
from discriminant.table.blocks import Floats, Places
from discriminant.table.memory import Table

_FEATURES = 24  # largest number of features shown
_GROUPS = 8  # largest number of classes shown
_COEFFICIENTS = 60  # approximate largest number of coefficients shown over all classes
_WHAT = "Coefficients"


def matters_section(
    *,
    coefficients: CoefficientsFacts | None = None,
    stepwise: Stepwise | None = None,
    findings: Iterable[FindingFacts] = (),
) -> MattersFacts:
    """Return the section with coefficients, stepwise selection and findings, where given."""
    section = MattersFacts(findings=list(findings))
    if coefficients is not None:
        section["coefficients"] = coefficients
    if stepwise is not None:
        section["stepwise"] = _stepwise(stepwise)
    return section


def coefficients_from(moments: ClassMoments, *, level: float = 0.95) -> CoefficientsFacts | None:
    """Return least-squares coefficients of each class against the others; None if undefined."""
    try:
        fitted = _least_squares(moments, level)
    except DiscriminantError:
        return None
    labels = [str(label) for label in moments.labels.tolist()]
    groups = [1] if len(labels) == 2 else list(range(min(len(labels), _GROUPS)))
    features = [moments.features[j] for j in fitted.features]
    order = np.argsort(-np.abs(fitted.value[groups]).max(axis=0), kind="stable")
    order = order[: _n_features(len(groups))]
    return CoefficientsFacts(
        title="least squares, "
        + ("one class against the other" if len(labels) == 2 else "each class against all others"),
        unit="change in the indicator of the class (0 or 1) per standard deviation of the feature",
        groups=[labels[k] for k in groups],
        rows=[
            CoefficientFacts(
                feature=features[j],
                of=labels[k],
                value=float(fitted.value[k, j]),
                low=float(fitted.value[k, j] - fitted.half_width[k, j]),
                high=float(fitted.value[k, j] + fitted.half_width[k, j]),
            )
            for k in groups
            for j in order
        ],
        left_out=len(features) - len(order),
        groups_left_out=0 if len(labels) == 2 else len(labels) - len(groups),
    )


def coefficients_of(
    inference: Inference, sd: Mapping[str, float], *, level: float = 0.95
) -> CoefficientsFacts:
    """Return the estimates of a Logistic or GLM per standard deviation, with Wald intervals.

    Features that are not in `sd` (the intercept) are left out.
    """
    ends = inference.wald(level)
    of = inference.classes or (None,) * len(inference.names)
    rows = [
        CoefficientFacts(
            feature=name,
            of=None if of[i] is None else str(of[i]),
            value=float(inference.estimate[i] * sd[name]),
            low=float(ends[i, 0] * sd[name]),
            high=float(ends[i, 1] * sd[name]),
        )
        for i, name in enumerate(inference.names)
        if name in sd
    ]
    all_groups = list(dict.fromkeys(row["of"] or "" for row in rows))
    groups = all_groups[:_GROUPS]
    size: dict[str, float] = {}
    for row in rows:
        size[row["feature"]] = max(size.get(row["feature"], 0.0), abs(row["value"] or 0.0))
    largest = sorted(size, key=lambda name: -size[name])[: _n_features(len(groups))]
    rank = {name: j for j, name in enumerate(largest)}
    shown = [row for row in rows if row["feature"] in rank and (row["of"] or "") in groups]
    against = "" if inference.first is None else f", against {inference.first}"
    return CoefficientsFacts(
        title=f"logistic regression{against}" if inference.odds else inference.title,
        unit="change in the log odds per standard deviation of the feature"
        if inference.odds
        else "change in the linear predictor per standard deviation of the feature",
        groups=groups,
        rows=sorted(shown, key=lambda r: (groups.index(r["of"] or ""), rank[r["feature"]])),
        left_out=len(size) - len(largest),
        groups_left_out=len(all_groups) - len(groups),
    )


def _n_features(groups: int) -> int:
    return min(max(_COEFFICIENTS // max(groups, 1), 6), _FEATURES)


def spreads(moments: ClassMoments) -> dict[str, float]:
    """Return the standard deviation of each feature over all rows, in the user's units."""
    total = _total_diagonal(moments) / (moments.weight.sum() - 1.0)
    values = np.sqrt(total) * moments.anchor.unit
    return dict(zip(moments.features, values.tolist(), strict=True))


class _StandardisedCoefficients(NamedTuple):
    """Standardised coefficients of every class, with the half-widths of their intervals."""

    features: Any  # (d',) indices of the features that vary
    value: Floats  # (K, d') coefficients
    half_width: Floats  # (K, d') half-widths of the intervals


def _least_squares(moments: ClassMoments, level: float) -> _StandardisedCoefficients:
    check_products(moments, _WHAT)
    n, weight = float(moments.weight.sum()), moments.weight
    offset = moments.mean - moments.centre
    total = moments.pooled + (weight[:, None] * offset).T @ offset
    varying = np.flatnonzero(np.diagonal(total) > 0)
    root = np.sqrt(np.diagonal(total)[varying])
    correlation = total[np.ix_(varying, varying)] / root[:, None] / root
    degrees = n - len(varying) - 1
    metric, loss = factorise(correlation)
    if metric is None or loss is not None or degrees < 1:
        names = [moments.features[j] for j in varying]
        rank = len(varying) if loss is None else loss.rank
        raise InferenceError.collinear(_WHAT, names, rank, len(names))
    covariance = weight[:, None] * offset[:, varying] / root  # (K, d') with the indicators
    slope = metric.solve(covariance)
    explained = np.einsum("kj,kj->k", covariance, slope)
    residual = np.maximum(weight * (1.0 - weight / n) - explained, 0.0)
    inverse = np.diagonal(metric.solve(np.eye(len(varying))))
    step = 1.0 / np.sqrt(n - 1.0)  # `slope` is for a change by `root`, which is `sd sqrt(n - 1)`
    error = np.sqrt(residual[:, None] / degrees * inverse)
    quantile = float(student.isf(0.5 * (1.0 - level), degrees))
    return _StandardisedCoefficients(varying, slope * step, quantile * error * step)


def _total_diagonal(moments: ClassMoments) -> Floats:
    within = moments.pooled if moments.pooled.ndim == 1 else np.diagonal(moments.pooled)
    return np.asarray(within + moments.weight @ (moments.mean - moments.centre) ** 2)


def _stepwise(selection: Stepwise) -> dict[str, Any]:
    names = ("number", "entered", "removed", "f", "p", "wilks")
    steps = selection.steps[:_FEATURES]
    return {
        "steps": [{name: getattr(step, name) for name in names} for step in steps],
        "left_out": len(selection.steps) - len(steps),
        "enter": selection.enter,
        "stay": selection.stay,
        "selected": list(selection.selected),
        "features": len(selection.features),
        "reason": selection.reason,
    }


# function from row numbers to line numbers of the file
Lines = Callable[[Sequence[int]], Sequence[int]]
DescribeRows = Callable[[Sequence[int]], str]

_INFLATION = 10.0  # value of 1 / (1 - R^2) from which a feature is reported as collinear
_MASKED_RECALL = 0.02  # recall below which a class is reported as masked
_OUTLIER_LEVEL = 1e-3  # probability that some row of Gaussian classes is reported as an outlier
_LIKELY = 0.01  # posterior of the labelled class below which a row may be mislabelled
_BLOCK = 1 << 14  # rows read at a time
_DETAILS = 4  # largest number of warnings of one kind that are quoted in full
_KINDS = {
    "MaskedClassWarning": "masked",
    "SeparationWarning": "separation",
    "SeparatingColumnWarning": "separation",
    "NotSeparatedWarning": "not separable",
    "CollinearWarning": "collinear",
    "ConstantColumnWarning": "constant",
    "ConstantInClassWarning": "constant",
    "NotConvergedWarning": "not converged",
    "ClassMissingWarning": "missing class",
    "ShrinkageChosenWarning": "few rows",
    "ScarceRowsWarning": "scarce rows",
    "NoFeatureSelectedWarning": "no feature",
}
_PLAIN = {
    "no feature": (
        "A sparse model keeps no feature in some fits, and then predicts the most frequent class."
    ),
    "masked": (
        "A class lies between others and is masked: least squares predicts none of the training "
        "rows as that class."
    ),
    "not separable": (
        "The classes are not linearly separable, so the perceptron does not converge; its best "
        "rule is used."
    ),
    "separation": (
        "Some classes are perfectly separated on the training rows. Logistic regression without a "
        "penalty then has no finite coefficients, and its probabilities are near 0 or 1: use a "
        "penalty, and do not interpret the size of coefficients."
    ),
    "collinear": (
        "Some features are (nearly) linear combinations of others: their coefficients are not "
        "identified, and models without shrinkage or a penalty may predict new rows worse."
    ),
    "constant": (
        "Some columns are constant in all rows, within a class, or in the training rows of a fold, "
        "and carry no information there."
    ),
    "few rows": (
        "Some classes have too few rows, or collinear columns, for a covariance matrix of their "
        "own; their covariance was shrunk as far as necessary."
    ),
    "scarce rows": (
        "Some classes have hardly more rows than features: models without shrinkage, such as LDA "
        "or QDA, predict new rows worse than those with shrinkage, such as RDA."
    ),
    "not converged": "A fit did not converge, so its numbers are approximate.",
    "missing class": (
        "A class was absent from the training rows of some folds, so it could not be predicted "
        "there."
    ),
}


def findings_of(
    table: Table,
    moments: ClassMoments | None,
    *,
    held: HeldOutPredictions | None = None,
    warnings: Iterable[Any] = (),
    among: str = "",
    lines: Lines | None = None,
    far: Places | None = None,
) -> list[FindingFacts]:
    """Return the findings about the rows, the held-out predictions and the warnings.

    Without moments, checks that need them are skipped, which is reported as a finding. If row
    numbers do not refer to all rows, `among` describes the rows to which they refer. `lines` is a
    function from row numbers to the lines of the file on which the rows start. `far` is the result
    of `far_rows`, if it is known.
    """

    def describe(rows: Sequence[int]) -> str:
        numbering = f"numbered from 0 among the rows {among}" if among else "numbered from 0"
        if lines is None:
            return numbering
        word = "line" if len(rows) == 1 else "lines"
        return f"{numbering}; {word} {name_list(lines(rows), len(rows))} of the file"

    findings = findings_of_warnings(warnings)
    findings += _imbalance(table)
    if moments is None:
        findings += _wide(table)
    else:
        far = far_rows(table, moments) if far is None else far
        findings += _collinear(moments) + _outliers(far, len(table), describe)
    if held is not None:
        findings += _masked(held) + _mislabelled(held, describe)
    return list({finding["text"]: finding for finding in findings}.values())


def findings_of_warnings(warnings: Iterable[Any]) -> list[FindingFacts]:
    """Return warnings (exceptions, records or texts) as findings, one for each kind."""
    kinds: dict[str, list[str]] = {}
    for warning in warnings:
        kind = _KINDS.get(type(getattr(warning, "message", warning)).__name__, "")
        kinds.setdefault(kind, []).append(warning_text(warning))
    findings = [
        FindingFacts(kind=kind, text=_summary(kind, different), details=different[:_DETAILS])
        for kind, texts in kinds.items()
        if kind and (different := list(dict.fromkeys(texts)))
    ]
    others = dict.fromkeys(kinds.get("", []))
    return findings + [FindingFacts(kind="warning", text=text) for text in others]


def _summary(kind: str, texts: Sequence[str]) -> str:
    """Return the text of a finding: that of the warning if a single one names the columns."""
    if kind == "constant" and len(texts) == 1:
        return texts[0]
    return _PLAIN[kind]


def _imbalance(table: Table) -> list[FindingFacts]:
    K = len(table.schema.labels)
    weight = np.bincount(table.codes, table.weight, minlength=K)
    share = weight / weight.sum()
    k = int(np.argmin(share))
    if share[k] * K >= 0.3:
        return []
    name = name_list([table.schema.labels[k]])
    whole = "rows" if table.weight is None else "weight"
    # with more than two classes, there are other errors too
    error = f"{'has' if K == 2 else 'can have'} an error of only {percent(share[k])}"
    text = (
        f"Class {name} is rare: {percent(share[k])} of all {whole}. A model that never predicts "
        f"{name} {error}, so look at recall and at costs, not at the error alone."
    )
    return [FindingFacts(kind="imbalance", text=text)]


def _wide(table: Table) -> list[FindingFacts]:
    why = (
        f"There are only {count_with_noun(len(table), 'row')} for "
        f"{count_with_noun(table.width, 'feature')}"
        if 2 * table.width > len(table)
        else f"There are very many features ({table.width:,})"
    )
    text = (
        f"{why}, so discriminant directions, tests of equal means and coefficients are left out of "
        "this report."
    )
    return [FindingFacts(kind="wide", text=text)]


def _collinear(moments: ClassMoments) -> list[FindingFacts]:
    try:
        standard = standardise(moments, "The search for collinear features")
    except DiscriminantError:
        return []
    metric, _ = factorise(standard.within)
    if metric is None:
        text = (
            "Some features are exact linear combinations of others, so their coefficients are not "
            "meaningful. Leave such columns out, or prefer models with a penalty."
        )
        return [FindingFacts(kind="collinear", text=text)]
    inflation = np.diagonal(metric.solve(np.eye(len(standard.features))))
    high = np.flatnonzero(inflation >= _INFLATION)
    if not len(high):
        return []
    order = high[np.argsort(-inflation[high], kind="stable")]
    names, worst = [standard.features[j] for j in order], int(order[0])
    verb = "is" if len(names) == 1 else "are"
    text = (
        f"{name_list(names)} {verb} nearly collinear with the other features. Single coefficients "
        f"are unreliable (variance inflation factor of {name_list([names[0]])}: "
        f"{number(inflation[worst])}), and models without shrinkage or a penalty may predict new "
        "rows worse."
    )
    return [FindingFacts(kind="collinear", text=text)]


def _outliers(far: Places, rows_in_all: int, describe: DescribeRows) -> list[FindingFacts]:
    if not len(far):
        return []
    rows = ", ".join(f"{i:,}" for i in far[:5].tolist()) + (", …" if len(far) > 5 else "")
    rows = f"row {rows}" if len(far) == 1 else f"rows {rows}"
    text = (
        f"{count_with_noun(len(far), 'row')} ({percent(len(far) / rows_in_all)}) "
        f"{'is' if len(far) == 1 else 'are'} farther from the mean of "
        f"{'its' if len(far) == 1 else 'their'} own class than a Gaussian class would allow: "
        f"{rows} ({describe(far[:5].tolist())}). Typical causes are typing errors, mixed units "
        "and heavy tails."
    )
    return [FindingFacts(kind="outliers", text=text)]


def far_rows(table: Table, moments: ClassMoments) -> Places:
    """Return the rows farther from their class than a Gaussian class allows, the farthest first."""
    squared, width = _class_distances(table, moments)
    limit = float(chdtri(width, _OUTLIER_LEVEL / len(table))) if width else np.inf
    far = np.flatnonzero(squared > limit)
    return far[np.argsort(-squared[far], kind="stable")]


def _class_distances(table: Table, moments: ClassMoments) -> tuple[Floats, int]:
    """Return the squared distance of each row to its class mean, and the number of features."""
    undefined = np.zeros(len(table)), 0
    degrees = float(moments.weight.sum() - len(moments.labels))
    if degrees <= len(moments.features) or moments.pooled.ndim == 1:
        return undefined
    covariance = moments.pooled / degrees
    varying = np.flatnonzero(np.diagonal(covariance) > rounding_variance(moments.mean))
    metric = factorise(covariance[np.ix_(varying, varying)])[0] if len(varying) else None
    if metric is None:
        return undefined

    def distances(lo: int) -> Floats:
        block = table.block(lo, min(lo + _BLOCK, len(table)))
        offsets = moments.anchor.offsets(block.features)
        offsets -= moments.mean[block.codes]
        if len(varying) < offsets.shape[1]:
            offsets = offsets[:, varying]
        squared: Floats = metric.squared_distances(offsets)
        return squared

    starts = range(0, len(table), _BLOCK)
    with one_blas_thread(), ThreadPoolExecutor(threads_for(len(table) * table.width)) as pool:
        return np.concatenate(list(pool.map(distances, starts))), len(varying)


def _masked(held: HeldOutPredictions) -> list[FindingFacts]:
    K, right = len(held.labels), held.decided == held.codes
    weight = np.ones(len(right)) if held.weight is None else held.weight
    rows = np.bincount(held.codes, weight, minlength=K)
    recall = np.bincount(held.codes, weight * right, minlength=K) / np.maximum(rows, 1e-300)
    masked = [k for k in range(K) if rows[k] > 0 and recall[k] < _MASKED_RECALL]
    findings = []
    whole = "its held-out rows" if held.weight is None else "the weight of its held-out rows"
    for k in masked[:5]:
        name = name_list([held.labels[k]])
        text = (
            f"Class {name} is never predicted correctly: its recall is 0. "
            if recall[k] == 0
            else f"Class {name} is hardly ever predicted correctly: its recall is "
            f"{percent(float(recall[k]))} of {whole}. "
        )
        between = "lie between other classes (masking), " if K > 2 else ""
        text += (
            f"The class may {between}overlap with a more frequent class, or have too few rows. In "
            "case of overlap, a higher cost of missing the class raises its recall (see “Costs”)."
        )
        findings.append(FindingFacts(kind="masked", text=text))
    return findings


def mislabelled_rows(held: HeldOutPredictions) -> Places:
    """Return the rows whose own class is so improbable that their labels may be wrong."""
    if not held.probabilistic:
        return np.zeros(0, dtype=np.intp)
    own = held.log_posterior[np.arange(len(held.codes)), held.codes]
    share = np.bincount(held.codes, held.weight, minlength=len(held.labels))
    with np.errstate(divide="ignore"):
        limit = np.log(np.minimum(_LIKELY, 0.1 * share / share.sum()))
    counts = True if held.weight is None else held.weight > 0
    return np.flatnonzero((own < limit[held.codes]) & counts)


def _mislabelled(held: HeldOutPredictions, describe: DescribeRows) -> list[FindingFacts]:
    low = mislabelled_rows(held)
    if not len(low):
        return []
    own = held.log_posterior[np.arange(len(held.codes)), held.codes]
    worst = int(low[np.argmin(own[low])])
    predicted = name_list([held.predicted[worst]])
    p = float(np.exp(own[worst]))
    given = (
        "no probability"
        if p == 0
        else f"a probability of {percent(p) if p > 1e-6 else number(p, 2)}"
    )
    may = "may be mislabelled: its" if len(low) == 1 else "may be mislabelled: their"
    text = (
        f"{count_with_noun(len(low), 'held-out row')} {may} labelled class has a predicted "
        f"probability below {percent(_LIKELY, 0)} and below a tenth of its frequency. Check row "
        f"{worst:,} first ({describe([worst])}): it is labelled "
        f"{name_list([held.labels[held.codes[worst]]])}, which has {given}; the model predicts "
        f"{predicted}."
    )
    return [FindingFacts(kind="surprising", text=text)]
