"""What all figures share: where they are drawn, and in which colours and marks.

Colours are those of the report's page, told apart by colour-blind readers too, in two sets: one for
light paper, one for dark. Which of them is asked of the Axes themselves, as is the colour of text
("ink"), so that any style of matplotlib will do. Classes differ by their marks as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discriminant.decision.actions import OUTLIER, REJECT, Verdict
from discriminant.errors import LibraryMissingError, OptionError
from discriminant.table.schema import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Colour = Any  # whatever matplotlib takes for a colour

LIGHT = (
    "#0a6ab5",
    "#c2410c",
    "#00796b",
    "#9b3f8f",
    "#8f6a00",
    "#2b93c9",
    "#565c66",
    "#a3263a",
)
DARK = (
    "#63b0f4",
    "#ff8f5c",
    "#45cdb0",
    "#df8fd3",
    "#e5bd4f",
    "#a5dcff",
    "#b3bac5",
    "#ff8193",
)
MARKS = ("o", "s", "^", "D", "P", "v", "X", "p", "*")  # nine, so that eight colours go on
_INSIDE = 4  # entries of a legend that finds room inside of the axes
_ASIDE = 1.9  # inches that a legend beside them takes
_WORDS = {REJECT: "rejected", OUTLIER: "outlier"}


@dataclass(frozen=True, slots=True)
class Canvas:
    """Axes, and how to draw on them."""

    ax: Axes
    ink: Colour  # of text and lines that are no class's
    paper: Colour  # behind it all
    colours: tuple[str, ...]
    own: bool  # whether the figure is ours, to be made wider

    @classmethod
    def of(cls, ax: Axes | None, *, size: tuple[float, float] = (6.0, 4.5)) -> Canvas:
        """On the Axes given, or on those of a new figure of pyplot.

        Called when all is worked out, so that an error leaves no empty figure behind.
        """
        check_matplotlib()
        from matplotlib.axes import Axes
        from matplotlib.colors import to_rgb

        own = ax is None
        if ax is None:
            import matplotlib.pyplot as plt

            _, ax = plt.subplots(figsize=size, layout="constrained")
        if not isinstance(ax, Axes):
            raise OptionError.of(
                "ax", type(ax).__name__, "the Axes of a matplotlib figure, or None"
            )
        paper = ax.get_facecolor()
        red, green, blue = to_rgb(paper)
        light = 0.3 * red + 0.59 * green + 0.11 * blue > 0.5
        return cls(ax, ax.xaxis.label.get_color(), paper, LIGHT if light else DARK, own)

    def colour(self, code: int) -> str:
        """Of a class; the ninth has that of the first again, and another mark."""
        return self.colours[code % len(self.colours)]

    def mark(self, code: int) -> str:
        """Of a class."""
        return MARKS[code % len(MARKS)]

    def name(self, *, title: str | None, x: str, y: str) -> None:
        """Title and axes in words; a title that is there already stays if there is none."""
        if title is not None:
            self.ax.set_title(title)
        self.ax.set_xlabel(x)
        self.ax.set_ylabel(y)

    def legend(self, handles: Sequence[Any], *, title: str | None = None, **where: Any) -> None:
        """What each mark and line stands for; beside axes of our own where it is long."""
        if not handles:
            return
        if not where and len(handles) > _INSIDE and not self.own:  # beside it may be others
            where = {"loc": "best", "fontsize": "small", "ncols": -(-len(handles) // 10)}
        if not where and len(handles) > _INSIDE:
            columns = -(-len(handles) // 16)
            where = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "ncols": columns}
            where["borderaxespad"] = 0.0
            figure = self.ax.get_figure(root=True)
            if figure is not None:
                figure.set_figwidth(figure.get_figwidth() + columns * _ASIDE)
        found = self.ax.legend(handles=list(handles), title=title, **where)
        found.set_zorder(10)

    def rows(self, points: Floats, code: int, label: str, *, alpha: float = 0.9) -> Any:
        """Rows of one class, each edged with the paper so that neighbours stay apart."""
        return self.ax.scatter(
            points[:, 0],
            points[:, 1],
            s=26,
            marker=self.mark(code),
            facecolor=self.colour(code),
            edgecolor=self.paper,
            linewidth=0.5,
            alpha=alpha,
            label=label,
            zorder=3,
        )


def action_words(action: object) -> str:
    """What an action, label or refusal is called in a figure."""
    return _WORDS[action] if isinstance(action, Verdict) else str(action)


def model_words(model: Any) -> str:
    """A model by its kind, and by that of the model inside.

    >>> from discriminant import LDA, Decision
    >>> model_words(Decision(LDA(), reject=0.1))
    'Decision(LDA)'
    """
    inner = getattr(model, "estimator", None)
    name = type(model).__name__
    return name if inner is None else f"{name}({model_words(inner)})"


def check_matplotlib() -> None:
    """The error that says how to install it, if it is not."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise LibraryMissingError.of("matplotlib", what="A figure", extra="plot") from None
