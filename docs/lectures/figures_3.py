"""Figures of lecture 3: masking, the logit, curved boundaries, regularisation."""

from __future__ import annotations

import numpy as np
from drawing import BLUE, GREEN, GREY, OCHRE, RED, axes, figure
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.pipeline import make_pipeline

import discriminant as dd

WINE = load_wine(as_frame=True)
CULTIVAR = WINE.target_names[WINE.target]


@figure
def masking():
    """Fitted values of three classes on a line."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(centre, 0.6, 100) for centre in (-4, 0, 4)])[:, None]
    y = np.repeat(["left", "middle", "right"], 100)
    drawn, both = axes(2, width=4.6, height=3.4)
    for ax, degree, title in zip(both, (1, 2), ("Linear fit", "Quadratic fit"), strict=True):
        model = dd.LeastSquares(degree=degree).fit(X, y)
        dd.plot_masking(
            model, X, y, ax=ax, most=150, title=f"{title}: error {1 - model.score(X, y):.0%}"
        )
    return drawn


@figure
def logit():
    """The logistic curve."""
    z = np.linspace(-6, 6, 200)
    drawn, ax = axes(width=4.6, height=3.0)
    ax.plot(z, 1 / (1 + np.exp(-z)), color=BLUE)
    ax.axhline(0.5, color=GREY, linestyle=":", linewidth=1)
    ax.axvline(0, color=GREY, linestyle=":", linewidth=1)
    ax.set(xlabel="log odds, β₀ + x'β", ylabel="probability", title="From log odds to probability")
    return drawn


@figure
def curved():
    """LDA, LDA in five columns, QDA."""
    X = WINE.data[["alcohol", "flavanoids"]].to_numpy()
    models = {
        "LDA": dd.LDA(),
        "LDA in five columns": make_pipeline(dd.Basis(degree=2), dd.LDA()),
        "QDA": dd.QDA(),
    }
    drawn, three = axes(3, width=3.5, height=3.2)
    for ax, (title, model) in zip(three, models.items(), strict=True):
        dd.plot_boundary(
            model.fit(X, CULTIVAR), X, CULTIVAR, ax=ax, nodes=61, most=120, title=title
        )
        ax.set(xlabel="alcohol", ylabel="flavanoids")
        if ax is not three[0] and ax.get_legend():
            ax.get_legend().remove()
    return drawn


@figure
def shrinkage():
    """Accuracy of LDA against shrinkage, for few rows."""
    gammas = np.array([0.0, 0.1, 0.25, 0.4, 0.55, 0.7, 0.8, 0.9, 0.95, 1.0])
    X, right = WINE.data.to_numpy(), np.zeros((30, len(gammas)))
    rng = np.random.default_rng(0)
    for draw in range(30):
        order = rng.permutation(len(X))
        few, rest = order[:18], order[18:]
        for place, gamma in enumerate(gammas):
            model = dd.LDA(shrinkage=1 - gamma).fit(X[few], CULTIVAR[few])
            right[draw, place] = model.score(X[rest], CULTIVAR[rest])
    drawn, ax = axes(width=5.0, height=3.2)
    ax.plot(gammas, right.mean(axis=0), color=BLUE, marker="o")
    low, high = np.quantile(right, [0.1, 0.9], axis=0)
    ax.fill_between(gammas, low, high, color=BLUE, alpha=0.18, label="80% of samples")
    ax.set(
        xlabel="γ: 0 is diagonal LDA, 1 is LDA",
        ylabel="accuracy",
        title="18 rows, 13 features",
    )
    ax.legend(loc="lower left")
    return drawn


@figure
def surface():
    """Held-out loss over the RDA grid."""
    drawn, ax = axes(width=5.4, height=4.2)
    dd.plot_surface(dd.RDA(pooling="cv", shrinkage="cv").fit(WINE.data, CULTIVAR), ax=ax)
    return drawn


@figure
def learning():
    """Bias and variance: learning curves of four models."""
    digits, number = load_digits(return_X_y=True)
    rng = np.random.default_rng(3)
    digits = digits + rng.normal(0, 0.1, digits.shape)
    order = rng.permutation(len(digits))
    X, y = digits[order], number[order]
    models = {
        "diagonal LDA": (dd.LDA(shrinkage=1), OCHRE),
        "LDA": (dd.LDA(), BLUE),
        "QDA": (dd.QDA(), RED),
        "RDA": (dd.RDA(pooling=0.7, shrinkage=0.3), GREEN),
    }
    counts = [100, 150, 200, 300, 450, 700, 1200]
    drawn, ax = axes(width=5.2, height=3.5)
    for title, (model, colour) in models.items():
        right = [model.fit(X[:n], y[:n]).score(X[1200:], y[1200:]) for n in counts]
        ax.plot(counts, right, color=colour, marker="o", markersize=4, label=title)
    ax.set(
        xscale="log",
        xlabel="training rows",
        ylabel="accuracy on new digits",
        title="Ten digits, 64 pixels",
    )
    ax.set_xticks(counts, [str(n) for n in counts])
    ax.minorticks_off()
    ax.legend(loc="lower left")
    return drawn


@figure
def regression_line():
    """Classes coded 0 and 1, the least-squares line, and the threshold one half."""
    iris = load_iris()
    two = iris.target > 0
    x, t = iris.data[two][:, 2], (iris.target[two] == 2).astype(float)
    model = dd.LinearRegression().fit(x[:, None], t)
    cut = (0.5 - model.intercept_) / model.coef_[0]
    drawn, ax = axes(width=5.2, height=3.0)
    for value, colour, name in ((0, BLUE, "versicolor"), (1, RED, "virginica")):
        ax.scatter(x[t == value], t[t == value], color=colour, alpha=0.5, s=18, label=name)
    ends = np.array([2.8, 7.0])
    ax.plot(ends, model.predict(ends[:, None]), color=GREY, label="least squares")
    ax.axhline(0.5, color=OCHRE, linestyle=":", label="threshold ½")
    ax.axvline(cut, color=GREY, linestyle="--", label=f"boundary at {cut:.2f} cm")
    ax.set(xlabel="petal length (cm)", ylabel="code", ylim=(-0.5, 1.5))
    ax.legend(fontsize=7.5, loc="center left", bbox_to_anchor=(1.01, 0.5))
    return drawn


@figure
def masking_plane():
    """Three clusters along a line in the plane."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 2)) + np.repeat([[0.0], [4.0], [8.0]], 100, axis=0)
    y = np.repeat(["first", "middle", "third"], 100)
    drawn, both = axes(2, width=4.3, height=3.8)
    for ax, title, model in (
        (both[0], "Indicator regression", dd.LeastSquares()),
        (both[1], "LDA", dd.LDA()),
    ):
        model.fit(X, y)
        recall = np.mean(model.predict(X[100:200]) == "middle")
        dd.plot_boundary(model, X, y, ax=ax, nodes=161)
        ax.set(title=f"{title}: {recall:.0%} of the middle class", xlabel="x₁", ylabel="x₂")
    return drawn


@figure
def shrinkage_ratio():
    """Accuracy against the number of features per row, with and without shrinkage."""
    widths = (1, 2, 4, 7, 10, 13, 16, 18, 19, 22, 30, 40, 60)
    side = np.arange(220) % 2
    drawn, ax = axes(width=5.4, height=3.2)
    for options, name, colour, style in (
        ({}, "no option (shrunk where singular)", RED, "--"),
        ({"shrinkage": "auto"}, "Ledoit and Wolf", GREEN, "-"),
        ({"shrinkage": "oas"}, "OAS", BLUE, "-"),
    ):
        scores = []
        for p in widths:
            rng, total = np.random.default_rng(0), 0.0
            for _ in range(30):
                X = rng.normal(size=(220, p))
                X[:, 0] += 4 * side - 2
                total += dd.LDA(**options).fit(X[:20], side[:20]).score(X[20:], side[20:])
            scores.append(total / 30)
        ax.plot(np.array(widths) / 20, scores, color=colour, linestyle=style, label=name)
    ax.set(xlabel="features per training row, p/N", ylabel="accuracy", ylim=(0.5, 1.0))
    ax.legend(fontsize=7.5, loc="lower right")
    return drawn
