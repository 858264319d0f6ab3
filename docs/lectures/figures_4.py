"""Figures of lecture 4: geometry, outliers, perceptron, decisions, densities, kernels."""

from __future__ import annotations

import numpy as np
from drawing import BLUE, GREEN, GREY, OCHRE, PURPLE, RED, axes, boundary, figure, rows
from scipy.stats import laplace as laplacian, norm
from sklearn.datasets import load_breast_cancer, load_iris

import discriminant as dd

IRIS = load_iris()
SPECIES = IRIS.target_names[IRIS.target]
TWO = SPECIES != "setosa"
PETALS, NAMES = IRIS.data[TWO][:, 2:], SPECIES[TWO]


@figure
def geometry():
    """A boundary, its normal and its distance from the origin."""
    model = dd.LDA().fit(PETALS, NAMES)
    w, w0 = model.coef_[0], model.intercept_[0]
    foot = -w0 / (w @ w) * w
    drawn, ax = axes(width=5.2, height=3.6)
    rows(ax, PETALS, NAMES)
    ax.set(xlim=(-0.3, 7.4), ylim=(-0.3, 4.4), aspect="equal")
    boundary(ax, model, label="y(x) = 0")
    ax.annotate(
        "", foot, (0, 0), arrowprops={"arrowstyle": "<->", "color": PURPLE, "linewidth": 1.6}
    )
    ax.annotate("−w₀/‖w‖", foot / 2, xytext=(6, -10), textcoords="offset points", color=PURPLE)
    tip = foot + 1.0 * w / np.linalg.norm(w)
    ax.annotate("", tip, foot, arrowprops={"arrowstyle": "-|>", "color": RED, "linewidth": 2})
    ax.annotate("w", tip, xytext=(4, 2), textcoords="offset points", color=RED, fontsize=12)
    ax.set(
        xlabel="petal length (cm)",
        ylabel="petal width (cm)",
        title="w is orthogonal to the boundary",
    )
    ax.legend(loc="upper right")
    return drawn


@figure
def ambiguous():
    """Regions that none, or several, of three classifiers claim."""
    X = IRIS.data[:, [0, 2]]
    rest = dd.OneVsRest(dd.LDA()).fit(X, SPECIES)
    x, y = np.meshgrid(np.linspace(4, 8.2, 81), np.linspace(0.5, 7.3, 81))
    grid = np.column_stack([x.ravel(), y.ravel()])
    scores = np.sort([one.decision_function(grid) for one in rest.estimators_], axis=0)
    drawn, ax = axes(width=5.4, height=3.8)
    ax.contourf(x, y, scores[-1].reshape(x.shape), levels=[-1e9, 0], colors=["#d9dde3"])
    ax.contourf(x, y, scores[-2].reshape(x.shape), levels=[0, 1e9], colors=["#f3d9a4"])
    rows(ax, X, SPECIES)
    ax.fill([], [], color="#d9dde3", label="no classifier claims it")
    ax.fill([], [], color="#f3d9a4", label="several do")
    ax.set(xlabel="sepal length (cm)", ylabel="petal length (cm)", title="One-vs-rest")
    ax.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
    return drawn


@figure
def outliers():
    """Least squares and logistic regression, without and with distant rows."""
    rng = np.random.default_rng(2)
    a, b = rng.normal([-1.5, 0.5], 0.6, (60, 2)), rng.normal([1.0, -0.5], 0.6, (60, 2))
    far = rng.normal([7.0, -7.0], 0.5, (15, 2))
    X, y = np.vstack([a, b]), np.repeat(["a", "b"], 60)
    drawn, both = axes(2, height=3.6)
    for ax, Z, z, title in (
        (both[0], X, y, "Without distant rows"),
        (both[1], np.vstack([X, far]), np.append(y, ["b"] * 15), "With distant rows"),
    ):
        rows(ax, Z, z)
        ax.set(xlim=(-4, 8.5), ylim=(-8.5, 4), title=title)
        boundary(ax, dd.LeastSquares().fit(Z, z), colour=PURPLE, label="least squares")
        boundary(ax, dd.Logistic(ridge=1e-3).fit(Z, z), colour=GREEN, style="--", label="logistic")
    both[0].legend(loc="upper right")
    return drawn


@figure
def perceptron():
    """Boundaries after some passes, and updates in each pass."""
    easy = SPECIES != "virginica"
    X, y = IRIS.data[easy][:, :2], SPECIES[easy]
    model = dd.Perceptron().fit(X, y)
    drawn, (plane, moves) = axes(2, width=4.6, height=3.6)
    dd.plot_perceptron_path(model, X, y, ax=plane, title="Boundary after some passes")
    dd.plot_perceptron_path(model, ax=moves, title="Updates in each pass")
    plane.set(xlabel="sepal length (cm)", ylabel="sepal width (cm)")
    return drawn


@figure
def mistakes():
    """The probability of error, with a good and a bad boundary."""
    x = np.linspace(-5, 5, 400)
    left, right = 0.5 * norm.pdf(x, -1.5), 0.5 * norm.pdf(x, 1.5)
    drawn, both = axes(2, height=2.9)
    for ax, cut in zip(both, (0.0, 1.0), strict=True):
        ax.plot(x, left, color=BLUE)
        ax.plot(x, right, color=RED)
        ax.fill_between(
            x, left, where=x >= cut, color=BLUE, alpha=0.4, label="first, assigned to second"
        )
        ax.fill_between(
            x, right, where=x <= cut, color=RED, alpha=0.4, label="second, assigned to first"
        )
        wrong = 0.5 * norm.sf(cut, -1.5) + 0.5 * norm.cdf(cut, 1.5)
        ax.axvline(cut, color=GREY, linestyle="--")
        ax.set(
            title=f"boundary at {cut:.0f}: error {wrong:.1%}", xlabel="x", yticks=[], ylim=(0, 0.28)
        )
    both[0].set_ylabel("p(x, class)")
    both[0].legend(loc="upper left", fontsize=7.5)
    return drawn


@figure
def reject():
    """Reject region along the boundary."""
    cells = load_breast_cancer(as_frame=True)
    X = cells.data[["mean radius", "mean texture"]].to_numpy()
    kind = np.where(cells.target == 0, "malignant", "benign")
    drawn, (plane, curve) = axes(2, width=4.7, height=3.6)
    model = dd.Decision(dd.LDA(), reject=0.1).fit(X, kind)
    dd.plot_boundary(model, X, kind, ax=plane, nodes=121, most=250, title="Rejecting costs 0.1")
    plane.set(xlabel="mean radius", ylabel="mean texture")
    dd.plot_reject(dd.cross_validate(dd.LDA(), X, kind), ax=curve)
    return drawn


@figure
def laplace():
    """Two densities fitted to the same rows, without and with typing errors."""
    rng = np.random.default_rng(0)
    rows_ = rng.normal(0, 1, 50)
    spoiled = rows_.copy()
    spoiled[:3] = 60.0
    x = np.linspace(-8, 16, 500)
    drawn, both = axes(2, height=2.9)
    for ax, some, title in zip(
        both, (rows_, spoiled), ("Fifty rows", "Three of them typed as 60"), strict=True
    ):
        middle, scale = np.median(some), np.abs(some - np.median(some)).mean()
        ax.hist(some, bins=np.linspace(-4, 4, 17), density=True, color="#c8cdd4", label="rows")
        ax.plot(x, norm.pdf(x, some.mean(), some.std()), color=BLUE, label="Gaussian")
        ax.plot(x, laplacian.pdf(x, middle, scale), color=RED, label="Laplace")
        ax.set(title=title, xlabel="x", yticks=[], xlim=(-8, 16))
    both[1].legend()
    return drawn


@figure
def shared():
    """Linear boundary with a common covariance, curved boundary with separate ones."""
    rng = np.random.default_rng(5)
    X = np.vstack(
        [
            rng.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], 120),
            rng.multivariate_normal([2.4, 0.6], [[0.3, -0.15], [-0.15, 0.5]], 120),
        ]
    )
    y = np.repeat(["a", "b"], 120)
    drawn, both = axes(2, height=3.4)
    for ax, kind, title in zip(
        both, (dd.LDA, dd.QDA), ("One covariance", "One for each class"), strict=True
    ):
        rows(ax, X, y)
        for prior_a, style in ((0.5, "-"), (0.9, "--")):
            model = kind(prior=[prior_a, 1 - prior_a]).fit(X, y)
            boundary(ax, model, style=style, label=f"prior of a: {prior_a}")
        ax.set(title=title)
    both[0].legend(loc="lower right", fontsize=7.5)
    return drawn


@figure
def irls():
    """Convergence of three solvers."""
    cells = load_breast_cancer(as_frame=True)
    X = cells.data[["mean radius", "mean texture", "mean smoothness"]]
    y = cells.target.to_numpy()
    drawn, ax = axes(width=5.2, height=3.3)
    paths = {
        solver: np.array(dd.Logistic(solver=solver).fit(X, y).loss_path_)
        for solver in ("newton", "lbfgs", "gradient")
    }
    least = min(path.min() for path in paths.values())
    for (solver, path), colour in zip(paths.items(), (RED, BLUE, OCHRE), strict=True):
        above = path - least
        above = above[above > 1e-14]
        ax.plot(
            np.arange(1, len(above) + 1),
            above,
            color=colour,
            marker="o" if len(above) < 30 else None,
            markersize=4,
            label=solver,
        )
    ax.set(
        xscale="log",
        yscale="log",
        xlabel="pass over the rows",
        ylabel="mean loss minus its minimum",
        title="Convergence of three solvers",
    )
    ax.legend()
    return drawn


@figure
def kernels():
    """Two closed curves that are a line in the space of two kernels."""
    rng = np.random.default_rng(8)
    X = rng.uniform(-2.5, 2.5, (600, 2))
    centres = np.array([[-1.0, -1.0], [1.0, 1.0]])
    near = np.linalg.norm(X[:, None] - centres, axis=2).min(axis=1)
    X, y = (
        X[(near < 0.6) | (near > 0.9)],
        np.where(near < 0.6, "inside", "outside")[(near < 0.6) | (near > 0.9)],
    )
    phi = dd.Basis(degree=None, centres=centres, width=0.6).fit(X)
    model = dd.Logistic(ridge=1e-4).fit(phi.transform(X), y)
    drawn, (plane, space) = axes(2, width=4.2, height=3.8)
    some = (y == "inside") | (np.arange(len(y)) % 3 == 0)
    rows(plane, X[some], y[some], colours=(RED, BLUE))
    rows(space, phi.transform(X)[some], y[some], colours=(RED, BLUE))
    boundary(space, model, label="linear boundary")

    class Through:
        def decision_function(self, points):
            return model.decision_function(phi.transform(points))

    boundary(plane, Through(), label="the same boundary")
    plane.set(xlabel="x₁", ylabel="x₂", title="Original features", aspect="equal")
    space.set(xlabel="φ₁", ylabel="φ₂", title="Two kernels")
    plane.legend(loc="lower right", fontsize=7.5)
    space.legend(loc="upper right", fontsize=7.5)
    return drawn
