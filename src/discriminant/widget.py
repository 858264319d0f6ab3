"""A notebook widget: LDA, QDA and RDA of a small table, fitted again in the browser as points move.

It runs on moments.js and the figures of the lecture pages (discriminant.lectures), inside the
notebook, without a server. It needs anywidget: pip install 'discriminant[notebook]'.
"""

from __future__ import annotations

import re
from functools import cache
from numbers import Integral, Real
from typing import Any

import numpy as np

from discriminant.errors import (
    InfiniteValueError,
    LibraryMissingError,
    MissingValueError,
    OptionError,
    ShapeError,
)
from discriminant.lectures import asset, script_of
from discriminant.report import html as report

MODELS = ("lda", "qda", "rda")
MOST_CLASSES = 8  # the number of colours
MOST_ROWS = 1000  # leave-one-out predictions of that many rows take a second
_COLOURS = re.compile(r"^:root(\S*) \{(.*?)^\}", re.MULTILINE | re.DOTALL)


def boundary_widget(
    X: Any,
    y: Any,
    *,
    model: str = "lda",
    pooling: float = 0.5,
    shrinkage: float = 0.0,
    axes: tuple[int, int] = (0, 1),
) -> Any:
    """Show rows, regions and errors of a model that follow dragged and added points.

    Parameters
    ----------
    X
        Array or data frame of N rows and d >= 2 numeric features, with N at most 1,000.
    y
        N labels.
    model
        "lda", "qda" or "rda".
    pooling, shrinkage
        Options of the model, as in Python; `pooling` is for "rda".
    axes
        Positions of the two features to show. The model uses all features.

    Returns
    -------
    anywidget.AnyWidget
        Its traits change in both directions: `model`, `pooling`, `shrinkage`, `axes`, `rows`
        (N lists of d numbers) and `codes` (positions in `labels`). `numbers` has the training error
        ("training"), the leave-one-out error ("held_out"), both as counts, and the leave-one-out
        "log_loss". `estimator()` fits the model that is shown in Python.
    """
    if model not in MODELS:
        raise OptionError.of("model", model, "'lda', 'qda' or 'rda'")
    options: dict[str, Any] = {"pooling": pooling, "shrinkage": shrinkage}
    for option, value in options.items():
        if not isinstance(value, Real) or isinstance(value, bool) or not 0 <= value <= 1:
            raise OptionError.of(option, value, "a number from 0 to 1")
    try:
        table = np.asarray(X, dtype=float)
    except (TypeError, ValueError):
        raise OptionError.of("X", type(X).__name__, "numeric features only") from None
    if table.ndim != 2:
        raise ShapeError.not_two_dimensional(table.ndim)
    n, d = table.shape
    names = [str(name) for name in getattr(X, "columns", [f"x{j}" for j in range(d)])]
    bad = np.argwhere(~np.isfinite(table))
    if len(bad):
        row, column = bad[0].tolist()
        if np.isnan(table[row, column]):
            raise MissingValueError.of_cell(row=row, column=names[column])
        raise InfiniteValueError.of_cell(row=row, column=names[column])
    labels, codes = np.unique(np.asarray(y), return_inverse=True)
    if len(codes) != n:
        raise ShapeError.of_truth(rows=n, labels=len(codes))
    if n > MOST_ROWS or d < 2 or not 2 <= len(labels) <= MOST_CLASSES:
        raise ShapeError.of_widget(rows=n, features=d, classes=len(labels), most=MOST_ROWS)
    positions: list[Any] = list(axes)
    if len(positions) != 2 or any(
        not isinstance(j, Integral) or isinstance(j, bool) or not 0 <= j < d for j in positions
    ):
        raise OptionError.of("axes", axes, f"two positions of features, from 0 to {d - 1}")
    widget = _widget_class()(
        rows=table.tolist(),
        codes=codes.tolist(),
        labels=[str(label) for label in labels],
        features=names,
        model=model,
        pooling=float(pooling),
        shrinkage=float(shrinkage),
        axes=[int(j) for j in axes],
    )
    widget.own_labels = labels
    return widget


def script() -> str:
    """Return the widget's ES module."""
    return script_of("widget") + "export default { render: module_widget.render };\n"


def style() -> str:
    """Return the style sheet, restricted to the widget, in the colours of the notebook's theme."""
    sheet = report.asset("style.css") + asset("style.css")
    colours = dict(_COLOURS.findall(sheet))
    light, dark = colours[""], colours['[data-theme="dark"]']
    own = ".discriminant-widget"
    return (
        f"{own} {{{light}\ncolor: var(--ink); background: var(--ground); padding: 1rem;\n"
        f"font: 1rem/1.6 var(--sans);\n{sheet}}}\n"
        f'body[data-jp-theme-light="false"] {own}, .vscode-dark {own} {{{dark}}}\n'
    )


@cache
def _widget_class() -> Any:
    try:
        import anywidget
        import traitlets
    except ImportError:
        raise LibraryMissingError.of("anywidget", what="The widget", extra="notebook") from None

    class BoundaryWidget(anywidget.AnyWidget):  # type: ignore[misc, unused-ignore]
        """Rows of a small table with the regions of a model."""

        _esm = script()
        _css = style()
        rows: Any = traitlets.List().tag(sync=True)
        codes: Any = traitlets.List().tag(sync=True)
        labels: Any = traitlets.List().tag(sync=True)
        features: Any = traitlets.List().tag(sync=True)
        model: Any = traitlets.Enum(MODELS, "lda").tag(sync=True)
        pooling: Any = traitlets.Float(0.5, min=0, max=1).tag(sync=True)
        shrinkage: Any = traitlets.Float(0.0, min=0, max=1).tag(sync=True)
        axes: Any = traitlets.List([0, 1], minlen=2, maxlen=2).tag(sync=True)
        numbers: Any = traitlets.Dict().tag(sync=True)
        own_labels: Any = None  # the labels as in `y`; `labels` are their texts

        def estimator(self) -> Any:
            """Return the model that is shown, fitted to the rows as they are now."""
            from discriminant.estimators.gaussian.lda_qda import LDA, QDA
            from discriminant.estimators.gaussian.rda import RDA

            rows, labels = np.array(self.rows), self.own_labels[self.codes]
            if self.model == "rda":
                return RDA(pooling=self.pooling, shrinkage=self.shrinkage).fit(rows, labels)
            return {"lda": LDA, "qda": QDA}[self.model](shrinkage=self.shrinkage).fit(rows, labels)

    return BoundaryWidget
