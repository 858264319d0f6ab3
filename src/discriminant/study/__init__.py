"""The read-once workflow a person uses: open a table, compare the family, choose, decide, report.

Nothing heavy is imported before a study is made.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discriminant.study.workflow import Study as Study


def study(
    source: Any,
    *,
    target: str,
    weight: str | None = None,
    missing: str = "error",
    ordered: Mapping[str, Sequence[str]] | None = None,
    seed: int = 0,
    folds: int | str = 10,
    engine: str | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Callable[[str, int, int], object] | None = None,
    **reading: Any,
) -> Study:
    """Read a table once, for all that follows.

    Parameters
    ----------
    source
        The path of a file (CSV, Parquet, Arrow, JSON lines), a data frame, or an Arrow stream. Or
        rows that need not fit into memory: a large file, several (a list, a glob, a folder), a
        Dask or Spark frame, what `discriminant.sql` or `discriminant.rows` returns, or the URL of
        a database with `table=` or `query=`.
    target, weight
        The column to predict, and that of weights.
    missing
        What to do about missing cells: 'error', 'drop', 'mean', 'indicator' or 'marginal'.
    ordered
        {column: levels from lowest to highest}.
    seed, folds
        How rows are dealt into folds, and into how many; all models are compared on the same. Or
        the name of a column: rows with one cell in it are held out together.
    engine
        Who reads: 'memory', 'files', 'dask', 'spark' or 'sql'. None: files of up to 256 MB, or an
        eighth of the memory that is free, are read into memory; the rest stays where it is, and
        is read in parts (`study.opened.notes` tells).
    checkpoint
        A folder in which sums over rows in parts are kept, so that a run that was stopped goes on
        where it was; `study.complete()` removes it.
    progress
        Called as progress(what, done, of) while there is work; done is -1 of a step within.
    reading
        Other options of `open_source` or `rows`: columns, exclude, categories, delimiter, decimal,
        ...; and `table`, `query` of a database.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"size": [1.0, 2.0, 2.5, 6.0, 6.5, 9.0], "kind": list("aaabbb")})
    >>> found = study(rows, target="kind", folds=2)
    >>> found.compare(["lda", "nearest_mean"])["lda"].facts["error"]
    0.0
    """
    from discriminant.study.workflow import Study

    reading = {
        "weight": weight,
        "missing": missing,
        "ordered": ordered,
        "engine": engine,
        "checkpoint": checkpoint,
        **reading,
    }
    return Study.of(
        source, target=target, seed=seed, folds=folds, progress=progress, reading=reading
    )
