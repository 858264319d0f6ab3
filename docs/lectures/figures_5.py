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


@figure
def importance():
    """Weights per unit and per standard deviation."""
    cells = load_breast_cancer(as_frame=True)
    X = cells.data[["mean radius", "mean texture", "mean smoothness"]]
    table = dd.importance(dd.Logistic().fit(X, cells.target == 0), X).frame()
    drawn, both = axes(2, width=3.8, height=2.2)
    for ax, column, title in zip(
        both, ("weight", "per sd"), ("per unit", "per standard deviation"), strict=True
    ):
        ax.barh(table.index[::-1], table[column].to_numpy()[::-1], color=BLUE)
        ax.set_title(f"Weight {title}")
    both[1].set_yticks([])
    return drawn


@figure
def convex():
    """A convex function and a function that is not convex, each with a chord."""
    x = np.linspace(-2, 2, 200)
    drawn, both = axes(2, width=3.6, height=2.6)
    for ax, f, ends, title in (
        (both[0], lambda x: x**2, (-1.5, 1.0), "x²: convex"),
        (both[1], lambda x: x**4 - 2 * x**2, (-1.0, 1.0), "x⁴ − 2x²: not convex"),
    ):
        ends = np.array(ends)
        middle = ends.mean()
        ax.plot(x, f(x), color=BLUE)
        ax.plot(ends, f(ends), color=RED, marker="o", label="chord")
        ax.plot([middle, middle], [f(middle), f(ends).mean()], color=GREY, linestyle=":")
        ax.scatter([middle, middle], [f(middle), f(ends).mean()], color=GREY, s=18, zorder=3)
        ax.set(title=title, ylim=(-1.3, 3.2), xlabel="x")
        ax.legend()
    return drawn


@figure
def ridge_path():
    """Errors and norm of the coefficients against the ridge penalty."""
    rng = np.random.default_rng(0)
    X = rng.normal(0, 1, (230, 200))
    y = X[:, 0] - X[:, 1] + rng.normal(0, 0.3, 230)
    penalties = np.logspace(-1, 4, 26)
    values = []
    for ridge in penalties:
        model = dd.LinearRegression(ridge=ridge).fit(X[:30], y[:30])
        errors = [
            np.mean((model.predict(X[part]) - y[part]) ** 2)
            for part in (slice(30), slice(30, None))
        ]
        values.append([*errors, np.linalg.norm(model.coef_)])
    drawn, ax = axes(width=5.4, height=3.0)
    names = ("mean squared error, 30 training rows", "mean squared error, new rows", "‖w‖")
    for column, (name, colour) in enumerate(zip(names, (BLUE, RED, OCHRE), strict=True)):
        ax.plot(penalties, np.array(values)[:, column], color=colour, label=name)
    ax.set(xscale="log", xlabel="ridge penalty")
    ax.legend(fontsize=7.5)
    return drawn


@figure
def newton():
    """Newton steps on the loss of one coefficient, each to the minimum of a parabola."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=80)
    t = (rng.uniform(size=80) < 1 / (1 + np.exp(-2 * x))).astype(float)
    grid = np.linspace(-1.0, 5.5, 200)

    def loss(b):
        return np.mean(
            np.logaddexp(0, np.multiply.outer(b, x)) - t * np.multiply.outer(b, x), axis=-1
        )

    drawn, ax = axes(width=5.4, height=3.0)
    ax.plot(grid, loss(grid), color=GREY, label="loss")
    b = 0.0
    for step, colour in enumerate((BLUE, RED)):
        p = 1 / (1 + np.exp(-b * x))
        slope, curve = np.mean((p - t) * x), np.mean(p * (1 - p) * x**2)
        parabola = loss(b) + slope * (grid - b) + 0.5 * curve * (grid - b) ** 2
        ax.plot(grid, parabola, color=colour, linestyle="--", label=f"parabola at step {step}")
        ax.scatter([b], [loss(b)], color=colour, zorder=3)
        b -= slope / curve
    ax.scatter([b], [loss(b)], color=GREEN, zorder=3, label="after two steps")
    ax.set(xlabel="coefficient", ylabel="mean loss", ylim=(0.25, 1.0))
    ax.legend(fontsize=7.5)
    return drawn


@figure
def ellipses():
    """Two classes, their means and ellipses, and perpendiculars on the discriminant direction."""
    rng = np.random.default_rng(4)
    covariance = np.array([[1.0, 0.6], [0.6, 0.7]])
    means = np.array([[0.0, 1.2], [2.2, 1.0]])
    X = np.concatenate([rng.multivariate_normal(mean, covariance, 25) for mean in means])
    y = np.repeat([0, 1], 25)
    w = dd.Fisher().fit(X, y).scalings_[:, 0]
    w = w / np.linalg.norm(w) * np.sign(w[0])
    origin = X.mean(axis=0) + 4.0 * np.array([w[1], -w[0]])
    angle = np.linspace(0, 2 * np.pi, 120)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    drawn, ax = axes(width=5.2, height=4.6)
    for k, colour in enumerate((BLUE, RED)):
        part = X[y == k]
        middle = part.mean(axis=0)
        root = np.linalg.cholesky(np.cov(part.T))
        ax.plot(*(middle + 2 * circle @ root.T).T, color=colour, linewidth=1)
        ax.scatter(*part.T, color=colour, s=16)
        foot = origin + ((middle - origin) @ w) * w
        ax.plot(*np.array([middle, foot]).T, color=colour, linestyle="--")
        ax.scatter(*middle, color=colour, marker="*", s=110, zorder=3)
        feet = origin + np.outer((part - origin) @ w, w)
        ax.scatter(*feet.T, color=colour, marker="|", s=40)
    ends = origin + np.outer([-3.5, 3.5], w)
    ax.plot(*ends.T, color=GREY, zorder=0)
    ax.set(aspect="equal", xlabel="x₁", ylabel="x₂")
    return drawn


@figure
def combining():
    """How one-vs-one and one-vs-rest combine their classifiers."""
    drawn, both = axes(2, width=3.9, height=2.8)
    pairs = [("C1", "C2", "C1"), ("C1", "C3", "C3"), ("C1", "C4", "C1"), ("C2", "C3", "C3")]
    pairs += [("C2", "C4", "C2"), ("C3", "C4", "C3")]
    for m, (first, second, winner) in enumerate(pairs):
        text = f"{first} or {second}:  {winner}"
        colour = RED if winner == "C3" else GREY
        both[0].text(0.05, 0.9 - 0.14 * m, text, color=colour, transform=both[0].transAxes)
    both[0].text(0.55, 0.45, "C3 has 3 votes", color=RED, transform=both[0].transAxes)
    both[0].set_title("One-vs-one: the most votes")
    scores = (-1.2, 0.4, 1.9, -0.7)
    both[1].barh(range(4), scores, color=[GREY, GREY, RED, GREY])
    both[1].axvline(0, color="black", linewidth=0.8)
    both[1].set_yticks(range(4), ["C1", "C2", "C3", "C4"])
    both[1].invert_yaxis()
    both[1].set(title="One-vs-rest: the largest confidence", xlabel="score against the rest")
    both[0].set(xticks=[], yticks=[])
    return drawn


@figure
def ternary():
    """A ternary code of four classes."""
    signs = np.array([[-1, -1, 1, 1, -1], [1, 0, -1, 0, -1], [0, 1, 0, -1, 1], [-1, 1, -1, 1, 1]])
    drawn, ax = axes(width=4.4, height=2.8)
    ax.imshow(signs, cmap=ListedColormap(["#e7b8a4", "#eef0f3", "#9dc3e6"]), aspect="auto")
    for k, m in np.ndindex(*signs.shape):
        ax.text(m, k, {-1: "−1", 0: "0", 1: "+1"}[signs[k, m]], ha="center", va="center")
    ax.set_xticks(range(5), [f"f{m}" for m in range(1, 6)])
    ax.set_yticks(range(4), [f"C{k}" for k in range(1, 5)])
    ax.set_title("Zero: the class is left out")
    return drawn
