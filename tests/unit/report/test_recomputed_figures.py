"""Figures of pages recomputed by independent code: NumPy, SciPy and formulas from the textbooks.

The pages are those of a study of LDA on given folds. Nothing here calls the package except to write
the page; the figures are read from its HTML.
"""

import re
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import load_breast_cancer, load_wine

import discriminant as dd
from discriminant.report.html import render

_Z = 1.959963984540054


class Text(HTMLParser):
    """Text of the page by section: cells of tables, and everything else as words."""

    def __init__(self, page):
        super().__init__()
        self.section, self.words, self.tables, self.cell, self.skip = "", {}, {}, None, 0
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        names = dict(attributes)
        if tag == "section":
            self.section = names.get("aria-labelledby", "")
        if tag in ("script", "style", "svg"):
            self.skip += 1
        if tag == "table":
            self.tables.setdefault(self.section, []).append([])
        if tag == "tr" and self.tables.get(self.section):
            self.tables[self.section][-1].append([])
        if tag in ("td", "th") and self.tables.get(self.section):
            self.tables[self.section][-1][-1].append("")
            self.cell = True

    def handle_endtag(self, tag):
        if tag in ("script", "style", "svg"):
            self.skip -= 1
        if tag in ("td", "th"):
            self.cell = None

    def handle_data(self, data):
        if self.skip:
            return
        if self.cell:
            self.tables[self.section][-1][-1][-1] += data
        self.words[self.section] = self.words.get(self.section, "") + " " + data.strip()

    def table(self, section, *heads):
        """Return the rows of the table with these column heads, by their first cell."""
        for table in self.tables[section]:
            head = [" ".join(cell.split()) for cell in table[0]]
            if all(any(one.startswith(name) for one in head) for name in heads):
                return {
                    " ".join(row[0].split()): dict(zip(head, map(str.strip, row), strict=True))
                    for row in table[1:]
                }
        raise AssertionError(f"no table with {heads} in {section}")

    def rows(self, section, *heads):
        """Return every row of the table with these heads, as {head: cell}."""
        for table in self.tables[section]:
            head = [" ".join(cell.split()) for cell in table[0]]
            if all(any(one.startswith(name) for one in head) for name in heads):
                return [
                    dict(zip(head, (" ".join(cell.split()) for cell in row), strict=True))
                    for row in table[1:]
                ]
        raise AssertionError(f"no table with {heads} in {section}")


def value(text):
    """Return the number of a cell: 12.3%, 0.0234, −1,234, 3 of 7."""
    text = text.replace("−", "-").replace(",", "").strip()
    if " of " in text:
        part, whole = text.split(" of ")
        return float(part) / float(whole)
    return float(text.rstrip("%")) / 100 if text.endswith("%") else float(text)


def half_unit(text):
    """Return half a unit of the last digit that is shown."""
    digits = re.search(r"\d+(?:\.(\d+))?", text.replace(",", ""))[1]
    return 0.5000001 * 10.0 ** -len(digits or "") / (100 if text.endswith("%") else 1)


def assert_shows(text, expected):
    """Assert that a text is the expected number, rounded, or an upper bound such as '< 0.001'."""
    if text.startswith("<"):
        assert 0 < expected < value(text.removeprefix("<")), (text, expected)
        return
    assert abs(value(text) - expected) <= half_unit(text) + 1e-9 * abs(expected), (text, expected)


def wilson(x, n):
    centre, reach = (
        (x / n + _Z**2 / (2 * n)),
        _Z * np.sqrt(x / n * (1 - x / n) / n + _Z**2 / (4 * n * n)),
    )
    return (centre - reach) / (1 + _Z**2 / n), (centre + reach) / (1 + _Z**2 / n)


def lda_posteriors(X, codes, fold):
    """Return held-out posteriors of LDA with the unbiased pooled covariance, fold by fold."""
    K = codes.max() + 1
    p = np.empty((len(X), K))
    for f in np.unique(fold):
        own, out = X[fold != f], fold == f
        y = codes[fold != f]
        means = np.array([own[y == k].mean(axis=0) for k in range(K)])
        within = sum((own[y == k] - means[k]).T @ (own[y == k] - means[k]) for k in range(K))
        inverse = np.linalg.inv(within / (len(own) - K))
        prior = np.bincount(y) / len(y)
        scores = [
            -0.5 * np.einsum("ij,jk,ik->i", X[out] - m, inverse, X[out] - m) for m in means
        ] + np.log(prior)[:, None]
        scores = np.transpose(scores) - np.max(scores, axis=0)[:, None]
        p[out] = np.exp(scores) / np.exp(scores).sum(axis=1)[:, None]
    return p


class Page:
    """A page of LDA, and what is needed to recompute its figures."""

    def __init__(self, frame, labels, codes, **decision):
        self.X, self.names = frame.to_numpy(), list(frame.columns)
        self.labels, self.codes = list(labels), codes
        self.n, self.K = len(codes), len(labels)
        self.counts = np.bincount(codes)
        # The same folds for both: rows with the same value of a column are held out together.
        self.fold = np.arange(self.n) % 7
        table = frame.assign(kind=np.array(labels)[codes], fold=[f"f{f}" for f in self.fold])
        study = dd.study(table, target="kind", folds="fold")
        study.compare(["lda"])
        if decision:
            study.decide(**decision)
        self.facts = study.facts()
        page = render(self.facts)
        self.text = Text(page)
        self.tiles = [
            {
                "value": re.search(r'class="value">([^<]*)', tile)[1],
                "interval": re.search(r"95% interval ([^<]*) to ([^<(]*?)(?: \(\S+\))?<", tile),
                "guess": re.search(
                    r"guessing: ([^<,]*)(?:, higher by (\S+) \((\S+) to (\S+)\))?<", tile
                ),
                "precision": re.search(r"precision ([^<]*)<", tile),
            }
            for tile in page.split('<div class="tile">')[1:]
        ]
        self.p = lda_posteriors(self.X, codes, self.fold)
        self.decided = self.p.argmax(axis=1)
        centred = [self.X[codes == k] - self.X[codes == k].mean(axis=0) for k in range(self.K)]
        self.scatters = [one.T @ one for one in centred]
        self.W = sum(self.scatters)
        self.T = (self.X - self.X.mean(axis=0)).T @ (self.X - self.X.mean(axis=0))
        self.B = self.T - self.W


@pytest.fixture(scope="module")
def wine():
    found = load_wine(as_frame=True)
    return Page(found.data.iloc[:, [0, 1, 2, 3, 10]], found.target_names, found.target.to_numpy())


@pytest.fixture(scope="module")
def cancer():
    found = load_breast_cancer(as_frame=True)
    columns = ["mean texture", "mean smoothness", "mean symmetry", "texture error"]
    return Page(found.data[columns], ["benign", "malignant"], 1 - found.target.to_numpy())


@pytest.fixture(scope="module")
def costs():
    found = load_breast_cancer(as_frame=True)
    columns = ["mean texture", "mean smoothness", "mean symmetry", "texture error"]
    cost = {"malignant": {"benign": 1.0}, "benign": {"malignant": 5.0}}
    return Page(
        found.data[columns], ["benign", "malignant"], 1 - found.target.to_numpy(), cost=cost
    )


@pytest.mark.parametrize("made", ["wine", "cancer"])
def test_decisions_if_missing_a_class_costs_more(made, request):
    page = request.getfixturevalue(made)
    table = page.text.rows("decision", "Class missed", "Its cost")
    if made == "wine":
        assert len(table) == page.K
    for row in table:
        k, ratio = page.labels.index(row["Class missed"]), float(row["Its cost"].rstrip("\u00a0 ×"))
        cost = 1.0 - np.eye(page.K)
        cost[:, k] *= ratio
        decided = (page.p @ cost.T).argmin(axis=1)
        own = page.codes == k
        for figures, of in zip(
            zip(
                re.split(r"\s→\s", row["Its recall, before → after"]),
                re.split(r"\s→\s", row["Its precision, before → after"]),
                strict=True,
            ),
            (page.decided, decided),
            strict=True,
        ):
            assert_shows(figures[0], (of[own] == k).mean())
            assert_shows(figures[1], own[of == k].mean())
        assert_shows(row["Error"], (decided != page.codes).mean())
        assert_shows(row["Cost before"], 100 * cost[page.decided, page.codes].mean())
        assert_shows(row["Cost after"], 100 * cost[decided, page.codes].mean())
        assert_shows(row["Guessing"], 100 * (cost @ page.counts).min() / page.n)
        saved = cost[(cost @ page.counts).argmin(), page.codes] - cost[decided, page.codes]
        reach = _Z * saved.std(ddof=1) / np.sqrt(page.n)
        ends = saved.mean() - reach, saved.mean() + reach
        pattern = r"(yes|no|not clearly): (\S+) \((\S+) to (\S+)\)"
        clear, *shown = re.fullmatch(pattern, row["Better than guessing (saving)"]).groups()
        assert clear == ("yes" if ends[0] > 0 else "no" if saved.mean() <= 0 else "not clearly")
        for text, expected in zip(shown, (saved.mean(), *ends), strict=True):
            assert_shows(text, 100 * expected)
        if page.K == 2:
            assert_shows(row["Predict it from"], 1 / (1 + ratio))


@pytest.mark.parametrize("made", ["wine", "cancer"])
def test_error_with_its_interval_and_that_of_guessing(made, request):
    page = request.getfixturevalue(made)
    tile, wrong = page.tiles[0], int((page.decided != page.codes).sum())
    assert_shows(tile["value"], wrong / page.n)
    for shown, end in zip(tile["interval"].groups(), wilson(wrong, page.n), strict=True):
        assert_shows(shown, end)
    assert_shows(tile["guess"][1], 1 - page.counts.max() / page.n)


@pytest.mark.parametrize("made", ["wine", "cancer"])
def test_log_loss_and_that_of_guessing(made, request):
    page = request.getfixturevalue(made)
    share = page.counts / page.n
    assert_shows(page.tiles[1]["value"], -np.log(page.p[np.arange(page.n), page.codes]).mean())
    assert_shows(page.tiles[1]["guess"][1], -(share * np.log(share)).sum())
    gain = np.log(page.p[np.arange(page.n), page.codes]) - np.log(share)[page.codes]
    reach = _Z * gain.std() / np.sqrt(page.n - 1)
    ends = gain.mean(), gain.mean() - reach, gain.mean() + reach
    for text, expected in zip(page.tiles[1]["guess"].groups()[1:], ends, strict=True):
        assert_shows(text, expected)


@pytest.mark.parametrize("made", ["wine", "cancer"])
def test_lowest_recall_with_its_interval_and_precision(made, request):
    page = request.getfixturevalue(made)
    right = np.bincount(page.codes[page.decided == page.codes], minlength=page.K)
    k = int((right / page.counts).argmin())
    tile = page.tiles[2]
    assert_shows(tile["value"], right[k] / page.counts[k])
    for shown, end in zip(tile["interval"].groups(), wilson(right[k], page.counts[k]), strict=True):
        assert_shows(shown, end)
    assert_shows(tile["precision"][1], right[k] / (page.decided == k).sum())


@pytest.mark.parametrize("made", ["wine", "cancer"])
def test_confusion_counts_and_shares(made, request):
    page = request.getfixturevalue(made)
    rows = page.text.table("pairs", "Decided")
    for a, action in enumerate(page.labels):
        for k, label in enumerate(page.labels):
            count = int(((page.decided == a) & (page.codes == k)).sum())
            shown = rows[action][label].split()
            assert int(shown[0]) == count
            if count:
                assert_shows(shown[1], count / page.counts[k])


def test_auc_of_each_class_against_the_others(wine):
    rows = wine.text.table("pairs", "Class", "AUC")
    for k, label in enumerate(wine.labels):
        score = np.log(wine.p[:, k])
        own, other = score[wine.codes == k], score[wine.codes != k]
        rank = (own[:, None] > other).mean() + 0.5 * (own[:, None] == other).mean()
        assert_shows(rows[label]["AUC"].replace("> 0.999", "1.000"), rank)


def test_auc_with_delongs_interval(cancer):
    text = cancer.text.words["decision"]
    score = np.log(cancer.p[:, 1]) - np.log(cancer.p[:, 0])
    own, other = score[cancer.codes == 1], score[cancer.codes == 0]
    wins = (own[:, None] > other) + 0.5 * (own[:, None] == other)
    area = wins.mean()
    variance = wins.mean(axis=1).var(ddof=1) / len(own) + wins.mean(axis=0).var(ddof=1) / len(other)
    shown = re.search(r"AUC ([\d.]+) \(95% interval ([\d.]+) to ([\d.]+)\)", text).groups()
    assert_shows(shown[0], area)
    slope = 1 / (area * (1 - area))  # the interval is symmetric on the logit scale, or plain
    logit = np.log(area / (1 - area)) + np.array([-1, 1]) * _Z * slope * np.sqrt(variance)
    plain = area + np.array([-1, 1]) * _Z * np.sqrt(variance)
    ends = [value(one) for one in shown[1:]]
    assert min(
        np.abs(ends - plain).max(), np.abs(ends - 1 / (1 + np.exp(-logit))).max()
    ) == pytest.approx(0.0, abs=6e-4)


def test_brier_score_of_the_comparison(wine):
    (row,) = (row for name, row in wine.text.table("comparison", "Model").items() if "LDA" in name)
    truth = np.eye(wine.K)[wine.codes]
    assert_shows(row["Brier score"], ((wine.p - truth) ** 2).sum(axis=1).mean())


def test_tests_of_equal_means_are_those_of_the_eigenvalues(wine):
    rows = wine.text.table("space", "Test of equal means")
    roots = np.sort(np.linalg.eigvals(np.linalg.solve(wine.W, wine.B)).real)[::-1][: wine.K - 1]
    assert_shows(rows["Wilks' lambda"]["Value"], np.prod(1 / (1 + roots)))
    assert_shows(rows["Pillai's trace"]["Value"], (roots / (1 + roots)).sum())
    assert_shows(rows["Hotelling–Lawley trace"]["Value"], roots.sum())
    assert_shows(rows["Roy's root"]["Value"], roots[0])


def test_raos_f_of_wilks_lambda(wine):
    p, q = wine.X.shape[1], wine.K - 1
    wilks = np.linalg.det(wine.W) / np.linalg.det(wine.T)
    t = np.sqrt((p * p * q * q - 4) / (p * p + q * q - 5))
    df1, df2 = p * q, (wine.n - 1 - (p + wine.K) / 2) * t - (p * q - 2) / 2
    f = (1 - wilks ** (1 / t)) / wilks ** (1 / t) * df2 / df1
    assert_shows(wine.text.table("space", "Test of equal means")["Wilks' lambda"]["F"], f)


def test_canonical_correlations_and_shares_of_separation(wine):
    rows = wine.text.table("space", "Direction", "Canonical")
    roots = np.sort(np.linalg.eigvals(np.linalg.solve(wine.W, wine.B)).real)[::-1][: wine.K - 1]
    for j, root in enumerate(roots):
        row = rows[str(j + 1)]
        assert_shows(row["Canonical correlation"], np.sqrt(root / (1 + root)))
        assert_shows(row["Share of separation"], root / roots.sum())


def test_loadings_are_correlations_within_classes(wine):
    rows = wine.text.table("space", "Feature", "Dir. 1")
    roots, vectors = np.linalg.eig(np.linalg.solve(wine.W, wine.B))
    order = np.argsort(-roots.real)[: wine.K - 1]
    A = vectors.real[:, order]
    covariance = wine.W @ A
    loading = covariance / np.sqrt(np.diag(wine.W)[:, None] * np.diag(A.T @ covariance))
    for i, name in enumerate(wine.names):
        for j in range(wine.K - 1):
            shown = rows[name][f"Dir. {j + 1}"]
            assert_shows(shown.lstrip("−"), abs(loading[i, j]))


def test_boxs_m(wine):
    p, K, n = wine.X.shape[1], wine.K, wine.n
    S = [one / (c - 1) for one, c in zip(wine.scatters, wine.counts, strict=True)]
    M = (n - K) * np.linalg.slogdet(wine.W / (n - K))[1] - sum(
        (c - 1) * np.linalg.slogdet(one)[1] for one, c in zip(S, wine.counts, strict=True)
    )
    c = (2 * p * p + 3 * p - 1) / (6 * (p + 1) * (K - 1))
    c *= (1 / (wine.counts - 1)).sum() - 1 / (n - K)
    shown, df = re.search(
        r"Chi-squared ([\d.,]+) on ([\d,]+) degrees", wine.text.words["space"]
    ).groups()
    assert_shows(shown, (1 - c) * M)
    assert int(df) == p * (p + 1) * (K - 1) // 2


def test_effect_sizes_and_overlap_of_the_most_confused_pair(wine):
    counts = np.array(
        [[((wine.decided == a) & (wine.codes == k)).sum() for k in range(3)] for a in range(3)]
    )
    both = np.triu(counts + counts.T, 1)
    a, b = np.unravel_index(both.argmax(), both.shape)
    n_a, n_b = wine.counts[[a, b]]
    n, p = n_a + n_b, wine.X.shape[1]
    C = (wine.scatters[a] + wine.scatters[b]) / (n - 2)
    difference = wine.X[wine.codes == a].mean(axis=0) - wine.X[wine.codes == b].mean(axis=0)
    d = np.abs(difference) / np.sqrt(np.diag(C))
    words = " ".join(wine.text.words["pairs"].split())
    for j in np.argsort(-d)[:3]:
        shown = re.search(rf"{re.escape(wine.names[j])} d = ([\d.]+)", words)[1]
        assert_shows(shown, d[j])
    squared = (n - p - 3) / (n - 2) * difference @ np.linalg.solve(C, difference)
    overlap = stats.norm.cdf(-np.sqrt(max(squared - n * p / (n_a * n_b), 0)) / 2)
    assert_shows(re.search(r"misclassify about ([\d.]+%)", words)[1], overlap)
    assert f"{both.max()} of {both.sum()} mistakes" in words


def test_reliability_bins_and_gap(cancer):
    table = next(t for t in cancer.text.tables["calibration"] if t[0][0].strip() == "Predicted")
    p, true = cancer.p[:, 1], cancer.codes == 1
    order = np.argsort(p, kind="stable")
    ends = [cancer.n * i // 10 for i in range(11)]
    groups = [order[low:high] for low, high in pairwise(ends)]
    merged = [groups[0]]
    for rows in groups[1:]:  # neighbouring deciles whose means differ by less than 0.01 are one bin
        if p[rows].mean() - p[merged[-1]].mean() < 0.01:
            merged[-1] = np.concatenate([merged[-1], rows])
        else:
            merged.append(rows)
    assert len(table) - 1 == len(merged)
    gap = 0.0
    for (predicted, observed, interval, count), rows in zip(table[1:], merged, strict=True):
        assert int(count) == len(rows)
        assert_shows(predicted, p[rows].mean())
        assert_shows(observed, true[rows].mean())
        for shown, end in zip(
            interval.split(" to "), wilson(true[rows].sum(), len(rows)), strict=True
        ):
            assert_shows(shown, end)
        gap += len(rows) / cancer.n * abs(p[rows].mean() - true[rows].mean())
    assert cancer.facts["calibration"]["gap"] == pytest.approx(gap, rel=1e-9)


def test_error_at_a_coverage(cancer):
    table = next(t for t in cancer.text.tables["decision"] if t[0][0].strip() == "Coverage")
    order = np.argsort(-cancer.p.max(axis=1), kind="stable")
    wrong = (cancer.decided != cancer.codes)[order]
    assert len(table) > 5
    for coverage, error in table[1:]:
        rows = round(value(coverage) * cancer.n)
        near = [wrong[: max(rows + shift, 1)].mean() for shift in (-1, 0, 1)]
        assert min(near) - 6e-4 <= value(error) <= max(near) + 6e-4


def test_cost_of_decisions_and_of_guessing(costs):
    words = " ".join(costs.text.words["decision"].split())
    cost = np.array([[0.0, 5.0], [1.0, 0.0]])  # action by class
    decided = (costs.p @ cost.T).argmin(axis=1)
    mean = cost[decided, costs.codes].mean()
    shares = costs.counts / costs.n
    assert_shows(re.search(r"([\d.,]+) before: decisions", words)[1], 100 * mean)
    assert_shows(re.search(r"→ ([\d.,]+) after", words)[1], 100 * mean)
    assert_shows(re.search(r"([\d.,]+) guessing: the best", words)[1], 100 * (cost @ shares).min())
    rows = costs.text.table("pairs", "Decided")
    assert (
        int(rows["malignant"]["benign"].split()[0]) == ((decided == 1) & (costs.codes == 0)).sum()
    )


@pytest.mark.parametrize("made", ["wine", "cancer"])
def test_what_features_explain_alone_and_in_addition(made, request):
    page = request.getfixturevalue(made)
    rows = page.text.table("matters", "Feature", "Importance")
    rows = {next(n for n in page.names if name.startswith(n)): row for name, row in rows.items()}
    alone = 1 - np.diag(page.W) / np.diag(page.T)
    added = 1 - np.diag(np.linalg.inv(page.T)) / np.diag(np.linalg.inv(page.W))
    for j, name in enumerate(page.names):
        assert_shows(rows[name]["Alone"], alone[j])
        assert_shows(rows[name]["Added"], added[j])
        assert_shows(rows[name]["Importance"], (alone[j] + added[j]) / 2)


def test_effects_at_the_mean(cancer):
    rows = cancer.text.table("matters", "Feature", "Effect")
    mean, sd = cancer.X.mean(axis=0), cancer.X.std(axis=0, ddof=1)
    means = np.array([cancer.X[cancer.codes == k].mean(axis=0) for k in (0, 1)])
    slope = np.linalg.solve(cancer.W / (cancer.n - 2), means[1] - means[0])
    offset = -slope @ means.mean(axis=0) + np.log(cancer.counts[1] / cancer.counts[0])
    for name, row in rows.items():
        j = next(j for j, one in enumerate(cancer.names) if name.startswith(one))
        (effect,) = (text for head, text in row.items() if head.startswith("Effect"))
        shown = re.findall(r"([\d.]+%)", effect)
        for side, text in zip((-0.5, 0.5), shown, strict=True):
            x = mean + side * sd[j] * (np.arange(len(mean)) == j)
            x = np.clip(x, cancer.X.min(axis=0), cancer.X.max(axis=0))
            assert_shows(text, 1 / (1 + np.exp(-(slope @ x + offset))))


def test_first_step_of_the_stepwise_selection(wine):
    rows = wine.text.tables["matters"]
    table = next(t for t in rows if t[0][0].strip() == "Step")
    ratio = np.diag(wine.B) / np.diag(wine.W)
    j = int(ratio.argmax())
    df = wine.K - 1, wine.n - wine.K
    number, entered, f, p, wilks = (cell.strip() for cell in table[1])
    assert (number, entered.split("+ ")[1]) == ("1", wine.names[j])
    assert_shows(f, ratio[j] * df[1] / df[0])
    assert p == "< 0.001" and stats.f.sf(ratio[j] * df[1] / df[0], *df) < 0.001
    assert_shows(wilks, 1 / (1 + ratio[j]))


def test_coefficients_are_those_of_least_squares(cancer):
    table = next(t for t in cancer.text.tables["matters"] if "Coefficient" in t[0][2])
    Z = np.column_stack([np.ones(cancer.n), cancer.X])
    y = (cancer.codes == 1).astype(float)
    inverse = np.linalg.inv(Z.T @ Z)
    beta = inverse @ Z.T @ y
    df = cancer.n - Z.shape[1]
    error = np.sqrt(((y - Z @ beta) ** 2).sum() / df * np.diag(inverse))
    sd = cancer.X.std(axis=0, ddof=1)
    for name, _, coefficient, interval in table[1:]:
        j = cancer.names.index(name.strip())
        reach = stats.t.ppf(0.975, df) * error[j + 1]
        expected = [
            beta[j + 1] * sd[j],
            (beta[j + 1] - reach) * sd[j],
            (beta[j + 1] + reach) * sd[j],
        ]
        for shown, one in zip([coefficient, *interval.split(" to ")], expected, strict=True):
            assert abs(value(shown) - one) < 6e-4


@pytest.mark.parametrize("made", ["wine", "cancer"])
def test_numbers_of_misclassified_unsure_and_suspicious_rows(made, request):
    page = request.getfixturevalue(made)
    words = " ".join(page.text.words["rows"].split())
    own = page.p[np.arange(page.n), page.codes]
    limit = np.minimum(0.01, 0.1 * page.counts / page.n)[page.codes]
    margin = np.sort(page.p, axis=1)[:, -1] - np.sort(page.p, axis=1)[:, -2]
    expected = {
        "with a suspicious label": (own < limit).sum(),
        "misclassified": (page.decided != page.codes).sum(),
        "unsure": (margin < 0.2).sum(),
    }
    for kind, count in expected.items():
        found = re.search(rf"(\d+) rows? {kind}", words)
        assert (0 if found is None else int(found[1])) == count


@pytest.mark.parametrize("made", ["wine", "cancer"])
def test_gain_over_guessing_with_its_interval(made, request):
    page = request.getfixturevalue(made)
    own = np.log(page.p[np.arange(page.n), page.codes])
    gains = own - np.log(page.counts / page.n)[page.codes]
    ends = stats.norm.interval(0.95, gains.mean(), stats.sem(gains))
    gain = page.facts["comparison"]["gain"]
    np.testing.assert_allclose(
        [gain["value"], gain["low"], gain["high"]], [gains.mean(), *ends], rtol=1e-6
    )
