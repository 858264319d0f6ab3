"""Options that several commands share: definitions, parsing, and checks that they apply.

An option that has no effect is an error; it is never ignored. `INAPPLICABLE` lists such options:

    (command, case): the options that have no effect in that case, and why

A command checks these cases, before it reads any rows, as soon as it knows which cases apply. Only
options that were passed on the command line count, not those left at their defaults.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import rich_click as click
from click import get_current_context
from click.core import ParameterSource

from discriminant.table.missing_and_unseen import MISSING_IN_TABLES, UNSEEN

Command = Callable[..., Any]
REFERENCES = {"frequent": "frequent", "first": "first", "none": None}
_SAME_IN_PYTHON = (  # options for reading data that have the same name and values in Python
    *("target", "weight", "missing", "unseen", "exclude", "max_levels", "max_classes"),
    *("delimiter", "decimal", "thousands", "encoding", "checkpoint", "pushdown"),
)


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


output_options = _all(
    click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object."),
    click.option("--quiet", is_flag=True, help="Do not show progress."),
)

database_options = _all(
    click.option("--table", help="Table or view of the database to read."),
    click.option("--query", help="SELECT statement to read from the database."),
)
source_options = _all(
    database_options,
    click.option(
        "--engine",
        type=click.Choice(("memory", "files", "sql")),
        help="Engine that reads the data: memory, files or sql (default: a file of up to 256 MB, "
        "or an eighth of the free memory, is read into memory; anything else in partitions).",
    ),
)
CSV_STYLE = ("encoding", "delimiter", "decimal", "thousands")
csv_options = _all(
    click.option("--delimiter", help="Delimiter of a CSV (default: detected)."),
    click.option("--decimal", help="Decimal sign of a CSV: '.' or ',' (default: detected)."),
    click.option(
        "--thousands", help="Thousands separator of a CSV: ',', '.', an apostrophe or a space."
    ),
    click.option("--encoding", help="Encoding of a CSV, such as utf-8 or cp1252."),
)
target_option = click.option(
    "--target",
    help="Column to predict. Required, except for label trees, moment files and "
    "formulas, which name it on their left-hand side.",
)
formula_option = click.option(
    "--formula",
    metavar="FORMULA",
    help="Formula of the features, in place of all columns, such as "
    "'case ~ age + C(education) + log(dose)'. It needs the library formulaic, and all rows in "
    "memory.",
)
# Options on the meaning of columns, which `check` has as well.
column_options = _all(
    click.option("--weight", help="Column of row weights."),
    click.option(
        "--ordered",
        multiple=True,
        metavar="COLUMN=LOW,...,HIGH",
        help="Column with ordered levels, lowest first. May be repeated.",
    ),
    click.option(
        "--category", multiple=True, help="Numeric column to treat as categorical. May be repeated."
    ),
    click.option("--exclude", multiple=True, help="Column to leave out. May be repeated."),
    click.option(
        "--column", multiple=True, help="Column to use; all others are left out. May be repeated."
    ),
    click.option(
        "--missing-text",
        multiple=True,
        help="Text that marks a missing cell in a CSV, besides the empty text and, in numeric "
        "columns, NA, NaN, nan, null and NULL. May be repeated.",
    ),
    csv_options,
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
        help="Leave out categorical columns with more levels than this.",
    ),
    click.option(
        "--max-bytes",
        type=click.IntRange(1),
        help="Stop with an error if the file is larger than this.",
    ),
)
reading_options = _all(
    source_options,
    click.option(
        "--pushdown",
        is_flag=True,
        help="Compute the moments inside the database, so that no row leaves it (for moments, and "
        "for fit with a --model that needs only moments).",
    ),
    click.option(
        "--checkpoint",
        type=click.Path(),
        help="Folder for intermediate results; rerun the same command to resume.",
    ),
    click.option(
        "--missing",
        type=click.Choice(MISSING_IN_TABLES),
        default="error",
        show_default=True,
        help="How to treat missing cells: raise an error, drop the row, impute the mean, impute "
        "and add an indicator, or integrate the feature out (marginal). Rows without a label are "
        "dropped; with --missing error, they are an error of the commands fit and moments.",
    ),
    click.option(
        "--unseen",
        type=click.Choice(UNSEEN),
        default="error",
        show_default=True,
        help="How to treat categories not seen during fitting: error, ignore or reject.",
    ),
    click.option(
        "--reference",
        type=click.Choice(tuple(REFERENCES)),
        help=(
            "Level of each categorical column that gets no indicator (default: frequent; for "
            "the command moments none, so that moments of several sites can be added)."
        ),
    ),
    column_options,
)
folds_option = click.option(
    "--folds",
    type=_number_or_column,
    metavar="NUMBER|COLUMN",
    default=10,
    show_default=True,
    help=(
        "Number of cross-validation folds; or the name of a column, such as patient: rows "
        "with the same value are held out together. The column is then not used as a feature."
    ),
)
groups_option = click.option(
    "--groups",
    metavar="COLUMN",
    help="Column of groups, such as patients: rows with the same value are held out together, in "
    "the number of folds that --folds sets. The column is not used as a feature.",
)
time_option = click.option(
    "--time",
    metavar="COLUMN",
    help="Column of dates or numbers: every fold is predicted from earlier rows only (forward "
    "chaining). The column is not used as a feature.",
)
seed_option = click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    help="Seed for assigning rows to folds.",
)
comparing_options = _all(
    click.option(
        "--models",
        help="Models to compare, separated by commas, such as lda,qda,rda; or all. Default: LDA, "
        "QDA, and every model that chooses its own regularisation and returns probabilities or "
        "scores.",
    ),
    folds_option,
    groups_option,
    time_option,
    seed_option,
    click.option(
        "--repeats",
        type=click.IntRange(1, 100),
        help="Number of times that the rows are divided into folds (default: 3 for fewer than 250 "
        "rows, else 1).",
    ),
    click.option(
        "--most",
        type=click.IntRange(100),
        default=50_000,
        show_default=True,
        help="Largest number of training rows per fold for models that need rows, not only "
        "moments.",
    ),
)
selecting_options = _all(
    click.option(
        "--by",
        type=click.Choice(("log_loss", "error", "brier")),
        default="log_loss",
        show_default=True,
        help="Criterion for selecting a model.",
    ),
    click.option(
        "--rule",
        type=click.Choice(("least", "one_se")),
        default="least",
        show_default=True,
        help="Selection rule: the best (least), or the simplest model within one standard error "
        "of the best (one_se).",
    ),
    click.option(
        "--select",
        type=click.Choice(("auto", "single", "pool")),
        default="auto",
        show_default=True,
        help="What to select: the pool, a weighted mean of the probabilities of all models (pool); "
        "the best single model (single); or the pool, unless a single model is at most 1% worse "
        "and has half of the weight in the pool (auto).",
    ),
)
decision_options = _all(
    click.option(
        "--cost",
        metavar="JSON",
        help='Misclassification costs, {predicted: {true: cost}}: \'{"yes": {"no": 5}}\'.',
    ),
    click.option(
        "--reject",
        type=float,
        help="Cost of rejecting a row, that is, of referring it to a person.",
    ),
)


def one_or_all(source: tuple[str, ...]) -> Any:
    """Return the source, or the list of sources if there are several."""
    return source[0] if len(source) == 1 else list(source)


def reading_arguments(given: dict[str, Any]) -> dict[str, Any]:
    """Remove the options for reading data from `given`; return them as Python arguments."""
    formula = given.pop("formula", None)
    if formula is not None and given["target"] is None:
        from discriminant.table.formula.parse import response_column

        given["target"] = response_column(formula)
    if given["target"] is None:
        raise click.MissingParameter(param_hint="'--target'", param_type="option")
    arguments = {name: given.pop(name) for name in _SAME_IN_PYTHON}
    arguments |= {
        "ordered": dict(_levels(text) for text in given.pop("ordered")) or None,
        "categories": given.pop("category"),
        "columns": given.pop("column") or None,
        "reference": REFERENCES[given.pop("reference") or "frequent"],
        "missing_texts": given.pop("missing_text") or None,
        **source_arguments(given),
    }
    arguments |= {} if formula is None else {"formula": formula}
    max_bytes = given.pop("max_bytes")
    return arguments if max_bytes is None else {**arguments, "max_bytes": max_bytes}


def source_arguments(given: dict[str, Any]) -> dict[str, Any]:
    """Remove from `given` the engine and the options that name a database table; return them."""
    return {name: given.pop(name) for name in ("table", "query", "engine")}


def split_names(text: str | None) -> list[str] | None:
    """Return a list of names from a text that separates them by commas."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def parse_costs(text: str | None) -> Any:
    """Return the costs that a JSON text describes."""
    if text is None:
        return None
    try:
        return json.loads(text)
    # RecursionError is raised for too many nested brackets
    except (ValueError, RecursionError) as fault:
        from discriminant.errors import CommandError

        why = fault.msg if isinstance(fault, json.JSONDecodeError) else str(fault)
        raise CommandError.bad_json("--cost", text, why) from None


def _levels(text: str) -> tuple[str, list[str]]:
    name, separator, levels = text.partition("=")
    if not separator:
        raise click.BadParameter(
            f"{text!r} has no '=': write COLUMN=LOW,...,HIGH", param_hint="--ordered"
        )
    return name, levels.split(",")


_TABLES = frozenset(
    {
        *("table", "query", "engine", "pushdown", "weight", "missing", "unseen", "ordered"),
        *("category", "exclude", "column", "reference", "missing_text", "delimiter", "decimal"),
        *("thousands", "encoding", "max_classes", "max_levels", "max_bytes", "formula"),
    }
)
_SELECTING = frozenset({"by", "rule", "select"})
_COMPARING = frozenset({"models", "folds", "groups", "time", "repeats", "most"}) | _SELECTING
_DECIDING = frozenset({"cost", "reject"})
_SPARSE = "applies only to label trees of sparse rows (--model label-tree without --target)"
_NOT_SPARSE = "applies only to tables (--target), not to label trees of sparse rows"
_NAMED = "applies only to a comparison, and --model names a single model"

INAPPLICABLE: dict[tuple[str, str], tuple[frozenset[str], str]] = {
    ("report", "table"): (frozenset({"test", "settings", "first", "top", "unknown"}), _SPARSE),
    ("report", "named model"): (
        _SELECTING,
        "applies only to selecting a model, and --model names one",
    ),
    ("report", "no model file"): (frozenset({"save"}), "contradicts --no-model"),
    ("report", "sparse rows"): (
        _TABLES | _COMPARING | _DECIDING | {"no_yardstick"},
        _NOT_SPARSE,
    ),
    ("report", "no test file"): (
        frozenset({"top", "unknown"}),
        "applies only to the rows of --test",
    ),
    ("explain", "named model"): (
        _SELECTING,
        "applies only to selecting a model, and --model names one",
    ),
    ("fit", "table"): (frozenset({"settings", "first"}), "applies only to --model label-tree"),
    ("fit", "named model"): (_COMPARING, _NAMED),
    ("fit", "label tree"): (
        frozenset({"formula"}),
        "applies only to other models than label trees",
    ),
    ("fit", "table of a label tree"): (
        frozenset({"first"}),
        "applies only to svmlight files (no --target)",
    ),
    ("fit", "sparse rows"): (_TABLES | _COMPARING | _DECIDING, _NOT_SPARSE),
    ("fit", "moments"): (
        _TABLES | _COMPARING | {"target", "checkpoint", "seed", "settings", "first"},
        "applies only to rows, and this file holds moments, which need no reading",
    ),
    ("predict", "table"): (
        frozenset({"first"}),
        "applies only to label trees of sparse rows (svmlight)",
    ),
    ("predict", "no label tree"): (frozenset({"top"}), "applies only to label trees"),
    ("predict", "no encoding"): (
        frozenset({"unseen", "missing_text"}),
        "applies only to models with an encoding of columns, and this model takes numbers only",
    ),
    ("predict", "binary output"): (frozenset({"raw_csv"}), "applies only to CSV output"),
    ("predict", "sparse rows"): (
        _DECIDING
        | {"prefix", "no_probabilities", "unseen", "missing_text", "table", "query"}
        | {"delimiter", "decimal", "thousands", "encoding"},
        _NOT_SPARSE,
    ),
    ("assess", "table"): (
        frozenset({"top", "page", "first"}),
        "applies only to label trees of sparse rows; 'discriminant report' writes a page about the "
        "models of a table",
    ),
    ("assess", "sparse rows"): (
        _DECIDING | {"target", "table", "query", "engine"},
        _NOT_SPARSE,
    ),
    ("export", "no SQL"): (frozenset({"table", "dialect", "keep"}), "applies only to --to sql"),
}


def reject_inapplicable(*cases: str) -> None:
    """Raise an error for the first option that was passed but has no effect in one of the cases
    `cases`.
    """
    context = get_current_context(silent=True)
    if context is None:
        return
    for case in cases:
        names, reason = INAPPLICABLE[str(context.command.name), case]
        for param in context.command.params:
            if param.name in names and is_passed(str(param.name)):
                from discriminant.errors import CommandError

                raise CommandError.unused(param.opts[0], reason)


def is_passed(option: str) -> bool:
    """Whether an option was passed on the command line, rather than left at its default."""
    context = get_current_context(silent=True)
    return context is not None and context.get_parameter_source(option) not in (
        None,
        ParameterSource.DEFAULT,
    )
