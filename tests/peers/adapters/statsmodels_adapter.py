"""statsmodels' models with estimates of this package.

statsmodels' tests look at result objects with some hundred figures, most of them computed from the
estimates. So the fits are replaced inside the library and its results are built from ours:

    GLM, IRLS                         estimates, covariance, fitted means, deviances, dispersion,
                                      log likelihood
    GLM by gradients, Logit, Probit,  estimates, and the covariance where the link is canonical;
    MNLogit, Poisson                  otherwise statsmodels' observed information at our estimates

What this package does not have is left to statsmodels and not counted as a call: other families
and links, penalties that differ between coefficients.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import wraps
from typing import Any

import numpy as np
from calls import count_call
from statsmodels.base import model as base
from statsmodels.base.optimizer import Optimizer
from statsmodels.discrete.discrete_model import Logit, MNLogit, Poisson, Probit
from statsmodels.genmod import generalized_linear_model as genmod
from statsmodels.genmod.families import links
from statsmodels.tools.sm_exceptions import ConvergenceWarning, PerfectSeparationWarning

import discriminant as dd
from discriminant.errors import BoundaryWarning, NotConvergedWarning, SeparationWarning

_FAMILIES = {
    "Gaussian": ("gaussian", ("identity", "log", "inverse")),
    "Binomial": ("binomial", ("logit", "probit", "cloglog", "cauchit", "log")),
    "Poisson": ("poisson", ("log", "identity", "sqrt")),
    "Gamma": ("gamma", ("inverse", "log", "identity")),
}
_LINKS = {
    links.Identity: "identity",
    links.Log: "log",
    links.Logit: "logit",
    links.Probit: "probit",
    links.CLogLog: "cloglog",
    links.Cauchy: "cauchit",
    links.InversePower: "inverse",
    links.Sqrt: "sqrt",
}
_CANONICAL = {"gaussian": "identity", "binomial": "logit", "poisson": "log", "gamma": "inverse"}


@dataclass
class _Fit:
    """A fit of ours, with estimates in the order of statsmodels' columns."""

    model: Any
    rows: Any  # as given to ours
    estimate: Any
    unscaled: Any  # covariance at dispersion one
    likelihood: Any
    canonical: bool
    whole: bool  # whether ours knows which column is the intercept


def _fit_ours(create, exog, y, canonical, **options):
    """Fit with the constant column of `exog`, if there is one, as our intercept."""
    exog = np.asarray(exog, dtype=float)
    constant = np.flatnonzero((np.ptp(exog, axis=0) == 0) & (exog[0] != 0))
    whole = len(constant) == 1 and exog.shape[1] > 1
    rows = np.delete(exog, constant, axis=1) if whole else exog
    count_call()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = create(whole).fit(rows, y, **options)
    _pass_on(caught)
    inference = model.inference()
    estimate, root = inference.estimate, inference.root
    if whole:
        columns = exog.shape[1]
        order = np.insert(np.arange(1, columns), constant[0], 0)
        unit = np.ones(columns)
        unit[constant[0]] = exog[0, constant[0]]
        groups = len(estimate) // columns
        order = (np.arange(groups)[:, None] * columns + order).ravel()
        unit = np.tile(unit, groups)
        estimate, root = estimate[order] / unit, root[:, order] / unit
    return _Fit(model, rows, estimate, root.T @ root, inference.likelihood, canonical, whole)


def _pass_on(caught):
    """Warnings of ours under statsmodels' names."""
    names = {
        SeparationWarning: PerfectSeparationWarning,
        BoundaryWarning: PerfectSeparationWarning,
        NotConvergedWarning: ConvergenceWarning,
    }
    for one in caught:
        category = next((names[kind] for kind in names if issubclass(one.category, kind)), None)
        warnings.warn(str(one.message), category or one.category, stacklevel=3)


# --- generalised linear models --------------------------------------------------------------------


def _glm(model):
    """Our fit of statsmodels' GLM; None where the family or link is missing here."""
    family, allowed = _FAMILIES.get(type(model.family).__name__, (None, ()))
    link = _LINKS.get(type(model.family.link))
    if link not in allowed:
        return None
    options = {}
    weights = model.freq_weights * model.var_weights * np.asarray(model.n_trials, dtype=float)
    if not np.all(weights == 1):
        options["sample_weight"] = np.broadcast_to(weights, np.shape(model.endog))
    offset = np.broadcast_to(np.asarray(model._offset_exposure, float), np.shape(model.endog))
    if np.any(offset):
        options["offset"] = offset

    def create(intercept):
        return dd.GLM(family, link, intercept=intercept)

    fit = _fit_ours(create, model.exog, model.endog, _CANONICAL[family] == link, **options)
    fit.mean = fit.model.predict(fit.rows, **({"offset": offset} if np.any(offset) else {}))
    return fit


_theirs_irls = genmod.GLM._fit_irls


@wraps(_theirs_irls)
def _irls(self, start_params=None, maxiter=100, tol=1e-8, scale=None, cov_type="nonrobust",
          cov_kwds=None, use_t=None, **kwargs):  # fmt: skip
    fit = _glm(self) if maxiter > 0 else None  # 0: only the likelihood at start_params
    if fit is None:
        return _theirs_irls(
            self, start_params, maxiter, tol, scale, cov_type, cov_kwds, use_t, **kwargs
        )
    self.mu = fit.mean
    self.scale = self.estimate_scale(fit.mean)
    self.weights = self.iweights * self.n_trials * self.family.weights(fit.mean)
    counts = np.all(np.asarray(self.freq_weights) == 1)
    if counts and self.scaletype is None and fit.likelihood.free:
        self.scale = fit.likelihood.dispersion
    results = genmod.GLMResults(
        self, fit.estimate, fit.unscaled, self.scale,
        cov_type=cov_type, cov_kwds=cov_kwds, use_t=use_t,
    )  # fmt: skip
    results._cache["deviance"] = fit.likelihood.deviance
    if fit.whole:
        results._cache["null_deviance"] = fit.likelihood.null_deviance
    results.method = "IRLS"
    results.mle_settings = {
        "optimizer": "IRLS",
        "wls_method": kwargs.get("wls_method", "lstsq"),
    }
    results.converged = fit.model.converged_
    results.fit_history = {
        "iteration": fit.model.n_iter_,
        "params": [fit.estimate],
        "deviance": [fit.likelihood.deviance],
    }
    return genmod.GLMResultsWrapper(results)


# --- discrete models, and GLM by gradients --------------------------------------------------------


def _discrete(model):
    """Our fit of a discrete model; None where there is none."""
    kind = type(model)
    if kind is genmod.GLM:
        return _glm(model)
    if kind in (Logit, Probit) and set(np.unique(model.endog)) <= {0.0, 1.0}:
        link = "logit" if kind is Logit else "probit"
        options = _offset_of(model)
        if not options:
            return _fit_ours(
                lambda intercept: dd.Logistic(link, intercept=intercept),
                model.exog, model.endog, kind is Logit,
            )  # fmt: skip
        return _fit_ours(
            lambda intercept: dd.GLM("binomial", link, intercept=intercept),
            model.exog, model.endog, kind is Logit, **options,
        )  # fmt: skip
    if kind is MNLogit:
        labels = np.argmax(model.wendog, axis=1)
        return _fit_ours(
            lambda intercept: dd.Logistic(intercept=intercept), model.exog, labels, True
        )
    if kind is Poisson:
        return _fit_ours(
            lambda intercept: dd.GLM("poisson", intercept=intercept),
            model.exog, model.endog, True, **_offset_of(model),
        )  # fmt: skip
    return None


def _offset_of(model):
    offset = np.asarray(getattr(model, "offset", 0.0)) + np.asarray(getattr(model, "exposure", 0.0))
    return {"offset": np.broadcast_to(offset, np.shape(model.endog))} if np.any(offset) else {}


_theirs_fit = base.LikelihoodModel.fit
_theirs_search = Optimizer._fit


@wraps(_theirs_fit)
def _likelihood_fit(self, start_params=None, method="newton", maxiter=100, *args, **kwargs):
    fit = _discrete(self) if maxiter > 0 and not method.startswith("l1") else None
    if fit is None:
        return _theirs_fit(self, start_params, method, maxiter, *args, **kwargs)

    def search(optimizer, objective, gradient, start, fargs, kwargs, hessian=None, **settings):
        steps = int(fit.model.n_iter_)
        found = {
            "fopt": objective(fit.estimate),
            "gopt": gradient(fit.estimate),
            "score": gradient(fit.estimate),
            "Hessian": hessian(fit.estimate),
            "iterations": steps,
            "fcalls": steps,
            "gcalls": steps,
            "warnflag": 0,
            "converged": bool(fit.model.converged_),
        }
        told = {"optimizer": method, "start_params": start, "fargs": fargs, **settings, **kwargs}
        return fit.estimate, found, told

    Optimizer._fit = search
    try:
        result = _theirs_fit(self, start_params, method, maxiter, *args, **kwargs)
    finally:
        Optimizer._fit = _theirs_search
    if fit.canonical and type(self) is not genmod.GLM and "cov_type" not in kwargs:
        result.normalized_cov_params = fit.unscaled
    theirs = self.loglike(fit.estimate) if type(self) is not genmod.GLM else None
    if theirs is not None and not np.isclose(fit.likelihood.log_likelihood, theirs, rtol=1e-8):
        raise AssertionError(f"log likelihood {fit.likelihood.log_likelihood}, theirs {theirs}")
    return result


genmod.GLM._fit_irls = _irls
base.LikelihoodModel.fit = _likelihood_fit
