"""Reports of small real tables, made as a study makes them."""

import functools
import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer, load_iris

import discriminant as dd
from discriminant.report.fact_types import facts
from discriminant.report.sections.calibration import calibration_section
from discriminant.report.sections.columns import columns_section
from discriminant.report.sections.comparison import comparison_section
from discriminant.report.sections.data import read_section
from discriminant.report.sections.decision import decision_section
from discriminant.report.sections.feature_importance import ranking_section
from discriminant.report.sections.features import coefficients_from, findings_of, matters_section
from discriminant.report.sections.one_row import one_row_section
from discriminant.report.sections.pairs import pairs_section
from discriminant.report.sections.row_sample import RowSample
from discriminant.report.sections.rows import rows_section
from discriminant.report.sections.space import space_section
from discriminant.report.sections.usage import use_section
from discriminant.report.verdict import verdict_of
from discriminant.table.memory import as_table


def report_of(X, y, *, names=None, labels=None, title="A report", source="rows.csv", **options):
    """All sections, from LDA and QDA; `names` and `labels` rename columns and classes."""
    X = np.asarray(X, dtype=float)
    names = [f"x{j}" for j in range(X.shape[1])] if names is None else list(names)
    codes = np.unique(y, return_inverse=True)[1]
    labels = np.unique(y) if labels is None else np.array(labels, dtype=object)
    frame = _frame(X, names)
    y = labels[codes]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table, moments = as_table(frame, y), dd.moments(frame, y)
        grid = dd.rda_grid(frame, y, pooling=[0, 0.5, 1], shrinkage=[0, 0.5])
        held = {
            "lda": dd.cross_validate(dd.LDA(), frame, y, grid.fold),
            "qda": dd.cross_validate(dd.QDA(), frame, y, grid.fold),
        }
        comparison = comparison_section(held, seconds={"lda": 0.01, "qda": 0.02}, surface=grid)
        chosen = next(m["name"] for m in comparison["models"] if m["chosen"])
        taken = held[chosen]
        fitted = {"lda": dd.LDA, "qda": dd.QDA}[chosen]().fit(np.asarray(X), codes)
        named = {"lda": dd.LDA, "qda": dd.QDA}[chosen]().fit(frame, y)
        trains = [dd.moments(frame[grid.fold != f], y[grid.fold != f]) for f in range(10)]
        space = space_section(
            table, moments, comparison=comparison, held=taken, trains=trains, predict=fitted.predict
        )
        decision = decision_section(
            taken.labels, taken.codes, taken.log_posterior, weight=taken.weight, **options
        )
        matters = matters_section(
            coefficients=coefficients_from(moments),
            stepwise=dd.stepwise(moments),
            findings=findings_of(table, moments, held=taken),
        )
        read = read_section(table, source=source, target="kind", said=["It is a table."])
        sample = RowSample.of(table, most=20_000)
        report = facts(
            title,
            made={
                "version": "0",
                "date": "2026-01-01",
                "seed": 0,
                "command": "discriminant report",
            },
            read=read,
            comparison=comparison,
            pairs=pairs_section(sample, moments, decision, points=RowSample.of(table, most=2000)),
            space=space,
            calibration=calibration_section(taken, positive=decision["positive"]),
            decision=decision,
            matters=matters,
            ranking=ranking_section(
                moments, matters=matters, probabilities=fitted.predict_proba, model=chosen
            ),
            rows=rows_section(table, taken, moments),
            columns=columns_section(
                sample, moments, read["columns"], points=RowSample.of(table, most=2000)
            ),
            one_row=one_row_section(
                named,
                table,
                sample,
                moments,
                rows=rows_section(table, taken, moments),
                title=chosen,
            ),
            use=use_section(file="rows.model", sql="SELECT 1", command="discriminant predict"),
        )
        report["verdict"] = verdict_of(report)
        return report


def _frame(X, names):
    import pandas as pd

    return pd.DataFrame(X, columns=names)


@functools.cache
def iris():
    found = load_iris()
    return report_of(
        found.data, found.target_names[found.target], names=found.feature_names, title="Irises"
    )


@functools.cache
def cancer():
    found = load_breast_cancer()
    kinds = np.array(["malignant", "benign"])[found.target]
    return report_of(found.data[:, :6], kinds, names=found.feature_names[:6], title="Tumours")


@functools.cache
def hostile():
    found = load_iris()
    return report_of(
        found.data,
        found.target,
        names=CORPUS[:4],
        labels=sorted(CORPUS[4:7]),
        title=CORPUS[0],
        source=CORPUS[1],
    )


TURNED = "\u202egnp.exe"
CORPUS = [
    "<script>document.title='owned'</script>",
    '"><img src=x onerror="document.title=\'owned\'">',
    "{{7*7}}",
    "</script><script>document.title='owned'</script>",
    TURNED,
    "</style><svg onload=document.title='owned'>",
    "<!--",
    "]]>",
    "--><b>",
    "{% for x in y %}",
    "${7*7}",
    "&lt;b&gt;",
    "' onmouseover='document.title=1",
    "javascript:document.title='owned'",
    "</title><h1>x",
    "\u2066a\u2069\u2069b",
    "\x00\x1b[31m",
    "\ud800",
    "a\nb\r\nc\u2028d",
    "x" * 5000,
    "`|*_[a](http://example.org)",
    "=HYPERLINK(1)",
    "日本語 עברית العربية 👩‍👩‍👧",
    " ",
    "",
]
