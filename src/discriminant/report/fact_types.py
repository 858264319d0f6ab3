"""Types of the facts of a report: one dictionary of plain values.

    facts = {title, made, verdict, checks, read, comparison, space, decision, matters, use}

The dictionary holds only numbers, texts, lists and dictionaries, so that it can be written as JSON
without conversion; numbers that are not finite are None. All sections except `read` and
`comparison` are optional, and a page leaves out missing sections. The modules of `report.sections`
build the sections from the results of `assessment` and `decision`; this module neither computes nor
formats.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NotRequired, TypedDict

import numpy as np


class Provenance(TypedDict):
    """Provenance of the report: versions, date, seed and command."""

    version: str
    date: NotRequired[str]
    seed: NotRequired[int | None]
    command: NotRequired[str]


class ClassFacts(TypedDict):
    """A class with the number and the weight of its rows."""

    label: str
    rows: int
    weight: float


class ColumnFacts(TypedDict):
    """A column and its encoding."""

    name: str
    kind: str  # number, boolean, date, ordered, category, target, weight, identifier, ...
    features: int  # number of features that the column was encoded as
    note: str
    missing: int


class ReadFacts(TypedDict):
    """Section 1: the data."""

    source: str
    target: str
    rows: int  # number of rows that were used
    rows_read: int
    features: int
    weighted: bool
    classes: list[ClassFacts]
    columns: list[ColumnFacts]
    said: list[str]
    warnings: list[str]


class ModelFacts(TypedDict):
    """Measures of one model on held-out rows."""

    name: str
    label: str
    error: float | None
    error_low: float | None
    error_high: float | None
    log_loss: float | None
    auc: float | None
    auc_low: float | None
    auc_high: float | None
    brier: float | None
    calibration: float | None
    seconds: float | None
    note: str
    chosen: bool


class SurfaceFacts(TypedDict):
    """Held-out losses of RDA over pooling and shrinkage."""

    pooling: list[float]  # P values
    shrinkage: list[str]  # S values
    error: list[list[float | None]]  # (P, S)
    log_loss: list[list[float | None]]  # (P, S)
    best: list[int]  # indices of the best candidate: pooling, shrinkage


class HeadlineFacts(TypedDict):
    """Measures of the selected model on held-out rows, corrected for the selection."""

    error: float
    error_low: float
    error_high: float
    error_raw: float  # without the correction
    log_loss: float | None
    log_loss_low: float | None
    log_loss_high: float | None
    log_loss_raw: float | None
    method: str  # how the correction was computed: one sentence


class PoolMemberFacts(TypedDict):
    """A model of the pool, and its weight."""

    name: str
    label: str
    weight: float


class BestSingleFacts(TypedDict):
    """The best single model, and the loss of selecting it instead of the pool."""

    name: str
    label: str
    error: float | None
    log_loss: float | None
    ratio: float | None  # its corrected log loss divided by that of the selected model
    text: str  # one sentence


class YardstickFacts(TypedDict):
    """Boosted trees on the same folds, for comparison; never selected."""

    label: str
    error: float | None
    log_loss: float | None
    rows: int  # number of rows used
    folds: int
    seconds: float
    better: bool  # whether the trees are clearly better than the selected model
    text: str  # one sentence


class LearningCurveFacts(TypedDict):
    """Held-out measures of a model fitted to growing shares of the training rows."""

    label: str  # the model
    share: list[float]
    rows: list[int]
    error: list[float | None]
    log_loss: list[float | None]
    text: str  # one sentence: whether more rows would help


class WithoutColumnsFacts(TypedDict):
    """The comparison repeated without suspicious columns."""

    columns: list[str]
    label: str  # the model selected without them
    error: float | None
    log_loss: float | None
    text: str  # one sentence


class ComparisonFacts(TypedDict):
    """Section 2: the comparison of models."""

    models: list[ModelFacts]
    why: str
    folds: str  # "10 folds"
    level: float  # confidence level of the intervals
    baseline: float | None  # error of always predicting the most frequent class
    baseline_log_loss: NotRequired[float | None]  # log loss of predicting the class shares
    note: NotRequired[str]  # note that applies to all models
    surface: NotRequired[SurfaceFacts]
    headline: NotRequired[HeadlineFacts]
    pool: NotRequired[list[PoolMemberFacts]]  # largest weight first
    best_single: NotRequired[BestSingleFacts]  # if the pool was selected
    yardstick: NotRequired[YardstickFacts]
    learning_curve: NotRequired[LearningCurveFacts]
    without: NotRequired[list[WithoutColumnsFacts]]


class EllipseFacts(TypedDict):
    """Ellipse of a class in the plane of the first two directions."""

    code: int
    centre: list[float]  # (2,)
    axes: list[list[float]]  # (2, 2) each row is a half axis of the ellipse
    share: float  # share of the rows of a Gaussian class that are inside the ellipse


class RegionFacts(TypedDict):
    """Region in which a class is predicted: a convex polygon."""

    code: int
    polygon: list[list[float]]  # (m, 2)


class TestFacts(TypedDict):
    """A statistic with its F approximation."""

    name: str
    value: float | None
    f: float | None
    df1: float | None
    df2: float | None
    p: float | None


class CanonicalFacts(TypedDict):
    """A discriminant direction."""

    correlation: float | None
    eigenvalue: float | None
    share: float | None
    p: float | None


class StructureFacts(TypedDict):
    """Structure: correlations of features with directions, within classes."""

    features: list[str]  # the d' features with the largest loadings
    loadings: list[list[float | None]]  # (d', s)
    left_out: int


class SpaceFacts(TypedDict):
    """Section 3: the rows in discriminant space, and tests."""

    labels: list[str]  # K labels
    axes: list[str]  # 1 or 2 names
    # (m, 3): both coordinates (the second is 0 if there is one direction), class code
    points: list[list[float]]
    shown: list[str]  # features whose values are shown with the points
    values: list[list[float]]  # (m, len(shown))
    rows: int  # number of all rows; the points may be a sample of them
    means: list[list[float]]  # (K, 2) class means
    ellipses: list[EllipseFacts]
    regions: list[RegionFacts]
    borders: list[float]  # decision boundaries, if there is a single direction
    # if there is a single direction: edges of the bins, and counts of each class
    bins: NotRequired[dict[str, Any]]
    structure: StructureFacts
    canonical: list[CanonicalFacts]
    tests: list[TestFacts]
    box_m: NotRequired[dict[str, float | None]]
    calls_for: str
    notes: list[str]


class RocFacts(TypedDict):
    """Points of the ROC curve; no row is predicted positive at the first, every row at the last."""

    # least probability that is predicted as positive; None at the first point
    threshold: list[float | None]
    tp: list[float]  # weight of positive rows predicted as positive
    fp: list[float]  # weight of negative rows predicted as positive
    positives: float
    negatives: float
    area: float
    low: float | None
    high: float | None
    start: int  # index of the point that corresponds to the decision


class HeldOutFacts(TypedDict):
    """Held-out rows with their posteriors, for the sliders of the page."""

    truth: list[int]  # (m,) codes of the true classes
    logs: list[list[int]]  # (m, K) -1000 log posterior, rounded
    weight: list[float]  # (K,) number of rows that each sampled row of a class represents


class DecisionFacts(TypedDict):
    """Section 4: decisions and their cost."""

    labels: list[str]
    actions: list[str]  # the classes, then other actions
    positive: int | None  # code of the positive class, if there are two classes
    rows: float
    cost: list[list[float]]  # (A, K) cost of each action and class
    weighted: bool  # whether counts are sums of weights
    costs_given: bool
    dials: dict[str, list[float]]  # steps of the sliders for costs and for the cost of rejecting
    tie: float  # probabilities or costs count as equal up to this relative difference
    reject: float | None  # cost of rejecting a row; None: rows are never rejected
    confusion: list[list[float]]  # (A, K), or (A + 1, K) with rejected rows last
    error: float | None
    coverage: float | None
    mean_cost: float | None
    by_class: list[dict[str, Any]]
    roc: NotRequired[RocFacts]
    held: NotRequired[HeldOutFacts]
    risk_coverage: dict[str, Any]  # coverage, risk, area
    drawn: NotRequired[str]  # sentence on the sample, if not all rows are in `held`


class CoefficientFacts(TypedDict):
    """Standardised coefficient of a feature for a class."""

    feature: str
    of: str | None  # the class
    value: float | None
    low: float | None
    high: float | None


class CoefficientsFacts(TypedDict):
    """Standardised coefficients with their title and unit."""

    title: str
    unit: str  # what a value of 1 means
    groups: list[str]  # names of classes or directions
    rows: list[CoefficientFacts]
    left_out: int  # number of features not shown
    groups_left_out: int


class FindingFacts(TypedDict):
    """A finding of the data checks."""

    kind: str  # masked, separation, collinear, outliers, influential, constant, imbalance, ...
    text: str
    details: NotRequired[list[str]]  # full texts of the warnings that the finding is based on


class MattersFacts(TypedDict):
    """Section 5: coefficients and data checks."""

    coefficients: NotRequired[CoefficientsFacts]
    stepwise: NotRequired[dict[str, Any]]
    findings: list[FindingFacts]


class UseFacts(TypedDict, total=False):
    """Section 6: using the model."""

    file: str
    python: str
    sql: str
    command: str


class CheckFacts(TypedDict):
    """A result of the data checks, made before models are fitted."""

    kind: str  # leak, sentinel, identifier, groups, duplicates, time_drift, rare_class, ...
    # "stop": results are misleading until it is resolved; "warning": read before using the model
    severity: str  # "stop", "warning" or "note"
    title: str  # a few words, for the first screen
    text: str  # what was seen, with numbers, and what to do
    columns: list[str]
    rows: int | None  # number of rows concerned


class VerdictFacts(TypedDict):
    """Whether to use the model, in one line, and why."""

    level: str  # "use", "care" or "no"
    text: str
    rule: str  # the rule that led to the level
    reasons: list[str]  # reasons for care


class Facts(TypedDict):
    """All facts of a report."""

    title: str
    made: Provenance
    verdict: NotRequired[VerdictFacts]
    checks: NotRequired[list[CheckFacts]]
    read: ReadFacts
    comparison: ComparisonFacts
    space: NotRequired[SpaceFacts]
    decision: NotRequired[DecisionFacts]
    matters: NotRequired[MattersFacts]
    use: NotRequired[UseFacts]


def facts(
    title: str,
    *,
    made: Provenance,
    read: ReadFacts,
    comparison: ComparisonFacts,
    space: SpaceFacts | None = None,
    decision: DecisionFacts | None = None,
    matters: MattersFacts | None = None,
    use: UseFacts | None = None,
    checks: list[CheckFacts] | None = None,
    verdict: VerdictFacts | None = None,
) -> Facts:
    """Assemble the sections and convert all values to plain Python types."""
    sections = {
        "verdict": verdict,
        "checks": checks,
        "space": space,
        "decision": decision,
        "matters": matters,
        "use": use,
    }
    present = {name: section for name, section in sections.items() if section is not None}
    collected: Facts = plain(
        {"title": title, "made": made, "read": read, "comparison": comparison} | present
    )
    return collected


def plain(value: Any) -> Any:
    """Convert NumPy types to Python's, and non-finite numbers to None.

    >>> plain({"a": np.float64("nan"), 2: (np.int64(3), np.arange(2))})
    {'a': None, '2': [3, [0, 1]]}
    """
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    return str(value)


def to_json(facts: Facts, *, indent: int | None = 1) -> str:
    """Return the facts as ASCII JSON."""
    return json.dumps(facts, indent=indent, allow_nan=False)
