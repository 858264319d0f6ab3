"""Types of the facts of a report: one dictionary of plain values.

    facts = {title, made, verdict, checks, read, comparison, pairs, space, calibration, decision,
             matters, ranking, rows, columns, one_row, use}

The dictionary holds only numbers, texts, lists and dictionaries, so that it can be written as JSON
without conversion. Numbers that are not finite are replaced by None. All sections except `read` and
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
    features: int  # number of features into which the column is encoded
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
    error_raw: float  # the same measures without the correction
    log_loss: float | None
    log_loss_low: float | None
    log_loss_high: float | None
    log_loss_raw: float | None
    method: str  # how the correction was computed: one sentence


class GainFacts(TypedDict):
    """Log loss of guessing minus that of the selected model, on the same held-out rows."""

    value: float
    low: float
    high: float


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
    ratio: float | None  # its log loss divided by that of the pool, both as in `models`
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
    gain: NotRequired[GainFacts]
    pool: NotRequired[list[PoolMemberFacts]]  # sorted by weight, largest first
    best_single: NotRequired[BestSingleFacts]  # only if the pool was selected
    yardstick: NotRequired[YardstickFacts]
    learning_curve: NotRequired[LearningCurveFacts]
    without: NotRequired[list[WithoutColumnsFacts]]
    selectable: NotRequired[int]  # number of models among which one is selected


class EllipseFacts(TypedDict):
    """Ellipse of a class in the plane of two directions: its mean and covariance."""

    code: int
    centre: list[float]  # (r,) in all directions on the page
    covariance: list[list[float]]  # (r, r)
    radius: float  # standard deviations from the centre
    share: float  # share of the rows of a Gaussian class that are inside the ellipse


class RegionsFacts(TypedDict):
    """Predicted classes of a model on a grid in the plane of two directions."""

    directions: list[int]  # (2,) indices of the directions: across, up
    frame: list[float]  # left, right, low, high
    across: int  # number of cells of a line
    up: int  # number of lines, the lowest first
    codes: str  # one character for each cell, line by line: "A" is class 0, ...
    outside: NotRequired[int]  # number of points outside the frame


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
    """Structure coefficients: correlations of the features with the directions, within classes."""

    features: list[str]  # the d' features with the largest loadings
    loadings: list[list[float | None]]  # (d', s)
    left_out: int


class SpaceFacts(TypedDict):
    """Section 3: rows in the space of the discriminant directions, and tests of the class means."""

    labels: list[str]  # K labels
    axes: list[str]  # r names of the directions on the page
    points: list[list[float]]  # (m, r) coordinates
    codes: list[int]  # (m,) true classes
    numbers: list[int]  # (m,) row numbers, from 0
    decided: NotRequired[list[int]]  # (m,) predicted classes; K or more: another decision
    probability: NotRequired[list[float | None]]  # (m,) predicted probability of the decided class
    shown: list[str]  # features whose values are shown with the points
    values: list[list[float]]  # (m, len(shown))
    rows: int  # number of all rows; the points may be a sample of them
    positions: str  # how the positions were computed: one sentence
    boundaries: str  # the model whose boundaries are drawn
    means: list[list[float]]  # (K, r) class means
    ellipses: list[EllipseFacts]
    regions: list[RegionsFacts]  # one for each pair of directions
    borders: list[float]  # decision boundaries, if there is a single direction
    # if there is a single direction: edges of the bins, and counts of each class
    bins: NotRequired[dict[str, Any]]
    structure: StructureFacts
    canonical: list[CanonicalFacts]
    tests: list[TestFacts]
    box_m: NotRequired[dict[str, float | None]]
    calls_for: str
    notes: list[str]


class StripFacts(TypedDict):
    """Distributions of a feature in two classes."""

    feature: str
    d: float  # |difference of the means| / pooled standard deviation
    edges: list[float]  # (B + 1,) edges of the bins
    values: list[float]  # (B,) value of each bin, if the feature has few values; else empty
    beyond: NotRequired[list[bool]]  # (2,) whether the first and last bin hold values beyond them
    counts: list[list[float]]  # (2, B) weight of each class in each bin
    means: list[float]  # (2,) class means
    bins: str  # one character for each point of the discriminant space: "A" is bin 0, ...


class PairFacts(TypedDict):
    """Two classes that are confused, and why."""

    codes: list[int]  # (2,) the classes; first predicted as second is more frequent
    errors: list[float]  # (2,) rows of the first predicted as the second, and the reverse
    rows: list[float]  # (2,) rows of both classes
    distance: float | None  # Mahalanobis distance of the means, all features used
    overlap: float | None  # error of the best linear rule for two Gaussian classes at this distance
    text: str  # why they are confused
    separates: str  # what would separate them
    strips: list[StripFacts]


class PairsFacts(TypedDict):
    """The most confused pairs of classes."""

    pairs: list[PairFacts]
    errors: float  # number of misclassified held-out rows


class CalibrationBinFacts(TypedDict):
    """Held-out rows with similar predicted probabilities."""

    rows: float
    predicted: float  # mean predicted probability
    observed: float  # share of the rows for which the prediction is true
    low: float
    high: float


class CalibrationFacts(TypedDict):
    """Reliability of the predicted probabilities on held-out rows."""

    of: str  # what the probability refers to
    bins: list[CalibrationBinFacts]
    gap: float  # mean |predicted - observed| over the rows
    p: float | None  # p-value of the test that all probabilities are right
    poor: bool
    text: str


class OddColumnFacts(TypedDict):
    """Value of a column that is unusual for the class of its row."""

    feature: str
    value: float
    sd: float  # distance from the class mean, in standard deviations within the class


class RowFacts(TypedDict):
    """A row worth checking, such as a possible label error."""

    row: int  # number, from 0
    line: NotRequired[int]  # line of the file
    code: int  # class
    decided: str
    probability: float | None  # of the decided class
    own: float | None  # probability of the row's own class
    odd: list[OddColumnFacts]
    text: str


class RowListFacts(TypedDict):
    """Rows worth checking for the same reason."""

    kind: str  # label, misclassified, unsure, odd
    title: str
    text: str
    count: int  # number of all such rows
    rows: list[RowFacts]


class RowsFacts(TypedDict):
    """Rows worth checking."""

    numbering: str
    lists: list[RowListFacts]


class CardFacts(TypedDict):
    """Distribution of a column in each class."""

    name: str
    kind: str
    features: int
    missing: int
    note: str
    edges: list[float]  # (B + 1,) edges of the bins of a numeric column; empty for a category
    values: list[float]  # (B,) value of each bin, if a column has few values; else empty
    beyond: NotRequired[list[bool]]  # (2,) whether the first and last bin hold values beyond them
    levels: list[str]  # (B,) levels of a category; empty for a numeric column
    counts: list[list[float]]  # (K, B) weight of each class in each bin or level
    explained: float | None  # share of its variation that is between the classes, 0 to 1
    bins: str  # one character for each point of the discriminant space: "A" is bin 0, ...


class EffectFacts(TypedDict):
    """Change of a predicted probability when one feature changes and the others do not."""

    of: str  # class
    low: float  # value of the feature before
    high: float  # and after the change
    before: float  # predicted probability
    after: float


class RankFacts(TypedDict):
    """Importance of a feature by several measures."""

    feature: str
    importance: float  # mean of `explained` and `added`
    explained: float  # separation that the feature explains alone: share of its variation
    added: float | None  # partial R squared, given all other features
    loading: float | None  # largest |correlation| with a discriminant direction
    step: int | None  # step of the stepwise selection
    why: str  # why the measures differ
    effect: NotRequired[EffectFacts]


class RankingFacts(TypedDict):
    """Features in order of importance."""

    features: list[RankFacts]
    left_out: int
    model: str  # the model of the effects
    note: str


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


class UnequalCostFacts(TypedDict):
    """Decisions on held-out rows if missing one class costs more than any other error."""

    label: str
    ratio: float  # cost of missing the class; every other error costs 1
    threshold: float | None  # probability from which the class is predicted, for two classes
    recall: float | None  # of this class
    precision: float | None
    error: float
    cost_before: float  # mean cost per row of the decisions of the report
    cost: float  # mean cost per row of the decisions that consider the costs
    guess: float  # mean cost of the best single decision for all rows


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
    unequal: NotRequired[list[UnequalCostFacts]]  # decisions if missing a class costs more
    drawn: NotRequired[str]  # sentence on the sample, if not all rows are in `held`
    repeated: NotRequired[str]  # sentence on the counts, if the folds are repeated


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
    onnx: str  # commands that write ONNX and JavaScript files
    refused: list[str]  # input that the model rejects
    card: list[list[str]]  # model card: names and texts


Cell = str | float | bool | None  # cell of a table


class FieldFacts(TypedDict):
    """A column of the form for one row."""

    name: str
    kind: str  # number, boolean, date, ordered or category
    levels: list[str]  # levels of a category
    typical: Cell  # mean, or most frequent level
    low: float | None  # smallest and largest value of the rows, if it is a number
    high: float | None
    sd: float | None
    whole: bool  # whether all values are whole numbers
    missing: bool  # whether the cell may be missing


class ExampleFacts(TypedDict):
    """Example row whose values the user can load into the form."""

    row: int  # number, from 0
    text: str
    cells: list[Cell]  # one for each field


class OneRowFacts(TypedDict):
    """A form that predicts one row, and the code of the model."""

    model: str
    javascript: str  # code that defines rowModel = {outputs, classes}
    classes: list[str]  # labels in the order of the probabilities
    fields: list[FieldFacts]
    examples: list[ExampleFacts]


class CheckFacts(TypedDict):
    """Finding of the data checks, which run before models are fitted."""

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
    pairs: NotRequired[PairsFacts]
    space: NotRequired[SpaceFacts]
    calibration: NotRequired[CalibrationFacts]
    decision: NotRequired[DecisionFacts]
    matters: NotRequired[MattersFacts]
    ranking: NotRequired[RankingFacts]
    rows: NotRequired[RowsFacts]
    columns: NotRequired[list[CardFacts]]
    one_row: NotRequired[OneRowFacts]
    use: NotRequired[UseFacts]


def facts(
    title: str,
    *,
    made: Provenance,
    read: ReadFacts,
    comparison: ComparisonFacts,
    pairs: PairsFacts | None = None,
    space: SpaceFacts | None = None,
    calibration: CalibrationFacts | None = None,
    decision: DecisionFacts | None = None,
    matters: MattersFacts | None = None,
    ranking: RankingFacts | None = None,
    rows: RowsFacts | None = None,
    columns: list[CardFacts] | None = None,
    one_row: OneRowFacts | None = None,
    use: UseFacts | None = None,
    checks: list[CheckFacts] | None = None,
    verdict: VerdictFacts | None = None,
) -> Facts:
    """Assemble the sections and convert all values to plain Python types."""
    sections = {
        "verdict": verdict,
        "checks": checks,
        "pairs": pairs,
        "space": space,
        "calibration": calibration,
        "decision": decision,
        "matters": matters,
        "ranking": ranking,
        "rows": rows,
        "columns": columns,
        "one_row": one_row,
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
    kind = type(value)  # most values have one of these types: `isinstance` is slow for a mapping
    if kind is float:
        return value if math.isfinite(value) else None
    if kind in _PLAIN:
        return value
    if kind is dict or isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int | str):
        return value
    return str(value)


_PLAIN = frozenset({int, str, bool, type(None)})


def to_json(facts: Facts, *, indent: int | None = 1) -> str:
    """Return the facts as ASCII JSON."""
    return json.dumps(facts, indent=indent, allow_nan=False)
