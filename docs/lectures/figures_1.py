"""Figures of lecture 1: directions, densities, rings, rare classes."""

from __future__ import annotations

import numpy as np
from drawing import BLUE, GREY, PURPLE, RED, axes, boundary, figure, rows
from scipy.stats import norm
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.pipeline import make_pipeline

import discriminant as dd

IRIS = load_iris()
SPECIES = IRIS.target_names[IRIS.target]


@figure
def directions():
    """Two directions, and the rows projected on them."""
    two = SPECIES != "setosa"
    X, y = IRIS.data[two][:, [0, 2]], SPECIES[two]
    drawn, (plane, first, second) = axes(3, width=3.3, height=3.2)
    rows(plane, X, y)
    plane.set(
        xlabel="sepal length (cm)",
        ylabel="petal length (cm)",
        title="Two iris species",
        ylim=(1.9, 7.3),
    )
    methods = [
        ("mean_difference", "Mean difference", PURPLE, first),
        ("fisher", "Fisher", GREY, second),
    ]
    for method, title, colour, ax in methods:
        model = dd.Fisher(method=method).fit(X, y)
        w = model.scalings_[:, 0] / np.linalg.norm(model.scalings_[:, 0])
        ends = X.mean(axis=0) + np.outer([-1.6, 1.6], w)
        plane.plot(*ends.T, color=colour, label=title, zorder=1)
        along, bins = model.transform(X)[:, 0], np.linspace(-5.5, 5.5, 28)
        for name, shade in zip(model.classes_, (BLUE, RED), strict=True):
            ax.hist(along[y == name], bins=bins, color=shade, alpha=0.6, label=name)
        ax.set(title=f"{title}: accuracy {model.score(X, y):.0%}", xlabel="projection", yticks=[])
    plane.legend(handles=plane.get_legend_handles_labels()[0][2:], fontsize=7, loc="lower right")
    first.legend(loc="upper right", fontsize=7)
    return drawn


@figure
def projection():
    """Wines on the two discriminant directions."""
    wine = load_wine()
    drawn, ax = axes(width=5.6, height=4.2)
    kinds = wine.target_names[wine.target]
    dd.plot_projection(dd.Fisher().fit(wine.data, kinds), wine.data, kinds, ax=ax)
    return drawn


@figure
def densities():
    """Two Gaussian classes with equal and unequal priors."""
    x = np.linspace(-5, 5, 300)
    drawn, both = axes(2, height=2.9)
    for ax, prior in zip(both, (0.5, 0.3), strict=True):
        left, right = prior * norm.pdf(x, -1.5), (1 - prior) * norm.pdf(x, 1.5)
        cut = -np.log((1 - prior) / prior) / 3
        ax.fill_between(x, left, color=BLUE, alpha=0.35, label="left")
        ax.fill_between(x, right, color=RED, alpha=0.35, label="right")
        ax.axvline(cut, color=GREY, linestyle="--", label=f"boundary at {cut + 0.0:.2f}")
        ax.set(
            title=f"priors {prior} and {1 - prior}",
            xlabel="x",
            ylabel="prior × density",
            ylim=(0, 0.33),
        )
        ax.legend(loc="upper left")
    return drawn


@figure
def three_classes():
    """Linear boundaries of three classes."""
    X = IRIS.data[:, :2]
    drawn, ax = axes(width=5.2, height=3.9)
    dd.plot_boundary(dd.LDA().fit(X, SPECIES), X, SPECIES, ax=ax, nodes=121)
    ax.set(xlabel="sepal length (cm)", ylabel="sepal width (cm)")
    return drawn


@figure
def ring():
    """A ring around a core, with the boundaries of three models."""
    rng = np.random.default_rng(1)
    inner = rng.normal(0, 0.5, (150, 2))
    angle = rng.uniform(0, 2 * np.pi, 150)
    outer = 2.5 * np.column_stack([np.cos(angle), np.sin(angle)]) + rng.normal(0, 0.25, (150, 2))
    X, y = np.vstack([inner, outer]), np.repeat(["core", "ring"], 150)
    drawn, three = axes(3, width=3.1, height=3.2)
    squares = make_pipeline(dd.Basis(degree=2), dd.LDA())
    for ax, title, model in zip(
        three, ("LDA", "QDA", "LDA on squares"), (dd.LDA(), dd.QDA(), squares), strict=True
    ):
        rows(ax, X[::2], y[::2])
        ax.set(xlim=(-3.6, 3.6), ylim=(-3.6, 3.6), aspect="equal")
        boundary(ax, model.fit(X, y))
        ax.set(title=f"{title}: accuracy {model.score(X, y):.0%}", xticks=[], yticks=[])
    return drawn


@figure
def rare():
    """The boundary as fitted, and with rescaled odds."""
    cells = load_breast_cancer(as_frame=True)
    X = cells.data[["mean texture", "mean smoothness"]].to_numpy()
    kind = np.where(cells.target == 0, "malignant", "benign")
    bad, good = np.flatnonzero(kind == "malignant"), np.flatnonzero(kind == "benign")
    train = np.concatenate([bad[:20], good[:200]])
    drawn, ax = axes(width=5.2, height=3.7)
    rows(ax, X[train], kind[train])
    boundary(ax, dd.LDA().fit(X[train], kind[train]), label="as fitted")
    equal = dd.LDA(prior=[0.5, 0.5]).fit(X[train], kind[train])
    boundary(ax, equal, colour=PURPLE, style="--", label="odds rescaled")
    ax.set(
        xlabel="mean texture",
        ylabel="mean smoothness",
        title="Ten benign rows for each malignant row",
    )
    ax.legend(fontsize=8)
    return drawn
