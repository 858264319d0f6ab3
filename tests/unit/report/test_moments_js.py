"""`report/assets/moments.js` in Chromium against Python, scikit-learn and brute force.

The largest difference of scores, relative to the largest score of the row, may be 1e-12, times the
condition number of the covariance where that exceeds 1e3 (`tests.shared.moments_js.condition`).
"""

import gzip
import warnings

import numpy as np
import pytest
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestCentroid

from discriminant import (
    LDA,
    Decision,
    LeastSquares,
    Logistic,
    leave_one_out,
    moments,
    smallest_change,
)
from discriminant.errors import DiscriminantError
from tests.shared.moments_js import (
    SOURCE,
    Page,
    as_json,
    condition,
    make_problem,
    models_of,
    moments_json,
    smaller,
)

PROGRAMS = """
  update: ({ problem, base, other, rows, codes, weight, shift, d }) => {
    const sums = momentsOf(base), row = (i) => rows.slice(i * d, i * d + d);
    const forward = (i) => sums.add(row(i), codes[i], weight[i]);
    codes.forEach((_, i) => forward(i));
    sums.remove(row(0), codes[0], weight[0]);
    sums.move(row(1), codes[1], row(0), codes[2], weight[1]);
    sums.moveClass(0, shift);
    const both = sums.clone().merge(new m.Moments(other));
    const back = both.clone().subtract(new m.Moments(other));
    const part = both.select([2, 0]).group([0, 1, 0]);
    return { sums, both, back, part, left: both.group([1, -1, 0]) };
  },
  remove: ({ sums, row, code, weight }) => {
    const before = new m.Moments(sums), after = before.clone();
    try { after.remove(row, code, weight); } catch (error) {
      const same = (name) => before[name].every((value, i) => value === after[name][i]);
      return { kind: error.kind, unchanged: ["rows", "weight", "mean", "scatter"].every(same) };
    }
    return { kind: null };
  },
  directions: ({ sums, rows, options }) => {
    const { project, ...rest } = m.canonicalDirections(new m.Moments(sums), options);
    return { ...rest, projected_rows: project(Float64Array.from(rows)) };
  },
  change: ({ sums, row, model, options }) =>
    m.smallestChange(m.fit(new m.Moments(sums), model), row, options),
  logistic: ({ rows, codes, options }) => {
    const { rule, ...rest } = m.logistic(rows, codes, options);
    return { ...rest, coef: rule.coef, warnings: rule.warnings, scores: rule.scores(rows) };
  },
  decide: ({ logs, K, options }) => m.decide(logs, K, options),
  plane: ({ sums, point, axes, nodes, models }) => models.map((options) => {
    const rule = m.fit(new m.Moments(sums), options), d = point.length;
    const rows = Float64Array.from({ length: (nodes.length / 2) * d }, (_, p) => {
      const i = Math.floor(p / d), j = p % d;
      return point[j] + nodes[2 * i] * axes[0][j] + nodes[2 * i + 1] * axes[1][j];
    });
    return [rule.onPlane(point, axes).scores(nodes), rule.scores(rows)];
  }),
  algebra: ({ a, b, d }) => {
    const l = m.cholesky(a, d), x = m.solveUpper(l, m.solveLower(l, b, d), d);
    const indefinite = Float64Array.from(a, (value, i) => value - (i % (d + 1) === 0 ? 1 : 0));
    const wide = Float64Array.from(a.slice(0, 3 * d)), negative = a.map((value) => -value);
    return { l, x, inverse: m.invertLower(l, d), eigen: m.symmetricEigen(indefinite, d),
      svd: m.svd(wide, 3, d), none: m.cholesky(negative, d) };
  },
"""
WARNINGS = {
    "ScarceRowsWarning": "scarce_rows",
    "ShrinkageChosenWarning": "shrinkage_chosen",
    "CollinearWarning": "collinear",
    "ConstantColumnWarning": "constant_column",
    "ConstantInClassWarning": "constant_in_class",
    "SeparatingColumnWarning": "separating_column",
}


@pytest.fixture(scope="module")
def page(chromium):
    return Page(chromium, PROGRAMS)


def fit_quietly(model, sums):
    """The model, and the kinds of its warnings, as in JavaScript."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit_moments(sums)
        model.rule_  # noqa: B018, some models are fitted when the rule is first used
    return model, {WARNINGS[type(each.message).__name__] for each in caught}


def scores_of(model, X):
    return model.rule_.fitted(X) if isinstance(model, LeastSquares) else model.rule_.scores(X)


def rank_of(model, sums):
    if isinstance(model, LeastSquares):
        return model._problem(sums).solver.rank
    if model.family.linear:
        return model._shared_metric().rank
    return [metric.rank for metric in model.rule_.metrics]


def assert_labels(predicted, expected, slack):
    """Predictions have the largest expected score, up to the slack (n,)."""
    best, chosen = expected.max(axis=1), np.take_along_axis(expected, predicted[:, None], 1)[:, 0]
    tie = best - chosen <= slack
    assert (tie | (predicted == expected.argmax(axis=1))).all()


def relative_error(values, expected, *, centred=False):
    """Largest difference relative to the largest score of its row.

    Scores of linear Gaussian rules have a common term that depends on the last digit of the centre,
    which `centred` removes.
    """
    difference = values - expected
    if centred:
        difference = difference - difference.mean(axis=1, keepdims=True)
    return (np.abs(difference).max(axis=1) / np.abs(expected).max(axis=1)).max()


def test_module_is_small_and_has_no_dependency():
    size = len(gzip.compress(SOURCE.encode(), 9))
    assert size <= 25_000
    assert "import " not in SOURCE.replace("important", "")


@pytest.mark.parametrize("seed", range(50))
def test_fits_equal_those_of_python(page, seed):
    kind, X, codes, weight = make_problem(seed)
    K, sums = int(codes.max()) + 1, moments(X, codes, weight)
    rows = X[np.random.default_rng(seed).permutation(len(X))[:40]]
    cases = models_of(K, seed)
    # Every second model is fitted to moments that JavaScript has summed.
    problems = [as_json(X[:0], codes, None, sums), as_json(X, codes, weight)][:: 1 - 2 * (seed % 2)]
    answers = page.call(
        "fits",
        problems=problems,
        models=[options for _, options in cases],
        rows=rows.ravel().tolist(),
    )
    for (model, options), answer in zip(cases, answers, strict=True):
        case = f"{kind}: {options}"
        try:
            model, kinds = fit_quietly(model, sums)
        except DiscriminantError:
            assert "error" in answer, case
            continue
        assert "error" not in answer, f"{case}: {answer}"
        assert answer["rank"] == rank_of(model, sums), case
        assert {warning["kind"] for warning in answer["warnings"]} == kinds, case
        expected, number = scores_of(model, rows), condition(model, sums, kind)
        tolerance = 1e-12 * (number if number > 1e3 else 1.0)
        scores = np.array(answer["scores"]).reshape(-1, K)
        linear = not isinstance(model, LeastSquares) and model.family.linear
        assert relative_error(scores, expected, centred=linear) <= tolerance, case
        slack = 2 * tolerance * np.abs(expected).max(axis=1)
        assert_labels(np.array(answer["predicted"]), expected, slack)
        posteriors = np.array(answer["posterior"]).reshape(-1, K)
        limit = tolerance * (1.0 + 4.0 * np.abs(expected).max())
        np.testing.assert_allclose(posteriors, model.predict_proba(rows), atol=limit, rtol=0)


def without_extreme_rows(X, codes, weight):
    """Class moments, each without the row that is farthest from the mean of its class."""
    weight = np.ones(len(X)) if weight is None else weight
    for k in np.unique(codes):
        own = np.flatnonzero(codes == k)
        rows = X[own] - X[own].mean(axis=0)
        size = np.abs(rows).max(axis=0)
        left, values, _ = np.linalg.svd(rows / np.where(size > 0, size, 1.0), full_matrices=False)
        leverage = (left[:, values > 1e-9 * values[0]] ** 2).sum(axis=1)
        others = np.arange(len(X)) != own[leverage.argmax()]
        yield moments(X[others], codes[others], weight[others])


LEFT_OUT = [*range(10), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(10, 30))]


@pytest.mark.parametrize("seed", LEFT_OUT)
def test_leave_one_out_equals_that_of_python(page, seed):
    kind, *problem = make_problem(seed)
    X, codes, weight = smaller(*problem)
    K, sums = int(codes.max()) + 1, moments(X, codes, weight)
    cases = models_of(K, 1)
    parts = [sums, *without_extreme_rows(X, codes, weight)]
    answers = page.call(
        "leftOut",
        problem=as_json(X, codes, weight, sums if seed % 3 else None),
        models=[options for _, options in cases],
    )
    for (model, options), answer in zip(cases, answers, strict=True):
        case = f"{kind}: {options}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                held_out = leave_one_out(model, X, codes, sample_weight=weight)
            except DiscriminantError:
                assert "error" in answer, case
                continue
        assert "error" not in answer, f"{case}: {answer}"
        scores = np.array(answer["scores"]).reshape(-1, K)
        expected = held_out.log_posterior
        number = max(condition(model, part, kind) for part in parts)
        tolerance = 1e-12 * (number if number > 1e3 else 1.0)
        limit = 2 * tolerance * np.maximum(np.abs(scores).max(axis=1, keepdims=True), 1.0)
        if isinstance(model, LeastSquares):
            shares = np.maximum(scores, 0.0)
            logs = shares / shares.sum(axis=1, keepdims=True)
            expected = np.exp(expected)
        else:
            logs = np.array(answer["logs"]).reshape(-1, K)
        assert (np.abs(logs - expected) <= limit).all(), case
        assert_labels(np.array(answer["predicted"]), expected, 2 * limit[:, 0])


@pytest.mark.parametrize("seed", [0, 10])
def test_fits_equal_those_of_scikit_learn(page, seed):
    _, X, codes, _ = make_problem(seed)
    X = (X - X.mean(axis=0)) / X.std(axis=0)  # the rank tolerances of scikit-learn are absolute
    K, rows = int(codes.max()) + 1, X[:30]
    references = [
        (LinearDiscriminantAnalysis(solver="svd"), {"model": "lda", "denominator": "ml"}),
        (QuadraticDiscriminantAnalysis(), {"model": "qda"}),
        (NearestCentroid(), {"model": "nearest_mean"}),
    ]
    answers = page.call(
        "fits",
        problems=[as_json(X, codes)],
        models=[options for _, options in references],
        rows=rows.ravel().tolist(),
    )
    for (reference, _), answer in zip(references, answers, strict=True):
        reference.fit(X, codes)
        assert answer["predicted"] == reference.predict(rows).tolist()
        if not isinstance(reference, NearestCentroid):
            posterior = np.array(answer["posterior"]).reshape(-1, K)
            np.testing.assert_allclose(posterior, reference.predict_proba(rows), atol=1e-9)


def test_leave_one_out_equals_refits_of_scikit_learn(page):
    X, codes, _ = smaller(*make_problem(0)[1:])
    K, n = int(codes.max()) + 1, len(X)
    (answer,) = page.call(
        "leftOut", problem=as_json(X, codes), models=[{"model": "lda", "denominator": "ml"}]
    )
    posterior = np.exp(np.array(answer["logs"]).reshape(-1, K))
    assert answer["refitted"] == 0
    for i in range(0, n, 7):
        others = np.arange(n) != i
        reference = LinearDiscriminantAnalysis(solver="svd").fit(X[others], codes[others])
        np.testing.assert_allclose(posterior[i], reference.predict_proba(X[[i]])[0], atol=1e-9)


def test_a_changed_prior_changes_stored_left_out_scores(page):
    X, codes, _ = smaller(*make_problem(0)[1:])
    K = int(codes.max()) + 1
    prior = np.random.default_rng(3).dirichlet(np.full(K, 4.0))
    models = [{}, {"prior": prior.tolist()}, {"priors": "fixed"}]
    answers = page.call("leftOut", problem=as_json(X, codes), models=models)
    references = [(LDA(), "refit"), (LDA(prior=prior), "refit"), (LDA(), "fixed")]
    for answer, (model, kind) in zip(answers, references, strict=True):
        expected = leave_one_out(model, X, codes, prior=kind).log_posterior
        np.testing.assert_allclose(np.reshape(answer["logs"], (-1, K)), expected, atol=1e-10)


def assert_same_moments(values, expected):
    """Weight, mean and scatter are those of class moments, about the same origin."""
    expected = expected.at(type(expected.anchor)(np.array(values["origin"]), expected.anchor.unit))
    size = np.sqrt(np.abs(expected.scatter).max())
    for name, scale in (("weight", 1.0), ("weight2", 1.0), ("mean", size), ("scatter", size**2)):
        wanted = getattr(expected, name)
        actual = np.array(values[name], dtype=float).reshape(wanted.shape)
        np.testing.assert_allclose(actual, wanted, atol=1e-12 * scale, rtol=1e-12)


def test_updates_equal_moments_of_the_resulting_rows(page):
    rng = np.random.default_rng(5)
    X, codes = rng.normal(size=(60, 4)) + 1e8, np.arange(60) % 3
    weight = rng.uniform(0.5, 2.0, 60)
    base = moments(X[:30], codes[:30], weight[:30])
    other = moments(X[45:], codes[45:], weight[45:])
    shift = np.array([1.0, -2.0, 0.5, 0.0])
    answer = page.run(
        "update",
        base={"moments": moments_json(base)},
        other=moments_json(other),
        rows=X[30:45].ravel().tolist(),
        codes=codes[30:45].tolist(),
        weight=weight[30:45].tolist(),
        shift=shift.tolist(),
        d=4,
    )
    X, codes = X[:45].copy(), codes[:45].copy()
    X[31], codes[31] = X[30], codes[32]
    remaining = np.arange(45) != 30
    X, codes, rest = X[remaining], codes[remaining], weight[:45][remaining]
    X[codes == 0] += shift
    expected = moments(X, codes, rest)
    assert_same_moments(answer["sums"], expected)
    assert_same_moments(answer["back"], expected)
    both = expected + other
    assert_same_moments(answer["both"], both)
    assert_same_moments(answer["part"], both.select([2, 0]).group({0: [0, 2]}))
    np.testing.assert_allclose(answer["left"]["weight"], both.weight[[2, 0]], rtol=1e-12)
    means = np.reshape(answer["left"]["mean"], (2, 4)) + answer["left"]["origin"]
    np.testing.assert_allclose(means - both.means[[2, 0]], 0.0, atol=2e-8)  # eps * 1e8


def test_a_removal_that_would_lose_digits_or_was_not_included_changes_nothing(page):
    X = np.array([[0.0], [1.0], [2.0], [1e9], [5.0], [6.0], [8.0]])
    codes = np.array([0, 0, 0, 0, 1, 1, 1])
    sums = moments_json(moments(X, codes))
    lost = page.run("remove", sums=sums, row=[1e9], code=0, weight=1)
    assert lost == {"kind": "precision", "unchanged": True}
    heavy = page.run("remove", sums=sums, row=[1.0], code=0, weight=9)
    assert heavy == {"kind": "not_included", "unchanged": True}
    assert page.run("remove", sums=sums, row=[8.0], code=1, weight=1) == {"kind": None}


@pytest.mark.parametrize("seed", [0, 1, 2, 9, 13])
def test_directions_equal_those_of_python(page, seed):
    _, X, codes, weight = make_problem(seed)
    sums, options = moments(X, codes, weight), {"shrinkage": 0.1 if seed == 9 else 0.0}
    answer = page.run(
        "directions", sums=moments_json(sums), rows=X[:20].ravel().tolist(), options=options
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LDA(**options).fit_moments(sums)
        expected, projected = model.directions(), model.transform(X[:20])
    r = expected.scalings.shape[1]
    assert answer["r"] == r
    tolerance = 1e-9
    np.testing.assert_allclose(answer["eigenvalues"], expected.eigenvalues, rtol=tolerance)
    size = np.abs(projected).max()
    actual = np.reshape(answer["projected_rows"], (-1, r))
    gap = np.diff(expected.eigenvalues) / expected.eigenvalues[0]
    assert (np.abs(gap) > 1e-4).all()  # otherwise directions are arbitrary
    np.testing.assert_allclose(actual, projected, atol=tolerance * size)
    means = np.reshape(answer["projected"], (-1, r))
    np.testing.assert_allclose(means, expected.projected, atol=tolerance * size)


@pytest.mark.parametrize("norm", ["l2", "l1", "linf"])
def test_smallest_change_equals_that_of_python(page, norm):
    _, X, codes, _ = make_problem(0)
    model, scale = LDA().fit(X, codes), X.std(axis=0)
    sums, d = moments_json(moments(X, codes)), X.shape[1]
    for row in X[:10]:
        for fixed in ([], [0, d - 1]):
            options = {"norm": norm, "scale": scale.tolist(), "fixed": fixed}
            answer = page.run("change", sums=sums, row=row.tolist(), options=options)
            expected = smallest_change(model, row, norm=norm, scale=scale, fixed=fixed)
            assert [answer["before"], answer["after"]] == [expected.before, expected.after]
            np.testing.assert_allclose(answer["size"], expected.size, rtol=1e-7)
            np.testing.assert_allclose(answer["change"], expected.change, atol=1e-6 * expected.size)
            assert model.predict([answer["row"]])[0] == expected.after


def test_smallest_change_of_a_quadratic_rule_is_refused(page):
    _, X, codes, _ = make_problem(0)
    options = {"model": "qda"}
    sums, row = moments_json(moments(X, codes)), X[0].tolist()
    answer = page.run("change", sums=sums, row=row, model=options, options={})
    assert answer["kind"] == "rule"


@pytest.mark.parametrize(("classes", "ridge"), [(2, 0.0), (2, 0.05), (4, 0.0), (4, 0.01)])
@pytest.mark.parametrize("weighted", [False, True])
def test_logistic_equals_python_and_scikit_learn(page, classes, ridge, weighted):
    rng = np.random.default_rng([classes, weighted])
    codes = np.arange(200) % classes
    X = (rng.normal(size=(200, 3)) + rng.normal(size=(classes, 3))[codes]) * [1.0, 1e3, 1e-3] + 1e4
    weight = rng.integers(1, 4, 200).astype(float) if weighted else np.ones(200)
    options = {"classes": classes, "weight": weight.tolist(), "ridge": ridge}
    answer = page.run("logistic", rows=X.ravel().tolist(), codes=codes.tolist(), options=options)
    assert (answer["converged"], answer["separated"]) == (True, False)
    scores = np.reshape(answer["scores"], (-1, classes))
    model = Logistic(ridge=ridge).fit(X, codes, weight)
    expected = model.decision_function(X)
    actual = scores[:, 1] if classes == 2 else scores
    np.testing.assert_allclose(actual, expected, atol=1e-10 * np.abs(expected).max())
    sd = np.sqrt(np.cov(X.T, aweights=weight, bias=True).diagonal())
    strength = 1.0 / (ridge * weight.sum()) if ridge else np.inf
    reference = LogisticRegression(C=strength, solver="newton-cholesky", tol=1e-12, max_iter=1000)
    reference.fit((X - X.mean(axis=0)) / sd, codes, weight)
    other = reference.predict_proba((X - X.mean(axis=0)) / sd)
    posterior = np.exp(scores - scores.max(axis=1, keepdims=True))
    posterior /= posterior.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(posterior, other, atol=1e-8)


def test_logistic_reports_separated_classes(page):
    X = np.column_stack([np.arange(8.0), [0.0, 1.0, 0.5, 0.2, 0.1, 0.9, 0.3, 0.7]])
    for X_, codes, separated in (
        (X, [0, 0, 0, 0, 1, 1, 1, 1], True),
        (X[:, :1] // 4 * 2 + (X[:, :1] == 3), [0, 0, 0, 0, 1, 1, 1, 1], True),
        (np.array([0.0, 0, 1, 1, 1, 1, 2, 2])[:, None], [0, 0, 0, 1, 0, 1, 1, 1], None),
    ):
        answer = page.run("logistic", rows=X_.ravel().tolist(), codes=codes, options={})
        assert (answer["converged"], answer["separated"]) == (False, separated)
        options = {"ridge": 0.1}
        answer = page.run("logistic", rows=X_.ravel().tolist(), codes=codes, options=options)
        assert answer["converged"]


@pytest.mark.parametrize(
    ("cost", "reject"),
    [
        (None, None),
        ([[0, 1, 4], [2, 0, 1], [1, 3, 0]], None),
        ([[0, 1, 4], [2, 0, 1], [1, 3, 0], [0.5, 0.5, 0.5]], {"cost": 0.4}),
        (None, {"cost": 0.3}),
        (None, {"threshold": 0.8}),
        (None, {"cost": 0.0}),
    ],
)
def test_decisions_equal_those_of_python(page, cost, reject):
    rng = np.random.default_rng(8)
    codes = np.arange(90) % 3
    X = rng.normal(size=(90, 2)) + rng.normal(size=(3, 2))[codes]
    model = LDA().fit(X, codes)
    actions = {a: dict(enumerate(row)) for a, row in enumerate(cost or [])}
    decision = Decision(model, cost=actions or None, reject=reject).fit(X, codes)
    logs = np.concatenate([model.predict_log_proba(X), np.log([[0.5, 0.3, 0.2], [0.2, 0.2, 0.6]])])
    options = {"cost": None if cost is None else np.ravel(cost).tolist(), "reject": reject}
    answer = page.run("decide", logs=logs.ravel().tolist(), K=3, options=options)
    expected = [-1 if str(each) == "REJECT" else each for each in decision.decide(X)]
    assert answer[:90] == expected


def test_a_plane_has_the_scores_of_its_rows(page):
    _, X, codes, _ = make_problem(0)
    rng, d = np.random.default_rng(2), X.shape[1]
    names = ("lda", "qda", "rda", "nearest_mean", "least_squares")
    models = [*({"model": name} for name in names), {"model": "rda", "predictive": "student"}]
    answers = page.run(
        "plane",
        sums=moments_json(moments(X, codes)),
        point=X[0].tolist(),
        axes=rng.normal(size=(2, d)).tolist(),
        nodes=rng.normal(size=20).tolist(),
        models=models,
    )
    for on_plane, of_rows in answers:
        np.testing.assert_allclose(on_plane, of_rows, rtol=1e-9, atol=1e-9)


def test_linear_algebra_equals_that_of_numpy(page):
    rng = np.random.default_rng(4)
    a = np.cov(rng.normal(size=(6, 20)))
    b = rng.normal(size=6)
    answer = page.run("algebra", a=a.ravel().tolist(), b=b.tolist(), d=6)
    lower = np.linalg.cholesky(a)
    np.testing.assert_allclose(np.reshape(answer["l"], (6, 6)), lower, atol=1e-14)
    inverse = np.reshape(answer["inverse"], (6, 6))
    np.testing.assert_allclose(inverse, np.linalg.inv(lower), atol=1e-12)
    np.testing.assert_allclose(answer["x"], np.linalg.solve(a, b), rtol=1e-11)
    values, vectors = answer["eigen"]["values"], np.reshape(answer["eigen"]["vectors"], (6, 6))
    indefinite = a - np.eye(6)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(indefinite), atol=1e-14)
    np.testing.assert_allclose(indefinite @ vectors, vectors * values, atol=1e-13)
    left = np.reshape(answer["svd"]["left"], (3, 3)) * answer["svd"]["values"]
    right = np.reshape(answer["svd"]["right"], (6, 3))
    np.testing.assert_allclose(left @ right.T, a[:3], atol=1e-14)
    assert answer["none"] is None
