"""The read-once workflow a person uses: open a table, compare the family, choose, decide, report.

Nothing heavy is imported before a study is made.
"""

from __future__ import annotations

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
    folds: int = 10,
    progress: Callable[[str, int, int], object] | None = None,
    **reading: Any,
) -> Study:
    """Read a table once, for all that follows.

    Parameters
    ----------
    source
        The path of a file (CSV, Parquet, Arrow, JSON lines), a data frame, or an Arrow stream.
    target, weight
        The column to predict, and that of weights.
    missing
        What to do about missing cells: 'error', 'drop', 'mean', 'indicator' or 'marginal'.
    ordered
        {column: levels from lowest to highest}.
    seed, folds
        How rows are dealt into folds, and into how many; all models are compared on the same.
    progress
        Called as progress(what, done, of) while there is work.
    reading
        Other options of `open_source`: columns, exclude, categories, delimiter, decimal, ...

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"size": [1.0, 2.0, 2.5, 6.0, 6.5, 9.0], "kind": list("aaabbb")})
    >>> found = study(rows, target="kind", folds=2)
    >>> found.compare(["lda", "nearest_mean"])["lda"].facts["error"]
    0.0
    """
    from discriminant.study.workflow import Study

    return Study.of(
        source,
        target=target,
        weight=weight,
        missing=missing,
        ordered=ordered,
        seed=seed,
        folds=folds,
        progress=progress,
        reading=reading,
    )
