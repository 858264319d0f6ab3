"""Average marginal effects: the mean change of a prediction for a small change of a feature.

With mu the mean of a response with score s, the effect of feature j and its derivative with respect
to the estimates are means over the rows:

    effect_j = mean mu'(s) beta_j       d effect_j = mean mu'(s) d beta_j + beta_j mean mu''(s) ds

For K classes with probabilities p_k and coefficients beta_k,

    effect_kj = mean p_k (beta_kj - sum_l p_l beta_lj)

Standard errors are by the delta method: the variance is J H^-1 J', with J the derivative with
respect to theta and H the curvature. J is formed in whitened coordinates, so no digits are lost for
features far from zero. Derivatives mu'' are, relative to mu',

    logit  1 - 2 mu      probit  -s      cloglog  1 - e^s      cauchit  -2 s / (1 + s^2)
    log  1               identity  0     inverse  -2 / s       sqrt  1 / s
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.stats import norm

from discriminant.assessment.inference.coefficient_summary import Inference
from discriminant.assessment.inference.row_terms import RowTerms
from discriminant.assessment.inference.wald import INTERCEPT
from discriminant.assessment.printed_results import PrintedResult, format_p_as_r, text_table
from discriminant.moments.glm_families import MEANS, Deviance
from discriminant.moments.softmax_loss import LINK_TAILS
from discriminant.posterior import posterior
from discriminant.table.blocks import Floats
from discriminant.table.column_cells import import_pandas

# mu'' / mu' at scores s
_RATES: dict[str, Callable[[Floats], Floats]] = {
    "logit": lambda s: -np.tanh(0.5 * s),
    "probit": lambda s: -s,
    "cloglog": lambda s: 1.0 - np.exp(np.minimum(s, 700.0)),
    "cauchit": lambda s: -2.0 * s / (1.0 + s * s),
    "log": np.ones_like,
    "identity": np.zeros_like,
    "inverse": lambda s: -2.0 / s,
    "sqrt": lambda s: 1.0 / s,
}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MarginalEffects(PrintedResult):
    """Average marginal effects with standard errors by the delta method."""

    title: str
    names: tuple[str, ...]  # p features
    classes: tuple[object, ...] | None  # p classes whose probability changes; None for a response
    effect: Floats  # (p,)
    std_error: Floats  # (p,)
    level: float

    @property
    def z(self) -> Floats:
        """Effects divided by standard errors (p,)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.effect / self.std_error

    @property
    def p(self) -> Floats:
        """Two-sided p-values (p,)."""
        return np.asarray(2.0 * norm.sf(np.abs(self.z)))

    def intervals(self) -> Floats:
        """Return the Wald intervals (p, 2)."""
        reach = norm.isf(0.5 * (1.0 - self.level)) * self.std_error
        return np.column_stack([self.effect - reach, self.effect + reach])

    @property
    def text(self) -> str:
        """Text as a table with one line for each effect."""
        head = ["", "dy/dx", "Std. Error", "z value", "Pr(>|z|)", "low", "high"]
        rows = []
        for record in self._records():
            name = f"{record['class']}: {record['name']}" if self.classes else record["name"]
            numbers = [f"{record[key]:.6g}" for key in ("effect", "std_error")]
            ends = [f"{record[key]:.6g}" for key in ("low", "high")]
            rows.append([name, *numbers, f"{record['z']:.3f}", format_p_as_r(record["p"]), *ends])
        title = f"{self.title}: average marginal effects"
        return "\n".join(text_table(title, head, rows))

    def to_dict(self) -> dict[str, Any]:
        """Return the effects as a dictionary of plain numbers, lists and texts."""
        return {"effects": self._records(), "level": self.level}

    def frame(self) -> Any:
        """Return a pandas frame with a row for each effect."""
        keys = ["class", "name"] if self.classes is not None else ["name"]
        return import_pandas().DataFrame(self._records()).set_index(keys)

    def _records(self) -> list[dict[str, Any]]:
        ends = self.intervals()
        records = []
        for j, name in enumerate(self.names):
            record: dict[str, Any] = {} if self.classes is None else {"class": self.classes[j]}
            record |= {
                "name": name,
                "effect": float(self.effect[j]),
                "std_error": float(self.std_error[j]),
                "z": float(self.z[j]),
                "p": float(self.p[j]),
                "low": float(ends[j, 0]),
                "high": float(ends[j, 1]),
            }
            records.append(record)
        return records


def marginal_effects(
    inference: Inference, terms: RowTerms, *, deviance: Deviance, level: float
) -> MarginalEffects:
    """Return the average marginal effects on the mean response of a model with one score."""
    assert terms.score is not None
    share = terms.weight / terms.weight.sum()
    with np.errstate(all="ignore"):
        slope = _mean_slope(terms.score, deviance)
        bend = np.where(slope != 0, slope * _RATES[deviance.link](terms.score), 0.0)
    mean_slope, mean_bend = float(share @ slope), (share * bend) @ terms.z
    places = [j for j, name in enumerate(inference.names) if name != INTERCEPT]
    beta = inference.estimate[places]
    jacobian = mean_slope * inference.directions[places] + beta[:, None] * mean_bend
    error = _errors(jacobian, terms, inference)
    error[~np.isfinite(inference.std_error[places])] = np.nan
    names = tuple(inference.names[j] for j in places)
    return MarginalEffects(inference.title, names, None, mean_slope * beta, error, level)


def _mean_slope(score: Floats, deviance: Deviance) -> Floats:
    """Return the derivative mu' (n,) of the mean at each score."""
    if deviance.family == "binomial" and deviance.link != "log":
        tails = LINK_TAILS[deviance.link](score)
        return np.exp(tails.log_one) * tails.hazard_one
    return MEANS[deviance.link](score)[1]


def class_marginal_effects(
    inference: Inference,
    terms: RowTerms,
    *,
    theta: Floats,
    contrast: Floats,
    slopes: Floats,
    labels: list[Any],
    features: tuple[str, ...],
    level: float,
) -> MarginalEffects:
    """Return the average marginal effects on the probabilities of K classes.

    `slopes` (d, q) maps a column of theta (q, m) to slopes in the user's units, and `contrast` is
    (K, m).
    """
    share = terms.weight / terms.weight.sum()
    probability = posterior(terms.z @ theta @ contrast.T)  # (n, K)
    beta = slopes @ theta @ contrast.T  # (d, K)
    K, (q, m), d = len(labels), theta.shape, len(features)
    one = np.eye(K)
    effect, jacobian = np.empty((K, d)), np.empty((K, d, m * q))
    for k in range(K):
        own = probability[:, [k]]
        first = own * (one[k] - probability)  # v_l = p_k (1(k = l) - p_l)
        effect[k] = beta @ (share @ first)
        # effect_j = sum_l v_l beta_jl; by theta both v and beta change
        direct = np.kron((share @ first) @ contrast, slopes)  # (d, m q)
        indirect = np.zeros((d, m * q))
        for a in range(K):
            drift = own * (one[k, a] - probability[:, [a]])  # d p_k / d s_a
            change = drift * (one[k] - probability)  # d v_l / d s_a
            change -= own * probability * (one[a] - probability[:, [a]])
            by_row = change @ beta.T  # (n, d)
            indirect += np.kron(contrast[a][None], (share[:, None] * by_row).T @ terms.z)
        jacobian[k] = direct + indirect
    error = _errors(jacobian.reshape(K * d, m * q), terms, inference)
    classes = tuple(label for label in labels for _ in features)
    return MarginalEffects(inference.title, features * K, classes, effect.ravel(), error, level)


def _errors(jacobian: Floats, terms: RowTerms, inference: Inference) -> Floats:
    """Return standard errors by the delta method, from the Jacobian with respect to theta."""
    upper = cholesky(terms.curvature)
    root = solve_triangular(upper, jacobian.T, trans="T")
    variance = np.einsum("ip,ip->p", root, root) * inference.likelihood.dispersion
    return np.asarray(np.sqrt(variance))
