"""Every loss and link: derivatives against differences of the loss, and against their formulas.

A curvature is the observed one for softmax and the logit. For the other links it is the expected
one: what the second derivative of the loss is on average over responses of the mean at hand.
"""

import mpmath
import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import integrate, stats

from discriminant.moments.anchor import Anchor
from discriminant.moments.glm_families import LINKS, MEANS, SCORES, Deviance, PearsonStatistic
from discriminant.moments.loss_gradient_sums import LossReading
from discriminant.moments.softmax_loss import LINK_TAILS, BinaryLoss, SoftmaxLoss
from discriminant.table.blocks import Block

FAMILY_LINKS = [(family, link) for family, links in LINKS.items() for link in links]
every_family = pytest.mark.parametrize(
    ("family", "link"), FAMILY_LINKS, ids=[f"{family}-{link}" for family, link in FAMILY_LINKS]
)
every_two_sided = pytest.mark.parametrize("link", list(LINK_TAILS))


def block_of(codes=None, responses=None, weight=None):
    n = len(codes if codes is not None else responses)
    codes = np.zeros(n, dtype=np.intp) if codes is None else np.asarray(codes)
    return Block(np.zeros((n, 1)), codes, weight, responses)


def loss_at(loss, scores, tile):
    return loss.at(np.array(scores, dtype=float), tile, want="curvature")


def differences(loss, scores, tile, step=1e-5):
    """(m, n) first and (m, m, n) second derivatives of each row's loss, by central differences."""
    m, n = scores.shape
    first, second = np.zeros((m, n)), np.zeros((m, m, n))
    for i in range(n):
        row = tile.rows(i, i + 1)
        for a in range(m):
            move = step * (np.arange(m) == a)[:, None]
            up, down = (loss_at(loss, scores[:, i : i + 1] + s * move, row) for s in (1, -1))
            first[a, i] = (up.loss - down.loss) / (2 * step)
            second[:, a, i] = ((up.slope - down.slope) / (2 * step))[:, 0]
    return first, second


def second_of(local, i):
    """(m, m) curvature of row i: diag(curve) - cross cross'."""
    found = np.diag(local.curvature[:, i])
    return found if local.cross is None else found - np.outer(local.cross[:, i], local.cross[:, i])


# --- classes --------------------------------------------------------------------------------------


@given(seed=st.integers(0, 9999), m=st.integers(2, 5), weighted=st.booleans())
def test_softmax_has_the_derivatives_of_its_loss(seed, m, weighted):
    rng = np.random.default_rng(seed)
    scores = 3 * rng.standard_normal((m, 6))
    tile = block_of(rng.integers(0, m, 6), weight=rng.gamma(2, 1, 6) if weighted else None)
    local, (first, second) = (
        loss_at(SoftmaxLoss(m), scores, tile),
        differences(SoftmaxLoss(m), scores, tile),
    )
    np.testing.assert_allclose(local.slope, first, rtol=1e-6, atol=1e-8)
    for i in range(6):
        np.testing.assert_allclose(second_of(local, i), second[:, :, i], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("m", [3, 6])
def test_summed_curvature_of_classes_is_the_sum_of_that_of_rows(m, weighted):
    rng = np.random.default_rng(m)
    X, codes = rng.standard_normal((700, 4)), rng.integers(0, m, 700)
    weight = rng.gamma(2, 1, 700) if weighted else None
    coef, intercept = rng.standard_normal((4, m)), rng.standard_normal(m)
    names, anchor = tuple("abcd"), Anchor(np.full(4, 0.5), np.full(4, 2.0))
    reading = LossReading(names, anchor, coef, intercept, SoftmaxLoss(m), "curvature")
    summed = reading.read(Block(X, codes, weight)).curvature
    u = (X - 0.5) / 2.0
    local = loss_at(SoftmaxLoss(m), (u @ coef + intercept).T, block_of(codes, weight=weight))
    ones = np.hstack([u, np.ones((700, 1))])
    rows = (np.kron(second_of(local, i), np.outer(ones[i], ones[i])) for i in range(700))
    np.testing.assert_allclose(summed, sum(rows), rtol=1e-12, atol=1e-12)


@every_two_sided
@given(seed=st.integers(0, 9999), weighted=st.booleans())
def test_a_link_of_two_classes_has_the_slope_of_its_loss(link, seed, weighted):
    rng = np.random.default_rng(seed)
    scores = rng.uniform(-3, 2, (1, 8))
    tile = block_of(rng.integers(0, 2, 8), weight=rng.gamma(2, 1, 8) if weighted else None)
    local, (first, _) = (
        loss_at(BinaryLoss(link), scores, tile),
        differences(BinaryLoss(link), scores, tile),
    )
    np.testing.assert_allclose(local.slope, first, rtol=1e-6, atol=1e-8)


@every_two_sided
@given(score=st.floats(-3, 2))
def test_a_link_of_two_classes_has_the_expected_curvature(link, score):
    tile = block_of([0, 1])
    scores = np.full((1, 2), score)
    chance = np.exp(LINK_TAILS[link](scores[0]).log_one)[0]
    _, second = differences(BinaryLoss(link), scores, tile)
    expected = (1 - chance) * second[0, 0, 0] + chance * second[0, 0, 1]
    found = loss_at(BinaryLoss(link), scores, tile).curvature[0, 0]
    assert found == pytest.approx(expected, rel=1e-5)


EXACT = {
    "logit": lambda s: 1 / (1 + mpmath.exp(-s)),
    "probit": mpmath.ncdf,
    "cloglog": lambda s: 1 - mpmath.exp(-mpmath.exp(s)),
    "cauchit": lambda s: mpmath.mpf(1) / 2 + mpmath.atan(s) / mpmath.pi,
}


@every_two_sided
@pytest.mark.parametrize("score", [-30.0, -8.0, -0.5, 0.0, 0.3, 3.0, 6.0])
def test_both_tails_of_a_link_are_those_of_fifty_digits(link, score):
    with mpmath.workdps(50 + 400):
        s = mpmath.mpf(score)
        mean, rate = EXACT[link](s), mpmath.diff(EXACT[link], s)
        exact = [mpmath.log(mean), mpmath.log(1 - mean), rate / mean, rate / (1 - mean)]
    found = [float(part[0]) for part in LINK_TAILS[link](np.array([score]))]
    np.testing.assert_allclose(found, [float(value) for value in exact], rtol=1e-13)


# --- families -------------------------------------------------------------------------------------


def scores_for(link, rng, n=8):
    """Scores that have a mean, whatever the family."""
    if link == "log":
        return rng.uniform(-2, -0.2, n)
    if link in LINK_TAILS:
        return rng.uniform(-2, 1.5, n)
    return rng.uniform(0.3, 3, n)


def responses_for(family, rng, n=8):
    return {
        "gaussian": rng.standard_normal(n),
        "binomial": rng.choice([0.0, 0.25, 0.7, 1.0], n),
        "poisson": rng.poisson(2, n).astype(float),
        "gamma": rng.gamma(2, 1, n),
    }[family]


@every_family
@given(seed=st.integers(0, 9999), weighted=st.booleans(), shifted=st.booleans())
def test_a_family_has_the_slope_of_its_loss(family, link, seed, weighted, shifted):
    rng = np.random.default_rng(seed)
    scores, responses = scores_for(link, rng)[None], responses_for(family, rng)[:, None]
    if shifted:  # the offset is part of the score
        offset = rng.uniform(-1, 1, len(responses))
        scores, responses = scores - offset, np.column_stack([responses, offset])
    tile = block_of(responses=responses, weight=rng.gamma(2, 1, 8) if weighted else None)
    loss = Deviance(family, link)
    first, _ = differences(loss, scores, tile)
    np.testing.assert_allclose(loss_at(loss, scores, tile).slope, first, rtol=1e-5, atol=1e-7)


def average(family, mean, of):
    """Mean over responses of a family that has this mean: by a sum, or an integral."""
    if family == "binomial":
        return (1 - mean) * of(0.0) + mean * of(1.0)
    if family == "poisson":
        counts = np.arange(60)
        return float(stats.poisson.pmf(counts, mean) @ [of(float(y)) for y in counts])
    density = stats.norm(mean, 1) if family == "gaussian" else stats.gamma(4, scale=mean / 4)
    low, high = density.ppf([1e-12, 1 - 1e-12])
    return integrate.quad(lambda y: density.pdf(y) * of(y), low, high, epsrel=1e-8, limit=200)[0]


@every_family
@given(seed=st.integers(0, 9999))
def test_a_family_has_the_expected_curvature(family, link, seed):
    score = scores_for(link, np.random.default_rng(seed), 1)
    loss = Deviance(family, link)

    def second(response, step=1e-5):
        up, down = (loss.rows(score + s * step, np.array([response])).slope[0] for s in (1, -1))
        return (up - down) / (2 * step)

    found = loss.rows(score, np.ones(1)).curvature[0]
    assert found == pytest.approx(average(family, float(loss.mean(score)[0]), second), rel=1e-4)


@every_family
@given(seed=st.integers(0, 9999))
def test_a_link_and_its_mean_undo_each_other(family, link, seed):
    scores = scores_for(link, np.random.default_rng(seed))
    np.testing.assert_allclose(SCORES[link](Deviance(family, link).mean(scores)), scores, rtol=1e-9)


UNIT_DEVIANCES = {
    "gaussian": lambda y, mean: (y - mean) ** 2,
    "poisson": lambda y, mean: 2 * (y * mpmath.log(y / mean) - (y - mean) if y else mean),
    "gamma": lambda y, mean: 2 * ((y - mean) / mean - mpmath.log(y / mean)),
}


@pytest.mark.parametrize("family", list(UNIT_DEVIANCES))
@pytest.mark.parametrize("ratio", [1e-6, 0.3, 1 - 1e-7, 1.0, 1 + 1e-9, 1.7, 1e6])
def test_a_row_costs_half_its_deviance_in_fifty_digits(family, ratio):
    mean = 3.0
    y = mean * ratio
    with mpmath.workdps(50):
        exact = float(UNIT_DEVIANCES[family](mpmath.mpf(y), mpmath.mpf(mean))) / 2
    found = float(Deviance(family, "identity").rows(np.array([mean]), np.array([y])).loss[0])
    assert found == pytest.approx(exact, rel=1e-12, abs=1e-15 * abs(ratio - 1))


@pytest.mark.parametrize(
    ("family", "link", "score"),
    [
        ("gamma", "inverse", -0.1),
        ("gamma", "identity", 0.0),
        ("poisson", "identity", -1.0),
        ("poisson", "sqrt", -1.0),
        ("poisson", "log", 800.0),
        ("gaussian", "inverse", 0.0),
        ("binomial", "log", 0.1),
    ],
)
def test_a_score_without_a_mean_costs_infinity_but_not_in_a_row_of_no_weight(family, link, score):
    responses = np.ones((1, 1))
    lost, unseen = (
        Deviance(family, link).at(
            np.array([[score]]), block_of(responses=responses, weight=weight), want="curvature"
        )
        for weight in (None, np.zeros(1))
    )
    assert lost.loss == np.inf and unseen.loss == 0.0
    assert np.isfinite(lost.slope).all() and np.isfinite(lost.curvature).all()


@every_family
@given(seed=st.integers(0, 9999))
def test_pearson_is_the_squared_residual_over_the_variance(family, link, seed):
    rng = np.random.default_rng(seed)
    scores, responses = scores_for(link, rng), responses_for(family, rng)
    mean = Deviance(family, link).mean(scores)
    variance = {"gaussian": 1, "poisson": mean, "gamma": mean**2, "binomial": mean * (1 - mean)}
    tile = block_of(responses=responses[:, None])
    found = PearsonStatistic(Deviance(family, link)).at(scores[None], tile, want="gradient").loss
    assert found == pytest.approx(0.5 * ((responses - mean) ** 2 / variance[family]).sum())


@pytest.mark.parametrize("family", ["poisson", "gamma"])
@pytest.mark.parametrize("error", [1.0, 0.1, 1e-3, 1e-7])
def test_deviance_of_the_log_link_keeps_its_digits_for_close_fits(family, error):
    rng = np.random.default_rng(0)
    scores = rng.standard_normal(200)
    responses = np.exp(scores) * (1.0 + error * rng.random(200))
    found = loss_at(Deviance(family, "log"), scores[None], block_of(responses=responses[:, None]))
    with mpmath.workdps(40):
        pairs = [(mpmath.mpf(y), mpmath.exp(s)) for y, s in zip(responses, scores, strict=True)]
        if family == "poisson":
            exact = sum(y * mpmath.log(y / mu) - (y - mu) for y, mu in pairs)
        else:
            exact = sum((y - mu) / mu - mpmath.log(y / mu) for y, mu in pairs)
    # the scores are rounded: an error of eps in a score changes the loss of a row by eps * error
    assert found.loss == pytest.approx(float(exact), rel=1e-13 + 1e-15 / error)


@pytest.mark.parametrize("spread", [1.0, 30.0, 1000.0])
@pytest.mark.parametrize("correct", [False, True])
def test_logistic_loss_keeps_its_digits_far_from_the_boundary(spread, correct):
    rng = np.random.default_rng(1)
    codes, scores = rng.integers(0, 2, 300), spread * rng.standard_normal(300)
    if correct:
        scores = np.where(codes == 1, 1.0, -1.0) * (np.abs(scores) + 20.0)
    found = loss_at(BinaryLoss(), scores[None], block_of(codes))
    wrong_side = np.where(codes == 1, -scores, scores)
    assert found.loss == pytest.approx(np.logaddexp(0.0, wrong_side).sum(), rel=1e-13)
    with mpmath.workdps(60):
        curvature = [1 / ((1 + mpmath.exp(t)) * (1 + mpmath.exp(-t))) for t in wrong_side]
    np.testing.assert_allclose(found.curvature[0], [float(c) for c in curvature], rtol=1e-12)


def test_every_link_of_a_mean_is_used_by_a_family():
    used = {link for links in LINKS.values() for link in links}
    assert used == set(SCORES) and set(MEANS) <= used
