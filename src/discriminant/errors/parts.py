"""Tables in parts: what cannot be done without their rows in memory, and what went wrong there."""

from __future__ import annotations

from discriminant.errors.base import DiscriminantError, InputError


class NeedsMemoryError(InputError):
    """Something needs all rows at hand."""

    @classmethod
    def of(cls, who: str, source: str, rows: int, drawn: int) -> NeedsMemoryError:
        return cls(
            f"{who} needs its rows in memory, and {source} has {rows:,} rows in parts. Fit it to "
            f"some of them (`rows.drawn` holds {drawn:,}, spread over the parts), or take a model "
            "that reads rows in parts: LDA, QDA, RDA, NearestMean, Fisher, LeastSquares, Logistic."
        )


class SourceChangedError(DiscriminantError):
    """A source gave other rows than before."""

    @classmethod
    def of_rows(cls, source: str, before: int, after: int) -> SourceChangedError:
        return cls(
            f"{source} gave {before:,} rows when it was opened and {after:,} now: it changed, and "
            "sums over both would be of neither. Open it again when nobody writes to it."
        )


class EngineError(InputError):
    """No engine reads such a source."""

    @classmethod
    def unknown(cls, name: object, known: list[str]) -> EngineError:
        return cls(f"engine={name!r} is none of {', '.join(known)}.")

    @classmethod
    def of_source(cls, kind: str, known: list[str]) -> EngineError:
        return cls(
            f"No engine ({', '.join(known)}) reads a {kind}. Pass a path, a glob, a folder, a data "
            "frame, a Dask or Spark frame, or discriminant.sql(connection, table)."
        )

    @classmethod
    def not_installed(cls, library: str, extra: str) -> EngineError:
        return cls(
            f"This needs {library}, which is not installed: pip install 'discriminant[{extra}]'."
        )
