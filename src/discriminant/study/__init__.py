"""Studies: read a table once, compare models, select one, decide and report.

Numerical libraries are imported only when a study is created.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

if TYPE_CHECKING:
    from discriminant.study.workflow import Study as Study

P = ParamSpec("P")
T = TypeVar("T")


def _options_by_name(function: Callable[P, T]) -> Callable[P, T]:
    """Wrap `study` so that a second positional argument raises an error with the correct call."""

    @wraps(function)
    def checked(*args: P.args, **options: P.kwargs) -> T:
        if len(args) > 1:
            from discriminant.errors import OptionError
            from discriminant.errors.base import show_value

            allowed = f"passed by name: study(source, target={show_value(args[1])})"
            raise OptionError.of("target", args[1], allowed)
        return function(*args, **options)

    return checked


@_options_by_name
def study(
    source: Any,
    *,
    target: str | None = None,
    formula: str | None = None,
    weight: str | None = None,
    missing: str = "error",
    ordered: Mapping[str, Sequence[str]] | None = None,
    seed: int = 0,
    folds: int | str = 10,
    groups: str | None = None,
    time: str | None = None,
    engine: str | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: Callable[[str, int, int], object] | None = None,
    **reading: Any,
) -> Study:
    """Read a table once, to compare, select, explain and report on models.

    Parameters
    ----------
    source : path, data frame or partitioned rows
        The path of a file (CSV, Parquet, Arrow, JSON lines), a data frame, or an Arrow stream. Or
        rows that need not fit into memory: a large file, several files (a list, a glob, a folder),
        a Dask or Spark frame, the result of `discriminant.sql` or `discriminant.rows`, or the URL
        of a database with `table=` or `query=`.
    target : str, optional
        Column to predict; default: the response of the formula.
    formula : str, optional
        Formula of the features, such as 'case ~ age + C(education)', in place of all columns.
    weight : str, optional
        Column of row weights.
    missing : {'error', 'drop', 'mean', 'indicator', 'marginal'}
        How to treat missing cells. Rows without a label are dropped with a warning.
    ordered : {column: levels}, optional
        Columns with ordered levels, lowest first. If the target is one of them, ordered logistic
        regression is compared too; so it is if the target is an ordered category of a data frame,
        or has 3 to 10 numbers as labels, also as text.
    seed : int
        Seed for assigning rows to folds.
    folds : int or str
        Number of cross-validation folds, the same for all models; or the name of a column: rows
        with the same value are held out together.
    groups : str, optional
        Column of groups, such as patients: rows with the same value are held out together, in
        `folds` folds. The column is not used as a feature.
    time : str, optional
        Column of dates or numbers. Each fold is predicted by models that were fitted to earlier
        rows only (forward chaining). The column is not used as a feature.
    engine : {'memory', 'files', 'dask', 'spark', 'sql'}, optional
        Engine that reads the data. By default a file of up to 256 MB, or an eighth of the free
        memory, is read into memory, and anything else in partitions (see `study.opened.notes`).
    checkpoint : path, optional
        Folder for intermediate results of a partitioned table, so that an interrupted run can
        resume; `study.complete()` removes it.
    progress : callable, optional
        Called as progress(step, done, total); done is -1 if the text describes progress within the
        current step.
    **reading
        Other options of `open_source` or `rows`: columns, exclude, categories, delimiter, decimal,
        ...; and `table` or `query` of a database.

    Returns
    -------
    Study
        Its methods `compare`, `choose`, `decide`, `explain` and `report` do not read the table
        again.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"size": [1.0, 2.0, 2.5, 6.0, 6.5, 9.0], "kind": list("aaabbb")})
    >>> sizes = study(rows, target="kind", folds=2)
    >>> sizes.compare(["lda", "nearest_mean"])["lda"].facts["error"]
    0.0
    """
    from discriminant.study.workflow import Study
    from discriminant.table.formula.parse import response_column

    if formula is not None:
        reading["formula"] = formula
        target = response_column(formula) if target is None else target
    if target is None:
        from discriminant.errors import OptionError

        raise OptionError.of("target", None, "the column to predict, or the response of a formula")
    reading = {
        "weight": weight,
        "missing": missing,
        "ordered": ordered,
        "engine": engine,
        "checkpoint": checkpoint,
        **reading,
    }
    return Study.of(
        source,
        target=target,
        seed=seed,
        folds=folds,
        groups=groups,
        time=time,
        progress=progress,
        reading=reading,
    )
