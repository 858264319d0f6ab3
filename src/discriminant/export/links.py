"""From a score to the log probabilities of two classes, and to a mean, in steps.

    logit    log p0, log p1 = 0, s                     (up to what is common to both)
    probit   log Phi(-t) = -t^2/2 + log(erfcx(t / sqrt 2) / 2),  t = |s|
    cloglog  log p0 = -r, log p1 = log(1 - e^-r),  r = e^s; for small r the series of the latter
    cauchit  the smaller one is arctan(1 / t) / pi

The larger probability follows from the smaller one: log(1 - small). No target has erf or arctan in
double precision everywhere, so both are written out: erfcx by the rational approximations of Cody
(1969, Math. Comp. 23, 631-637), arctan by that of Cephes. Both hold to a few units in the last
place; tests/export/test_links.py says so against mpmath.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from discriminant.export.steps import Step, constant, greater, polynomial, stack

# erf(x) = x A(x^2) / B(x^2)                                 x <= 0.46875
_A = (1.85777706184603153e-1, 3.16112374387056560, 1.13864154151050156e2,
      3.77485237685302021e2, 3.20937758913846947e3)  # fmt: skip
_B = (1.0, 2.36012909523441209e1, 2.44024637934444173e2,
      1.28261652607737228e3, 2.84423683343917062e3)  # fmt: skip
# erfcx(x) = C(x) / D(x)                                     0.46875 < x <= 4
_C = (2.15311535474403846e-8, 5.64188496988670089e-1, 8.88314979438837594, 6.61191906371416295e1,
      2.98635138197400131e2, 8.81952221241769090e2, 1.71204761263407058e3, 2.05107837782607147e3,
      1.23033935479799725e3)  # fmt: skip
_D = (1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2,
      1.62138957456669019e3, 3.29079923573345963e3, 4.36261909014324716e3, 3.43936767414372164e3,
      1.23033935480374942e3)  # fmt: skip
# erfcx(x) = (1/sqrt(pi) - P(1/x^2) / (x^2 Q(1/x^2))) / x     4 < x
_P = (1.63153871373020978e-2, 3.05326634961232344e-1, 3.60344899949804439e-1,
      1.25781726111229246e-1, 1.60837851487422766e-2, 6.58749161529837803e-4)  # fmt: skip
_Q = (1.0, 2.56852019228982242, 1.87295284992346725, 5.27905102951428412e-1,
      6.05183413124413191e-2, 2.33520497626869185e-3)  # fmt: skip
# arctan(x) = x + x^3 R(x^2) / S(x^2)                         x <= 0.66
_R = (-8.750608600031904122785e-1, -1.615753718733365076637e1, -7.500855792314704667340e1,
      -1.228866684490136173410e2, -6.485021904942025371773e1)  # fmt: skip
_S = (1.0, 2.485846490142306297962e1, 1.650270098316988542046e2, 4.328810604912902668951e2,
      4.853903996359136964868e2, 1.945506571482613964425e2)  # fmt: skip

_SMALL = 0.01  # a rate below which log(1 - e^-r) is taken by its series


def logit(score: Step) -> Step:
    """(2,) log probabilities up to a constant."""
    return stack([constant(0.0), score])


def probit(score: Step) -> Step:
    """(2,) log probabilities."""
    away = score.abs().named("away")
    small = (_erfcx((away * np.sqrt(0.5)).named("erf_at")) * 0.5).log() - away * away * 0.5
    return _sided(score, small.named("log_smaller"))


def cloglog(score: Step) -> Step:
    """(2,) log probabilities."""
    rate = score.smaller(700.0).exp().named("rate")
    # log((1 - e^-r) / r) = -r/2 + r^2/24 - r^4/2880 + ...
    square = (rate * rate).named("rate_squared")
    series = score - rate * 0.5 + square * (1.0 / 24.0) - square * square * (1.0 / 2880.0)
    plain = (constant(1.0) - (constant(0.0) - rate.larger(_SMALL)).exp()).log()
    one = greater(rate, _SMALL, plain, series)
    return stack([constant(0.0) - rate, one])


def cauchit(score: Step) -> Step:
    """(2,) log probabilities."""
    away = score.abs().named("away")
    turned = greater(away, 1.0, constant(1.0) / away.larger(1.0), away).named("turned")
    angle = (_arctan(turned) * (1.0 / np.pi)).named("angle")
    small = greater(away, 1.0, angle, constant(0.5) - angle)
    return _sided(score, small.log().named("log_smaller"))


LINKS: dict[str, Callable[[Step], Step]] = {
    "logit": logit,
    "probit": probit,
    "cloglog": cloglog,
    "cauchit": cauchit,
}


def mean(score: Step, link: str) -> Step:
    """(1,) the mean of a generalised linear model."""
    if link == "identity":
        return score
    if link == "log":
        return score.exp()
    if link == "inverse":
        return constant(1.0) / score
    if link == "sqrt":
        return greater(score, 0.0, score * score, -1.0)
    if link == "logit":
        small = (constant(0.0) - score.abs()).exp().named("odds")
        return greater(score, 0.0, constant(1.0) / (small + 1.0), small / (small + 1.0))
    return LINKS[link](score)[1].exp()


def _sided(score: Step, small: Step) -> Step:
    """(2,) of the log of the smaller probability: the second is the smaller where s < 0."""
    large = (constant(1.0) - small.exp()).log().named("log_larger")
    return stack([greater(score, 0.0, small, large), greater(score, 0.0, large, small)])


def _erfcx(x: Step) -> Step:
    """exp(x^2) erfc(x) for x >= 0."""
    near = x.smaller(0.46875).named("erf_near")
    square = (near * near).named("erf_square")
    erf = near * polynomial(square, _A) / polynomial(square, _B)
    first = (constant(1.0) - erf) * square.exp()
    middle = x.smaller(4.0).larger(0.46875).named("erf_middle")
    second = polynomial(middle, _C) / polynomial(middle, _D)
    inverse = (constant(1.0) / x.larger(4.0)).named("erf_far")
    far = (inverse * inverse).named("erf_far_square")
    tail = far * polynomial(far, _P) / polynomial(far, _Q)
    third = (constant(1.0 / np.sqrt(np.pi)) - tail) * inverse
    return greater(x, 4.0, third, greater(x, 0.46875, second, first))


def _arctan(x: Step) -> Step:
    """For 0 <= x <= 1; beyond 0.66 counted from 1, where it is pi/4."""
    z = greater(x, 0.66, (x - 1.0) / (x + 1.0), x).named("arctan_at")
    square = (z * z).named("arctan_square")
    ratio = polynomial(square, _R) / polynomial(square, _S)
    return greater(x, 0.66, np.pi / 4.0, 0.0) + z + z * square * ratio
