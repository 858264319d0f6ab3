"""Results as lines of a table, for the terminal and for docs/benchmarks.md."""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec

from growth import exponents
from xmc_page import label_tree_tables

HEADS = (
    "task",
    "size",
    "ours",
    "compared with",
    "its best",
    "ratio",
    "goal",
    "met",
    "our peak",
    "its peak",
    "difference",
)


NOT_DONE = "not done"


@dataclass(frozen=True)
class Line:
    """One line of the table, as text."""

    cells: tuple[str, ...]  # one under each head

    @property
    def missed(self) -> bool:
        return self.cells[HEADS.index("met")] == "no"


def lines_of(case, found):
    """Return one line for each goal. `found` has `best`, `peaks`, `apart`, or `error`."""
    if "error" in found:
        goal = str(case.goals[0]) if case.goals else ""
        return [Line((case.task, case.size, found["error"], "", "", "", goal, "no", "", "", ""))]
    lines = [_line(case, goal, found) for goal in case.goals if _fastest(goal, found)]
    lines += [_unreached(case, goal, found) for goal in case.goals if _late(goal, found)]
    lines += [_unmeasured(case, goal, found) for goal in case.goals if _is_lost(goal, found)]
    if not lines:
        ours = found["best"]["discriminant"]
        lines = [Line((case.task, case.size, duration(ours), *[""] * 5, _peak(found), "", ""))]
    if case.pass_goal is not None:
        lines.append(_pass_line(case, found))
    if case.time_goal is not None:
        lines.append(_time_line(case, found))
    if case.memory_goal is not None:
        lines.append(_memory_line(case, found))
    return lines


def as_text(lines):
    """Aligned columns for the terminal."""
    rows = [HEADS, *(line.cells for line in lines)]
    wide = [max(len(row[i]) for row in rows) for i in range(len(HEADS))]
    return "\n".join(
        "  ".join(cell.ljust(w) for cell, w in zip(row, wide, strict=True)).rstrip() for row in rows
    )


@dataclass(frozen=True)
class Run:
    """Everything that one run measured."""

    lines: list[Line]
    label_trees: dict  # results of xmc.measure_again, or the `error` that it ended with
    growth: dict  # results of growth.measure, or the `error` that it ended with
    same: float  # ratio of identical contenders
    minutes: float
    date: str
    commit: str
    command: str


def as_page(run):
    """Return the page for docs/."""
    return PAGE.format(
        machine=_machine(),
        table=_markdown(HEADS, [line.cells for line in run.lines]),
        missed=_missed(run.lines),
        same=f"{run.same - 1:.1%}",
        minutes=f"{run.minutes:.0f}",
        date=run.date,
        commit=run.commit,
        command=run.command,
        label_trees=_or_error(run.label_trees, label_tree_tables),
        growth=_or_error(run.growth, _growth_section),
    )


def _or_error(results, section):
    return f"Not measured: {results['error']}." if "error" in results else section(results)


def _growth_section(times):
    heads = ("model", "by", "range", "exponent", "largest step")
    figure = "![Time of a fit by rows, features and classes](growth.svg)"
    return f"{figure}\n\n{_markdown(heads, exponents(times))}"


def _markdown(heads, rows):
    table = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in table)


# --- README ---------------------------------------------------------------------------------------

README_TASKS = (
    ("LDA fit", "2,000 × 20"),
    ("LDA fit", "1,000,000 × 20"),
    ("QDA fit", "1,000,000 × 20"),
    ("LDA predict", "200,000 × 20, 2 classes"),
    ("Logistic predict_proba", "200,000 × 20, 2 classes"),
    ("LDA predict, one row of a pandas frame", ""),
    ("Logistic fit", "20,000 × 20, 2 classes"),
    ("Logistic fit", "1,000,000 × 20"),
    ("GLM fit, poisson, log link", "200,000 × 20"),
    ("RDA, 11 × 11 grid, 10 folds", ""),
    ("LDA, leave-one-out", ""),
    ("LDA, one-vs-one", ""),
    ("AUC", ""),
)
README_HEADS = HEADS[:6]
README_RATIOS = {  # task -> pattern of the sentence, without the number
    "RDA, 11 × 11 grid, 10 folds": r"(an\s+RDA\s+grid\s+search\s+is\s+)[\d,]+(\s+times)",
    "LDA, leave-one-out": r"(and\s+leave-one-out\s+)[\d,]+(\s+times\s+as\s+fast)",
}
BEGIN, END = "<!-- benchmarks: written by make bench -->", "<!-- end of benchmarks -->"


def readme_table(rows):
    """Return the selection for the README, the first line of each task."""
    chosen = []
    for task, size in README_TASKS:
        matching = [r for r in rows if r[0].startswith(task) and r[1].startswith(size) and r[5]]
        exact = [r for r in matching if r[0] == task] or matching
        chosen += exact[:1]
    return _markdown(README_HEADS, [row[:6] for row in chosen])


def update_readme(path, lines):
    """Write the selection between its marks, and the two ratios of the introduction."""
    text = path.read_text()
    rows = [line.cells for line in lines]
    before, rest = text.split(BEGIN)
    for task, pattern in README_RATIOS.items():
        ratio = next((row[5].rstrip("×") for row in rows if row[0] == task and row[5]), None)
        if ratio is not None:
            before = re.sub(pattern, rf"\g<1>{float(f'{float(ratio):.2g}'):,.0f}\g<2>", before)
    table = readme_table(rows)
    path.write_text(f"{before}{BEGIN}\n\n{table}\n\n{END}{rest.split(END)[1]}")


def table_rows(text):
    """Return the cells of the first table of a page, without its head."""
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    ends = [k for k, row in enumerate(rows) if set(row[0]) == {"-"}]
    last = ends[1] - 1 if len(ends) > 1 else len(rows)
    return [[cell.strip() for cell in row] for row in rows[ends[0] + 1 : last]]


def duration(seconds):
    """Three digits and a unit.

    >>> duration(0.01234), duration(65e-6)
    ('12.3 ms', '65 µs')
    """
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * scale >= 1 or unit == "µs":
            return f"{seconds * scale:.3g} {unit}"
    raise AssertionError


def _line(case, goal, found):
    ours = found["best"]["discriminant"]
    peer, theirs = _fastest(goal, found)
    faster, longer = f"{theirs / ours:.3g}×", f"{ours / theirs:.2f}× its time"
    ratio = faster if goal.at_most is None else longer
    verdict = {True: "yes", False: "no", None: ""}[goal.reached(ours, theirs)]
    compared = goal is case.goals[0] and found["apart"] is not None
    return Line(
        (
            case.task,
            case.size,
            _time(found, "discriminant", ours),
            peer,
            _time(found, peer, theirs),
            ratio,
            str(goal),
            verdict,
            _peak(found),
            _peak(found, peer),
            f"{found['apart']:.0e}" if compared else "",
        )
    )


def _unreached(case, goal, found):
    """A peer that did not come to where the others are, in the time that it was given."""
    ours, late = found["best"]["discriminant"], _late(goal, found)
    met = goal.or_unreached or goal.reached(ours, late["seconds"])
    theirs = f"{late['note']} ({duration(late['seconds'])})"
    if late["note"] == NOT_DONE:
        theirs = f"{NOT_DONE} in {duration(late['seconds'])}"
    told = (_time(found, "discriminant", ours), goal.peer, theirs, "", str(goal))
    return Line((case.task, case.size, *told, "yes" if met else "no", _peak(found), "", ""))


def _unmeasured(case, goal, found):
    """A goal whose peer has no time at all: it is not met."""
    ours = _time(found, "discriminant", found["best"]["discriminant"])
    told = (ours, goal.peer, "not measured", "", str(goal), "no")
    return Line((case.task, case.size, *told, _peak(found), "", ""))


def _is_lost(goal, found):
    return str(goal) and not (_fastest(goal, found) or _late(goal, found))


def _late(goal, found):
    return found.get("unreached", {}).get(goal.peer)


def _time(found, name, seconds):
    """With what was needed, where it was counted."""
    note = found.get("notes", {}).get(name)
    return duration(seconds) if note is None else f"{duration(seconds)} ({note})"


def _pass_line(case, found):
    passes, job = found["passes"], f"{case.task}: passes over the rows"
    verdict = "yes" if passes <= case.pass_goal else "no"
    told = (f"{passes} passes", f"≤ {case.pass_goal} passes", verdict)
    return Line((job, case.size, "", "", "", *told, "", "", ""))


def _time_line(case, found):
    ours, job = found["best"]["discriminant"], f"{case.task}: time"
    verdict = "yes" if ours <= case.time_goal else "no"
    told = (duration(ours), "", "", "", f"≤ {case.time_goal:g} s", verdict)
    return Line((job, case.size, *told, "", "", ""))


def _memory_line(case, found):
    ours = found["peaks"].get("discriminant")
    verdict = "no" if ours is None or ours > case.memory_goal else "yes"
    goal = f"≤ {case.memory_goal:g} MB"
    known = ours and found["bytes"]
    share = f"{100 * ours * 2**20 / found['bytes']:.1f}% of the input" if known else ""
    job = f"{case.task}: peak memory"
    return Line((job, case.size, "", "", "", share, goal, verdict, _peak(found), "", ""))


def _fastest(goal, found):
    """The peer that the goal is about, in its fastest variant; None if it did not run."""
    group = {n: s for n, s in found["best"].items() if n.split(",")[0] == goal.peer}
    return min(group.items(), key=lambda pair: pair[1]) if group else None


def _peak(found, name="discriminant"):
    value = found["peaks"].get(name)
    return "" if value is None else f"{value:.3g} MB" if value >= 1 else "< 1 MB"


REASONS = (  # pattern of 'task, size (peer)', why its goal may be missed
    (
        r"LDA fit, .*1,000 classes",
        "the product of the rows is 45% of the CPU time; class means are subtracted (15%) and "
        "summed (10%) row by row, and first guessed from 4 rows of each class (15%). The floor is "
        "about 1.7 times the product.",
    ),
    (
        r"QDA fit, .*1,000 classes",
        "LAPACK's Cholesky factors and triangular inverses of 1,000 covariances take 1.8 times as "
        "long as the product of all rows, and 1,000 small products 1.2 times; NumPy's stacked "
        "routines are slower (1.2 and 3.5 times for factors and inverses). Rows are sorted and "
        "gathered by class (0.7 times), covariances are standardised (0.5 times), and half of the "
        "classes get a warning (0.6 times). The floor is about 5 times the product.",
    ),
    (
        r"LDA fit, wide, 100 × 5,000",
        "a third of the time is the thin SVD by products of the rows, the rest is passes over "
        "arrays as large as the rows: medians for the origin, centring, variances and the basis.",
    ),
    (
        r"moments, two threads",
        "both take the same CPU time (24 ms), of which labels and checks (2 ms) are not divided. "
        "The rest is limited by memory: NumPy's product of such rows is 1.15 times as fast on two "
        "threads as on one, where a product of 100 columns is 1.6 times as fast.",
    ),
    (
        r"RDA, 11 × 11 grid.*(GridSearchCV|NumPy loop)",
        "of 26 ms of CPU time the eigenvectors of 330 matrices (11 shrinkages, 3 classes, 10 "
        "folds) take 27%, products with the held-out rows 21%, exponentials 6%; the rest is "
        "passes over the scores of 121 models. The floor is these 14 ms, 180 times faster than "
        "GridSearchCV and 50 times faster than the loop on one core.",
    ),
    (
        r"LDA, one-vs-one: 190 classifiers",
        "of 17 ms of CPU time the pass over the rows takes 55%, and 190 Cholesky factors and "
        "solutions 35%, most of it calls to LAPACK for matrices of 50 columns.",
    ),
    (
        r"from discriminant import LDA",
        "both import sklearn.base (with scipy.stats and pandas), which is over 90% of the time. "
        "Beyond that our modules take 64 ms of CPU time, sklearn.linear_model 62 ms.",
    ),
    (
        r"moments on Dask",
        "two workers, the scheduler and the client share two cores, so two workers have less than "
        "two cores, and one worker has one of its own. Not profiled.",
    ),
    (
        r"moments of Parquet files.*pyarrow",
        "the columns of such a file are decoded about as fast as they are multiplied, and both "
        "use all cores, so that the floor is about 0.5.",
    ),
    (
        r"`discriminant report`, compared with importing",
        "of 2.8 s of CPU time beyond the imports, five paths of penalised logistic regressions at "
        "up to 25 penalties in ten folds are 0.4 s, the thresholds of shrunken centroids 0.2 s, "
        "the other models 0.4 s, the page 0.3 s, boosted trees 0.5 s on the other core, and the "
        "import of this package and of what the command line and the trees need 0.8 s. The floor "
        "is about 1 s.",
    ),
    (
        r"`discriminant report`: all models",
        "CPU time, for two cores: reading 1.5 s (pyarrow alone 1.1 s), moments of the folds 0.5 s, "
        "12 models in ten folds 8 s (half of it is to score a million rows by each, 2.3 s are "
        "paths of penalties on 20,000 rows, 1.5 s measures with intervals of AUCs), boosted trees "
        "2.8 s, the rest of the page 2.2 s. With both cores busy all the time this is 7.5 s, and "
        "6 s without the trees: the floor unless models are scored on a sample of the held-out "
        "rows. Memory: the numbers as columns and as rows sorted by fold, 240 MB each, held-out "
        "posteriors and decisions of 13 models, 310 MB, and measures of several models at a time.",
    ),
    (
        r"CSV file: reading, summing, 10-fold comparison of 7 models.*pyarrow",
        "CPU time: reading 1.4 s (pyarrow alone 1.1 s: columns are copied out of its blocks), "
        "moments 0.5 s, and 1.9 s to score a million held-out rows by seven models and measure "
        "them. The floor is about 3 times the CPU time of reading.",
    ),
    (
        r"(LDA|Logistic) predict_proba, 200,000 × 20, 2 classes",
        "both libraries read the rows once and multiply them by one vector. The ratio differs "
        "between runs (2.2 and 2.1 in another run of the same code), because both are limited by "
        "memory.",
    ),
    (
        r"LDA predict, .*2 classes",
        "both libraries read the rows once and multiply them by one vector, which is the floor.",
    ),
    (
        r"LDA fit, 20,000 × 784.*scikit-learn",
        "scikit-learn's CPU time is twice that of the product of the rows, the floor; ours is 1.25 "
        "times.",
    ),
    (
        r"LDA fit, 200,000 × 100.*scikit-learn",
        "scikit-learn's fit takes 6 times as long as the product of the rows, which is the floor.",
    ),
    (
        r"LDA fit, 200,000 × 100.*X.T @ X",
        "our CPU time is 1.4 times that of the product on one thread: class means are subtracted "
        "(15%) and rows summed by class (10%). The rest depends on the second core: the same fit "
        "in F order, with fewer contenders and more calls, takes 1.45 times the product.",
    ),
    (
        r"LDA fit, 1,000,000 × 20.*scikit-learn",
        "our CPU time is 1.85 times that of the product on one thread, the floor: class means are "
        "subtracted and rows summed by class; labels take 1.3 ms. The table is 160 MB, read at the "
        "speed of memory: the second core makes the product itself only 1.15 times as fast.",
    ),
    (
        r"LDA fit, (frame, )?(150 × 4|2,000 × 20)",
        "the product of the rows takes a hundredth of the time at 150 rows and a tenth at 2,000; "
        "the rest is fixed: labels, checks, anchor, one factorisation, 500 calls.",
    ),
    (
        r"QDA fit, 200,000 × 100",
        "scikit-learn's 'eigen' takes 5 times as long as the product of the rows, the floor.",
    ),
    (
        r"QDA fit, 1,000,000 × 20",
        "the CPU time is 3 times that of the product of all rows; rows are gathered by class. LDA, "
        "which does not gather them, takes 2.2 times the product: that is the floor.",
    ),
    (
        r"Logistic fit, quasi-complete",
        "scikit-learn stops at its tolerance and does not detect separation. The proof takes about "
        "70% of our CPU time: three passes for margins, and a linear programme of about a hundred "
        "rows, which through SciPy takes 1.4 ms (1 ms of it before and after the solver), as long "
        "as scikit-learn's whole fit to 500 rows: the floor. Without the pass for a sample of the "
        "rows more programmes are needed, which is slower.",
    ),
    (
        r"Logistic fit, ridge .*, loss within",
        "we prove a scaled gradient of 1e-8; scikit-learn stops where the loss is within 1e-6 of "
        "ours. At 4,500 rows 45% of the CPU time is 47 products of the curvature with a vector, "
        "in single precision at the speed of BLAS, a sixth the passes in single precision, and a "
        "seventh the preconditioner. The floor is the products, 60% of the time of scikit-learn's "
        "fit.",
    ),
    (
        r"Logistic fit, 20,000 × [23]0, 2 classes",
        "standard errors need the curvature at the estimate, which L-BFGS never computes. With "
        "that of the last step it takes 30% of the CPU time at 20 features and 40% at 30, at the "
        "speed of BLAS; the moments take 17%, Tjur's coefficient 6%. Products in single precision "
        "would not be faster, since rows have to be converted, and gradient steps instead of the "
        "last Newton step take as long. The floor without standard errors is 10 to 15% lower.",
    ),
    (
        r"Logistic fit, 20,000 × 20, 5 classes",
        "40% of the CPU time is the pass for the curvature, which standard errors need and L-BFGS "
        "does not, and 30% the seven passes for the gradient. The floor without standard errors "
        "is 40% lower.",
    ),
    (
        r"Logistic fit, 200,000 × 50",
        "52% of the CPU time is two passes for the curvature (for the last step, and for standard "
        "errors at the estimate), 23% the moments, 20% three passes for the gradient, all at the "
        "speed of BLAS. Three more passes for the gradient instead of one for the curvature save "
        "5%. The floor without standard errors is 19% lower.",
    ),
    (
        r"GLM fit, .*2,000 × 10",
        "seven passes (start, null model and five Newton steps, as in R) take 0.75 to 0.9 of 1.5 "
        "ms, the moments 0.15 ms. The gradient before the last step is above 1e-8 (4e-6 and 2e-7), "
        "so no step can be left out.",
    ),
    (
        r"GLM fit, .*200,000 × 20",
        "40% of the CPU time is two passes for the curvature (for the last step, and for standard "
        "errors at the estimate), a third the passes for the gradient, a fifth the moments; the "
        "gamma family also needs a pass for Pearson's statistic. The floor without standard errors "
        "is 12% lower.",
    ),
    (
        r"Perceptron fit, scikit-learn's own stop, 500 × 10",
        "scikit-learn makes 12 passes and returns the last weights. We make 40, which alone take "
        "as long as its fit (the floor), count the errors of 200 weights for the pocket (a fifth "
        "of our time), and prove that the classes overlap (a third).",
    ),
    (
        r"Perceptron fit, sparse",
        "we make 43 passes and scikit-learn 24; the passes are 70% of our CPU time (the floor), "
        "counting errors for the pocket is 15%.",
    ),
)


def _missed(lines):
    with_goal = [line for line in lines if line.cells[HEADS.index("met")]]
    missed = [line for line in with_goal if line.missed]
    if not missed:
        return f"All {len(with_goal)} goals are met."
    items = "\n".join(f"- {_missed_item(*line.cells[:4])}" for line in missed)
    met = len(with_goal) - len(missed)
    counts = f"{met} of {len(with_goal)} goals are met."
    return f"{counts} These are missed (reasons: profiles of November 2026):\n\n{items}"


def _missed_item(task, size, _, peer):
    """Return the name of a line, with the reason if it is known."""
    name = " ".join(each for each in (task, size, peer and f"({peer})") if each)
    line = f"{task}, {size} ({peer})"
    why = next((why for pattern, why in REASONS if re.match(pattern, line)), None)
    return f"{name}: {why}" if why else name


def _machine():
    names = ["numpy", "scipy", "scikit-learn"] + (["glum"] if find_spec("glum") else [])
    libraries = ", ".join(f"{name} {version(name)}" for name in names)
    kind = f"{os.cpu_count()} cores ({platform.machine()}), {platform.system()}"
    return f"{kind}; Python {platform.python_version()}, {libraries}"


PAGE = """# Benchmarks

Written by `{command}` on {date}, commit {commit}, in {minutes} minutes. Measured on {machine}.
Two identical contenders differed by {same} in the same run.

{missed}

{table}

## Label trees

One seed of two sets. [The page on label trees](benchmarks_xmc.md) has all sets and the method.

{label_trees}

## Growth

Time of a fit by the number of rows, features and classes: the exponent is the slope of log time by
log size; *largest step* is the largest ratio of neighbouring times, divided by the ratio that the
exponent predicts.

{growth}

## Method

- All programs in a row of the table run in one process on the same data, with the same warm-up and
  the same number of timed calls, in an order that rotates. The best time of each counts, so other
  work on the machine matters little. The ratios are reliable; the times depend on the machine.
- *ratio* is the peer's best time divided by ours, so values above 1 mean that we are faster.
  `X.T @ X` is a single NumPy product of the same data (on all cores or on one, whichever is
  faster) and the least work that any such fit has to do. Where the goal is given as "× its time",
  the ratio is our time divided by that of the product.
- scikit-learn runs with each of its solvers, both on all cores and with BLAS limited to one
  thread, and only the fastest run counts. Otherwise, on a busy machine, BLAS threads that wait
  for each other would slow it down and make us look better. Repeated fits to few rows always run
  on one thread, which is faster for them.
- *peak* is the maximum memory that the call needs in addition to its input, in a new process.
- A case has a time limit. A program without a result by then is reported as *not done* in the time
  that it had; the others have the best time up to then.
- *difference* is the largest difference between our result and the peer's: posteriors of 500 rows
  after a fit, log posteriors for leave-one-out, the whole result for predictions (0 if all labels
  agree).
- With more features than rows the pooled covariance has no inverse. LDA shrinks it (OAS) and warns.
  scikit-learn's 'svd' instead drops the directions in which no class varies, and with them what
  separates the classes: of 100 rows by 5,000 it predicts 41 of the rows that it was fitted to
  correctly, ours all 100. So times are compared there, but not predictions; with shrinkage both
  predict the same classes.
- The RDA grid is refitted in two ways by `benchmarks/refits.py`: as a scikit-learn estimator in
  `GridSearchCV`, and in a plain NumPy loop without any checks.
- Logistic regression and GLMs run until a common criterion is met: the largest entry of the
  gradient of the mean loss, with columns scaled to unit size, computed in the same way for every
  program from its predictions. A peer gets the largest of its tolerances that reaches 1e-7. The
  gradient reached is in parentheses. There is no penalty unless the task names one.
- Support vector machines: liblinear with the largest tolerance whose objective is within 1e-8 of
  the lowest.
- Where classes are separated, maximum likelihood has no solution: we say so, and scikit-learn's
  solvers, at their default tolerance, return some large coefficients.
- The comparison of models starts from a CSV file. `benchmarks/reports.py` runs the same
  comparison with pandas (its fastest reader, pyarrow) and scikit-learn on the same folds, two
  folds at a time and, up to 200,000 rows, also on one thread. The models are LDA (lsqr), LDA with
  Ledoit–Wolf shrinkage, QDA (eigen), nearest centroid, LDA with equal priors for Fisher's
  midpoint, ridge classifier without a penalty, logistic regression with and without a penalty,
  linear SVM on standardised columns, and averaged perceptron with 100 passes. The measures are
  error, log loss, AUC, Brier score and calibration error. scikit-learn has no RDA. Instead of our
  121 settings it tries 11 shrinkages of LDA and 110 values of QDA's `reg_param`, selected in the
  same way. Laplace naive Bayes and intervals of AUCs have no counterpart and are left out. Both
  libraries fit the last four models to 50,000 rows of each training part, as in a report, and the
  others to all rows. *difference* is the largest difference in error among the models fitted to
  all rows, except RDA: that of nearest centroid (0.0003 at 50,000 rows, where the others were
  within 0.00004).
- Models fitted from moments read the rows once for a fit, and not at all after that. Logistic
  regression reads them once more for each step; its passes include all of them.
"""
