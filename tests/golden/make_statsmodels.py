"""Logit and MNLogit by statsmodels -> statsmodels.json

    python tests/golden/make_statsmodels.py tests/golden/glm_sets.json tests/golden/statsmodels.json

Newton to a gradient of rounding only, so that the standard errors are those of the maximum. MNLogit
has class 0 as its reference; a row of `coef` is another class, the constant first.
"""

import json
import sys
from pathlib import Path

import numpy as np
import statsmodels
import statsmodels.api as sm


def main(source, target):
    classes = json.loads(source.read_text())["classes"]
    features, codes = np.array(classes["features"]), np.array(classes["codes"])
    spector = sm.datasets.spector.load()
    two = codes < 2
    answer = {
        "versions": {"statsmodels": statsmodels.__version__, "numpy": np.__version__},
        "sets": {
            "two": told(sm.Logit, features[two], codes[two]),
            "classes": told(sm.MNLogit, features, codes),
            "spector": told(sm.Logit, np.asarray(spector.exog), np.asarray(spector.endog)),
        },
    }
    target.write_text(json.dumps(answer, indent=1) + "\n")


def told(kind, features, codes):
    fit = kind(codes, sm.add_constant(features)).fit(disp=0, method="newton", tol=1e-14, maxiter=50)
    assert fit.mle_retvals["converged"]
    return {
        "coef": np.atleast_2d(fit.params.T).tolist(),
        "se": np.atleast_2d(fit.bse.T).tolist(),
        "z": np.atleast_2d(fit.tvalues.T).tolist(),
        "p": np.atleast_2d(fit.pvalues.T).tolist(),
        "loglik": fit.llf,
        "null_loglik": fit.llnull,
        "mcfadden": fit.prsquared,
        "aic": fit.aic,
        "bic": fit.bic,
        "likelihood_ratio": [fit.llr, fit.df_model, fit.llr_pvalue],
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
