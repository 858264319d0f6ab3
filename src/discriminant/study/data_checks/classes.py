"""Checks of the classes: labels, sizes, and whether class means differ at all.

labels       labels that differ only in case, spaces or Unicode form
rare_class   classes of fewer than 10 rows
imbalance    the most frequent class has at least 10 times (warning: 50 times) the rows of the
             rarest
no_signal    the means of all features are equal in all classes: Wilks' lambda with Rao's F,
             p >= .01; if there are too many features for this test, a permutation test of the
             share of the standardised variance between classes
"""

from __future__ import annotations

import numpy as np
from scipy.special import fdtrc
from scipy.stats import rankdata

from discriminant.report.fact_types import CheckFacts
from discriminant.report.format import count_with_noun, number, p_value, percent
from discriminant.study.data_checks.prepared_table import PreparedTable, class_names, finding
from discriminant.table.blocks import Floats, Places
from discriminant.table.labels import lookalike_pairs

_FEW = 10
_RATIO, _SEVERE = 10.0, 50.0
_LEVEL = 0.01
_MIN_ROWS = 20  # smaller tables are not tested for a signal
_PERMUTATIONS = 499
_PERMUTED_ROWS = 500  # largest number of rows of the permutation test


def label_spellings(table: PreparedTable) -> list[CheckFacts]:
    """Return a finding on labels that are probably spellings of the same class."""
    order = np.argsort(-table.counts, kind="stable")
    labels = [table.labels[k] for k in order.tolist() if isinstance(table.labels[k], str)]
    pairs = lookalike_pairs(labels)
    if not pairs:
        return []
    rows_of = dict(zip(table.labels.tolist(), table.counts.tolist(), strict=True))
    rows = sum(rows_of[second] for _, second in pairs)
    shown = ", ".join(f"{a!r} and {b!r}" for a, b in pairs[:3])
    text = (
        f"Labels differ only in case, spaces or the form of letters: {shown}. They are treated as "
        f"different classes ({count_with_noun(rows, 'row')} with the rarer spelling). Write them "
        "alike."
    )
    return [finding("labels", "warning", "Mixed spellings of classes", text, rows=rows)]


def class_sizes(table: PreparedTable) -> list[CheckFacts]:
    """Return findings on classes with few rows, and on classes of very different size."""
    counts = table.counts
    findings = []
    few = [k for k in np.argsort(counts, kind="stable").tolist() if 0 < counts[k] < _FEW]
    if few:
        listed = ", ".join(f"{class_names([table.labels[k]])} ({counts[k]})" for k in few[:5])
        more = f" and {len(few) - 5} more" if len(few) > 5 else ""
        noun = count_with_noun(len(few), "class has", "classes have")
        text = (
            f"{noun} fewer than {_FEW} rows: {listed}{more}. Too few to estimate how well such a "
            "class is predicted: collect more rows of it"
        )
        text += ", or merge it with another class." if len(table.labels) > 2 else "."
        labels = class_names([table.labels[k] for k in few])
        title = f"Few rows of {'class' if len(few) == 1 else 'classes'} {labels}"
        findings.append(finding("rare_class", "warning", title, text, rows=int(counts[few].sum())))
    most, least = int(counts.argmax()), int(np.where(counts > 0, counts, counts.max()).argmin())
    ratio = counts[most] / counts[least]
    if ratio >= _RATIO:
        rare, share = class_names([table.labels[least]]), counts[least] / counts.sum()
        text = (
            f"Class {rare} has {percent(share)} of the rows ({counts[least]:,}), 1 for each "
            f"{ratio:,.0f} of class {class_names([table.labels[most]])}. Accuracy says little: "
            f"never predicting {rare} is right in {percent(1 - share)} of the rows. Look at recall "
            "and precision of this class, and set costs (--cost)."
        )
        title = f"Imbalance: {percent(share)} {rare}"
        severity = "warning" if ratio >= _SEVERE else "note"
        findings.append(finding("imbalance", severity, title, text, rows=int(counts[least])))
    return findings


def signal(table: PreparedTable) -> list[CheckFacts]:
    """Return a finding if no difference between the class means is significant."""
    sample = table.sample
    matrix = _feature_matrix(sample)
    if matrix is None:
        return []
    n, d = matrix.shape
    present = np.unique(sample.codes)
    codes = np.searchsorted(present, sample.codes)
    K = len(present)
    if K < 2 or n < max(_MIN_ROWS, K + 2) or d == 0:
        return []
    if d < (n - K) / 2:
        value, p = _rao(matrix, codes, K)
        statistic = f"Wilks' lambda {number(value)}, p = {p_value(p)}, not below {_LEVEL:g}"
    else:
        p = _permutation_test(matrix, codes, K, seed=table.seed)
        statistic = f"permutation test of the class means of ranks, p = {p_value(p)}"
    if p < _LEVEL:
        return []
    text = (
        f"The features do not differ clearly in mean between the classes ({statistic}). Linear "
        "models may predict no better than guessing: the labels may be shuffled or unrelated to "
        "these features. Check how labels and features were joined; curved models may still find "
        "differences in spread."
    )
    return [finding("no_signal", "note", "No clear difference between classes", text, rows=n)]


def _feature_matrix(table: PreparedTable) -> Floats | None:
    """Return (n, d) standardised features: numbers, and indicators of all levels but the first."""
    parts = [table.matrix]
    for column in table.features:
        if column.levels is not None:
            used = np.unique(column.known)
            parts.append(np.asarray(column.values[:, None] == used[None, 1:], dtype=np.float64))
    matrix = np.hstack(parts)
    matrix = matrix - matrix.mean(axis=0)
    sd = np.sqrt((matrix**2).mean(axis=0))
    varying = sd > 1e-12 * max(float(np.abs(matrix).max(initial=0.0)), 1e-300)
    return matrix[:, varying] / sd[varying] if varying.any() else None


def _rao(matrix: Floats, codes: Places, K: int) -> tuple[float, float]:
    """Return Wilks' lambda and the p-value of Rao's F approximation, in the space of full rank."""
    n = len(matrix)
    values, vectors = np.linalg.eigh(matrix.T @ matrix)
    keep = values > 1e-10 * values.max()
    scores = matrix @ (vectors[:, keep] / np.sqrt(values[keep]))  # total scatter: the identity
    p = int(keep.sum())
    rows = np.bincount(codes, minlength=K)
    means = np.stack([scores[codes == k].sum(axis=0) for k in range(K)]) / np.sqrt(rows)[:, None]
    explained = np.linalg.svd(means, compute_uv=False) ** 2  # squared canonical correlations
    log_wilks = float(np.log1p(-np.minimum(explained, 1 - 1e-15)).sum())
    q, v = K - 1, n - K
    r = v - (p - q + 1) / 2
    u = (p * q - 2) / 4
    t = np.sqrt((p**2 * q**2 - 4) / (p**2 + q**2 - 5)) if p**2 + q**2 > 5 else 1.0
    root = np.exp(log_wilks / t)
    df2 = r * t - 2 * u
    f = (1 - root) / root * df2 / (p * q)
    return float(np.exp(log_wilks)), float(fdtrc(p * q, df2, f))


def _permutation_test(matrix: Floats, codes: Places, K: int, *, seed: int) -> float:
    """Return the p-value of two statistics under permutations of the classes.

    The statistics are the mean and the maximum over columns of the share of the variance of the
    ranks that is between classes; the smaller p-value is doubled.
    """
    generator = np.random.default_rng(seed)
    if len(matrix) > _PERMUTED_ROWS:
        rows = generator.choice(len(matrix), _PERMUTED_ROWS, replace=False)
        matrix, codes = matrix[rows], codes[rows]
    ranks = rankdata(matrix, axis=0)
    ranks -= ranks.mean(axis=0)
    norm = np.sqrt((ranks**2).sum(axis=0))
    ranks = ranks[:, norm > 0] / norm[norm > 0]
    counts = np.maximum(np.bincount(codes, minlength=K), 1)

    def statistics(order: Places) -> Floats:
        between = (((np.eye(K)[order] / np.sqrt(counts)).T @ ranks) ** 2).sum(axis=0)
        return np.array([between.mean(), between.max()])

    observed = statistics(codes) * (1 - 1e-12)
    as_large = np.zeros(2)
    for _ in range(_PERMUTATIONS):
        as_large += statistics(generator.permutation(codes)) >= observed
    return float(min(2 * ((1 + as_large) / (1 + _PERMUTATIONS)).min(), 1.0))
