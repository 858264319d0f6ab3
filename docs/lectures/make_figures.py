"""Draw the figures of the lectures: python docs/lectures/make_figures.py [name ...]

Without names, all figures are drawn. They are written to docs/lectures/figures/.
"""

from __future__ import annotations

import sys
import warnings

import figures_1  # noqa: F401 (importing registers the figures)
import figures_2  # noqa: F401
import figures_3  # noqa: F401
import figures_4  # noqa: F401
import figures_5  # noqa: F401
from drawing import FIGURES, write

from discriminant.errors import DiscriminantWarning


def main() -> None:
    """Draw the named figures, or all of them."""
    warnings.simplefilter(
        "ignore", DiscriminantWarning
    )  # masked and separated classes are intended
    for name in sys.argv[1:] or FIGURES:
        path = write(name)
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
