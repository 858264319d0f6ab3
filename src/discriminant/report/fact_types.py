"""Types of the facts of a report: one dictionary of plain values.

    facts = {title, made, read, comparison, space, decision, matters, use}

Only numbers, texts, lists and dictionaries are in it, so that it is JSON as it stands; whatever is
not finite is None. All sections but `read` and `comparison` may be missing, and a page leaves out
what is missing. Sections are made by the modules beside this one, from what `assessment` and
`decision` return; nothing here computes, and nothing here knows what a page looks like.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NotRequired, TypedDict

import numpy as np


class Made(TypedDict):
    """Provenance of the report."""

    version: str
    date: NotRequired[str]
    seed: NotRequired[int | None]
    command: NotRequired[str]


class ClassFacts(TypedDict):
    """A class with its rows and weight."""

    label: str
    rows: int
    weight: float


class ColumnFacts(TypedDict):
    """A column and its encoding."""

    name: str
    kind: str  # number, boolean, date, ordered, category, target, weight, identifier, ...
    features: int  # how many it became
    note: str
    missing: int


class ReadFacts(TypedDict):
    """Section 1: the data."""

    source: str
    target: str
    rows: int  # that were used
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

    pooling: list[float]  # P
    shrinkage: list[str]  # S
    error: list[list[float | None]]  # (P, S)
    log_loss: list[list[float | None]]  # (P, S)
    best: list[int]  # place of the candidate taken: pooling, shrinkage


class ComparisonFacts(TypedDict):
    """Section 2: the comparison of models."""

    models: list[ModelFacts]
    why: str
    folds: str  # "10 folds"
    level: float  # of the intervals
    baseline: float | None  # error of always saying the most frequent class
    note: NotRequired[str]  # what is to be known of all models
    surface: NotRequired[SurfaceFacts]


class EllipseFacts(TypedDict):
    """Ellipse of a class in the plane of the first two directions."""

    code: int
    centre: list[float]  # (2,)
    axes: list[list[float]]  # (2, 2) rows: half axes of the ellipse
    share: float  # of the rows of a Gaussian class that are inside


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
    """Correlations of features with directions, within classes."""

    features: list[str]  # the d' that say most
    loadings: list[list[float | None]]  # (d', s)
    left_out: int


class SpaceFacts(TypedDict):
    """Section 3: the rows in discriminant space, and tests."""

    labels: list[str]  # K
    axes: list[str]  # 1 or 2 names
    points: list[list[float]]  # (m, 3): along both directions (0 for the second of one), code
    shown: list[str]  # the features whose values are beside the points
    values: list[list[float]]  # (m, len(shown))
    rows: int  # of which the points are a sample
    means: list[list[float]]  # (K, 2)
    ellipses: list[EllipseFacts]
    regions: list[RegionFacts]
    borders: list[float]  # along a single direction
    bins: NotRequired[dict[str, Any]]  # of a single direction: edges, and counts of each class
    structure: StructureFacts
    canonical: list[CanonicalFacts]
    tests: list[TestFacts]
    box_m: NotRequired[dict[str, float | None]]
    calls_for: str
    notes: list[str]


class RocFacts(TypedDict):
    """Points of the ROC curve, from no row predicted positive to all."""

    threshold: list[float | None]  # least probability that is called positive; None at first
    tp: list[float]  # weight of positive rows called positive
    fp: list[float]  # weight of the others called positive
    positives: float
    negatives: float
    area: float
    low: float | None
    high: float | None
    start: int  # the point of the decision made


class HeldOutFacts(TypedDict):
    """Held-out rows with their posteriors, for the sliders of the page."""

    truth: list[int]  # (m,) codes
    logs: list[list[int]]  # (m, K) -1000 log posterior, rounded
    weight: list[float]  # (K,) how many rows each row of a class stands for


class DecisionFacts(TypedDict):
    """Section 4: decisions and their cost."""

    labels: list[str]
    actions: list[str]  # the classes, then other actions
    positive: int | None  # code, of two classes
    rows: float
    cost: list[list[float]]  # (A, K)
    weighted: bool  # whether counts are sums of weights
    costs_given: bool
    dials: dict[str, list[float]]  # steps of costs, and of the cost of passing on
    tie: float  # relative difference up to which probabilities and costs are equal
    reject: float | None  # cost of passing a row on; None: never
    confusion: list[list[float]]  # (A, K), or (A + 1, K) with rows passed on in the last
    error: float | None
    coverage: float | None
    mean_cost: float | None
    by_class: list[dict[str, Any]]
    roc: NotRequired[RocFacts]
    held: NotRequired[HeldOutFacts]
    risk_coverage: dict[str, Any]  # coverage, risk, area
    drawn: NotRequired[str]  # of how many rows, where these are not all


class CoefficientFacts(TypedDict):
    """Standardised coefficient of a feature for a class."""

    feature: str
    of: str | None  # class
    value: float | None
    low: float | None
    high: float | None


class CoefficientsFacts(TypedDict):
    """Standardised coefficients with their title and unit."""

    title: str
    unit: str  # what a value of 1 means
    groups: list[str]  # classes, or directions
    rows: list[CoefficientFacts]
    left_out: int  # features
    groups_left_out: int


class FindingFacts(TypedDict):
    """A finding of the data checks."""

    kind: str  # masked, separation, collinear, outliers, influential, constant, imbalance, ...
    text: str
    details: NotRequired[list[str]]  # what was said when it was found


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


class Facts(TypedDict):
    """All facts of a report."""

    title: str
    made: Made
    read: ReadFacts
    comparison: ComparisonFacts
    space: NotRequired[SpaceFacts]
    decision: NotRequired[DecisionFacts]
    matters: NotRequired[MattersFacts]
    use: NotRequired[UseFacts]


def facts(
    title: str,
    *,
    made: Made,
    read: ReadFacts,
    comparison: ComparisonFacts,
    space: SpaceFacts | None = None,
    decision: DecisionFacts | None = None,
    matters: MattersFacts | None = None,
    use: UseFacts | None = None,
) -> Facts:
    """Assemble the sections and convert all values to plain Python types."""
    found: dict[str, Any] = {"title": title, "made": made, "read": read, "comparison": comparison}
    others = {"space": space, "decision": decision, "matters": matters, "use": use}
    found |= {name: section for name, section in others.items() if section is not None}
    done: Facts = plain(found)
    return done


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


def to_json(found: Facts, *, indent: int | None = 1) -> str:
    """Return the facts as ASCII JSON."""
    return json.dumps(found, indent=indent, allow_nan=False)
