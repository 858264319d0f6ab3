"""Random problems for `report/assets/moments.js`, and how models of Python are asked of it."""

from importlib.resources import files

import numpy as np

from discriminant import LDA, QDA, RDA, LeastSquares, NearestMean, moments

SOURCE = files("discriminant.report").joinpath("assets", "moments.js").read_text(encoding="utf-8")
N_PROBLEMS = 50
KINDS = (
    *("plain", "offset", "collinear", "constant", "separating column", "separating direction"),
    *("constant in a class", "few rows", "weights", "scales"),
)

# What a page would do with a problem: fit each model, score rows, leave each row out.
DRIVER = """
const momentsOf = (p) =>
  new Moments(p.moments ?? Moments.ofRows(p.rows, p.codes, { classes: p.classes, weight: p.weight }));
const list = (values) => Array.from(values);
export function fitted({ problem, options }) {
  const rule = fit(momentsOf(problem), options);
  const rows = numbers(problem.rows);
  return { scores: list(rule.scores(rows)), posterior: list(rule.posterior(rows)), rank: rule.rank,
    predicted: list(rule.predict(rows)), warnings: rule.warnings.map((w) => w.kind) };
}
export function leftOut({ problem, options }) {
  const left = new LeaveOneOut(momentsOf(problem), problem.rows, problem.codes, problem.weight);
  const scores = left.scores(options);
  const K = problem.classes;
  const logs = options.model === "least_squares" ? memberships(scores, K).map(Math.log)
    : logPosterior(scores, K);
  return { logs: list(logs), scores: list(scores), predicted: list(argmax(scores, K)),
    refitted: left.refitted };
}
"""


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
    sizes = per_class + rng.integers(0, 10, K)
    codes = rng.permutation(np.repeat(np.arange(K), sizes))
    mix = np.eye(d) + rng.normal(size=(d, d)) / np.sqrt(d)
    centres = rng.normal(size=(K, d)) * 2
    spread = rng.uniform(0.5, 2.0, (K, d))
    X = (rng.normal(size=(len(codes), d)) * spread[codes]) @ mix + centres[codes]
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


def as_json(X, codes, weight, sums=None):
    """A problem as a page gets it: rows and, if given, the moments that Python has summed."""
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


def models_of(K, rng):
    """Models of Python, with the options of `fit` in moments.js."""
    prior = rng.dirichlet(np.full(K, 5.0))
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
    for name, model, options in cases:
        given = {key: np.asarray(v).tolist() if key == "prior" else v for key, v in options.items()}
        yield model(**options), {"model": name, **given}


def class_moments(X, codes, weight):
    return moments(X, codes, weight)
