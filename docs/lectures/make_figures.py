"""Draw the figures of the lectures again: python docs/lectures/make_figures.py [name ...]

Without names all are drawn, into docs/lectures/figures/.
"""

from __future__ import annotations

import sys
import warnings

import figures_1  # noqa: F401 (each of these names its figures)
import figures_2  # noqa: F401
import figures_3  # noqa: F401
import figures_4  # noqa: F401
import figures_5  # noqa: F401
from drawing import DRAWN, write

from discriminant.errors import DiscriminantWarning


def main() -> None:
    """Draw what is named, or all."""
    warnings.simplefilter("ignore", DiscriminantWarning)  # masked and separated classes, on purpose
    for name in sys.argv[1:] or DRAWN:
        path = write(name)
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
