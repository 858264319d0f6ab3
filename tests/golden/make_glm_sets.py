"""Rows for the generalised linear and logistic references -> glm_sets.json

    python tests/golden/make_glm_sets.py tests/golden/glm_sets.json

All are drawn with a seed and rounded to a few decimals, so that R and Python read the same doubles.
`responses` has one response per family and link, drawn by that link, so that its fit exists.
"""

import json
import sys
from pathlib import Path

import numpy as np
from scipy import stats

SEED = 20240803
ROWS = 50


def main(target):
    draw = np.random.default_rng(SEED)
    sets = {
        "glm": glm_rows(draw),
        "classes": class_rows(draw, rows=120),
        "separated": separated_rows(draw, rows=24),
    }
    target.write_text(json.dumps(sets, indent=None).replace('], "', '],\n "') + "\n")


def glm_rows(draw):
    features = np.column_stack(
        [
            draw.uniform(-1, 1, ROWS).round(3),
            draw.uniform(-1.5, 1.5, ROWS).round(3),
            draw.integers(0, 2, ROWS),
        ]
    )
    trials = draw.integers(5, 21, ROWS)
    return {
        "features": features.tolist(),
        "weight": draw.choice([0.5, 1.0, 1.5, 2.0, 3.0], ROWS).tolist(),
        "times": draw.integers(1, 4, ROWS).tolist(),  # whole weights, for the binomial family
        "offset": draw.uniform(-0.3, 0.0, ROWS).round(3).tolist(),
        "trials": trials.tolist(),
        "responses": responses(draw, features, trials),
    }


def responses(draw, features, trials):
    wide = features @ [0.9, -0.6, 0.5] - 0.3
    narrow = features @ [0.3, -0.1, 0.2] + 1.0  # never near zero: for 1 / mean and log mean
    level = features @ [1.2, -0.5, 1.0] + 4.0  # a mean that is positive everywhere
    chance = {
        "logit": 1 / (1 + np.exp(-wide)),
        "probit": stats.norm.cdf(wide),
        "cloglog": -np.expm1(-np.exp(wide)),
        "cauchit": stats.cauchy.cdf(wide),
        "log": np.full(ROWS, np.exp(-1.8)),  # estimates that stay off the boundary, chance 1
    }
    noise = draw.normal(size=ROWS)
    numbers = {
        "gaussian-identity": wide + 0.5 * noise,
        "gaussian-log": np.exp(narrow) + 0.3 * noise,
        "gaussian-inverse": 1 / narrow + 0.05 * noise,
        "Gamma-inverse": draw.gamma(5, 1 / narrow / 5),
        "Gamma-log": draw.gamma(5, np.exp(narrow) / 5),
        "Gamma-identity": draw.gamma(20, level / 20),
    }
    counts = {
        "poisson-log": draw.poisson(np.exp(narrow)),
        "poisson-identity": draw.poisson(level),
    }
    for link, p in chance.items():
        counts[f"binomial-{link}"] = draw.binomial(1, p)
        counts[f"grouped-{link}"] = draw.binomial(trials, p)
    return {
        **{name: values.round(3).tolist() for name, values in numbers.items()},
        **{name: values.tolist() for name, values in counts.items()},
    }


def class_rows(draw, *, rows):
    """Three classes that overlap, with columns of unlike scale, and whole weights."""
    codes = np.repeat([0, 1, 2], rows // 3)
    means = np.array([[0.0, 0.0, 0.0], [0.8, -0.5, 0.3], [-0.4, 0.9, 0.6]])
    features = (means[codes] + draw.normal(size=(rows, 3))) * [1.0, 20.0, 0.1] + [2.0, 50.0, 0.0]
    return {
        "features": features.round(3).tolist(),
        "codes": codes.tolist(),
        "times": draw.integers(1, 4, rows).tolist(),
    }


def separated_rows(draw, *, rows):
    """Three classes, each apart from the others: maximum likelihood has no answer here."""
    codes = np.repeat([0, 1, 2], rows // 3)
    means = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]])
    features = means[codes] + draw.uniform(-1, 1, size=(rows, 2))
    return {"features": features.round(3).tolist(), "codes": codes.tolist()}


if __name__ == "__main__":
    main(Path(sys.argv[1]))
