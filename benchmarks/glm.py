"""Poisson and gamma regression against glum and scikit-learn, all to the same gradient."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
from contest import Case, Goal
from convergence import ITERATIONS, Peer, converged_contest, scaled_gradient
from sklearn.linear_model import GammaRegressor, PoissonRegressor

import discriminant


def glm_fit(family, N, d, *, goals):
    """Log link, no penalty."""

    def prepare(share):
        X, y = _responses(family, max(int(N * share), 20 * d), d)
        cls = {"poisson": PoissonRegressor, "gamma": GammaRegressor}[family]
        peers = [
            Peer(solver, _sklearn(cls, solver, X, y), lambda model: model.predict(X))
            for solver in ("lbfgs", "newton-cholesky")
        ]
        if find_spec("glum"):
            peers.append(Peer("glum", _glum(family, X, y), lambda model: model.predict(X)))

        def fit(predict=True):
            model = discriminant.GLM(family=family, link="log").fit(X, y)
            return (model, model.predict(X)) if predict else model

        def steepness(mean, model):
            residuals = mean - y if family == "poisson" else 1.0 - y / mean
            return scaled_gradient(X, residuals[:, None])

        return converged_contest(fit, peers, steepness, X.nbytes)

    return Case(
        f"glm-{family}-{N}",
        f"GLM fit, {family}, log link",
        f"{N:,} × {d}",
        prepare,
        tuple(Goal(peer, at_least=value) for peer, value in goals.items()),
        peers=(),
    )


def _responses(family, N, d):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, d))
    mean = np.exp(X @ (rng.standard_normal(d) * 0.5 / np.sqrt(d)) + 0.5)
    if family == "poisson":
        return X, rng.poisson(mean).astype(float)
    return X, rng.gamma(2.0, mean / 2.0) + 1e-12


def _sklearn(cls, solver, X, y):
    return lambda tolerance: cls(alpha=0.0, solver=solver, tol=tolerance, max_iter=ITERATIONS).fit(
        X, y
    )


def _glum(family, X, y):
    from glum import GeneralizedLinearRegressor

    return lambda tolerance: GeneralizedLinearRegressor(
        family=family, link="log", alpha=0, gradient_tol=tolerance, max_iter=ITERATIONS
    ).fit(X, y)
