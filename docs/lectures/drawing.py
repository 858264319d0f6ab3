"""Style, helpers and output folder of the figures of the lectures.

Figures are SVG files with a light background, readable on light and on dark pages. Text is
stored as text, and the files are reproducible: they contain no date.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("svg")
import matplotlib.pyplot as plt
from matplotlib.figure import Figure

FOLDER = Path(__file__).parent / "figures"
BLUE, RED, GREEN, PURPLE, OCHRE, GREY = (
    "#0a6ab5",
    "#c2410c",
    "#00796b",
    "#9b3f8f",
    "#8f6a00",
    "#565c66",
)
FILLED = {"linewidth": 0.4, "edgecolor": "white", "s": 22}
STYLE = {
    "figure.facecolor": "#f6f7f9",
    "savefig.facecolor": "#f6f7f9",
    "axes.facecolor": "#ffffff",
    "axes.edgecolor": "#9aa1ab",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10.5,
    "axes.labelsize": 9.5,
    "font.size": 9.5,
    "font.sans-serif": ["DejaVu Sans", "sans-serif"],
    "legend.fontsize": 8.5,
    "legend.framealpha": 0.85,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "lines.linewidth": 1.8,
    "figure.constrained_layout.w_pad": 0.1,
    "figure.constrained_layout.h_pad": 0.09,
    "svg.fonttype": "none",
    "svg.hashsalt": "discriminant",
    "path.simplify": True,
    "path.simplify_threshold": 0.5,
}
FIGURES: dict[str, Callable[[], Figure]] = {}


def figure(draw: Callable[[], Figure]) -> Callable[[], Figure]:
    """Register a figure under the name of the function that draws it."""
    FIGURES[draw.__name__] = draw
    return draw


def axes(columns: int = 1, *, width: float = 4.2, height: float = 3.4):
    """Return a figure and its Axes, arranged in one row."""
    drawn, grid = plt.subplots(
        1, columns, figsize=(width * columns, height), layout="constrained", squeeze=False
    )
    return (drawn, grid[0, 0]) if columns == 1 else (drawn, list(grid[0]))


def boundary(ax, model, *, colour=GREY, label=None, style="-", nodes: int = 161):
    """Draw the decision boundary of a binary classifier within the limits of the Axes."""
    (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
    x, y = np.meshgrid(np.linspace(left, right, nodes), np.linspace(low, high, nodes))
    score = model.decision_function(np.column_stack([x.ravel(), y.ravel()])).reshape(x.shape)
    ax.contour(x, y, score, levels=[0.0], colors=[colour], linestyles=[style], linewidths=1.8)
    ax.plot([], [], color=colour, linestyle=style, label=label)
    ax.set(xlim=(left, right), ylim=(low, high))


def rows(ax, X, y, *, names=None, colours=(BLUE, RED, GREEN), marks="os^"):
    """Draw the rows, with a colour and a marker for each class."""
    for code, name in enumerate(np.unique(y) if names is None else names):
        some = X[np.asarray(y) == name]
        ax.scatter(
            some[:, 0], some[:, 1], c=colours[code], marker=marks[code], label=name, **FILLED
        )


def write(name: str) -> Path:
    """Draw one figure and save it."""
    with plt.style.context(["default", STYLE]):
        drawn = FIGURES[name]()
        FOLDER.mkdir(exist_ok=True)
        path = FOLDER / f"{name}.svg"
        drawn.savefig(path, metadata={"Date": None})
        plt.close(drawn)
    path.write_text(_brief(path.read_text()))
    return path


def _brief(text: str) -> str:
    """Reduce the size of an SVG: round coordinates to 0.01 points, store repeated styles once."""
    text = re.sub(r"<[^>]*>", lambda tag: re.sub(r"-?\d+\.\d{3,}", _rounded, tag[0]), text)
    text = re.sub(r"\n\s+", "\n", text)
    marks = re.findall(r'<use xlink:href="[^"]+" x="[^"]+" y="[^"]+" style="([^"]+)"', text)
    often = [style for style, count in Counter(marks).items() if count > 8]
    for number, style in enumerate(often):
        text = text.replace(f' style="{style}"/>', f' class="s{number}"/>')
    rules = "".join(f".s{number}{{{style}}}" for number, style in enumerate(often))
    return text.replace("</style>", rules + "</style>", 1)


def _rounded(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")
