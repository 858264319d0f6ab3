"""Checks of columns: leaks, sentinel values, constants, missing cells, spellings, duplicates.

leak         the column alone has an AUC of at least .999 for two classes, orders all classes
             with an AUC of at least .999 between neighbours, or has few values that each occur in
             one class only, or is constant in one of two classes and has many values in the
             other. Tables so small that noise might satisfy this by chance (probability
             above .01 over all columns) are not reported.
sentinel     an extreme value that stands for a missing cell: see `sentinels_of`
missing      the share of missing cells differs between classes by at least 10 percentage points
             (chi-squared test with Bonferroni's correction, p < .001)
incomplete   rows with missing cells, and the columns in which they are missing
spelling     levels of a category that differ only in case, spaces or Unicode form
duplicate    numeric columns with |r| > .9999, or categories with a one-to-one correspondence
levels       a category with more than 20 levels, most of them in fewer than 5 rows, if at least
             1 in 50 new rows probably has another level: the share of levels with one row among
             the rows estimates this probability (Good 1953)
constant     one value in all rows
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc
from scipy.stats import rankdata

from discriminant.report.fact_types import CheckFacts
from discriminant.report.format import count_with_noun, fixed, number, percent
from discriminant.study.data_checks.prepared_table import (
    InputColumn,
    PreparedTable,
    class_names,
    finding,
    name,
    names,
)
from discriminant.table.blocks import Floats
from discriminant.table.labels import lookalike_pairs

_LEAK_AUC = 0.999
_CHANCE = 0.01  # largest probability that a column of noise is reported as a leak
_LEAST_CONSTANT = 30  # rows of a class in which a column must be constant to be reported
_MOST_SHARED = 0.1  # largest share of the rows of the other class with that value
_VALUES_PER_CLASS = 5  # columns with more values per class do not determine the class
_CORRELATION = 0.9999
_CORRELATED_COLUMNS = 4000  # with more columns, only equal standardised columns are found
_STRONG = "If it is measured before the outcome is known, this is a strong feature, not a leak."
_SEPARATE_DUPLICATES = 2  # with more groups of duplicate columns, they are one finding
_LISTED = 8  # largest number of columns with missing cells, or of duplicates, in a sentence
_BLOCK_CELLS = 1 << 22  # cells that are ranked at a time


# --- leaks ----------------------------------------------------------------------------------------


def leaks(table: PreparedTable) -> list[CheckFacts]:
    """Return the columns that alone determine the class, or one of several classes."""
    table = table.sample
    K, n = len(table.labels), len(table)
    if K < 2 or not _beyond_chance(table):
        return []
    by_auc = _numeric_leaks(table)
    findings = _merge_separating([leak for leak in by_auc.values() if leak is not None])
    for column in table.numbers:
        if column.name not in by_auc and (leak := _constant_in_class(column, table)) is not None:
            findings.append(leak)
            by_auc[column.name] = leak
    for column in table.features:
        if column.name in by_auc:
            continue
        if (leak := _determined(column, table)) is not None:
            findings.append(leak)
    for column in table.features:
        missing = column.missing
        if 10 <= missing.sum() <= n - 10:
            leak = _determined(
                InputColumn(column.name, "", missing.astype(np.int32), ("", "")), table
            )
            if leak is not None:
                findings.append(_missing_leak(column))
    return findings


def _merge_separating(findings: list[CheckFacts]) -> list[CheckFacts]:
    """Return the findings, with those on strong features of the same class merged."""
    merged: dict[str, CheckFacts] = {}
    for leak in findings:
        if leak["kind"] != "separates":
            merged[f"leak {leak['columns']}"] = leak
            continue
        label = leak["title"].partition(" alone separates ")[2]
        known = merged.setdefault(label, leak)
        if known is not leak:
            columns = [*known["columns"], *leak["columns"]]
            merged[label] = finding(
                "separates",
                "note",
                f"{count_with_noun(len(columns), 'column')} each separate {label}",
                f"Columns {names(columns)} each separate class {label} from all others (AUC of at "
                f"least {_LEAK_AUC}). If they are measured before the outcome is known, these are "
                "strong features, not leaks.",
                columns,
                known["rows"],
            )
    return list(merged.values())


def _beyond_chance(table: PreparedTable) -> bool:
    """Whether a column of noise is unlikely to separate the rarest class from the others."""
    n, least = len(table), int(table.counts[table.counts > 0].min())
    log_subsets = math.lgamma(n + 1) - math.lgamma(least + 1) - math.lgamma(n - least + 1)
    d = max(len(table.features), 1)
    return log_subsets > math.log(2.0 * d * len(table.labels) / _CHANCE)


def _numeric_leaks(table: PreparedTable) -> dict[str, CheckFacts | None]:
    """Return for each numeric column the finding that it separates some classes, or None."""
    leak_of: dict[str, CheckFacts | None] = {}
    numbers = table.numbers
    for columns, values in _complete_blocks(table):
        for j, low, high in _separating(values, table.codes, len(table.labels)):
            column = numbers[columns[j]]
            leak_of[column.name] = _leak_of(column, values[:, j], table.codes, table, low, high)
    for column in numbers:
        missing = column.missing
        if missing.any() and (~missing).sum() >= 20:
            codes, values = table.codes[~missing], column.known[:, None].astype(np.float64)
            present = np.unique(codes)
            if len(present) < 2:
                continue
            for _, low, high in _separating(values, codes, len(table.labels)):
                leak_of[column.name] = _leak_of(column, values[:, 0], codes, table, low, high)
    return leak_of


def _complete_blocks(table: PreparedTable) -> Iterator[tuple[list[int], Floats]]:
    complete = [j for j, column in enumerate(table.numbers) if not column.missing.any()]
    size = max(_BLOCK_CELLS // max(len(table), 1), 1)
    for start in range(0, len(complete), size):
        columns = complete[start : start + size]
        yield columns, np.column_stack([table.numbers[j].values for j in columns])


def _separating(
    values: Floats, codes: npt.NDArray[np.integer], K: int
) -> Iterator[tuple[int, float, float]]:
    """Yield the columns in which the lowest or the highest class is separated from all others.

    Each column comes with two AUCs: of its lowest class and of its highest class against the
    others.
    """
    n = len(codes)
    rows = np.bincount(codes, minlength=K).astype(np.float64)
    present = np.flatnonzero(rows)
    ranks = rankdata(values, axis=0)
    sums = np.zeros((len(present), values.shape[1]))
    for i, k in enumerate(present):
        sums[i] = ranks[codes == k].sum(axis=0)
    own = rows[present][:, None]
    # (K', d) probability that a row of the class exceeds a row of another class
    auc = (sums - own * (own + 1) / 2) / (own * (n - own))
    low, high = 1.0 - auc.min(axis=0), auc.max(axis=0)
    for j in np.flatnonzero(np.maximum(low, high) >= _LEAK_AUC).tolist():
        yield j, float(low[j]), float(high[j])


def _leak_of(
    column: InputColumn,
    values: Floats,
    codes: npt.NDArray[np.integer],
    table: PreparedTable,
    low: float,
    high: float,
) -> CheckFacts | None:
    """Return the finding about a column that separates at least one class from the others."""
    present = np.unique(codes)
    means = np.array([np.median(values[codes == k]) for k in present])
    order = present[np.argsort(means, kind="stable")]
    aucs = [_auc(values[codes == a], values[codes == b]) for a, b in pairwise(order)]
    complete = "" if len(codes) == len(table) else " among the rows in which it is present"
    if min(aucs) >= _LEAK_AUC:
        shown = fixed(min(aucs), 4) if min(aucs) < 1 else "1"
        measure = (
            f"an AUC of {shown}"
            if len(order) == 2
            else f"an AUC of at least {shown} between any two classes"
        )
        text = (
            f"Column {name(column.name)} alone separates the classes with {measure}{complete}. "
            "Such a column usually contains the outcome, or was recorded after it. "
            f"{_leave_out(column.name)}"
        )
        return finding("leak", "stop", f"Leak: {column.name}", text, [column.name], rows=len(codes))
    at_top = high >= low
    k = order[-1] if at_top else order[0]
    own, others = values[codes == k], values[codes != k]
    gap = own.min() - others.max() if at_top else others.min() - own.max()
    scale = max(float(own.std()), float(others.std()))
    label = class_names([table.labels[k]])
    indicator = gap > 5.0 * scale or len(np.unique(values)) == 2
    text = (
        f"Column {name(column.name)} alone separates class {label} from all others (AUC "
        f"{fixed(max(low, high), 4) if max(low, high) < 1 else '1'}){complete}. "
    )
    if indicator:
        text += (
            "It looks like an indicator of the class, which usually means that it was recorded "
            f"after the outcome. {_leave_out(column.name)}"
        )
        title = f"Leak: {column.name}"
        return finding("leak", "warning", title, text, [column.name], rows=len(codes))
    text += _STRONG
    title = f"{column.name} alone separates {label}"
    return finding("separates", "note", title, text, [column.name], rows=len(codes))


def _constant_in_class(column: InputColumn, table: PreparedTable) -> CheckFacts | None:
    """Return the finding that a number is the same in one of two classes, and rare in the other.

    An amount that is 0 whenever the outcome is "no" was usually recorded after the outcome.
    """
    if len(table.labels) != 2 or column.missing.any():
        return None
    for k in (0, 1):
        own, others = column.values[table.codes == k], column.values[table.codes != k]
        if len(own) < _LEAST_CONSTANT or own.min() != own.max():
            continue
        value = own[0]
        shared = int((others == value).sum())
        if shared > _MOST_SHARED * len(others) or len(np.unique(others)) <= _DISTINCT:
            continue
        labels = [class_names([table.labels[j]]) for j in (k, 1 - k)]
        text = (
            f"Column {name(column.name)} is {value:g} in all {len(own):,} rows of class "
            f"{labels[0]}, but only in {count_with_noun(shared, 'row')} "
            f"({percent(shared / len(others))}) of class {labels[1]}. Such a column is usually "
            f"recorded after the outcome. {_leave_out(column.name)}"
        )
        title = f"Leak: {column.name}"
        return finding("leak", "warning", title, text, [column.name], rows=len(table))
    return None


def _leave_out(column: str) -> str:
    return (
        f"Leave it out (--exclude {column}) unless it is known at the time of the prediction; "
        "otherwise all results are too good."
    )


def _auc(lower: Floats, upper: Floats) -> float:
    ranks = rankdata(np.concatenate([lower, upper]))
    n0, n1 = len(lower), len(upper)
    return float((ranks[n0:].sum() - n1 * (n1 + 1) / 2) / (n0 * n1))


def _determined(column: InputColumn, table: PreparedTable) -> CheckFacts | None:
    """Return the finding about a column whose few values each occur in one class only."""
    counts = _class_counts(column, table)
    if counts is None:
        return None
    rows, largest = counts.sum(), counts.max(axis=1)
    present = counts.sum(axis=0) > 0
    majority = np.zeros(len(present), dtype=bool)
    majority[counts.argmax(axis=1)] = True
    if rows - largest.sum() > (1 - _LEAK_AUC) * rows or not majority[present].all():
        return None
    if rows < 0.5 * len(table) or present.sum() < 2:
        return None
    mixed = int(rows - largest.sum())
    exceptions = "" if not mixed else f", except for {count_with_noun(mixed, 'row')}"
    text = (
        f"Column {name(column.name)} determines the class: each of its {len(counts)} values occurs "
        f"in one class only{exceptions}. Such a column usually contains the outcome, or was "
        f"recorded after it. {_leave_out(column.name)}"
    )
    return finding("leak", "stop", f"Leak: {column.name}", text, [column.name], rows=int(rows))


def _class_counts(column: InputColumn, table: PreparedTable) -> npt.NDArray[np.intp] | None:
    """Return the (L, K) numbers of rows by value and class; None for more than a few values."""
    K, known = len(table.labels), ~column.missing
    most = _VALUES_PER_CLASS * K
    values, codes = column.values[known], table.codes[known].astype(np.intp)
    if not len(values):
        return None
    if not column.is_text and len(np.unique(values[:1000])) > most:
        return None
    distinct, index = np.unique(values, return_inverse=True)
    if not 2 <= len(distinct) <= most or len(values) < 4 * len(distinct):
        return None
    return np.bincount(index * K + codes, minlength=len(distinct) * K).reshape(-1, K)


def _missing_leak(column: InputColumn) -> CheckFacts:
    text = (
        f"Whether column {name(column.name)} is missing determines the class, which usually means "
        f"that it is recorded only for some outcomes. {_leave_out(column.name)}"
    )
    return finding(
        "leak", "stop", f"Leak: {column.name}", text, [column.name], rows=int(column.missing.sum())
    )


# --- sentinel values ------------------------------------------------------------------------------

_NINES = frozenset(
    float(digit * repeats) for digit in "987" for repeats in range(2, 8)
)  # 99, 888, 7777, ...
_DISTINCT = 10  # a column has at least this many other values, if one of its values is a sentinel


def sentinels(table: PreparedTable) -> list[CheckFacts]:
    """Return the columns with values that probably stand for missing cells."""
    sample, findings = table.sample, []
    for column, whole in zip(sample.features, table.features, strict=True):
        if column.is_text or column.kind not in ("number", "date"):
            continue
        for value in sentinels_of(column.known):
            rows = int((whole.values == value).sum())
            text = (
                f"{count_with_noun(rows, 'cell')} ({percent(rows / len(table))}) of column "
                f"{name(column.name)} {'is' if rows == 1 else 'are'} {value:g}, far from all other "
                f"values ({_range_without(whole, value)}). The value probably marks a missing "
                "cell, but is used as a measurement. Make these cells empty in the source, and "
                "choose how to treat missing cells (--missing)."
            )
            if value == 0:
                text = text.replace("far from all other values", "whereas all others are positive")
            title = f"{value:g} in {column.name} probably means missing"
            doubtful = (value == 0 and rows > 0.25 * len(table)) or (value > 0 and rows < 3)
            severity = "note" if doubtful else "warning"
            findings.append(finding("sentinel", severity, title, text, [column.name], rows))
    return findings


def sentinels_of(values: npt.NDArray[np.generic]) -> list[float]:
    """Return the values of a measurement that probably stand for missing cells.

    Let g be the distance of an extreme value v from the nearest other value, and R the range of the
    other values. These values are returned:

        -9, -99, -999, ...      below others that are not negative, or g > R
        99, 888, 9999, ...      g > R / 2; or g > R / 20 in at least 5 rows and 5 times as many as
                                the next values
        -1                      in at least 5 rows, below others that are not negative
        any value               in at least 3 rows, and g > 5 R
        0                       in at least 2 rows, below positive others that stay away from 0:
                                their 5% quantile is at least .4 times their median, and their
                                minimum at least .2 times their median and at least 3 times the
                                usual distance between the lowest values

    >>> sentinels_of(np.array([-999.0, *range(30, 60)]))
    [-999.0]
    >>> sentinels_of(np.arange(50.0))
    []
    """
    distinct, counts = np.unique(values.astype(np.float64), return_counts=True)
    sentinels: list[float] = []
    while len(distinct) > _DISTINCT:
        if _low_sentinel(distinct, counts):
            sentinels.append(float(distinct[0]))
            distinct, counts = distinct[1:], counts[1:]
        elif _high_sentinel(distinct, counts):
            sentinels.append(float(distinct[-1]))
            distinct, counts = distinct[:-1], counts[:-1]
        else:
            break
    return sentinels


def _low_sentinel(distinct: Floats, counts: npt.NDArray[np.integer]) -> bool:
    value, rest, rows = float(distinct[0]), distinct[1:], int(counts[0])
    if rest[-1] in _NINES and rest[-1] - rest[-2] > 0.5 * (rest[-2] - rest[0]):
        rest = rest[:-1]  # a second sentinel at the other end
    span, gap = float(rest[-1] - rest[0]), float(rest[0] - value)
    if value < 0 and (-value in _NINES or value == -9.0):
        return gap > span or (rest[0] >= 0 and gap > 0.1 * span)
    if value == -1.0 and rest[0] >= 0 and rows >= 5:
        return bool((rest == np.floor(rest)).all()) or gap > 0.1 * span
    if value == 0.0 and rows >= 2:
        low, middle = np.quantile(np.repeat(rest, counts[1 : len(rest) + 1]), [0.05, 0.5])
        spaced = gap >= 3.0 * float(np.median(np.diff(rest[:20])))
        return bool(low >= 0.4 * middle and rest[0] >= 0.2 * middle and spaced)
    return rows >= 3 and gap > 5 * span


def _high_sentinel(distinct: Floats, counts: npt.NDArray[np.integer]) -> bool:
    value, rest, rows = float(distinct[-1]), distinct[:-1], int(counts[-1])
    span, gap = float(rest[-1] - rest[0]), float(value - rest[-1])
    if value in _NINES:
        top = counts[:-1][-max(len(rest) // 10, 1) :].mean()
        return gap > 0.5 * span or (rows >= 5 and rows > 5 * top and gap > 0.05 * span)
    return rows >= 3 and gap > 5 * span


def _range_without(column: InputColumn, value: float) -> str:
    others = column.known[column.known != value]
    return f"{number(float(others.min()))} to {number(float(others.max()))}"


# --- missing cells, spellings, constants ----------------------------------------------------------


def missing_cells(table: PreparedTable) -> list[CheckFacts]:
    """Return a finding with the number of missing cells of each feature, if there are any."""
    incomplete = np.zeros(len(table), dtype=bool)
    counts = {}
    for column in table.features:
        missing = column.missing
        if missing.any():
            counts[column.name] = int(missing.sum())
            incomplete |= missing
    if not counts:
        return []
    columns = sorted(counts, key=lambda column: -counts[column])
    listed = ", ".join(f"{name(one)} ({counts[one]:,})" for one in columns[:_LISTED])
    more = f" and {len(columns) - _LISTED} more" if len(columns) > _LISTED else ""
    rows = int(incomplete.sum())
    text = (
        f"{rows:,} of {count_with_noun(len(table), 'row')} {'has' if rows == 1 else 'have'} "
        f"missing cells: {'column' if len(columns) == 1 else 'columns'} {listed}{more}. Choose how "
        "to treat them, for example --missing mean (impute the mean), --missing indicator or "
        "--missing drop (leave out the rows); the default is an error."
    )
    title = f"Missing cells in {count_with_noun(rows, 'row')}"
    return [finding("incomplete", "note", title, text, columns, rows)]


def missing_by_class(table: PreparedTable) -> list[CheckFacts]:
    """Return the columns whose share of missing cells depends on the class."""
    affected = []
    counts = table.counts.astype(np.float64)
    present = counts > 0
    for column in table.features:
        missing = column.missing
        total = int(missing.sum())
        if not 5 <= total <= len(table) - 5:
            continue
        absent = np.bincount(table.codes[missing], minlength=len(counts))[present]
        share = absent / counts[present]
        expected = total / len(table)
        statistic = float(
            ((absent - expected * counts[present]) ** 2 / (expected * counts[present])).sum()
            / (1 - expected)
        )
        p = float(chdtrc(present.sum() - 1, statistic))
        if p * len(table.features) >= 0.001 or share.max() - share.min() < 0.1:
            continue
        high, low = int(np.argmax(share)), int(np.argmin(share))
        labels = table.labels[present]
        text = (
            f"Column {name(column.name)} is missing in {percent(share[high])} of the rows of class "
            f"{class_names([labels[high]])}, but in {percent(share[low])} of class "
            f"{class_names([labels[low]])}"
        )
        affected.append((column.name, float(share.max() - share.min()), total, text))
    if not affected:
        return []
    affected.sort(key=lambda one: -one[1])
    columns = [column for column, _, _, _ in affected]
    more = f" (similarly {names(columns[1:])})" if len(columns) > 1 else ""
    text = (
        f"{affected[0][3]}{more}. If cells of new rows are "
        "missing for other reasons, predictions from them are misleading; if not, "
        "--missing indicator uses the information."
    )
    title = f"Missing cells of {names(columns, 2).replace(chr(39), '')} depend on the class"
    rows = max(total for _, _, total, _ in affected)
    return [finding("missing", "warning", title, text, columns, rows)]


_MANY_LEVELS, _FEW_LEVEL_ROWS, _NEW_LEVELS = 20, 5, 0.02


_UNSEEN = {  # what happens to rows with a level that the model does not know
    "error": ", and are refused",
    "reject": ", and are rejected",
    "ignore": ", which it ignores",
}


def rare_levels(table: PreparedTable) -> list[CheckFacts]:
    """Return the categories of which new rows will probably have levels that are unknown."""
    findings = []
    for column in table.columns:
        if column.levels is None or column.kind != "category":
            continue
        counts = np.bincount(column.known)
        counts = counts[counts > 0]
        few = int((counts < _FEW_LEVEL_ROWS).sum())
        unseen = float((counts == 1).sum()) / max(int(counts.sum()), 1)
        if len(counts) <= _MANY_LEVELS or 2 * few < len(counts) or unseen < _NEW_LEVELS:
            continue
        text = (
            f"Column {name(column.name)} has {len(counts)} levels, {few} of them in fewer than "
            f"{_FEW_LEVEL_ROWS} rows. About {percent(unseen)} of new rows will have a level that "
            f"the model does not know{_UNSEEN[table.unseen]}: leave the column out "
            f"(--exclude {column.name}), or convert it to a number"
            f"{', or use --unseen ignore' if table.unseen != 'ignore' else ''}."
        )
        title = f"Category with many rare levels: {column.name}"
        findings.append(finding("rare_levels", "warning", title, text, [column.name]))
    return findings


def spellings(table: PreparedTable) -> list[CheckFacts]:
    """Return the categories with levels that are probably spellings of the same level."""
    findings = []
    for column in table.columns:
        if column.levels is None or column.kind not in ("category", "dropped"):
            continue
        counts = np.bincount(column.known, minlength=len(column.levels))
        rows_of = dict(zip(column.levels, counts.tolist(), strict=True))
        used = [level for level, rows in rows_of.items() if rows]
        pairs = lookalike_pairs(sorted(used, key=lambda level: -rows_of[level]))
        if not pairs:
            continue
        rows = sum(rows_of[second] for _, second in pairs)
        shown = ", ".join(f"{a!r} and {b!r}" for a, b in pairs[:3])
        text = (
            f"Column {name(column.name)} has levels that differ only in case, spaces or the form "
            f"of letters: {shown}. They are treated as different levels "
            f"({count_with_noun(rows, 'row')} with the rarer spelling). Write them alike."
        )
        title = f"Mixed spellings in {column.name}"
        findings.append(finding("spelling", "warning", title, text, [column.name], rows))
    return findings


def constants(table: PreparedTable) -> list[CheckFacts]:
    """Return one finding on all columns that have a single value."""
    columns = [column.name for column in table.columns if column.kind == "constant"]
    if not columns:
        return []
    title = f"{count_with_noun(len(columns), 'constant column')}"
    verb = "has" if len(columns) == 1 else "have"
    text = f"{names(columns)} {verb} one value in all rows and cannot help; not used."
    return [finding("constant", "note", title, text, columns)]


# --- duplicate columns ----------------------------------------------------------------------------


def duplicate_columns(table: PreparedTable) -> list[CheckFacts]:
    """Return groups of columns that are equal up to scale and shift, or one-to-one."""
    table = table.sample
    findings = []
    for group, r in _correlated_groups(table):
        columns = [table.numbers[j].name for j in group]
        exact = r > 1 - 1e-12
        relation = (
            "are equal up to scale and shift" if exact else f"are nearly equal (|r| > {r:.5f})"
        )
        text = (
            f"{names(columns)} {relation}. Only their joint effect can be estimated: without a "
            f"penalty the single coefficients are arbitrary, and with a penalty the effect is "
            f"divided among them. Keep one "
            f"of them (--exclude {columns[-1]})."
        )
        title = f"{columns[-1]} duplicates {columns[0]}"
        findings.append(finding("duplicate_columns", "warning", title, text, columns))
    for first, second in _equivalent_categories(table):
        text = (
            f"Each level of {name(first)} corresponds to one level of {name(second)}. Keep one of "
            f"them (--exclude {second})."
        )
        title = f"{second} duplicates {first}"
        findings.append(finding("duplicate_columns", "warning", title, text, [first, second]))
    return findings if len(findings) <= _SEPARATE_DUPLICATES else [_merged_duplicates(findings)]


def _merged_duplicates(findings: list[CheckFacts]) -> CheckFacts:
    """Return one finding in place of many groups of duplicate columns."""
    duplicates = list(dict.fromkeys(c for item in findings for c in item["columns"][1:]))
    sentences = []
    for item in findings[:_LISTED]:
        first, *others = item["columns"]
        verb = "duplicates" if len(others) == 1 else "duplicate"
        sentences.append(f"{names(others)} {verb} {name(first)}")
    groups = "; ".join(sentences)
    left = len(findings) - _LISTED
    more = f"; and {count_with_noun(left, 'more group')}" if left > 0 else ""
    text = (
        f"{groups}{more}. Only the joint effect of duplicates can be estimated: without a penalty "
        "the single coefficients are arbitrary, and with a penalty the effect is divided among "
        "them. Keep one column of each group (--exclude COLUMN)."
    )
    columns = list(dict.fromkeys(c for item in findings for c in item["columns"]))
    title = f"{len(duplicates)} duplicate columns"
    return finding("duplicate_columns", "warning", title, text, columns)


def _correlated_groups(table: PreparedTable) -> list[tuple[list[int], float]]:
    """Return groups of numeric columns, and for each group the least |r| with its first column."""
    if len(table) < 10 or len(table.numbers) < 2:
        return []
    matrix = table.matrix - table.matrix.mean(axis=0)
    norm = np.sqrt((matrix**2).sum(axis=0))
    scale = np.abs(table.matrix).max(axis=0)
    varying = np.flatnonzero(norm > 1e-10 * scale * math.sqrt(len(table)))
    standard = matrix[:, varying] / norm[varying]
    groups: list[tuple[list[int], float]] = []
    grouped: set[int] = set()
    if len(varying) > _CORRELATED_COLUMNS:
        return _equal_groups(standard, varying)
    correlation = np.abs(standard.T @ standard)
    for i in range(len(varying)):
        if i in grouped:
            continue
        near = np.flatnonzero(correlation[i, i + 1 :] > _CORRELATION) + i + 1
        near = np.array([j for j in near.tolist() if j not in grouped], dtype=np.intp)
        if len(near):
            grouped.update(near.tolist())
            r = float(correlation[i, near].min())
            groups.append(([int(varying[i]), *varying[near].tolist()], r))
    return groups


def _equal_groups(standard: Floats, columns: npt.NDArray[np.intp]) -> list[tuple[list[int], float]]:
    """Return groups of equal columns; rounded projections find them fast among many columns."""
    sign = np.sign(standard[np.abs(standard).argmax(axis=0), np.arange(standard.shape[1])])
    probe = np.random.default_rng(0).standard_normal((len(standard), 2))
    keys = np.round((standard * sign).T @ probe, 9)
    members: dict[tuple[float, ...], list[int]] = {}
    for j, key in enumerate(map(tuple, keys.tolist())):
        members.setdefault(key, []).append(int(columns[j]))
    return [(group, 1.0) for group in members.values() if len(group) > 1]


def _equivalent_categories(table: PreparedTable) -> list[tuple[str, str]]:
    texts = [column for column in table.features if column.is_text][:100]
    pairs = []
    sizes = [len(np.unique(column.known)) for column in texts]
    for i, first in enumerate(texts):
        for j in range(i + 1, len(texts)):
            second = texts[j]
            if sizes[i] != sizes[j] or sizes[i] < 2:
                continue
            assert second.levels is not None
            both = first.values.astype(np.int64) * (len(second.levels) + 1) + second.values
            if len(np.unique(both[(first.values >= 0) & (second.values >= 0)])) == sizes[i]:
                pairs.append((first.name, second.name))
    return pairs
