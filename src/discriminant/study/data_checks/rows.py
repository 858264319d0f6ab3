"""Checks of rows: identifiers, matched sets, groups, fold and time columns, duplicates, drift.

identifier    different integers in all rows that are consecutive, strictly increase from row to
              row, or belong to a column named as an identifier; texts that are all different
matched       each value occurs equally often (2 to 20 times), with the same number of rows of
              each class
groups        rows with the same value resemble one another: see `_groups`
fold          a column named fold, split, cv, ... with at most 20 values of about equal size, or
              a column whose only levels are names such as train, valid and test
time          dates; years; numbers named time that never decrease from row to row
duplicates    rows that are equal in all features
time_drift    the first and the second half of the rows of each class differ: see `time_drift`
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import fdtrc, ndtr
from scipy.stats import rankdata

from discriminant.report.fact_types import CheckFacts
from discriminant.report.format import count_with_noun, fixed, number, percent
from discriminant.study.data_checks.prepared_table import (
    InputColumn,
    PreparedTable,
    finding,
    name,
    names,
)

_MIN_ROWS = 20  # smaller tables are not searched for identifiers, groups or drift
_ID_NAME = re.compile(
    r"(^|[\W_])(ids?|uid|uuid|guid|key|index|idx|nr|no|row|rownames?|row_?number|unnamed: 0)"
    r"($|[\W_])"
    r"|[a-z](ID|Id|Nr|No)$|^$|number$",
)
_FOLD_NAME = re.compile(
    r"(^|[\W_])(cv_?)?(folds?|splits?|partitions?|subset|cv|is_?train|is_?test|holdout)\d*($|[\W_])"
)
_FOLD_LEVELS = frozenset(
    ("train", "training", "test", "testing", "valid", "validation", "val", "dev", "holdout", "eval")
)
_TIME_NAME = re.compile(
    r"(^|[\W_])(date|datetime|time|timestamp|year|yr|month|week|day|quarter|period)($|[\W_])"
)
_MAX_SET = 20  # largest number of rows of a matched set
_MAX_FOLDS = 20


# --- identifiers and columns with a role ----------------------------------------------------------


def identifiers(table: PreparedTable) -> list[CheckFacts]:
    """Return the columns that identify the rows by names or by numbers."""
    findings = []
    for column in table.columns:
        if column.kind == "identifier":
            text = (
                f"Column {name(column.name)} names or numbers the rows: its values are all "
                "different. It is not used as a feature."
            )
            title = f"Identifier not used: {column.name}"
            findings.append(finding("identifier", "note", title, text, [column.name]))
        elif (reason := _numbers_rows(column, len(table))) is not None:
            text = (
                f"Column {name(column.name)} has a different whole number in every row, {reason}, "
                f"so it probably identifies rows. It is used as a feature, but carries no "
                f"information on new rows. Leave it out (--exclude {column.name})."
            )
            title = f"Identifier used as a feature: {column.name}"
            findings.append(finding("identifier", "warning", title, text, [column.name]))
    return findings


def _numbers_rows(column: InputColumn, rows: int) -> str | None:
    """Return the reason why different integers probably identify the rows; None if they do not."""
    if rows < _MIN_ROWS or column.excluded or column.kind != "number" or not column.is_whole:
        return None
    values = column.known.astype(np.float64)
    if len(values) < 0.99 * rows or len(np.unique(values[:1000])) < len(values[:1000]):
        return None
    distinct = np.unique(values)
    if len(distinct) < len(values):
        return None
    if distinct[-1] - distinct[0] < 2.0 * rows:
        return "with hardly any gaps between them"
    if bool((np.diff(values) > 0).all()) or bool((np.diff(values) < 0).all()):
        return "in the order of the rows"
    if _ID_NAME.search(column.name) or _ID_NAME.search(column.name.casefold()):
        return "and is named as an identifier"
    return None


def roles(table: PreparedTable) -> list[CheckFacts]:
    """Return columns that define matched sets, groups, folds or time."""
    findings = []
    for column in table.columns:
        if column.kind in ("identifier", "constant"):
            continue
        for check in (_fold_column, _time_column, _matched_sets, _groups):
            role = check(column, table)
            if role is not None:
                findings.append(role)
                break
    return findings


def _fold_column(column: InputColumn, table: PreparedTable) -> CheckFacts | None:
    named = _FOLD_NAME.search(column.name.casefold()) is not None
    if column.levels is not None:
        known = column.known
        used = np.unique(known)
        levels = {column.levels[code].strip().casefold() for code in used.tolist()[:50]}
        by_name = named and 2 <= len(used) <= _MAX_FOLDS and _equal_sizes(known)
        if not by_name and (len(levels) < 2 or not levels <= _FOLD_LEVELS):
            return None
    elif not named or not column.is_whole:
        return None
    else:
        known = column.known
        distinct = np.unique(known)
        if not 2 <= len(distinct) <= _MAX_FOLDS:
            return None
        if not _equal_sizes(known) and not set(distinct.tolist()) <= {0.0, 1.0}:
            return None
    number_of = len(np.unique(known))
    text = (
        f"Column {name(column.name)} probably assigns the rows to {number_of} folds or to training "
        "and test rows. "
        + _used(column)
        + f"Use it as folds (--folds {column.name}) or leave it out (--exclude {column.name})."
    )
    title = f"Fold column: {column.name}"
    return finding("fold_column", "warning", title, text, [column.name])


def _used(column: InputColumn) -> str:
    return "It is not used as a feature. " if column.excluded else "It is used as a feature. "


def _equal_sizes(values: npt.NDArray[np.generic]) -> bool:
    _, counts = np.unique(values, return_counts=True)
    return bool(counts.max() - counts.min() <= max(2, 0.1 * counts.mean()))


def _matched_sets(column: InputColumn, table: PreparedTable) -> CheckFacts | None:
    if not column.is_text and not column.is_whole:
        return None
    known = ~column.missing
    values, codes = column.values[known], table.codes[known].astype(np.intp)
    K = len(table.labels)
    _, index, counts = np.unique(values, return_inverse=True, return_counts=True)
    if len(counts) < 10 or known.sum() < 0.9 * len(table):
        return None
    usual = int(np.bincount(counts).argmax())
    if not 2 <= usual <= _MAX_SET or (counts == usual).mean() < 0.95:
        return None
    if K * len(counts) > 20 * len(values):
        return None
    composition = np.bincount(index * K + codes, minlength=len(counts) * K).reshape(-1, K)
    patterns, times = np.unique(composition, axis=0, return_counts=True)
    pattern = patterns[times.argmax()]
    if times.max() < 0.95 * len(counts) or (pattern > 0).sum() < 2:
        return None
    parts = [
        f"{rows} of class {label}"
        for rows, label in zip(pattern.tolist(), table.labels.tolist(), strict=True)
        if rows
    ]
    text = (
        f"Column {name(column.name)} defines matched sets: each of its {len(counts):,} values "
        f"occurs {usual} times, with {' and '.join(parts)}. The class shares are fixed by design "
        "and rows of a set belong together. "
        + _used(column)
        + f"Hold sets out together (--groups {column.name}); predicted probabilities do not apply "
        "to unmatched rows."
    )
    title = f"Matched sets: {column.name}"
    return finding("matched_sets", "warning", title, text, [column.name])


def _time_column(column: InputColumn, table: PreparedTable) -> CheckFacts | None:
    if column.is_text:
        return None
    known = column.known
    named = _TIME_NAME.search(column.name.casefold()) is not None
    if len(known) < _MIN_ROWS or not (named or column.kind == "date"):
        return None
    distinct = len(np.unique(known))
    ordered = bool((np.diff(known.astype(np.float64)) >= 0).all())
    is_year = (
        named and column.is_whole and distinct > 1 and known.min() >= 1800 and known.max() <= 2100
    )
    if column.kind == "date":
        what = "holds dates"
    elif is_year:
        what = "holds years"
    elif named and ordered and distinct > 10:
        what = "is named as a time"
    else:
        return None
    order = "; the rows are in its order" if ordered else ""
    text = (
        f"Column {name(column.name)} {what}{order}. If the model will predict later rows, evaluate "
        f"it on later rows (--time {column.name}); random folds may be too optimistic."
    )
    title = f"Time column: {column.name}"
    return finding("time", "note", title, text, [column.name])


# --- groups ---------------------------------------------------------------------------------------

_MIN_GROUPS = 8
_MIN_MEASURED_GROUPS = (
    25  # of whole numbers that are not named as groups: these may be measurements
)
_MAX_GROUP_ROWS = 50  # largest mean number of rows of a value
_GROUP_NAME = re.compile(
    r"(^|[\W_])(id|group|patient|subject|person|customer|client|user|household|family|site|"
    r"hospital|school|speaker|batch|plate|session|cluster|donor|animal|litter|plot|block|pair|"
    r"set|stratum|station|device|sensor|machine)s?(_?(id|nr|no))?($|[\W_])"
    r"|[a-z](ID|Id)$"
)


def _groups(column: InputColumn, table: PreparedTable) -> CheckFacts | None:
    """Return the finding about a column whose values probably group rows that belong together."""
    if not column.is_text and not column.is_whole:
        return None
    known = ~column.missing
    n = int(known.sum())
    if n < _MIN_ROWS or n < 0.9 * len(table):
        return None
    values = column.values[known]
    distinct, index, counts = np.unique(values, return_inverse=True, return_counts=True)
    L = len(distinct)
    named = _GROUP_NAME.search(column.name) or _GROUP_NAME.search(column.name.casefold())
    least_groups = _MIN_GROUPS if named or column.is_text else _MIN_MEASURED_GROUPS
    if least_groups > L or n < 2 * L or n > _MAX_GROUP_ROWS * L:
        return None
    if not column.is_text and _contains_gaps(distinct, n):
        return None
    if column.is_text:  # in the order of appearance in the file
        first = np.full(L, n)
        np.minimum.at(first, index, np.arange(n))
        index = np.argsort(np.argsort(first))[index]
        counts = np.bincount(index)
    purity, change = _class_purity(index, counts, table.codes[known], len(table.labels))
    others = [c for c in table.numbers if c.name != column.name]
    shared = _shared_variance(index, counts, [c.values[known] for c in others[:200]])
    least = 0.15 if named else 0.3
    same_class = purity >= (0.5 if named else 0.9) and change >= 0.5
    between = 0.0
    if named and change >= 0.5:
        between = _class_variance(index, counts, table.codes[known], len(table.labels))
    if not same_class and max(shared, between) < least:
        return None
    reasons = []
    if between >= least and not same_class:
        reasons.append(f"{percent(between)} of the variance of the class is between its values")
    if same_class:
        pure = _pure_share(index, counts, table.codes[known], len(table.labels))
        reasons.append(f"in {percent(pure)} of the values all rows have the same class")
    if shared >= least:
        reasons.append(
            f"{percent(shared)} of the variance of the other columns is between its values"
        )
    text = (
        f"Column {name(column.name)} probably groups rows that belong together, such as repeated "
        f"measurements: {L:,} values with {number(n / L)} rows each on average; "
        f"{' and '.join(reasons)}. With rows of a group in different folds, results are too good "
        f"for rows of new groups. {_used(column)}"
        f"Hold groups out together (--groups {column.name})."
    )
    title = f"Groups of rows: {column.name}"
    return finding("groups", "warning", title, text, [column.name], n)


def _contains_gaps(distinct: npt.NDArray[np.generic], rows: int) -> bool:
    """Whether integers are so scattered that they may be a measurement with ties."""
    spread = float(distinct[-1]) - float(distinct[0])
    return spread > 1000 * rows


def _class_purity(
    index: npt.NDArray[np.intp],
    counts: npt.NDArray[np.intp],
    codes: npt.NDArray[Any],
    K: int,
) -> tuple[float, float]:
    """Return how often values belong to one class only, and how often neighbours differ.

    The first value is the excess share of values whose rows are all of one class: (observed -
    expected) / (1 - expected), where `expected` is the share if classes were assigned at random.
    The second value is the share of neighbouring values with different classes, relative to a
    random order: near 0 if the class is a smooth function of the value.
    """
    L = len(counts)
    table = np.bincount(index * K + codes, minlength=L * K).reshape(L, K)
    share = table.sum(axis=0) / table.sum()
    several = counts >= 2
    if several.sum() < _MIN_GROUPS:
        return 0.0, 0.0
    pure = table.max(axis=1) == counts
    expected = float((share[None, :] ** counts[several][:, None]).sum(axis=1).mean())
    if expected > 0.7:
        return 0.0, 0.0
    excess = (float(pure[several].mean()) - expected) / (1 - expected)
    majority = table.argmax(axis=1)
    groups = np.bincount(majority, minlength=K) / L
    random = 1.0 - float((groups**2).sum())
    changes = float((majority[1:] != majority[:-1]).mean())
    return excess, changes / random if random > 0 else 0.0


def _class_variance(
    index: npt.NDArray[np.intp],
    counts: npt.NDArray[np.intp],
    codes: npt.NDArray[Any],
    K: int,
) -> float:
    """Return the share of the variance of the class indicators that is between neighbouring values.

    As in `_shared_variance`, half the squared difference of neighbouring means estimates the
    variance between values, so the share is small if the class is a smooth function of the value.
    """
    L, degrees = len(counts), len(codes) - len(counts)
    if degrees <= 0:
        return 0.0
    means = np.bincount(index * K + codes, minlength=L * K).reshape(L, K) / counts[:, None]
    within = float((counts[:, None] * means * (1.0 - means)).sum()) / degrees
    noise = within * 0.5 * float((1.0 / counts[1:] + 1.0 / counts[:-1]).mean())
    between = float((0.5 * np.diff(means, axis=0) ** 2).sum(axis=1).mean()) - noise
    return max(between, 0.0) / (max(between, 0.0) + within) if within > 0 else 1.0


def _pure_share(
    index: npt.NDArray[np.intp],
    counts: npt.NDArray[np.intp],
    codes: npt.NDArray[Any],
    K: int,
) -> float:
    table = np.bincount(index * K + codes, minlength=len(counts) * K).reshape(-1, K)
    return float((table.max(axis=1) == counts)[counts >= 2].mean())


def _shared_variance(
    index: npt.NDArray[np.intp],
    counts: npt.NDArray[np.intp],
    columns: list[npt.NDArray[Any]],
) -> float:
    """Return the mean share of the variance of other columns that is between neighbouring values.

    Columns are replaced by their ranks. The variance between values is estimated from neighbouring
    values: half the squared difference of their means, minus the variance of these means. The
    median over all neighbours is used (.455 is the median of the chi-squared distribution with one
    degree of freedom). The share is near 0 for a measurement on which other columns depend
    smoothly.
    """
    L, shares = len(counts), []
    for column in columns:
        values = rankdata(np.where(np.isnan(column), np.nanmedian(column), column))
        means = np.bincount(index, values, minlength=L) / counts
        degrees = len(values) - L
        if degrees <= 0 or np.ptp(values) == 0:
            continue
        within = float(((values - means[index]) ** 2).sum()) / degrees
        noise = within * 0.5 * (1.0 / counts[1:] + 1.0 / counts[:-1])
        between = float(np.median(0.5 * np.diff(means) ** 2 / 0.455 - noise))
        shares.append(max(between, 0.0) / (max(between, 0.0) + within) if within > 0 else 1.0)
    return float(np.mean(shares)) if shares else 0.0


# --- duplicate rows -------------------------------------------------------------------------------


_FINE = 50  # with fewer different values in each column, equal rows are common


def duplicate_rows(table: PreparedTable) -> list[CheckFacts]:
    """Return a finding on rows that are equal in all features."""
    if len(table) < 2 or not table.features:
        return []
    key = _row_keys(table)
    ordered = np.sort(key)  # much faster than argsort, and enough if all rows are different
    if (ordered[1:] != ordered[:-1]).all():
        return []
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    start = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    sizes = np.diff(np.r_[start, len(key)])
    extra = len(key) - len(start)
    if not extra:
        return []
    repeated = int(sizes[sizes > 1].sum())
    codes = table.codes[order].astype(np.intp)
    conflict = np.minimum.reduceat(codes, start) != np.maximum.reduceat(codes, start)
    conflicting = int(sizes[conflict].sum())
    expected = _expected_pairs(table)
    pairs = float((sizes * (sizes - 1.0)).sum()) / 2
    by_chance = expected * 10 > pairs
    if by_chance and pairs < 5 * max(expected, 1.0) and not conflicting:
        return []
    fine = any(len(np.unique(column.values)) > _FINE for column in table.sample.features)
    serious = extra >= max(5, 0.01 * len(key)) and not by_chance and fine
    parts = [
        f"{count_with_noun(repeated, 'row')} ({percent(repeated / len(key))}) "
        f"{'is' if repeated == 1 else 'are'} equal to another row in all features "
        f"({count_with_noun(extra, 'row')} beyond the first of each)."
    ]
    if table.fold is not None:
        fold = table.fold[order]
        low = np.minimum.reduceat(np.where(fold < 0, 1 << 30, fold), start)
        high = np.maximum.reduceat(fold, start)
        across = int(sizes[(low < high) & (sizes > 1)].sum())
        if across:
            parts.append(
                f"{count_with_noun(across, 'of these rows has', 'of these rows have')} a copy in "
                "another fold, so they are predicted by models that were fitted to a copy, and "
                "results may be too good."
            )
    if conflicting:
        parts.append(
            f"{count_with_noun(conflicting, 'row')} {'has' if conflicting == 1 else 'have'} a copy "
            "with another class, of which no model can predict all right."
        )
    parts.append(
        "With so few different values, equal rows are common; keep them if they are separate "
        "observations."
        if by_chance or not fine
        else "Remove the copies, unless they are separate observations."
    )
    title = f"{count_with_noun(repeated, 'duplicate row')}"
    severity = "warning" if serious else "note"
    return [finding("duplicates", severity, title, " ".join(parts), rows=repeated)]


def _row_keys(table: PreparedTable) -> npt.NDArray[np.uint64]:
    """Return (n,) hashes that are equal for rows with equal features."""
    key = np.zeros(len(table), dtype=np.uint64)
    for j, column in enumerate(table.features):
        values = column.values.astype(np.float64) + 0.0  # -0 becomes 0
        values = np.where(np.isnan(values), np.nan, values)
        key ^= _mix64(values.view(np.uint64) + np.uint64((j * 0x9E3779B97F4A7C15) % 2**64))
        key = _mix64(key)
    return key


def _mix64(key: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Apply the finaliser of SplitMix64, a bijection of 64-bit integers."""
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(key ^ (key >> np.uint64(31)))


def _expected_pairs(table: PreparedTable) -> float:
    """Return the expected number of equal pairs of rows if columns were independent."""
    sample, n = table.sample, len(table)
    log_p = 0.0
    for column in sample.features:
        _, counts = np.unique(column.values, return_counts=True)
        same = float((counts * (counts - 1.0)).sum()) / (len(sample) * (len(sample) - 1.0))
        log_p += float(np.log(max(same, 1e-12)))
    return float(np.exp(min(np.log(n) * 2 - np.log(2) + log_p, 700.0)))


# --- drift ----------------------------------------------------------------------------------------

_MAX_DRIFT_COLUMNS = 400
_DRIFT_P = 1e-4
_DRIFT_AUC = 0.65
_MAX_SORTED_LEVELS = 20  # largest number of levels of a category by which rows are sorted


def time_drift(table: PreparedTable) -> list[CheckFacts]:
    """Return a finding if the first and the second half of the rows differ within classes.

    Each class is split at the middle of its own rows, so that a file sorted by class does not count
    as drift. Each level of a category by which the file is sorted is split in the same way. With
    the distance D between the means of the halves, in standard deviations of the best linear
    combination, corrected for chance, the AUC of that combination is Phi(D / sqrt 2). Columns that
    number the rows or the time, or by which the rows are sorted, are left out, since they differ by
    design.
    """
    sample = table.sample
    n = len(sample)
    if n < 4 * _MIN_ROWS:
        return []
    strata = _strata(sample)
    columns = [j for j, c in enumerate(sample.numbers) if not _follows_order(c, strata)]
    if not columns:
        return []
    matrix = sample.matrix[:, columns]
    half = np.zeros(n, dtype=np.intp)
    for rows in strata:
        half[rows[len(rows) // 2 :]] = 1
        matrix[rows] = matrix[rows] - matrix[rows].mean(axis=0)
    first, second = matrix[half == 0], matrix[half == 1]
    step = second.mean(axis=0) - first.mean(axis=0)
    residual = np.where(
        half[:, None] == 1, matrix - second.mean(axis=0), matrix - first.mean(axis=0)
    )
    degrees = n - 2 * len(strata)
    if degrees < _MIN_ROWS:
        return []
    sd = np.sqrt((residual**2).sum(axis=0) / degrees)
    scale = np.abs(sample.matrix[:, columns]).max(axis=0)
    varying = np.flatnonzero(sd > 1e-9 * scale)
    if not len(varying):
        return []
    effect, standard = step[varying] / sd[varying], residual[:, varying] / sd[varying]
    n0, n1 = len(first), len(second)
    harmonic = n0 * n1 / n
    d = len(varying)
    worst = int(np.argmax(np.abs(effect)))
    p_single = float(fdtrc(1, degrees, effect[worst] ** 2 * harmonic)) * d
    distance, p = abs(float(effect[worst])), p_single
    if d <= min(_MAX_DRIFT_COLUMNS, degrees // 5):
        values, vectors = np.linalg.eigh(standard.T @ standard / degrees)
        keep = values > 1e-9 * values.max()
        rank = int(keep.sum())
        squared = float((((vectors.T @ effect)[keep]) ** 2 / values[keep]).sum())
        f = squared * harmonic * (degrees - rank + 1) / (rank * degrees)
        corrected = squared * (degrees - rank - 1) / degrees - rank / harmonic
        p_all = float(fdtrc(rank, degrees - rank + 1, f))
        if corrected > distance**2:
            distance = float(np.sqrt(corrected))
        p = min(2 * p_all, 2 * p_single, 1.0)
    area = float(ndtr(distance / np.sqrt(2.0)))
    if p >= _DRIFT_P or area < _DRIFT_AUC:
        return []
    error = float(np.sqrt((1 / n0 + 1 / n1) / 2) / 2)
    order = varying[np.argsort(-np.abs(effect), kind="stable")]
    shifted = [
        sample.numbers[columns[j]].name
        for j, e in zip(order.tolist(), np.sort(-np.abs(effect)), strict=True)
        if -e >= max(0.3, 0.5 * abs(float(effect[worst])))
    ][:5] or [sample.numbers[columns[int(varying[worst])]].name]
    sign = "+" if effect[worst] > 0 else "−"
    also = "shifts" if len(shifted) == 2 else "shift"
    low, high = max(area - 1.96 * error, 0.5), min(area + 1.96 * error, 1.0)
    text = (
        "The first and the second half of the rows differ: a linear classifier distinguishes them, "
        f"within classes, with an AUC of {fixed(area)} (95% interval {fixed(low)} to "
        f"{fixed(high)}). The mean of {name(shifted[0])} changes by "
        f"{sign}{number(abs(float(effect[worst])))} standard deviations"
        + (f"; {names(shifted[1:])} {also} as well" if len(shifted) > 1 else "")
        + ". "
        + _advice_on_drift(sample)
    )
    severity = "warning" if area >= 0.7 else "note"
    verb = "differs" if len(shifted) == 1 else "differ"
    shifts = names(shifted, 2).replace(chr(39), "")
    title = f"Drift: {shifts} {verb} between first and last rows"
    return [finding("time_drift", severity, title, text, shifted, n)]


def _advice_on_drift(table: PreparedTable) -> str:
    """Return what to do about drift; a file sorted by class cannot be evaluated on later rows."""
    by_batch = "by site or batch, hold these out together (--groups COLUMN)."
    if np.count_nonzero(table.codes[1:] != table.codes[:-1]) < len(table.labels):
        return f"The rows are sorted by class. If those of a class are sorted {by_batch}"
    return (
        "If the rows are in order of time, results on later rows are worse than those of random "
        "folds: evaluate on later rows, in the order of a column of times (--time COLUMN). If they "
        f"are sorted {by_batch}"
    )


def _strata(table: PreparedTable) -> list[npt.NDArray[np.intp]]:
    """Return the rows of each class, and of each level of the columns by which rows are sorted."""
    stratum = table.codes.astype(np.int64)
    for column in table.columns:
        values = column.values
        if not column.is_text or column.kind in ("identifier", "constant"):
            continue
        runs = 1 + np.count_nonzero(values[1:] != values[:-1])
        if runs > _MAX_SORTED_LEVELS or len(np.unique(values)) != runs:
            continue
        _, codes = np.unique(values, return_inverse=True)
        stratum = stratum * _MAX_SORTED_LEVELS + codes
        _, stratum = np.unique(stratum, return_inverse=True)
    order = np.argsort(stratum, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(stratum[order])) + 1)


def _follows_order(column: InputColumn, strata: list[npt.NDArray[np.intp]]) -> bool:
    """Whether a column numbers the rows or the time, or rows are sorted by it within strata."""
    if column.kind == "date" or _TIME_NAME.search(column.name.casefold()):
        return True

    def is_sorted(values: npt.NDArray[Any]) -> bool:
        return _is_sorted(values[~np.isnan(values)])

    return all(is_sorted(column.values[rows]) for rows in strata) or is_sorted(column.values)


def _is_sorted(values: npt.NDArray[Any]) -> bool:
    if len(values) < 3:
        return True
    if len(values) < _MIN_ROWS:
        return bool((np.diff(values) >= 0).all() or (np.diff(values) <= 0).all())
    ranks = rankdata(values)
    if np.ptp(ranks) == 0:
        return False
    return bool(abs(np.corrcoef(ranks, np.arange(len(values)))[0, 1]) > 0.95)
