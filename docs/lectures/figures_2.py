"""Figures of lecture 2: confusion matrix, ROC curve, projections."""

from __future__ import annotations

import numpy as np
from drawing import BLUE, GREY, RED, axes, figure, plt
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


@figure
def optimism():
    """Error on training and on test rows against the number of training rows."""
    X = CELLS.data.iloc[:, :5].to_numpy()
    sizes, rng = (15, 20, 30, 50, 100, 200), np.random.default_rng(0)
    drawn, ax = axes(width=5.4, height=3.2)
    for kind, colour in ((dd.LDA, BLUE), (dd.QDA, RED)):
        errors = np.zeros((len(sizes), 2))
        for _ in range(30):
            order = rng.permutation(len(X))
            for i, n in enumerate(sizes):
                train, test = order[:n], order[200:]
                model = kind().fit(X[train], KIND[train])
                errors[i] += [1 - model.score(X[part], KIND[part]) for part in (train, test)]
        for column, (style, name) in enumerate((("--", "training"), ("-", "test"))):
            label = f"{kind.__name__}, {name} rows"
            ax.plot(sizes, errors[:, column] / 30, color=colour, linestyle=style, label=label)
    ax.set(xlabel="training rows", ylabel="error", xscale="log", xticks=sizes)
    ax.set_xticklabels(sizes)
    ax.minorticks_off()
    ax.legend()
    return drawn


@figure
def precision_recall():
    """Precision against recall."""
    model, X, y = _tested()
    curve = dd.precision_recall(y, model.decision_function(X), positive="malignant")
    drawn, ax = axes(width=4.8, height=3.4)
    ax.step(curve.recall, curve.precision, where="post", color=BLUE)
    ax.axhline((y == "malignant").mean(), color=GREY, linestyle="--", label="uninformative scores")
    ax.set(xlabel="recall", ylabel="precision", ylim=(0, 1.03))
    ax.set_title(f"Average precision {curve.average_precision:.2f}")
    ax.legend()
    return drawn


@figure
def folds():
    """Every fold is the test set once."""
    drawn, ax = axes(width=5.4, height=2.6)
    for run in range(10):
        for fold in range(10):
            colour = RED if fold == run else "#c9dcee"
            ax.add_patch(plt.Rectangle((fold + 0.04, 9.06 - run), 0.92, 0.88, color=colour))
    ax.set(xlim=(0, 10), ylim=(0, 10), yticks=[], xlabel="rows, in ten folds", ylabel="ten fits")
    ax.set_xticks(np.arange(10) + 0.5, range(1, 11))
    ax.scatter([], [], color=RED, marker="s", label="test")
    ax.scatter([], [], color="#c9dcee", marker="s", label="training")
    ax.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
    return drawn


@figure
def eigenvectors():
    """The unit circle, its image under a matrix, and the two eigenvectors."""
    A = np.array([[2.0, 1.0], [1.0, 2.0]])
    angle = np.linspace(0, 2 * np.pi, 200)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    image = circle @ A.T
    drawn, ax = axes(width=4.4, height=4.0)
    ax.plot(*circle.T, color=GREY, label="unit circle")
    ax.plot(*image.T, color=BLUE, label="its image under A")
    for start in circle[5:100:30]:
        arrow = {"arrowstyle": "-|>", "color": "#b9bec6"}
        ax.annotate("", A @ start, start, arrowprops=arrow)
    for value, vector in zip(*np.linalg.eigh(A), strict=True):
        arrow = {"arrowstyle": "-|>", "color": RED, "linewidth": 2}
        ax.annotate("", value * np.abs(vector) * np.sign(vector), (0, 0), arrowprops=arrow)
        place = value * vector * 1.03
        ax.text(*place, f" λ = {value:.0f}", color=RED)
    ax.set(aspect="equal", xlim=(-2.6, 2.9), ylim=(-2.6, 2.6), xlabel="x₁", ylabel="x₂")
    ax.legend(loc="lower right", fontsize=7.5)
    return drawn


@figure
def feet():
    """Rows of two classes and their feet on Fisher's line."""
    iris = load_iris()
    names = iris.target_names[iris.target]
    two = names != "setosa"
    X, y = iris.data[two][:, [0, 2]][::3], names[two][::3]
    w = dd.Fisher().fit(X, y).scalings_[:, 0]
    w = w / np.linalg.norm(w)
    origin = X.mean(axis=0) + 3.0 * np.array([w[1], -w[0]])
    along = (X - origin) @ w
    drawn, ax = axes(width=5.4, height=4.6)
    for name, colour in zip(np.unique(y), (BLUE, RED), strict=True):
        part = y == name
        foot = origin + np.outer(along[part], w)
        for row, end in zip(X[part], foot, strict=True):
            ax.plot(*np.array([row, end]).T, color=colour, alpha=0.25, linewidth=0.8)
        ax.scatter(*X[part].T, color=colour, s=16, label=name)
        ax.scatter(*foot.T, color=colour, s=10, marker="|")
        ax.scatter(*(origin + along[part].mean() * w), color=colour, s=90, marker="*", zorder=3)
    ends = origin + np.outer([along.min() - 0.3, along.max() + 0.3], w)
    ax.plot(*ends.T, color=GREY, zorder=0)
    ax.set(xlabel="sepal length (cm)", ylabel="petal length (cm)", aspect="equal")
    ax.set_title("Stars: projected means")
    ax.legend()
    return drawn
