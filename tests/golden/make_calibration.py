"""Calibrators by other libraries: python make_calibration.py > calibration.json

Scores of 150 rows, of two and of three classes, with weights. By scikit-learn 1.9: Platt's sigmoid
(`_SigmoidCalibration`, stopped at a gradient of 1e-6), isotonic regression and the temperature. By
betacal 1.1 with method "abm", on probabilities of two classes, without weights. The sigmoid and the
temperature again by direct maximisation of the likelihood (SciPy, Nelder and Mead).
"""

import json
import sys
from importlib.metadata import version

import numpy as np
from betacal import BetaCalibration
from scipy.optimize import minimize
from scipy.special import log_expit, log_softmax, logsumexp
from sklearn.calibration import _sigmoid_calibration, _TemperatureScaling
from sklearn.isotonic import IsotonicRegression

SEED = 11


def rows(classes):
    """Log posteriors that are too sure, labels and weights."""
    rng = np.random.default_rng(SEED + classes)
    y = rng.integers(0, classes, 150)
    x = rng.normal(size=(150, classes)) + 1.2 * np.eye(classes)[y]
    logs = log_softmax(2.0 * x, axis=1)
    return logs, y, rng.integers(1, 4, 150).astype(float)


def margins(logs):
    if logs.shape[1] == 2:
        return [(1, logs[:, 1] - logs[:, 0])]
    classes = range(logs.shape[1])
    return [(k, logs[:, k] - logsumexp(np.delete(logs, k, axis=1), axis=1)) for k in classes]


def maximised(loss, start):
    options = {"xatol": 1e-12, "fatol": 1e-15, "maxiter": 20000, "maxfev": 20000}
    return minimize(loss, start, method="Nelder-Mead", options=options).x


def platt(s, positive, w):
    a, b = _sigmoid_calibration(s, positive.astype(float), w)
    n1, n0 = w[positive].sum(), w[~positive].sum()
    t = np.where(positive, (n1 + 1) / (n1 + 2), 1 / (n0 + 2))

    def loss(ab):
        z = ab[0] * s + ab[1]
        return -(w * (t * log_expit(z) + (1 - t) * log_expit(-z))).sum() / w.sum()

    return {"sklearn": [-a, -b], "direct": maximised(loss, [-a, -b]).tolist()}


def isotonic(s, positive, w):
    fit = IsotonicRegression(out_of_bounds="clip").fit(s, positive.astype(float), w)
    at = np.linspace(s.min() - 1, s.max() + 1, 41)
    return {"at": at.tolist(), "value": fit.predict(at).tolist()}


def temperature(logs, y, w):
    beta = float(_TemperatureScaling().fit(logs, y, w).beta_)

    def loss(log_beta):
        scaled = log_softmax(np.exp(log_beta[0]) * logs, axis=1)
        return -(w * scaled[np.arange(len(y)), y]).sum() / w.sum()

    return {"sklearn": 1 / beta, "direct": float(np.exp(-maximised(loss, [np.log(beta)])[0]))}


def beta(p, positive):
    model = BetaCalibration("abm").fit(p.reshape(-1, 1), positive.astype(int))
    at = np.linspace(0.01, 0.99, 25)
    a, b, _ = model.calibrator_.map_
    value = np.ravel(model.predict(at.reshape(-1, 1))).tolist()
    return {"a": float(a), "b": float(b), "at": at.tolist(), "value": value}


def case(classes):
    logs, y, w = rows(classes)
    answer = {"logs": logs.tolist(), "y": y.tolist(), "weight": w.tolist()}
    answer["platt"] = [platt(s, y == k, w) for k, s in margins(logs)]
    answer["isotonic"] = [isotonic(s, y == k, w) for k, s in margins(logs)]
    answer["temperature"] = temperature(logs, y, w)
    if classes == 2:
        answer["beta"] = beta(np.exp(logs[:, 1]), y == 1)
        # no more positive rows at large p: the coefficient of log(1 - p) is negative and dropped
        p = np.exp(logs[:, 1])
        flat = np.where(p > 0.6, np.arange(len(y)) % 2, y)
        answer["flat"] = flat.tolist()
        answer["beta_flat"] = beta(p, flat == 1)
        skewed = np.exp(logs[:, 1]) ** 3
        answer["beta_skewed"] = beta(skewed, y == 1)
    return answer


json.dump(
    {
        "made_by": f"scikit-learn {version('scikit-learn')}, betacal {version('betacal')}",
        "two": case(2),
        "three": case(3),
    },
    sys.stdout,
)
print()
