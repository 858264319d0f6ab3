"""Marginal effects and clustered errors by statsmodels, and OrderedModel -> margins.json

    python tests/golden/make_margins.py tests/golden/glm_sets.json tests/golden/ordered_r.json \\
        tests/golden/margins.json

`get_margeff` of Logit, Probit and MNLogit: mean effects over the rows, with errors by the delta
method. `OrderedModel` has no weights, so the rows of `drawn` are repeated by theirs; its thresholds
are the cumulative sums that `transform_threshold_params` returns, and its standard errors come from
a numerical Hessian.
"""

import json
import sys
from pathlib import Path

import numpy as np
import statsmodels
import statsmodels.api as sm
from statsmodels.miscmodels.ordinal_model import OrderedModel


def main(sets, ordered, target):
    held = json.loads(sets.read_text())
    classes, glm = held["classes"], held["glm"]
    features, codes = np.array(classes["features"]), np.array(classes["codes"])
    two = codes < 2
    answer = {
        "versions": {"statsmodels": statsmodels.__version__, "numpy": np.__version__},
        "logit": effects(sm.Logit, features[two], codes[two]),
        "probit": effects(sm.Probit, features[two], codes[two]),
        "classes": effects(sm.MNLogit, features, codes),
        "poisson": effects(sm.Poisson, np.array(glm["features"]), glm["responses"]["poisson-log"]),
        "clusters": clustered(features[two], codes[two]),
        "classes_hc0": robust_classes(features, codes),
        "ordered": ordered_fits(json.loads(ordered.read_text())["sets"]["drawn"]),
    }
    target.write_text(json.dumps(answer, indent=1) + "\n")


def fitted(kind, features, codes, **options):
    fit = kind(np.asarray(codes), sm.add_constant(features)).fit(
        disp=0, method="newton", tol=1e-14, maxiter=100, **options
    )
    assert fit.mle_retvals["converged"]
    return fit


def effects(kind, features, codes):
    found = fitted(kind, features, codes).get_margeff(at="overall")
    return {
        "effect": np.asarray(found.margeff).T.tolist(),
        "se": np.asarray(found.margeff_se).T.tolist(),
    }


def clustered(features, codes):
    groups = (np.arange(1, len(codes) + 1) * 7) % 11
    fit = fitted(
        sm.Logit,
        features,
        codes,
        cov_type="cluster",
        cov_kwds={"groups": groups, "use_correction": True},
    )
    return {"groups": groups.tolist(), "se": fit.bse.tolist()}


def robust_classes(features, codes):
    fit = fitted(sm.MNLogit, features, codes, cov_type="HC0")
    return np.asarray(fit.bse).T.tolist()


def ordered_fits(drawn):
    features, level = np.array(drawn["features"]), np.array(drawn["level"])
    times = np.array(drawn["weight"])
    centre = features.mean(axis=0)
    rows, levels = np.repeat(features - centre, times, axis=0), np.repeat(level, times)
    answer = {}
    for name in ("logit", "probit"):
        fit = OrderedModel(levels, rows, distr=name).fit(
            method="newton", disp=0, tol=1e-9, maxiter=200
        )
        assert fit.mle_retvals["converged"]
        d = features.shape[1]
        slopes = np.asarray(fit.params)[:d]
        ends = fit.model.transform_threshold_params(np.asarray(fit.params))[1:-1]
        answer[name] = {
            "coef": slopes.tolist(),
            "thresholds": (ends + centre @ slopes).tolist(),
            "se": np.asarray(fit.bse)[:d].tolist(),
            "loglik": float(fit.llf),
        }
    return answer


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
