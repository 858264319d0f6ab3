"""Random problems for `report/assets/moments.js`, and models with their options."""

import json
from importlib.resources import files

import numpy as np

from discriminant import LDA, QDA, RDA, LeastSquares, NearestMean
from discriminant.models.gaussian.covariance import pooled_covariance, shrink
from discriminant.models.gaussian.family import family_covariances, shrinkage_amount
from tests.shared.javascript import SITE

SOURCE = files("discriminant.report").joinpath("assets", "moments.js").read_text(encoding="utf-8")
KINDS = (
    *("plain", "offset", "collinear", "constant", "separating column", "separating direction"),
    *("constant in a class", "few rows", "weights", "scales"),
)

# Functions that a test calls in the page; the argument and the result travel as JSON.
DRIVER = """
import * as m from "MODULE";
const momentsOf = (p) => new m.Moments(
  p.moments ?? m.Moments.ofRows(p.rows, p.codes, { classes: p.classes, weight: p.weight }));
const attempt = (compute) => {
  try { return compute(); } catch (error) { return { error: error.message, kind: error.kind }; }
};
export const fits = ({ problems, models, rows }) => models.map((options, i) => attempt(() => {
  const rule = m.fit(momentsOf(problems[i % problems.length]), options);
  const table = Float64Array.from(rows);
  return { scores: rule.scores(table), posterior: rule.posterior(table), rank: rule.rank,
    predicted: rule.predict(table), warnings: rule.warnings };
}));
export const leftOut = ({ problem, models }) => {
  const left = new m.LeaveOneOut(momentsOf(problem), problem.rows, problem.codes, problem.weight);
  return models.map((options) => attempt(() => {
    const scores = left.scores(options), K = problem.classes;
    return { scores, logs: m.logPosterior(scores, K), predicted: m.argmax(scores, K),
      refitted: left.refitted };
  }));
};
export const run = ({ program, ...given }) => attempt(() => programs[program](given));
"""


class Page:
    """The module in a browser page."""

    def __init__(self, engine, programs=""):
        module = engine.add(SOURCE)
        self.page = engine.page
        text = DRIVER.replace("MODULE", f"{SITE}{module}") + f"const programs = {{{programs}}};"
        self.path = engine.add(text)

    def call(self, name, **given):
        """Result of a function of the driver; numbers that are not finite come back as floats."""
        function = """async ([path, name, text]) => {
          const module = await import(path);
          const plain = (key, value) => ArrayBuffer.isView(value) ? Array.from(value)
            : typeof value === "number" && !Number.isFinite(value) ? { number: String(value) }
            : value;
          return JSON.stringify(module[name](JSON.parse(text)), plain);
        }"""
        answer = self.page.evaluate(function, [self.path, name, json.dumps(given)])
        return json.loads(answer, object_hook=_number)

    def run(self, program, **given):
        """Result of one of the programs."""
        return self.call("run", program=program, **given)


def _number(value):
    if set(value) == {"number"}:
        return float(value["number"].replace("Infinity", "inf"))
    return value


def make_problem(seed):
    """Rows, codes and weights: classes K from 2 to 10, features d from 1 to 50."""
    rng = np.random.default_rng([21, seed])
    kind = KINDS[seed % len(KINDS)]
    K, d = int(rng.integers(2, 11)), int(rng.integers(1, 51))
    if kind in ("collinear", "separating direction"):
        d = max(d, 3)
    per_class = d + 3 + int(rng.integers(0, 40))
    if kind == "few rows":
        d = max(d, 4)
        per_class = max(d // 2, 3)
    codes = rng.permutation(np.repeat(np.arange(K), per_class + rng.integers(0, 10, K)))
    mix = np.eye(d) + rng.normal(size=(d, d)) / np.sqrt(d)
    centres = rng.normal(size=(K, d)) * 2
    scale = rng.uniform(0.5, 2.0, (K, d))
    X = (rng.normal(size=(len(codes), d)) * scale[codes]) @ mix + centres[codes]
    j = int(rng.integers(d))
    if kind == "collinear":
        X[:, -1] = X[:, 0] - 2 * X[:, 1]
    if kind == "constant":
        X[:, j] = 0.1
    if kind == "separating column":
        X[:, j] = centres[codes, j]
    if kind == "separating direction":
        X[:, -1] = X[:, 0] + X[:, 1] + centres[codes, 2]
    if kind == "constant in a class":
        X[codes == 0, j] = 1.5
    if kind == "scales" or rng.random() < 0.3:
        X *= 10.0 ** rng.uniform(-6, 6, d)
    if kind == "offset":
        X += 1e8
    weight = None
    if kind == "weights":
        weight = rng.integers(1, 4, len(X)) if rng.random() < 0.5 else rng.uniform(0.5, 2, len(X))
        weight = weight.astype(float)
    return kind, X, codes, weight


def smaller(X, codes, weight, *, rows=90, features=8):
    """The last features and, for each class, the first rows."""
    K = int(codes.max()) + 1
    each = max(rows // K, 5)
    chosen = np.sort(np.concatenate([np.flatnonzero(codes == k)[:each] for k in range(K)]))
    part = np.ascontiguousarray(X[chosen, -features:])
    return part, codes[chosen], None if weight is None else weight[chosen]


def as_json(X, codes, weight=None, sums=None):
    """A problem as a page gets it: rows, or the moments that Python has summed."""
    return {
        "rows": X.ravel().tolist(),
        "codes": codes.tolist(),
        "weight": None if weight is None else weight.tolist(),
        "classes": int(codes.max()) + 1,
        "moments": None if sums is None else moments_json(sums),
    }


def moments_json(sums):
    """The fields of class moments, as the constructor of `Moments` takes them."""
    fields = {"origin": sums.anchor.origin, "unit": sums.anchor.unit}
    names = ("rows", "weight", "weight2", "mean", "scatter", "lost", "labels")
    fields |= {name: getattr(sums, name) for name in names}
    return {name: np.asarray(value).tolist() for name, value in fields.items()}


def models_of(K, seed):
    """Models of Python, each with the options of `fit` in moments.js."""
    prior = np.random.default_rng(seed).dirichlet(np.full(K, 5.0)).tolist()
    cases = [
        ("lda", LDA, {}),
        ("lda", LDA, {"prior": prior, "denominator": "ml"}),
        ("lda", LDA, {"shrinkage": 0.3}),
        ("lda", LDA, {"shrinkage": 1.0}),
        ("lda", LDA, {"shrinkage": "oas"}),
        ("lda", LDA, {"shrinkage": 0.2, "target": "scaled_identity", "denominator": "reliability"}),
        ("lda", LDA, {"predictive": "student"}),
        ("lda", LDA, {"predictive": "student", "shrinkage": 0.4, "denominator": "ml"}),
        ("qda", QDA, {}),
        ("qda", QDA, {"shrinkage": 0.25, "prior": prior}),
        ("qda", QDA, {"shrinkage": "oas", "denominator": "ml"}),
        ("qda", QDA, {"predictive": "student"}),
        ("rda", RDA, {"pooling": 0.3}),
        ("rda", RDA, {"pooling": 0.6, "shrinkage": 0.2}),
        ("rda", RDA, {"pooling": 0.5, "shrinkage": 0.1, "shrink": "mixed", "target": "identity"}),
        ("rda", RDA, {"pooling": 0.4, "weighting": "friedman", "shrinkage": 0.1}),
        ("rda", RDA, {"pooling": 0.5, "predictive": "student", "shrinkage": 0.1}),
        ("nearest_mean", NearestMean, {}),
        ("least_squares", LeastSquares, {}),
        ("least_squares", LeastSquares, {"ridge": 0.5}),
    ]
    return [(model(**options), {"model": name, **options}) for name, model, options in cases]


def condition(model, sums, kind):
    """Largest condition number of the standardised covariances, without directions of variance 0.

    Along a direction that varies only between classes, the variance is set to 1e-12 of that of the
    class means, which multiplies rounding errors of distances by its root, 1e6.
    """
    if isinstance(model, LeastSquares):
        matrices = [sums.total() + model.ridge * np.eye(len(sums.features))]
    elif model.family.linear:
        pooled = pooled_covariance(sums, model.family.denominator)
        amount, target = shrinkage_amount(sums, model.family), model.family.target
        matrices = [shrink(pooled, amount, target, sums.anchor.unit)]
    else:
        matrices = family_covariances(sums, model.family)
    largest = 1e6 if kind == "separating direction" else 1.0
    for matrix in matrices:
        variance = np.diagonal(matrix)
        varying = variance > 0
        sd = np.sqrt(variance[varying])
        values = np.linalg.eigvalsh(matrix[np.ix_(varying, varying)] / sd[:, None] / sd)
        values = values[values > 8 * len(values) * np.finfo(float).eps * values.max(initial=0.0)]
        largest = max(largest, values.max(initial=1.0) / values.min(initial=1.0))
    return largest
