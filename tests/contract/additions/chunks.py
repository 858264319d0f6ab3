"""An engine: lists of pandas frames, each of them a part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from discriminant.engines.summation import tree_sum
from discriminant.table.column_cells import Frame, frame_from_dataframe
from discriminant.table.partitioned_source import Additive, Work

A = TypeVar("A", bound=Additive)


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """One frame."""

    number: int
    rows: Any
    start: int = 0

    @property
    def name(self) -> str:
        """Name of the part."""
        return f"chunk {self.number}"

    def frames(self, columns: Sequence[str]) -> Iterator[Frame]:
        """Yield the rows."""
        yield frame_from_dataframe(self.rows[list(columns)])


@dataclass(frozen=True, slots=True, eq=False)
class ChunkSource:
    """All frames."""

    frames: tuple[Any, ...]
    name: str = "chunks"
    notes: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.frames[0].columns)

    def sample(self, columns: Sequence[str], rows: int) -> Frame:
        """Return the first rows of each frame."""
        import pandas

        some = -(-rows // len(self.frames))
        return frame_from_dataframe(
            pandas.concat([frame[list(columns)].head(some) for frame in self.frames])
        )

    def map_reduce(self, work: Work[A]) -> A:
        """Add the results for all frames."""
        return tree_sum([work(Chunk(k, frame)) for k, frame in enumerate(self.frames)])


def accepts(source: Any) -> bool:
    """Whether it is a tuple of frames."""
    return isinstance(source, tuple) and all(hasattr(frame, "iloc") for frame in source)


def as_source(source: Any) -> ChunkSource:
    """Return the source of a tuple of frames."""
    return ChunkSource(source)
