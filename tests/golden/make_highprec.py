"""Logistic regression in 60-digit arithmetic -> logistic_highprec.json

    cd tests/golden; python make_highprec.py glm_sets.json logistic_highprec.json

The doubles of a row are taken as they are. Class 0 is the reference: theta_a = w_a - w_0 for the
others, the intercept first. With p the posterior of a row x and P = diag(p) - p p', Newton's method
on

    log likelihood                   gradient sum (y - p) x,  curvature I = sum P (x) x x'
    - N ridge / 2 sum_k |w_k|^2      of standardised features (sd over N), the rows w_k of sum zero
                                     if there are more than two, w_1 alone if there are two
    + 1/2 log det I                  Jeffreys: gradient 1/2 tr(I^-1 dI/dtheta), curvature I kept

until the step is below 1e-45 of theta. Answers are strings of 30 digits; README.md has the layout.
"""

import json
import sys
from pathlib import Path

import mpmath as mp
import numpy as np
import statsmodels
import statsmodels.api as sm
from sklearn.datasets import load_iris, load_wine

mp.mp.dps = 60
SEED = 7


def main(source, target):
    classes = json.loads(source.read_text())
    sets = base_sets() | {
        "classes": {key: classes["classes"][key] for key in ("features", "codes")},
        "separated": classes["separated"],
    }
    sets["two"] = two_of(sets["classes"])
    sets["separated_two"] = two_of(sets["separated"])
    trust = {name: likelihood_case(sets, plan) for name, plan in TRUST.items()}
    answer = {
        "versions": {"mpmath": mp.__version__, "statsmodels": statsmodels.__version__},
        "sets": {name: sets[name] for name in ("overlap", "overlap3", "spector")},
        "trust": trust,
        "ml": {name: fitted(*rows_of(sets[name])) for name in ("two", "classes")},
        "ridge": {
            f"{name}-{kind}-{ridge}": ridge_case(sets[name], ridge, kind)
            for name in ("two", "classes")
            for kind in ("standardized", "raw")
            for ridge in (0.1, 0.001)
        },
        "jeffreys": {
            name: fitted(*rows_of(sets[name]), jeffreys=True)
            for name in ("two", "classes", "separated_two", "separated", "spector")
        },
    }
    target.write_text(json.dumps(answer, indent=1) + "\n")


# --- sets -----------------------------------------------------------------------------------------


def base_sets():
    draw = np.random.default_rng(SEED)
    iris, species = load_iris(return_X_y=True)
    wine, maker = load_wine(return_X_y=True)
    spector = sm.datasets.spector.load()
    return {
        "overlap": drawn(draw, np.array([[0.0, 0.0], [1.0, 0.8]])),
        "overlap3": drawn(draw, np.array([[0.0, 0.0], [1.0, 0.8], [-0.5, 1.2]])),
        "iris": as_set(iris[50:], species[50:] - 1),
        "wine": as_set(wine[:, [0, 2, 4]], maker),
        "spector": as_set(spector.exog, spector.endog),
    }


def drawn(draw, means):
    codes = np.repeat(np.arange(len(means)), 50)
    return as_set((means[codes] + draw.normal(size=(len(codes), 2))).round(3), codes)


def as_set(features, codes):
    return {
        "features": np.asarray(features, float).tolist(),
        "codes": np.asarray(codes, int).tolist(),
    }


def two_of(both):
    keep = np.array(both["codes"]) < 2
    return as_set(np.array(both["features"])[keep], np.array(both["codes"])[keep])


TRUST = {  # features * scale + shift, in doubles
    "overlap": ("overlap", [1.0, 1.0], 0.0),
    "mean 1e4": ("overlap", [1.0, 1.0], 1e4),
    "mean 1e6": ("overlap", [1.0, 1.0], 1e6),
    "columns 1e-5 and 1e5": ("overlap", [1e-5, 1e5], 0.0),
    "spector": ("spector", [1.0, 1.0, 1.0], 0.0),
    "iris 1v2": ("iris", [1.0, 1.0, 1.0, 1.0], 0.0),
    "three: overlap": ("overlap3", [1.0, 1.0], 0.0),
    "three: mean 1e4": ("overlap3", [1.0, 1.0], 1e4),
    "three: mean 1e6": ("overlap3", [1.0, 1.0], 1e6),
    "three: columns 1e-5 and 1e5": ("overlap3", [1e-5, 1e5], 0.0),
    "three: wine": ("wine", [1.0, 1.0, 1.0], 0.0),
}


def rows_of(both):
    return np.array(both["features"]), np.array(both["codes"])


def likelihood_case(sets, plan):
    name, scale, shift = plan
    features, codes = rows_of(sets[name])
    answer = fitted(features * np.array(scale) + shift, codes)
    return {"set": name, "scale": scale, "shift": shift} | answer


def ridge_case(both, ridge, kind):
    features, codes = rows_of(both)
    return {"ridge": ridge} | fitted(features, codes, ridge=mp.mpf(ridge), kind=kind)


# --- Newton's method ------------------------------------------------------------------------------


def fitted(features, codes, *, ridge=0, kind="raw", jeffreys=False):
    """Coefficients against class 0, their standard errors, and the log likelihood."""
    rows = [[mp.mpf(1), *map(mp.mpf, map(float, row))] for row in features]
    others = int(max(codes))
    penalty = penalty_of(rows, others, ridge=ridge * len(rows), kind=kind)
    theta = mp.zeros(others * len(rows[0]), 1)
    value = None
    for _ in range(2000):
        value, gradient, curvature = slopes(rows, codes, theta, others, jeffreys=jeffreys)
        gradient -= penalty * theta
        value -= (theta.T * penalty * theta)[0] / 2
        step = mp.lu_solve(curvature + penalty, gradient)
        if mp.norm(step) <= mp.mpf(10) ** -45 * (1 + mp.norm(theta)):
            return told(theta, curvature, rows, codes, others)
        theta += step * length_of(rows, codes, theta, step, others, penalty, value, jeffreys)
    raise ArithmeticError("no convergence")


def length_of(rows, codes, theta, step, others, penalty, value, jeffreys):
    """The whole step, or the first half, quarter, ... of it that does not lose."""
    for halvings in range(60):
        trial = theta + step / 2**halvings
        found = slopes(rows, codes, trial, others, jeffreys=jeffreys)[0]
        found -= (trial.T * penalty * trial)[0] / 2
        if found >= value - mp.mpf(10) ** -50 * abs(value):
            return mp.mpf(1) / 2**halvings
    raise ArithmeticError("no step gains")


def penalty_of(rows, others, *, ridge, kind):
    """theta' A theta / 2 is the penalty; w_k is theta_k less the mean of all, class 0 included."""
    width = len(rows[0])
    size = mp.zeros(others * width)
    for j in range(1, width):
        column = [row[j] for row in rows]
        mean = mp.fsum(column) / len(rows)
        spread = mp.fsum((value - mean) ** 2 for value in column) / len(rows)
        unit = spread if kind == "standardized" else 1
        for a in range(others):
            for b in range(others):
                shared = mp.mpf(1) / (others + 1) if others > 1 else 0
                size[a * width + j, b * width + j] = ridge * unit * ((a == b) - shared)
    return size


def slopes(rows, codes, theta, others, *, jeffreys):
    """Log likelihood (with Jeffreys' term if asked for), its gradient and the information."""
    width = len(rows[0])
    chances = [chances_of(row, theta, others) for row in rows]
    value = mp.fsum(mp.log(p[c]) for p, c in zip(chances, codes, strict=True))
    gradient, curvature = mp.zeros(others * width, 1), mp.zeros(others * width)
    for row, code, p in zip(rows, codes, chances, strict=True):
        for a in range(others):
            residual = (code == a + 1) - p[a + 1]
            for m in range(width):
                gradient[a * width + m] += residual * row[m]
            for b in range(others):
                share = p[a + 1] * ((a == b) - p[b + 1])
                for m in range(width):
                    for n in range(width):
                        curvature[a * width + m, b * width + n] += share * row[m] * row[n]
    if jeffreys:
        gradient += jeffreys_gradient(rows, chances, curvature, others)
        value += mp.log(mp.det(curvature)) / 2
    return value, gradient, curvature


def chances_of(row, theta, others):
    width = len(row)
    scores = [mp.mpf(0)]
    for a in range(others):
        scores.append(mp.fdot((theta[a * width + m], row[m]) for m in range(width)))
    weights = [mp.exp(score) for score in scores]
    total = mp.fsum(weights)
    return [weight / total for weight in weights]


def jeffreys_gradient(rows, chances, curvature, others):
    """1/2 sum_i x_i sum_bc dP_bc / deta_a x_i' (I^-1)_bc x_i."""
    width, inverse = len(rows[0]), curvature**-1
    gradient = mp.zeros(others * width, 1)
    for row, p in zip(rows, chances, strict=True):
        lever = [
            [
                mp.fsum(
                    row[m] * inverse[b * width + m, c * width + n] * row[n]
                    for m in range(width)
                    for n in range(width)
                )
                for c in range(others)
            ]
            for b in range(others)
        ]
        for a in range(others):
            change = mp.mpf(0)
            rise = [p[b + 1] * ((a == b) - p[a + 1]) for b in range(others)]
            for b in range(others):
                change += rise[b] * lever[b][b]
                for c in range(others):
                    change -= (rise[b] * p[c + 1] + p[b + 1] * rise[c]) * lever[b][c]
            for m in range(width):
                gradient[a * width + m] += change * row[m] / 2
    return gradient


def told(theta, curvature, rows, codes, others):
    width = len(rows[0])
    inverse = curvature**-1
    value = slopes(rows, codes, theta, others, jeffreys=False)[0]

    def by_class(numbers):
        return [[mp.nstr(numbers[a * width + m], 30) for m in range(width)] for a in range(others)]

    return {
        "coef": by_class(theta),
        "se": by_class([mp.sqrt(inverse[j, j]) for j in range(len(theta))]),
        "loglik": mp.nstr(value, 30),
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
