"""Figures of lecture 4: geometry, outliers, perceptron, decisions, densities, kernels."""

from __future__ import annotations

import numpy as np
from drawing import BLUE, GREEN, GREY, OCHRE, PURPLE, RED, axes, boundary, figure, rows
from scipy.stats import laplace as laplacian, norm
from sklearn.datasets import load_breast_cancer, load_digits, load_iris

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
        both_least = np.minimum(left, right)
        ax.fill_between(
            x,
            both_least,
            where=x >= 0,
            color=BLUE,
            alpha=0.4,
            label="errors of the first class at the best boundary",
        )
        ax.fill_between(
            x,
            both_least,
            where=x <= 0,
            color=GREEN,
            alpha=0.4,
            label="errors of the second class at the best boundary",
        )
        more = (x >= 0) & (x <= cut)
        ax.fill_between(
            x, left, right, where=more, color=RED, alpha=0.4, label="added by a wrong boundary"
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


@figure
def ambiguous_pairs():
    """Where no class wins both of its comparisons."""
    rng, centres = np.random.default_rng(3), ([-2.2, -1.2], [2.2, -1.2], [0.0, 2.4])
    spread = []
    for angle in 1.178 + np.arange(3) * 2 * np.pi / 3:
        along = np.array([np.cos(angle), np.sin(angle)])
        spread.append(0.1 * np.eye(2) + 2.3 * np.outer(along, along))
    X = np.concatenate(
        [rng.multivariate_normal(m, S, 60) for m, S in zip(centres, spread, strict=True)]
    )
    y = np.repeat(["a", "b", "c"], 60)
    pairs = dd.OneVsOne(dd.LDA()).fit(X, y)
    x, v = np.meshgrid(np.linspace(-3, 3, 301), np.linspace(-2.5, 3, 301))
    claims = pairs.ambiguous(np.column_stack([x.ravel(), v.ravel()])).claims.reshape(x.shape)
    drawn, ax = axes(width=5.4, height=3.8)
    ax.contourf(x, v, claims == 0, levels=[0.5, 1.5], colors=["#f3d9a4"])
    grid = np.column_stack([x.ravel(), v.ravel()])
    for score in pairs.binary_scores(grid).T:
        ax.contour(x, v, score.reshape(x.shape), levels=[0.0], colors=[GREY], linewidths=1.0)
    rows(ax, X, y)
    ax.fill([], [], color="#f3d9a4", label="no class wins twice")
    ax.set(title="One-vs-one: three boundaries", xlabel="x₁", ylabel="x₂")
    ax.set(xlim=(-3, 3), ylim=(-2.5, 3))
    ax.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
    return drawn


@figure
def three_class_squares():
    """Least squares and logistic regression for three separable classes."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(c, 0.5, (50, 2)) for c in ([-3, 2], [0, 0], [3, -2])])
    y = np.repeat(["a", "b", "c"], 50)
    drawn, both = axes(2, width=4.2, height=3.6)
    for ax, title, model in (
        (both[0], "Least squares", dd.LeastSquares()),
        (both[1], "Logistic regression", dd.Logistic(ridge=1e-4)),
    ):
        dd.plot_boundary(model.fit(X, y), X, y, ax=ax, nodes=161)
        ax.set(title=f"{title}: accuracy {model.score(X, y):.0%}", xlabel="x₁", ylabel="x₂")
    return drawn


@figure
def whitening():
    """Two classes before and after whitening."""
    rng = np.random.default_rng(1)
    noise = rng.multivariate_normal([0, 0], [[1.0, 0.85], [0.85, 1.0]], 160)
    X = noise + np.repeat([[0.0, 0.0], [1.6, 0.4]], 80, axis=0)
    y = np.repeat(["a", "b"], 80)
    root = np.linalg.cholesky(dd.moments(X, y).within() / 158)
    white = np.linalg.solve(root, X.T).T
    drawn, both = axes(2, width=4.0, height=3.8)
    fisher = dd.Fisher().fit(X, y).scalings_[:, 0]
    for ax, Z, title in ((both[0], X, "Original"), (both[1], white, "Whitened")):
        rows(ax, Z, y)
        first, second = (Z[y == name].mean(axis=0) for name in "ab")
        gap = (second - first) / np.linalg.norm(second - first)
        w = fisher if Z is X else root.T @ fisher
        w = w / np.linalg.norm(w)
        middle = (first + second) / 2
        for direction, colour, style, label in (
            (gap, PURPLE, "--", "difference of means"),
            (w, GREY, "-", "Fisher"),
        ):
            ends = middle + np.outer([-3, 3], direction)
            ax.plot(*ends.T, color=colour, linestyle=style, label=label)
        ax.set(title=title, aspect="equal")
    both[0].legend(fontsize=7, loc="upper left")
    return drawn


@figure
def criterion():
    """Number of errors and the perceptron criterion along a line of weights."""
    easy = SPECIES != "virginica"
    X, y = IRIS.data[easy][:, :2], np.where(SPECIES[easy] == "setosa", -1.0, 1.0)
    Z = np.column_stack([(X - X.mean(axis=0)) / X.std(axis=0), np.ones(len(X))])
    end = dd.Perceptron().fit(X, y)
    path = end.coef_[0] * X.std(axis=0)
    best = np.array([*path, end.intercept_[0] + end.coef_[0] @ X.mean(axis=0)])
    other = np.array([1.0, 2.0, 1.5])
    share = np.linspace(0, 1.2, 400)
    margins = y * (Z @ (np.outer(1 - share, other) + np.outer(share, best)).T).T
    drawn, both = axes(2, width=4.0, height=2.8)
    both[0].plot(share, (margins <= 0).sum(axis=1), color=RED, drawstyle="steps-post")
    both[0].set(title="Number of errors", xlabel="from some weights (0) to a solution (1)")
    both[1].plot(share, -np.minimum(margins, 0).sum(axis=1), color=BLUE)
    both[1].set(title="Perceptron criterion", xlabel="from some weights (0) to a solution (1)")
    return drawn


@figure
def theorem():
    """Norm of the weights after each update, between its bounds."""
    easy = SPECIES != "virginica"
    X, y = IRIS.data[easy][:, :2], SPECIES[easy]
    best = dd.SVM(standardize=True, ridge=1e-6).fit(X, y)
    model = dd.Perceptron(record=True).fit(X, y)
    scale = X.std(axis=0)
    w = np.array([*(best.coef_[0] * scale), best.intercept_[0] + best.coef_[0] @ X.mean(axis=0)])
    Z = np.column_stack([(X - X.mean(axis=0)) / scale, np.ones(len(X))])
    sign = np.where(y == best.classes_[1], 1.0, -1.0)
    margin = (sign * (Z @ w)).min() / np.linalg.norm(w)
    norms = np.linalg.norm(model.weights_path_[:, 0], axis=1)
    k = np.arange(0, int(1.3 * (model.radius_ / margin) ** 2) + 2)
    drawn, ax = axes(width=5.4, height=3.2)
    ax.plot(k, np.sqrt(k) * model.radius_, color=BLUE, label="upper bound √k R")
    ax.plot(k, k * margin, color=RED, label="lower bound k γ")
    ax.plot(np.arange(len(norms)), norms, color=GREY, marker="o", markersize=3, label="‖w‖")
    bound = (model.radius_ / margin) ** 2
    ax.axvline(bound, color=GREY, linestyle="--", label=f"R²/γ² = {bound:.0f}")
    ax.set(xlabel="updates k", ylabel="norm", xscale="symlog", xlim=(0, k[-1]))
    ax.set_ylim(0, 1.15 * k[-1] * margin)
    ax.legend(fontsize=7.5)
    return drawn


@figure
def xor():
    """XOR, with a line that classifies three of four rows correctly."""
    X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    y = np.array(["no", "yes", "yes", "no"])
    drawn, ax = axes(width=3.6, height=3.2)
    for name, colour, mark in (("no", BLUE, "o"), ("yes", RED, "s")):
        ax.scatter(*X[y == name].T, color=colour, marker=mark, s=110, label=name, zorder=3)
    ax.plot([-0.3, 0.8], [0.8, -0.3], color=GREY, label="three of four correct")
    ax.set(xlim=(-0.4, 1.4), ylim=(-0.4, 1.6), xticks=[0, 1], yticks=[0, 1], aspect="equal")
    ax.legend(fontsize=7.5, loc="upper right")
    return drawn


@figure
def shared_three():
    """Two of three classes share a covariance."""
    rng = np.random.default_rng(7)
    common = np.array([[0.5, 0.2], [0.2, 0.4]])
    means, own = ([-1.5, 0.0], [1.5, 0.0], [0.0, 2.0]), np.array([[0.9, -0.5], [-0.5, 0.6]])
    X = np.concatenate(
        [
            rng.multivariate_normal(m, S, 120)
            for m, S in zip(means, (common, common, own), strict=True)
        ]
    )
    y = np.repeat(["red", "green", "blue"], 120)
    pair = y != "blue"
    shared, each = dd.LDA().fit(X[pair], y[pair]), dd.QDA().fit(X, y)
    x, v = np.meshgrid(np.linspace(-4, 4, 241), np.linspace(-2.5, 5, 241))
    grid = np.column_stack([x.ravel(), v.ravel()])
    density = each.log_density(grid, by_class=True)  # blue, green, red
    density[:, 1:] = shared.log_density(grid, by_class=True)
    code = density.argmax(axis=1).reshape(x.shape)
    drawn, ax = axes(width=5.2, height=3.8)
    rows(ax, X, y, names=["red", "green", "blue"], colours=(RED, GREEN, BLUE))
    for k in range(3):
        ax.contour(x, v, code == k, levels=[0.5], colors=[GREY])
    ax.set(xlabel="x₁", ylabel="x₂", title="Red and green share a covariance")
    ax.legend(fontsize=7.5)
    return drawn


@figure
def sigmoid():
    """The sigmoid and its derivative."""
    a = np.linspace(-6, 6, 300)
    s = 1 / (1 + np.exp(-a))
    drawn, ax = axes(width=5.0, height=2.8)
    ax.plot(a, s, color=BLUE, label="σ(a)")
    ax.plot(a, s * (1 - s), color=RED, linestyle="--", label="σ(a)(1 − σ(a))")
    ax.axhline(0.5, color=GREY, linewidth=0.8, linestyle=":")
    ax.set(xlabel="a", ylim=(-0.03, 1.05))
    ax.legend()
    return drawn


@figure
def logistic_curve():
    """Logistic regression on one feature."""
    cells = load_breast_cancer(as_frame=True)
    x = cells.data[["mean radius"]].to_numpy()
    t = (cells.target == 0).to_numpy()
    model = dd.Logistic().fit(x, t)
    grid = np.linspace(6, 28, 300)[:, None]
    cut = -model.intercept_[0] / model.coef_[0, 0]
    jitter = np.random.default_rng(0).uniform(-0.03, 0.03, len(x))
    drawn, ax = axes(width=5.2, height=3.0)
    for value, colour, name in ((False, BLUE, "benign"), (True, RED, "malignant")):
        part = t == value
        ax.scatter(x[part, 0], t[part] + jitter[part], color=colour, s=8, alpha=0.4, label=name)
    ax.plot(grid[:, 0], model.predict_proba(grid)[:, 1], color=GREY, label="P(malignant | x)")
    ax.axvline(cut, color=GREY, linestyle="--", label=f"boundary at {cut:.1f} mm")
    ax.set(xlabel="mean radius (mm)", ylabel="probability")
    ax.legend(fontsize=7.5, loc="center left", bbox_to_anchor=(1.01, 0.5))
    return drawn


@figure
def adversarial():
    """A digit, the smallest change of its pixels, and the changed digit."""
    images, digit = load_digits(return_X_y=True)
    model = dd.Logistic(ridge=1e-3).fit(images, digit)
    change = dd.smallest_change(model, images[3], norm="linf", bounds=(0, 16))
    drawn, three = axes(3, width=2.4, height=2.6)
    largest = np.abs(change.change).max()
    for ax, image, title, colours, limits in (
        (three[0], images[3], f"predicted: {change.before}", "gray_r", (0, 16)),
        (three[1], change.change, f"change: at most {largest:.1f} of 16", "RdBu", (-4, 4)),
        (three[2], change.row, f"predicted: {change.after}", "gray_r", (0, 16)),
    ):
        ax.imshow(image.reshape(8, 8), cmap=colours, vmin=limits[0], vmax=limits[1])
        ax.set(title=title, xticks=[], yticks=[])
    return drawn
