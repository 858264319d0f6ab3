"""Options that several commands share, and how their texts are read.

Options that do not apply to what a command is given: each is an error, none is ignored.

    (command, case): the options that have no effect in that case, and why

A command names the cases that apply as soon as they are known, before any rows are read. An option
is in a case only if it was passed on the command line; its default never counts.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import rich_click as click
from click import get_current_context
from click.core import ParameterSource

from discriminant.table.policies import MISSING, UNSEEN

Command = Callable[..., Any]
REFERENCES = {"frequent": "frequent", "first": "first", "none": None}


def _all(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    def add(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def _number_or_column(text: Any) -> int | str:
    try:
        return int(text)
    except ValueError:
        return str(text)


json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
quiet_option = click.option("--quiet", is_flag=True, help="Show no progress.")
plainly = _all(json_option, quiet_option)

tables = _all(
    click.option("--table", help="Table or view of the database to read."),
    click.option("--query", help="SELECT statement to read from the database."),
)
place = _all(
    tables,
    click.option(
        "--engine",
        type=click.Choice(("memory", "files", "sql")),
        help="Engine that reads the data: memory, files or sql (default: a file of up to 256 MB, "
        "or an eighth of the free memory, is read into memory; anything else in partitions).",
    ),
)
CSV_STYLE = ("encoding", "delimiter", "decimal", "thousands")
csv_style = _all(
    click.option("--delimiter", help="Delimiter of a CSV (default: detected)."),
    click.option("--decimal", help="Decimal sign of a CSV: . or , (default: detected)."),
    click.option("--thousands", help="Sign between groups of digits in a CSV: , . ' or a space."),
    click.option("--encoding", help="Encoding of a CSV, such as utf-8 or cp1252."),
)
reading = _all(
    place,
    click.option(
        "--pushdown",
        is_flag=True,
        help="Compute the sums inside the database, so that no row leaves it: for moments, and for "
        "fit with a --model that is made from moments.",
    ),
    click.option(
        "--checkpoint",
        type=click.Path(),
        help="Folder for intermediate results; rerun the same command to resume.",
    ),
    click.option("--target", help="The column to predict."),
    click.option("--weight", help="The column of weights."),
    click.option(
        "--missing",
        type=click.Choice(MISSING),
        default="error",
        show_default=True,
        help="What to do about missing cells.",
    ),
    click.option(
        "--unseen",
        type=click.Choice(UNSEEN),
        default="error",
        show_default=True,
        help="How to treat categories not seen during fitting: error, ignore or reject.",
    ),
    click.option(
        "--ordered",
        multiple=True,
        metavar="COLUMN=LOW,...,HIGH",
        help="A column whose levels have an order. May be repeated.",
    ),
    click.option(
        "--category", multiple=True, help="A column of numbers that are names. May be repeated."
    ),
    click.option("--exclude", multiple=True, help="A column not to use. May be repeated."),
    click.option("--column", multiple=True, help="The only columns to use. May be repeated."),
    click.option(
        "--reference",
        type=click.Choice(tuple(REFERENCES)),
        help="The level of a category that has no indicator. Default: frequent; of moments none, "
        "so that those of several sites add.",
    ),
    click.option(
        "--missing-text",
        multiple=True,
        help="A text of a CSV that means missing, besides the empty one. May be repeated. Default, "
        "in numbers: NA, NaN, nan, null, NULL.",
    ),
    csv_style,
    click.option(
        "--max-classes",
        type=int,
        default=1000,
        show_default=True,
        help="Stop if the target has more classes than this.",
    ),
    click.option(
        "--max-levels",
        type=int,
        default=100,
        show_default=True,
        help="A category of more is set aside.",
    ),
    click.option("--max-bytes", type=click.IntRange(1), help="Stop reading there."),
)
studying = _all(
    click.option(
        "--models", help="Names, with commas between: lda,qda,rda. All, if none are named."
    ),
    click.option(
        "--folds",
        type=_number_or_column,
        metavar="NUMBER|COLUMN",
        default=10,
        show_default=True,
        help="Number of cross-validation folds; or the name of a column, such as patient: rows "
        "with the same value are held out together. That column is not a feature.",
    ),
    click.option(
        "--seed",
        type=int,
        default=0,
        show_default=True,
        help="Seed for assigning rows to folds.",
    ),
    click.option(
        "--most",
        type=click.IntRange(100),
        default=50_000,
        show_default=True,
        help="Rows, in each training part, for models that must read rows.",
    ),
)
choosing = _all(
    click.option(
        "--by",
        type=click.Choice(("log_loss", "error", "brier")),
        default="log_loss",
        show_default=True,
        help="What a model is chosen by.",
    ),
    click.option(
        "--rule",
        type=click.Choice(("one_se", "least")),
        default="one_se",
        show_default=True,
        help="one_se: the simplest within one standard error of the best. least: the best.",
    ),
)
deciding = _all(
    click.option(
        "--cost",
        metavar="JSON",
        help='What it costs to say one where another is true: \'{"yes": {"no": 5}}\'.',
    ),
    click.option("--reject", type=float, help="The cost of passing a row on to a person."),
)


def one_or_all(source: tuple[str, ...]) -> Any:
    """What a command reads: one thing, or several files."""
    return source[0] if len(source) == 1 else list(source)


def opening(given: dict[str, Any]) -> dict[str, Any]:
    """The options of a reading, taken out of those of a command."""
    if given["target"] is None:
        raise click.MissingParameter(param_hint="'--target'", param_type="option")
    ordered = dict(_levels(text) for text in given.pop("ordered"))
    columns, most = given.pop("column"), given.pop("max_bytes")
    found = {
        "target": given.pop("target"),
        "weight": given.pop("weight"),
        "missing": given.pop("missing"),
        "unseen": given.pop("unseen"),
        "ordered": ordered or None,
        "categories": given.pop("category"),
        "exclude": given.pop("exclude"),
        "columns": columns or None,
        "reference": REFERENCES[given.pop("reference") or "frequent"],
        "missing_texts": given.pop("missing_text") or None,
        "max_levels": given.pop("max_levels"),
        "delimiter": given.pop("delimiter"),
        "decimal": given.pop("decimal"),
        "thousands": given.pop("thousands"),
        "encoding": given.pop("encoding"),
        "max_classes": given.pop("max_classes"),
        "checkpoint": given.pop("checkpoint"),
        "pushdown": given.pop("pushdown"),
        **placing(given),
    }
    return found if most is None else {**found, "max_bytes": most}


def placing(given: dict[str, Any]) -> dict[str, Any]:
    """Which part of a source is read, and who reads it."""
    return {name: given.pop(name) for name in ("table", "query", "engine")}


def named(models: str | None) -> list[str] | None:
    """Names between commas."""
    return None if models is None else [name.strip() for name in models.split(",") if name.strip()]


def costs(text: str | None) -> Any:
    """Costs from JSON."""
    if text is None:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as fault:  # also too many digits, too many brackets
        from discriminant.errors import CommandError

        why = fault.msg if isinstance(fault, json.JSONDecodeError) else str(fault)
        raise CommandError.bad_json("--cost", text, why) from None


def _levels(text: str) -> tuple[str, list[str]]:
    name, found, levels = text.partition("=")
    if not found:
        raise click.BadParameter(
            f"{text!r} has no '=': write COLUMN=LOW,...,HIGH", param_hint="--ordered"
        )
    return name, levels.split(",")


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
                from discriminant.errors import CommandError

                raise CommandError.unused(param.opts[0], reason)


def was_given(option: str) -> bool:
    """Whether an option was passed on the command line, and is not a default."""
    context = get_current_context(silent=True)
    return context is not None and context.get_parameter_source(option) not in (
        None,
        ParameterSource.DEFAULT,
    )
