"""Logistic regression against scikit-learn and glum, all to the same gradient (`convergence`)."""

from __future__ import annotations

import warnings
from importlib.util import find_spec

import numpy as np
from contest import OURS, Case, Contest, Goal
from convergence import ITERATIONS, Peer, converged_contest, scaled_gradient
from rows import scored_rows, separated_rows, sparse_rows, tfidf_rows
from sklearn.linear_model import LogisticRegression
from threads import either

import discriminant

_RELATIVE_LOSS = 1e-6
_SOLVERS = ("lbfgs", "newton-cholesky", "newton-cg")


def logistic_fit(N, d, K, *, goals, ridge=0.0, scaled=False, long=False, limit=90.0):
    """`goals` by peer: 'lbfgs', 'newton-cholesky', 'liblinear', 'glum' ..., or 'scikit-learn'."""

    def prepare(share):
        X, y = scored_rows(max(int(N * share), 20 * d), d, K, scaled=scaled)
        # newton-cholesky stores a Hessian of (d K)^2 numbers
        solvers = [each for each in _SOLVERS if d * K <= 10_000 or each != "newton-cholesky"]
        peers = [_sklearn(solver, X, y, ridge) for solver in solvers]
        if K == 2:
            peers.append(_sklearn("liblinear", X, y, ridge))
            if find_spec("glum"):
                peers.append(_glum(X, y, ridge))

        def fit(predict=True):
            model = discriminant.Logistic(ridge=ridge, standardize=False).fit(X, y)
            return (model, model.predict_proba(X)) if predict else model

        def steepness(posterior, model):
            residuals = np.array(posterior)
            residuals[np.arange(len(y)), y] -= 1.0
            penalty = None
            if ridge:
                coef = np.atleast_2d(model.coef_)
                coef = np.vstack([-coef / 2, coef / 2]) if K == 2 else coef
                penalty = (1.0 if K > 2 else 2.0) * ridge * coef.T
            return scaled_gradient(X, residuals, penalty)

        return converged_contest(fit, peers, steepness, X.nbytes)

    name = f"logistic-{N}-{d}-{K}" + ("-scaled" if scaled else "") + ("-ridge" if ridge else "")
    task = "Logistic fit" + (f", ridge {ridge:g}" if ridge else "")
    task += ", columns of scale 1 … 1e4" if scaled else ""
    return Case(
        name,
        task,
        f"{N:,} × {d:,}, {K:,} classes",
        prepare,
        _goals(goals),
        peers=(),
        long=long,
        limit=limit,
    )


def many_classes(N, d, K, *, ridge, goal, limit=90.0):
    """Peers with the largest tolerance whose loss is within 1e-6 of ours."""

    def prepare(share):
        X, y = scored_rows(max(int(N * share), K), d, K)
        peers = [_sklearn(solver, X, y, ridge) for solver in ("lbfgs", "newton-cg")]
        rows, ours = np.arange(len(y)), []

        def fit(predict=True):
            model = discriminant.Logistic(ridge=ridge, standardize=False).fit(X, y)
            return (model, model.predict_proba(X)) if predict else model

        def excess(posterior, model):
            """Return the loss above ours, relative; the first call is for our model."""
            loss = -np.log(posterior[rows, y]).mean() + 0.5 * ridge * (model.coef_**2).sum()
            ours.append(loss)
            return abs(loss / ours[0] - 1.0)

        return converged_contest(fit, peers, excess, X.nbytes, limit=_RELATIVE_LOSS)

    return Case(
        f"logistic-{N}-{d}-{K}-many",
        f"Logistic fit, ridge {ridge:g}, loss within {_RELATIVE_LOSS:g}",
        f"{N:,} × {d:,}, {K:,} classes",
        prepare,
        _goals({"lbfgs": goal}),
        peers=(),
        limit=limit,
    )


def sparse_logistic(kind, N, d, entries, *, goals):
    """Ridge 1/N without an intercept, which liblinear would penalise."""

    def prepare(share):
        make = sparse_rows if kind == "Gaussian" else tfidf_rows
        X, y = make(int(N * share), int(d * share), entries)
        ridge = 1.0 / X.shape[0]
        peers = [
            Peer(name, _liblinear(X, y, dual), lambda model: model.predict_proba(X)[:, 1])
            for name, dual in (("liblinear", False), ("liblinear dual", True))
        ]
        peers.append(Peer("lbfgs", _without_intercept(X, y), lambda m: m.predict_proba(X)[:, 1]))

        def fit(predict=True):
            options = {"ridge": ridge, "standardize": False, "intercept": False}
            model = discriminant.Logistic(**options).fit(X, y)
            return (model, model.predict_proba(X)[:, 1]) if predict else model

        def steepness(mean, model):
            return scaled_gradient(X, (mean - y)[:, None], ridge * np.reshape(model.coef_, (-1, 1)))

        return converged_contest(fit, peers, steepness, X.data.nbytes + X.indices.nbytes)

    size = f"{N:,} × {d:,}, {entries} entries per row"
    name = f"logistic-sparse-{kind.lower()}"
    task = f"Logistic fit, ridge 1/N, sparse, {kind}"
    return Case(name, task, size, prepare, _goals(goals), peers=())


def separated(N, d, *, quasi, goal):
    """Classes that are separated: we report it; peers return some large coefficients."""

    def prepare(share):
        X, y = separated_rows(N, d, quasi=quasi)
        warnings.simplefilter("ignore")
        peers = {
            f"scikit-learn, {solver}": lambda solver=solver: LogisticRegression(
                solver=solver, C=np.inf, max_iter=1000
            ).fit(X, y)
            for solver in _SOLVERS[:2]
        }
        contenders = {OURS: lambda: discriminant.Logistic().fit(X, y)} | either(peers)
        return Contest(contenders, lambda _: [], X.nbytes)

    kind = "quasi-complete" if quasi else "complete"
    return Case(
        f"separation-{kind}-{N}",
        f"Logistic fit, {kind} separation",
        f"{N:,} × {d}, 2 classes",
        prepare,
        (Goal("scikit-learn", at_least=goal),),
    )


def big_logistic(N, d):
    def prepare(share):
        X, y = scored_rows(max(int(N * share), 4 * d), d, 2)
        return Contest({OURS: lambda: discriminant.Logistic().fit(X, y)}, lambda _: [], X.nbytes)

    size = f"{N:,} × {d:,}, 2 classes"
    return Case(
        "logistic-2gb", "Logistic fit, 2 GB", size, prepare, memory_goal=200.0, peers=(), long=True
    )


def _goals(goals):
    return tuple(Goal(peer, at_least=value) for peer, value in goals.items())


def _sklearn(solver, X, y, ridge):
    C = 1.0 / (ridge * len(y)) if ridge else np.inf

    def fit(tolerance):
        model = LogisticRegression(solver=solver, C=C, tol=tolerance, max_iter=ITERATIONS)
        if solver == "liblinear":  # its penalty cannot be left out, and includes the intercept
            model = LogisticRegression(
                solver=solver,
                C=1e10 if not ridge else C,
                tol=tolerance,
                max_iter=ITERATIONS,
                intercept_scaling=1e3,
            )
        return model.fit(X, y)

    return Peer(solver, fit, lambda model: model.predict_proba(X))


def _glum(X, y, ridge):
    from glum import GeneralizedLinearRegressor

    def fit(tolerance):
        return GeneralizedLinearRegressor(
            family="binomial", alpha=ridge, l1_ratio=0, gradient_tol=tolerance, max_iter=ITERATIONS
        ).fit(X, y)

    def predict(model):
        mean = model.predict(X)
        return np.column_stack([1.0 - mean, mean])

    return Peer("glum", fit, predict)


def _liblinear(X, y, dual):
    return lambda tolerance: LogisticRegression(
        solver="liblinear",
        C=1.0,
        dual=dual,
        tol=tolerance,
        max_iter=ITERATIONS,
        fit_intercept=False,
    ).fit(X, y)


def _without_intercept(X, y):
    return lambda tolerance: LogisticRegression(
        solver="lbfgs", C=1.0, tol=tolerance, max_iter=ITERATIONS, fit_intercept=False
    ).fit(X, y)
