"""Figures of lecture 5: lines, links, digits, codes, synthetic rows."""

from __future__ import annotations

import numpy as np
from drawing import BLUE, FILLED, GREEN, GREY, OCHRE, PURPLE, RED, axes, figure
from matplotlib.colors import ListedColormap
from scipy.stats import cauchy, norm
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits

import discriminant as dd


@figure
def line():
    """Least squares on one column."""
    patients = load_diabetes(as_frame=True, scaled=False)
    x, y = patients.data["bmi"].to_numpy(), patients.target.to_numpy()
    model = dd.LinearRegression().fit(x[:, None], y)
    drawn, ax = axes(width=5.0, height=3.3)
    ax.scatter(x, y, c=BLUE, alpha=0.5, linewidth=0, s=14)
    ends = np.array([x.min(), x.max()])
    ax.plot(ends, model.predict(ends[:, None]), color=RED, label=f"slope {model.coef_[0]:.2f}")
    ax.set(xlabel="body mass index", ylabel="disease score a year later", title="442 patients")
    ax.legend()
    return drawn


@figure
def loglinear():
    """Multiplicative errors."""
    rng = np.random.default_rng(1)
    size = rng.uniform(0, 3, (200, 1))
    price = np.exp(0.5 + 0.8 * size[:, 0] + rng.normal(0, 0.2, 200))
    grid = np.linspace(0, 3, 80)[:, None]
    drawn, ax = axes(width=5.0, height=3.3)
    ax.scatter(size[:, 0], price, c=GREY, alpha=0.5, linewidth=0, s=14)
    ax.plot(
        grid,
        dd.LinearRegression().fit(size, price).predict(grid),
        color=RED,
        label="price = wx + b",
    )
    ax.plot(
        grid, dd.LogLinear().fit(size, price).predict(grid), color=BLUE, label="ln price = wx + b"
    )
    ax.set(xlabel="size", ylabel="price", title="Linear and log-linear regression")
    ax.legend()
    return drawn


@figure
def links():
    """Link functions."""
    z = np.linspace(-5, 5, 300)
    curves = {
        "logistic": (1 / (1 + np.exp(-z)), BLUE),
        "probit": (norm.cdf(z), GREEN),
        "compl. log-log": (-np.expm1(-np.exp(z)), OCHRE),
        "Cauchy": (cauchy.cdf(z), PURPLE),
    }
    drawn, ax = axes(width=5.2, height=3.2)
    ax.step([-5, 0, 5], [0, 1, 1], where="post", color="#9aa1ab", linewidth=1.2, label="unit step")
    for name, (curve, colour) in curves.items():
        ax.plot(z, curve, color=colour, label=name)
    ax.set(
        xlabel="z = w'x + b",
        ylabel="probability",
        title="Step function and four smooth approximations",
    )
    ax.legend(loc="upper left")
    return drawn


@figure
def digits():
    """Ten digits on two discriminant directions."""
    X, y = load_digits(return_X_y=True)
    varied = np.min([X[y == k].std(axis=0) for k in range(10)], axis=0) > 0.5
    model = dd.Fisher(2).fit(X[:, varied], y)
    drawn, ax = axes(width=5.4, height=4.3)
    some = np.arange(len(y)) % 5 == 0
    colours = (BLUE, RED, GREEN, PURPLE, OCHRE, "#2b93c9", GREY, "#a3263a", "#5a8f29", "#3f3f9b")
    for digit, colour in enumerate(colours):
        points = model.transform(X[some & (y == digit)][:, varied])
        ax.scatter(*points.T, marker=f"${digit}$", c=colour, s=42, linewidth=0.2)
    ax.set(
        xlabel="first direction",
        ylabel="second direction",
        title="Digits on two of nine directions",
    )
    return drawn


@figure
def code():
    """A coding matrix."""
    X, y = load_digits(return_X_y=True)
    varied = np.min([X[y == k].std(axis=0) for k in range(10)], axis=0) > 0.5
    drawn, both = axes(2, width=4.4, height=3.0)
    for ax, kind, title in zip(
        both, ("dense", "sparse"), ("Binary", "Ternary (white: left out)"), strict=True
    ):
        model = dd.OutputCodes(dd.LDA(), code=kind, columns=20, random_state=0).fit(X[:, varied], y)
        ax.imshow(
            model.code_,
            cmap=ListedColormap([RED, "white", BLUE]),
            vmin=-1,
            vmax=1,
            interpolation="none",
            aspect="auto",
        )
        ax.set(xlabel="classifier", ylabel="digit", title=f"{title}, distance {model.distance_:g}")
        ax.set_yticks(range(10))
        ax.set_xticks(range(0, 20, 5))
    return drawn


@figure
def smote():
    """Synthetic rows between neighbours."""
    cells = load_breast_cancer(as_frame=True)
    X = cells.data[["mean texture", "mean smoothness"]].to_numpy()
    kind = np.where(cells.target == 0, "malignant", "benign")
    bad, good = np.flatnonzero(kind == "malignant")[:20], np.flatnonzero(kind == "benign")[:120]
    few = np.concatenate([bad, good])
    scale = X[few].std(axis=0)
    model = dd.Resampled(dd.LDA(), "smote", random_state=0)
    made, _ = model.resample(X[few] / scale, kind[few])
    new = (made * scale)[len(few) :]
    drawn, ax = axes(width=5.2, height=3.6)
    ax.scatter(*X[good].T, c=BLUE, alpha=0.45, label="benign (120)", **FILLED)
    ax.scatter(
        *new.T,
        facecolor="none",
        edgecolor=RED,
        s=18,
        linewidth=0.9,
        label=f"synthetic ({len(new)})",
    )
    ax.scatter(*X[bad].T, c=RED, marker="s", label="malignant (20)", **FILLED)
    ax.set(xlabel="mean texture", ylabel="mean smoothness", title="SMOTE")
    ax.legend()
    return drawn
