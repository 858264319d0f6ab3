"""Figures of lecture 1: directions, ranks, densities, boundaries, rings, schemes, trees."""

from __future__ import annotations

import numpy as np
from drawing import BLUE, GREY, PURPLE, RED, axes, boundary, figure, plt, rows
from scipy.stats import norm
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
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


@figure
def quotient():
    """Fisher's quotient of every direction in the plane."""
    two = SPECIES != "setosa"
    moments = dd.moments(IRIS.data[two][:, [0, 2]], SPECIES[two])
    S_w, S_b, gap = moments.within(), moments.between(), np.diff(moments.means, axis=0)[0]
    angles = np.linspace(0, 180, 361)
    w = np.column_stack([np.cos(np.radians(angles)), np.sin(np.radians(angles))])
    J = np.einsum("ni,ij,nj->n", w, S_b, w) / np.einsum("ni,ij,nj->n", w, S_w, w)
    drawn, ax = axes(width=5.4, height=3.0)
    ax.plot(angles, J, color=BLUE)
    for direction, name, colour in (
        (np.linalg.solve(S_w, gap), "Fisher", RED),
        (gap, "mean difference", PURPLE),
    ):
        angle = np.degrees(np.arctan2(direction[1], direction[0])) % 180
        ax.axvline(angle, color=colour, linestyle="--", label=name)
    ax.set(xlabel="angle of w (degrees)", ylabel="J(w)", xticks=range(0, 181, 30))
    ax.legend()
    return drawn


@figure
def low_rank():
    """A digit, its approximations of low rank, and the error against the rank."""
    images = load_digits().data
    mean = images.mean(axis=0)
    U, sigma, Vt = np.linalg.svd(images - mean, full_matrices=False)
    drawn, grid = axes(5, width=1.9, height=2.3)
    for ax, rank in zip(grid, (1, 5, 20, 64), strict=False):
        digit = mean + U[4, :rank] * sigma[:rank] @ Vt[:rank]
        ax.imshow(digit.reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
        ax.set(title=f"rank {rank}", xticks=[], yticks=[])
    lost = 1 - np.cumsum(sigma**2) / (sigma**2).sum()
    grid[4].plot(np.arange(1, 65), lost, color=BLUE)
    grid[4].set(title="variation lost", xlabel="rank", ylim=(0, 1))
    return drawn


@figure
def true_boundary():
    """Known boundaries of three Gaussian classes (dashed), and those that LDA estimates."""
    means = np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, 1.4]])
    covariance = np.array([[0.5, 0.2], [0.2, 0.4]])
    code = np.repeat(np.arange(3), 20)
    noise = np.random.default_rng(0).multivariate_normal([0, 0], covariance, 60)
    X, names = means[code] + noise, np.array(["a", "b", "c"])[code]
    slopes = np.linalg.solve(covariance, means.T).T
    x, y = np.meshgrid(np.linspace(-3, 3, 241), np.linspace(-2, 3.2, 241))
    grid = np.column_stack([x.ravel(), y.ravel()])
    true = (grid @ slopes.T - 0.5 * (slopes * means).sum(axis=1)).argmax(axis=1)
    estimated = dd.LDA().fit(X, code).predict(grid)
    drawn, ax = axes(width=5.2, height=3.8)
    rows(ax, X, names)
    for labels, colour, style, label in (
        (true, GREY, "--", "known parameters"),
        (estimated, PURPLE, "-", "LDA, 20 rows of each"),
    ):
        for k in range(3):
            inside = (labels == k).astype(float).reshape(x.shape)
            ax.contour(x, y, inside, levels=[0.5], colors=[colour], linestyles=[style])
        ax.plot([], [], color=colour, linestyle=style, label=label)
    ax.legend(fontsize=7.5)
    return drawn


@figure
def few_rows():
    """Error of LDA and of logistic regression against the number of rows."""
    sizes, names = (16, 24, 40, 80, 200, 600), ("LDA", "logistic regression")
    half, errors = np.arange(1000) % 2, []
    for n in sizes:
        rng, sums = np.random.default_rng(5), np.zeros(2)
        for _ in range(40):
            X, new = (
                rng.normal(size=(len(part), 5)) + np.outer(part, [1.5, 0.5, 0, 0, 0])
                for part in (half[:n], half)
            )
            for i, model in enumerate((dd.LDA(), dd.Logistic())):
                sums[i] += 1 - model.fit(X, half[:n]).score(new, half)
        errors.append(sums / 40)
    drawn, ax = axes(width=5.2, height=3.0)
    for i, colour in enumerate((BLUE, RED)):
        ax.plot(sizes, np.array(errors)[:, i], color=colour, marker="o", label=names[i])
    ax.set(xscale="log", xlabel="training rows", ylabel="error on new rows", xticks=sizes)
    ax.set_xticklabels(sizes)
    ax.minorticks_off()
    ax.legend()
    return drawn


@figure
def schemes():
    """Which classes each classifier compares."""
    drawn, both = axes(2, width=4.2, height=2.6)
    pairs = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    for ax, title, columns in (
        (both[0], "One-vs-one: six classifiers", [((i,), (j,)) for i, j in pairs]),
        (
            both[1],
            "One-vs-rest: four classifiers",
            [((k,), tuple(j for j in range(4) if j != k)) for k in range(4)],
        ),
    ):
        for m, (positive, negative) in enumerate(columns):
            for k in range(4):
                side = BLUE if k in positive else RED if k in negative else "#e4e7eb"
                ax.add_patch(plt.Rectangle((m - 0.4, 2.6 - k), 0.8, 0.8, color=side, alpha=0.85))
        ax.set(xlim=(-0.6, len(columns) - 0.4), ylim=(-0.6, 3.6), title=title)
        ax.set_xticks(range(len(columns)), [f"f{m + 1}" for m in range(len(columns))])
        ax.set_yticks([3 - k for k in range(4)], [f"C{k + 1}" for k in range(4)])
    for colour, label in ((BLUE, "positive"), (RED, "negative"), ("#e4e7eb", "left out")):
        both[1].scatter([], [], color=colour, marker="s", s=60, label=label)
    both[1].legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
    return drawn


@figure
def label_tree():
    """A label tree with the beam of a search."""
    drawn, ax = axes(width=6.6, height=3.0)
    places = {"root": (6.5, 3)}
    places |= {f"g{i}": (3 + 7 * i, 2) for i in range(2)}
    places |= {f"h{i}": (1.2 + 3.5 * i, 1) for i in range(4)}
    places |= {f"l{i}": (0.2 + i + 0.55 * (i // 3), 0) for i in range(12)}
    edges = [("root", f"g{i}") for i in range(2)]
    edges += [(f"g{i // 2}", f"h{i}") for i in range(4)]
    edges += [(f"h{i // 3}", f"l{i}") for i in range(12)]
    beam = {"root", "g0", "g1", "h1", "h2", "l3", "l4", "l5", "l6", "l7", "l8"}
    for above, below in edges:
        followed = above in beam and below in beam
        (x0, y0), (x1, y1) = places[above], places[below]
        colour = RED if followed else "#b9bec6"
        ax.plot([x0, x1], [y0, y1], color=colour, linewidth=1.8 if followed else 1.0, zorder=1)
    for name, (x, y) in places.items():
        text = f"label {name[1:]}" if y == 0 else {3: "all labels", 2: "6", 1: "3"}[y]
        style = {"facecolor": "#fff3ee" if name in beam else "white", "edgecolor": "#9aa1ab"}
        ax.text(x, y, text, ha="center", va="center", fontsize=7, bbox={"pad": 2.5, **style})
    ax.set(xlim=(-0.8, 14), ylim=(-0.4, 3.4), xticks=[], yticks=[])
    ax.set_title("A tree of 12 labels; red: the paths of a search with a beam of two nodes")
    for side in ("left", "bottom"):
        ax.spines[side].set_visible(False)
    return drawn
