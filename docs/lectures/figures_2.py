"""Figures of lecture 2: confusion matrix, ROC curve, projections."""

from __future__ import annotations

import numpy as np
from drawing import BLUE, GREY, RED, axes, figure
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.model_selection import train_test_split

import discriminant as dd

CELLS = load_breast_cancer(as_frame=True)
KIND = np.where(CELLS.target == 0, "malignant", "benign")


def _tested():
    X = CELLS.data[["mean texture", "mean smoothness", "mean symmetry"]]
    parts = train_test_split(X, KIND, test_size=0.4, random_state=1, stratify=KIND)
    return dd.LDA().fit(parts[0], parts[2]), parts[1], parts[3]


@figure
def confusion():
    """Confusion matrix: decisions by true class."""
    drawn, ax = axes(width=4.2, height=3.2)
    dd.plot_confusion(dd.evaluate(*_tested()), ax=ax)
    return drawn


@figure
def roc():
    """ROC curve."""
    model, X, y = _tested()
    drawn, ax = axes(width=4.8, height=4.2)
    dd.plot_roc(y, model.decision_function(X), positive="malignant", ax=ax)
    return drawn


@figure
def offset():
    """A projection and its residual."""
    a, b = np.array([4.0, 2.0]), np.array([1.0, 3.0])
    p = (a @ b) / (a @ a) * a
    drawn, ax = axes(width=4.4, height=3.3)
    ax.axline((0, 0), a, color="#c8cdd4", linewidth=1, zorder=0)
    for end, colour, name in ((a, GREY, "a"), (b, BLUE, "b"), (p, RED, "p")):
        ax.annotate(
            "", end, (0, 0), arrowprops={"arrowstyle": "-|>", "color": colour, "linewidth": 2}
        )
        ax.annotate(
            name, end, xytext=(7, -11), textcoords="offset points", color=colour, fontsize=12
        )
    ax.plot(*np.array([p, b]).T, color=BLUE, linestyle=":", label="r = b − p")
    ax.set(xlim=(-0.5, 5), ylim=(-0.4, 3.6), aspect="equal", title="b = p + r")
    ax.legend(loc="upper right")
    return drawn


@figure
def offsets():
    """Histograms of two species along Fisher's direction."""
    iris = load_iris()
    names = iris.target_names[iris.target]
    X, y = iris.data[names != "setosa"], names[names != "setosa"]
    model = dd.Fisher().fit(X, y)
    along = model.transform(X)[:, 0]
    drawn, ax = axes(width=5.2, height=3.1)
    for name, colour in zip(model.classes_, (BLUE, RED), strict=True):
        ax.hist(along[y == name], bins=np.linspace(-5, 5, 31), color=colour, alpha=0.6, label=name)
    ax.axvline(model.threshold_, color=GREY, linestyle="--", label="threshold")
    ax.set(
        xlabel="offset along w", ylabel="flowers", title=f"Fisher: accuracy {model.score(X, y):.0%}"
    )
    ax.legend()
    return drawn
