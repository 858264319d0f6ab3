"""Figures that cannot be drawn, and libraries that are needed only for some things."""

from __future__ import annotations

from collections.abc import Sequence

from discriminant.errors.base import DiscriminantError, InputError, listing


class LibraryMissingError(DiscriminantError, ImportError):
    """A library that is needed only for this is not installed."""

    @classmethod
    def of(cls, library: str, *, what: str, extra: str = "") -> LibraryMissingError:
        """`extra` is the one of this package that has it; '' where none does."""
        how = (
            f"pip install 'discriminant[{extra}]' (in a clone: pip install '.[{extra}]')"
            if extra
            else f"pip install {library}"
        )
        return cls(f"{what} needs {library}, which is not installed. Install it with: {how}")


class PlotError(InputError):
    """What was handed in does not have what the figure shows."""

    @classmethod
    def of_model(cls, figure: str, model: str, lacks: str, instead: str) -> PlotError:
        return cls(f"{figure} cannot show {model}: it has no {lacks}. {instead}")

    @classmethod
    def of_kind(cls, figure: str, given: str, wanted: str) -> PlotError:
        return cls(f"{figure} cannot show a {given}: pass {wanted}.")

    @classmethod
    def of_width(cls, figure: str, found: int, needed: str, instead: str) -> PlotError:
        return cls(f"{figure} needs {needed}, and the rows have {found} feature(s). {instead}")

    @classmethod
    def of_feature(cls, given: object, names: Sequence[str]) -> PlotError:
        return cls(
            f"There is no feature {given!r}. There are {len(names)}: {listing(names, 9)}; pass a "
            f"name, or a place from 0 to {len(names) - 1}."
        )

    @classmethod
    def of_column(cls, name: str) -> PlotError:
        return cls(
            f"Column '{name}' is not made of finite numbers, so that it has no axis. Pass another "
            "in features; a column that is no axis may be of any kind."
        )

    @classmethod
    def of_classes(cls, figure: str, found: int, needed: str) -> PlotError:
        return cls(f"{figure} needs {needed}, and there are {found}.")
