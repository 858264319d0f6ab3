"""Record the numbers that the package computes on fixed data, through public names only.

    PYTHONPATH=src python tests/fence/record.py numbers.npz

`compare.py` runs this script on two versions of the package and compares the files bit for bit, so
that a restructuring can be shown to change no number. Sentences are left out: messages, titles and
notes may change. A case that raises is recorded by the name of its error class.
"""

from __future__ import annotations

import ast
import numbers
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

import discriminant as dd

# Constructor calls; the contract tests hold the full list of configurations.
CLASSIFIERS = """
LDA()
LDA(shrinkage="auto")
LDA(shrinkage=0.3, target="identity", denominator="ml")
LDA(shrinkage="oas", target="scaled_identity", prior=[0.2, 0.3, 0.5])
QDA()
QDA(shrinkage=0.5)
QDA(shrinkage="auto", denominator="ml")
RDA()
RDA(pooling=0.3, shrinkage=0.5)
RDA(pooling="cv", shrinkage="cv", folds=3)
RDA.from_klar(0.1, 0.5)
RDA.from_friedman(0.5, 0.1)
RDA.from_sklearn(0.1)
NearestMean()
Fisher()
Fisher(shrinkage=0.3, threshold="midpoint")
Fisher(criterion="trace_ratio")
Fisher(method="mean_difference")
LeastSquares()
LeastSquares(coding="sign")
LeastSquares(degree=2, ridge=0.1)
LeastSquares(precision="high")
LaplaceNB()
Logistic()
Logistic(ridge=0.1, standardize=False)
Logistic(ridge=0.01, intercept=False)
Logistic(bias_reduction="jeffreys")
Logistic(ridge=0.1, solver="lbfgs")
Logistic(ridge=0.01, l1_ratio=0.5)
Logistic(ridge=0.01, l1_ratio=1.0, solver="lbfgs")
Perceptron()
Perceptron(keep="average", shuffle=True, random_state=0)
Perceptron(update="batch", standardize=False)
SVM()
SVM(loss="hinge", standardize=True, class_weight="balanced")
SVM(solver="dual", tolerance=1e-12, max_steps=100_000)
LabelTree(trees=1, threads=1)
LabelTree(trees=2, arity=2, leaf=2, loss="logistic", precision="float64", threads=1)
Decision(LDA(), cost=[[0, 1, 5], [1, 0, 1], [1, 1, 0]])
Decision(Logistic(ridge=0.1), reject=0.1)
Fusion([("first", LDA(), slice(0, 1)), ("others", Logistic(ridge=0.1), slice(1, None))])
OneVsRest(LDA())
OneVsRest(Logistic(ridge=0.1))
OneVsOne(LDA())
OneVsOne(QDA(shrinkage=0.1))
OutputCodes(LDA())
OutputCodes(LDA(), code="sparse")
OutputCodes(LDA(), code="exhaustive", decoding="hamming")
OutputCodes(LDA(), code="designed", decoding="euclidean")
Encoded(LDA())
Encoded(QDA(shrinkage=0.1), missing="mean")
Reweighted(LDA())
Reweighted(Logistic(ridge=0.1), "effective")
Resampled(LDA())
Resampled(LDA(), "smote")
Resampled(Logistic(ridge=0.1), "under")
EasyEnsemble(LDA())
EasyEnsemble(Logistic(ridge=0.1), 3)
""".strip().splitlines()
REGRESSORS = """
LinearRegression()
LinearRegression(ridge=1.0, fit_intercept=False)
LinearRegression(precision="high")
GLM()
GLM(ridge=0.1, intercept=False)
GLM("poisson")
GLM("gamma", "log")
GLM("binomial")
LogLinear()
LogLinear(predicted="smearing")
""".strip().splitlines()
BASES = """
Basis()
Basis(degree=3, interactions="only", origin="zero")
Basis(degree=1, centres=3)
""".strip().splitlines()
FROM_MOMENTS = ("LDA", "QDA", "RDA", "NearestMean", "Fisher", "LeastSquares", "LaplaceNB")
METHODS = (
    "predict",
    "predict_log_proba",
    "predict_proba",
    "decision_function",
    "transform",
    "decide",
    "log_density",
)
CLOCKS = re.compile(r"second|elapsed|duration|when|date|version|bytes|command|digest|python")

Recorder = dict[str, np.ndarray]


def main(path: str) -> None:
    """Run every case and write its numbers."""
    warnings.simplefilter("ignore")
    found: Recorder = {}
    for name, case in cases():
        try:
            flatten(case(), name, found)
        except Exception as error:  # the kind of refusal is part of the behaviour
            found[f"{name}/raises"] = np.array(type(error).__name__)
    np.savez_compressed(path, **{key.replace("/", "|"): value for key, value in found.items()})
    print(f"{len(found)} values in {path}")


def cases() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield the name of each case and the function that computes it."""
    X, y = three_classes()
    for call in CLASSIFIERS:
        yield f"fit {call}", lambda call=call: fitted(call, X, y)
        yield f"fit weighted {call}", lambda call=call: fitted(call, X, y, weights(len(y)))
        if call.startswith(FROM_MOMENTS) and "cv" not in call:
            yield f"leave_one_out {call}", lambda call=call: dd.leave_one_out(model(call), X, y)
        if "high" not in call:
            yield f"cross_validate {call}", lambda call=call: held_out(call, X, y)
        for target in ("sql", "python", "onnx"):
            yield f"export {target} {call}", lambda c=call, t=target: exported(c, X, y, t)
    response = X[:, 0] + np.arange(len(X)) % 3
    for call in REGRESSORS:
        target = (y == 1).astype(float) if "binomial" in call else response
        yield f"fit {call}", lambda call=call, target=target: fitted(call, X[:, 1:], target)
    for call in BASES:
        yield f"fit {call}", lambda call=call: fitted(call, X, y)
    yield from assessments(X, y)
    yield from two_class_cases()
    yield from table_cases()
    yield from sparse_cases()


def assessments(X: Any, y: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield resampling, selection and inference."""
    yield "rda_grid", lambda: dd.rda_grid(X, y, 5)
    yield "rda_grid groups", lambda: dd.rda_grid(X, y, groups=np.arange(len(y)) % 7)
    yield "stepwise", lambda: dd.stepwise(X, y)
    yield "stepwise backward", lambda: dd.stepwise(X, y, method="backward")
    yield "manova", lambda: dd.manova(X, y)
    yield "box_m", lambda: dd.box_m(X, y)
    yield "hotelling", lambda: dd.hotelling(X[y > 0], y[y > 0])
    yield "moments", lambda: dd.moments(X, y)
    for direction in ("forward", "backward", "both"):
        for call in ("LDA()", "QDA()", "Logistic(ridge=0.1)"):
            yield (
                f"select_features {direction} {call}",
                lambda d=direction, c=call: dd.select_features(model(c), X, y, 5, direction=d),
            )
    yield (
        "compare_models",
        lambda: dd.compare_models({c: held_out(c, X, y) for c in ("LDA()", "QDA()")}),
    )
    yield "evaluate", lambda: dd.evaluate(dd.LDA().fit(X[::2], y[::2]), X[1::2], y[1::2])


def two_class_cases() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield what is defined for two classes."""
    X, y = load_breast_cancer(return_X_y=True)
    X, score = X[:, :8], X[:, 2]
    calls = (
        "LDA()",
        "QDA()",
        "Logistic()",
        "Logistic('probit')",
        "SVM()",
        "LeastSquares()",
        "GLM('binomial')",
    )
    for call in calls:
        yield f"two classes {call}", lambda call=call: fitted(call, X, y)
    yield "auc", lambda: dd.auc(y, -score)
    yield "compare_auc", lambda: dd.compare_auc(y, -score, -X[:, 1])
    yield "roc", lambda: dd.roc(y, -score)
    yield "precision_recall", lambda: dd.precision_recall(y, -score)
    yield "average_precision", lambda: dd.average_precision(y, -score)
    yield "ranking", lambda: dd.ranking(y, -score)
    rare = np.flatnonzero((y == 1) | (np.arange(len(y)) % 5 == 0))
    yield "compare_imbalance", lambda: dd.compare_imbalance(dd.LDA(), X[rare], y[rare], 5)
    yield "summary", lambda: dd.Logistic().fit(X, y).summary()


def table_cases() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield tables with categories: a study, partitioned files, a database."""
    import pandas as pd

    X, y = three_classes()
    names = [f"x{i}" for i in range(X.shape[1])]
    table = pd.DataFrame(X, columns=names).assign(
        colour=np.array(["red", "green", "blue"])[(np.arange(len(y)) * 7) % 3],
        kind=np.array(["a", "b", "c"])[y],
    )
    folder = Path(tempfile.mkdtemp())
    files = []
    for part in range(3):
        files.append(folder / f"part{part}.csv")
        table.iloc[part::3].to_csv(files[-1], index=False)
    yield "study facts", lambda: study_facts(table, folder)
    yield "study compared", lambda: dd.study(table, target="kind", folds=5).compare()

    def partitioned() -> Any:
        return dd.rows([str(file) for file in files], target="kind", engine="files")

    for call in (
        "LDA()",
        "QDA()",
        "RDA()",
        "Logistic(ridge=0.1)",
        "LeastSquares()",
        "NearestMean()",
    ):
        yield (
            f"partitioned {call}",
            lambda call=call: fitted_state(model(call).fit(partitioned())),
        )
        yield (
            f"partitioned cross_validate {call}",
            lambda call=call: dd.cross_validate(model(call), partitioned(), folds=3),
        )
    yield "partitioned rda_grid", lambda: dd.rda_grid(partitioned(), folds=3)

    def database() -> Any:
        import duckdb

        connection = duckdb.connect()
        connection.register("t", table)
        return connection

    for push in (False, True):
        yield (
            f"database pushdown={push}",
            lambda push=push: fitted_state(
                dd.LDA().fit(dd.rows(dd.sql(database(), "t", pushdown=push), target="kind"))
            ),
        )


def sparse_cases() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield models of sparse rows."""
    rng = np.random.default_rng(5)
    X = sp.random(200, 40, density=0.1, random_state=5, format="csr")
    y = (np.asarray(X.sum(axis=1)).ravel() + 0.2 * rng.normal(size=200) > 2).astype(int)
    for call in ("LDA()", "Logistic(ridge=0.1)", "SVM()", "Perceptron()", "NearestMean()"):
        yield f"sparse {call}", lambda call=call: fitted(call, X, y)
    labels = sp.csr_matrix((rng.random((200, 30)) < 0.1).astype(float))
    yield (
        "label tree of many labels",
        lambda: model("LabelTree(trees=2, leaf=5, threads=1)").fit(X, labels).predict_topk(X, k=3),
    )


# --- data ----------------------------------------------------------------------------------------


def three_classes() -> tuple[np.ndarray, np.ndarray]:
    """Return rows of three overlapping classes: two columns of wine, two of iris."""
    wine, iris = load_wine(), load_iris()
    X = np.column_stack([wine.data[:150, [0, 9]], iris.data[:, 1:3]])
    return X, iris.target


def weights(n: int) -> np.ndarray:
    """Return positive case weights."""
    return 1.0 + np.arange(n) % 4


def model(call: str) -> Any:
    """Return a new estimator from its constructor call."""
    return eval(call, {name: getattr(dd, name) for name in dd.__all__})


# --- results -------------------------------------------------------------------------------------


def fitted(call: str, X: Any, y: Any, weight: Any = None) -> dict[str, Any]:
    """Fit a model and return its fitted attributes and predictions."""
    one = model(call)
    one.fit(X, y) if weight is None else one.fit(X, y, sample_weight=weight)
    results: dict[str, Any] = {"state": fitted_state(one)}
    for method in METHODS:
        if hasattr(one, method):
            results[method] = attempt(getattr(one, method), X)
    if hasattr(one, "score"):
        results["score"] = attempt(one.score, X, y)
    return results


def attempt(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result, or the name of the error."""
    try:
        return function(*arguments)
    except Exception as error:
        return {"raises": np.array(type(error).__name__)}


def fitted_state(one: Any) -> dict[str, Any]:
    """Return the public fitted attributes of an estimator."""
    names = {name for name in dir(one) if name.endswith("_") and not name.startswith("_")}
    return {name: attempt(getattr, one, name) for name in sorted(names)}


def held_out(call: str, X: Any, y: Any) -> Any:
    """Return five-fold held-out predictions."""
    return dd.cross_validate(model(call), X, y, 5)


def exported(call: str, X: Any, y: Any, to: str) -> Any:
    """Return the numbers of an exported formula, in order, and what it computes."""
    one = model(call).fit(X, y)
    coupled = call.startswith(("OneVs", "OutputCodes"))  # their probabilities have no formula
    outputs = {"outputs": ["score", "label"]} if coupled else {}
    if to == "sql":
        import duckdb
        import pandas as pd

        query = dd.export(one, "sql", table="t", dialect="duckdb", **outputs)
        connection = duckdb.connect()
        connection.register("t", pd.DataFrame(X, columns=names_of(one, X)))
        results = connection.sql(query).df()
        return {"literals": literals(query), "run": {c: results[c].to_numpy() for c in results}}
    if to == "python":
        text = dd.export(one, "python", **outputs)
        space: dict[str, Any] = {}
        exec(compile(ast.parse(text), "export", "exec"), space)
        names = names_of(one, X)
        run = [space["answer"](dict(zip(names, row, strict=True))) for row in X[::9].tolist()]
        return {"literals": literals(text), "run": run}
    import onnx
    from onnx import numpy_helper

    graph = onnx.load_from_string(dd.export(one, "onnx", **outputs)).graph
    return [numpy_helper.to_array(each) for each in graph.initializer]


def names_of(one: Any, X: Any) -> list[str]:
    """Return the column names that the exported query reads."""
    names = getattr(one, "feature_names_in_", None)
    return [f"x{i}" for i in range(X.shape[1])] if names is None else list(names)


def literals(text: str) -> np.ndarray:
    """Return every number with a decimal point or an exponent in a text, in order."""
    pattern = r"(?<![\w.])-?\d+(?:\.\d+(?:e[-+]?\d+)?|e[-+]?\d+)"
    return np.array([float(number) for number in re.findall(pattern, text, re.IGNORECASE)])


def study_facts(table: Any, folder: Path) -> Any:
    """Return the facts behind a report."""
    return dd.study(table, target="kind", folds=5).report(folder / "page.html")


# --- flattening ----------------------------------------------------------------------------------


def flatten(value: Any, path: str, found: Recorder, depth: int = 0) -> None:
    """Write the numbers and label arrays inside a value under the path that leads to them."""
    if value is None or isinstance(value, str) or CLOCKS.search(path.rpartition("/")[2]):
        return
    if isinstance(value, (numbers.Number, np.generic)):
        found[path] = np.asarray(value)
    elif sp.issparse(value):
        for name in ("data", "indices", "indptr"):
            found[f"{path}/{name}"] = np.asarray(getattr(value.tocsr(), name))
    elif isinstance(value, np.ndarray):
        record_array(value, path, found, depth)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            flatten(item, f"{path}/{key}", found, depth)
    elif isinstance(value, (list, tuple)):
        if value and all(isinstance(item, (numbers.Number, np.generic)) for item in value):
            found[path] = np.array(value)
            return
        if value and all(isinstance(item, Mapping) for item in value):
            value = {key: [item.get(key) for item in value] for key in value[0]}
            flatten(value, path, found, depth)
            return
        for place, item in enumerate(value):
            flatten(item, f"{path}/{place}", found, depth)
    elif hasattr(value, "to_dict") and not isinstance(value, type):
        flatten(attempt(value.to_dict), path, found, depth)
    elif type(value).__module__.startswith("discriminant") and depth < 3:
        for name in sorted(dir(value)):
            if not name.startswith("_"):
                item = attempt(getattr, value, name)
                if not callable(item):
                    flatten(item, f"{path}/{name}", found, depth + 1)


def record_array(value: np.ndarray, path: str, found: Recorder, depth: int) -> None:
    """Write a numeric array as it is and an array of labels as text."""
    if value.dtype.kind in "biufc":
        found[path] = value
    elif value.dtype.kind in "UST":
        found[path] = value.astype(str)
    elif all(isinstance(item, (str, numbers.Number, np.generic)) for item in value.ravel()):
        found[path] = np.array([str(item) for item in value.ravel()])
    else:
        flatten(list(value.ravel()), path, found, depth)


if __name__ == "__main__":
    main(sys.argv[1])
