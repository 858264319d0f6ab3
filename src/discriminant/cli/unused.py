"""Options that do not apply to what a command is given: each is an error, none is ignored.

    (command, case): the options that have no effect in that case, and why

A command names the cases that apply as soon as they are known, before any rows are read. An option
is in a case only if it was passed on the command line; its default never counts.
"""

from __future__ import annotations

from click import get_current_context
from click.core import ParameterSource

from discriminant.errors import CommandError

_TABLES = frozenset(
    {
        *("table", "query", "engine", "pushdown", "weight", "missing", "unseen", "ordered"),
        *("category", "exclude", "column", "reference", "missing_text", "delimiter", "decimal"),
        *("thousands", "encoding", "max_classes", "max_levels", "max_bytes"),
    }
)
_SELECTING = frozenset({"by", "rule"})
_COMPARING = frozenset({"models", "folds", "most"}) | _SELECTING
_DECIDING = frozenset({"cost", "reject"})
_SPARSE = "is for label trees of sparse rows: pass --model label-tree and no --target"
_NOT_SPARSE = "is for tables (--target): label trees of sparse rows do not take it"
_NAMED = "is for comparing models, and --model names the only one"

UNUSED: dict[tuple[str, str], tuple[frozenset[str], str]] = {
    ("report", "table"): (frozenset({"test", "settings", "first", "top", "unknown"}), _SPARSE),
    ("report", "named model"): (_SELECTING, "is for selecting a model, and --model names one"),
    ("report", "no model file"): (frozenset({"save"}), "contradicts --no-model"),
    ("report", "sparse rows"): (_TABLES | _COMPARING | _DECIDING, _NOT_SPARSE),
    ("report", "no test file"): (frozenset({"top", "unknown"}), "is for the rows of --test"),
    ("explain", "named model"): (_SELECTING, "is for selecting a model, and --model names one"),
    ("fit", "table"): (frozenset({"settings", "first"}), "is for --model label-tree"),
    ("fit", "named model"): (_COMPARING, _NAMED),
    ("fit", "table of a label tree"): (
        frozenset({"first"}),
        "is for svmlight files (no --target)",
    ),
    ("fit", "sparse rows"): (_TABLES | _COMPARING | _DECIDING, _NOT_SPARSE),
    ("fit", "moments"): (
        _TABLES | _COMPARING | {"target", "checkpoint", "seed", "settings", "first"},
        "is for rows, and this file holds moments, which need no reading",
    ),
    ("predict", "table"): (frozenset({"first"}), "is for label trees of sparse rows (svmlight)"),
    ("predict", "no label tree"): (frozenset({"top"}), "is for label trees"),
    ("predict", "no encoding"): (
        frozenset({"unseen", "missing_text"}),
        "is for models with an encoding of columns, and this model takes numbers only",
    ),
    ("predict", "binary output"): (frozenset({"raw_csv"}), "is for CSV output"),
    ("predict", "sparse rows"): (
        _DECIDING
        | {"prefix", "no_probabilities", "unseen", "missing_text", "table", "query"}
        | {"delimiter", "decimal", "thousands", "encoding"},
        _NOT_SPARSE,
    ),
    ("assess", "table"): (
        frozenset({"top", "page", "first"}),
        "is for label trees of sparse rows; 'discriminant report' writes a page about the models "
        "of a table",
    ),
    ("assess", "sparse rows"): (
        _DECIDING | {"target", "table", "query", "engine"},
        _NOT_SPARSE,
    ),
    ("export", "no SQL"): (frozenset({"table", "dialect", "keep"}), "is for --to sql"),
}


def refuse_unused(*cases: str) -> None:
    """Raise an error for the first option that was passed and has no effect in these cases."""
    context = get_current_context(silent=True)
    if context is None:
        return
    for case in cases:
        names, reason = UNUSED[str(context.command.name), case]
        for param in context.command.params:
            if param.name in names and was_given(str(param.name)):
                raise CommandError.unused(param.opts[0], reason)


def was_given(option: str) -> bool:
    """Whether an option was passed on the command line, and is not a default."""
    context = get_current_context(silent=True)
    return context is not None and context.get_parameter_source(option) not in (
        None,
        ParameterSource.DEFAULT,
    )
