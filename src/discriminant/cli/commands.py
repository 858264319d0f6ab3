"""Commands of the command line: their names, options and output.

The work is done by the rooms below.
"""

from __future__ import annotations

import os
from typing import Any

import rich_click as click

from discriminant.cli import options as given
from discriminant.cli.session import Session
from discriminant.redaction import is_address
from discriminant.table.policies import UNSEEN

_SOURCE = click.argument(
    "source",
    type=click.Path(),
    nargs=-1,
    required=True,
    metavar="SOURCE...",
    help="A file, several, a glob, a folder; or the URL of a database, with --table or --query.",
)
_WITH = click.option(
    "--with",
    "settings",
    multiple=True,
    metavar="OPTION=VALUE",
    help="Option of the label tree (--model label-tree), such as tree=wide or beam=20. May be "
    "repeated.",
)
_UNKNOWN = click.option(
    "--unknown",
    type=click.Choice(("error", "count")),
    default="error",
    show_default=True,
    help="How to treat labels that the model does not know.",
)
_TOP = click.option(
    "--top",
    type=click.IntRange(1),
    default=5,
    show_default=True,
    help="Number of labels predicted for each row by a label tree.",
)
_FIRST = click.option(
    "--first",
    type=click.Choice(("0", "1")),
    help="Number of the first feature in svmlight files, for label trees (default: as the model "
    "was fitted; else 0 if a row has a feature 0).",
)
click.rich_click.COMMAND_GROUPS = {
    "discriminant": [
        {"name": "From a table to a decision", "commands": ["report", "compare", "explain"]},
        {"name": "Models", "commands": ["fit", "predict", "assess", "export"]},
        {"name": "Files of moments", "commands": ["moments", "merge", "forget", "drift"]},
        {"name": "To begin with", "commands": ["examples"]},
    ]
}


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="discriminant", prog_name="discriminant")
def cli() -> None:
    """Linear classification: read a table once, compare every model, decide.

    Begin with: discriminant examples
    """


def _check_present(*paths: str | None) -> None:
    """Raise an error for a file that does not exist, before anything that takes time is imported.

    Addresses of databases and patterns such as *.csv are looked up later.
    """
    for path in paths:
        if path is None or is_address(path) or any(sign in path for sign in "*?["):
            continue
        try:
            os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            from discriminant.errors import FileError

            raise FileError.absent(path) from None
        except (OSError, ValueError):  # a name that no file can have: its reader says why
            continue


def _session(options: dict[str, Any]) -> Session:
    context = click.get_current_context()
    command = str(context.obj) if context is not None else ""
    return Session(
        command, options.pop("as_json", False), options.pop("quiet", False), options.get("seed")
    )


@cli.command()
@_SOURCE
@click.option("--out", type=click.Path(), help="The page. Default: the name of SOURCE, .html")
@click.option("--save", type=click.Path(), help="The model. Default: as the page, .model")
@click.option("--no-model", is_flag=True, help="Write no model.")
@click.option("--facts", type=click.Path(), help="Also write what the page says as JSON.")
@click.option("--markdown", type=click.Path(), help="Also write what the page says as Markdown.")
@click.option("--title", help="Title of the report.")
@click.option("--model", help="Take this model, whatever the comparison says.")
@click.option(
    "--test",
    type=click.Path(),
    help="File of labelled rows on which to measure the label tree (--model label-tree, no "
    "--target).",
)
@_WITH
@_FIRST
@_TOP
@_UNKNOWN
@given.reading
@given.studying
@given.choosing
@given.deciding
@given.plainly
def report(source: tuple[str, ...], **options: Any) -> int:
    """Compare all models, take one, write a page that explains it, and the model.

    discriminant report loans.csv --target default

    discriminant report 'loans/*.parquet' --target default --checkpoint loans.run

    discriminant report train.txt --model label-tree --test test.txt     (XMC text or svmlight)
    """
    _check_present(*source, options["test"])
    if options["model"] == "label-tree" and options["target"] is None:
        from discriminant.cli.label_tree import report as grow

        return grow(_session(options), source, options)
    from discriminant.cli.study_commands import report as work

    return work(_session(options), source, options)


@cli.command()
@_SOURCE
@given.reading
@given.studying
@given.choosing
@given.plainly
def compare(source: tuple[str, ...], **options: Any) -> int:
    """Compare all models on the same held-out rows, in one table."""
    _check_present(*source)
    from discriminant.cli.study_commands import compare as work

    return work(_session(options), source, options)


@cli.command()
@_SOURCE
@click.option("--model", help="Model to explain (default: the selected one).")
@given.reading
@given.studying
@given.choosing
@given.plainly
def explain(source: tuple[str, ...], **options: Any) -> int:
    """Say what tells the classes apart, and what is odd about the rows."""
    _check_present(*source)
    from discriminant.cli.study_commands import explain as work

    return work(_session(options), source, options)


@cli.command()
@_SOURCE
@click.option("--model", help="Which: lda, qda, logistic, ... Default: compare, and choose.")
@click.option("--out", type=click.Path(), required=True, help="The file of the model.")
@_WITH
@_FIRST
@given.reading
@given.studying
@given.choosing
@given.deciding
@given.plainly
def fit(source: tuple[str, ...], **options: Any) -> int:
    """Fit a model to all rows and save it.

    discriminant fit loans.csv --target default --model lda --out loans.model

    discriminant fit goods.csv --target kind --model label-tree --out goods.model

    discriminant fit train.txt --model label-tree --out labels.model     (XMC text or svmlight)
    """
    _check_present(*source)
    if options["model"] == "label-tree":
        from discriminant.cli.label_tree import fit as grow

        return grow(_session(options), source, options)
    from discriminant.cli.study_commands import fit as work

    return work(_session(options), source, options)


@cli.command()
@click.argument("model", type=click.Path())
@_SOURCE
@click.option(
    "--out",
    type=click.Path(),
    required=True,
    help="The rows and the answers: a CSV, or by its name .parquet, .arrow. - prints a CSV.",
)
@click.option("--prefix", default="", help="Before the names of the columns that are added.")
@click.option("--no-probabilities", is_flag=True, help="Only add the class.")
@click.option("--raw-csv", is_flag=True, help="Do not make texts safe for spreadsheets.")
@_TOP
@_FIRST
@click.option(
    "--unseen",
    type=click.Choice(UNSEEN),
    help="How to treat categories not seen during fitting (default: as the model was fitted).",
)
@click.option(
    "--missing-text",
    multiple=True,
    help="A text of a CSV that means missing, besides those of the fit. May be repeated.",
)
@given.csv_style
@given.tables
@given.deciding
@given.plainly
def predict(model: str, source: tuple[str, ...], **options: Any) -> int:
    """Predict the class and class probabilities for every row.

    discriminant predict loans.model new.csv --out answers.csv

    discriminant predict loans.model bank.duckdb --table loans --out answers.parquet
    """
    _check_present(model, *source)
    from discriminant.cli.predict import predict as work

    return work(_session(options), model, source, options)


@cli.command()
@click.argument("model", type=click.Path())
@_SOURCE
@click.option("--target", help="The column of true labels. Default: as when the model was fitted.")
@_UNKNOWN
@_TOP
@_FIRST
@click.option("--page", type=click.Path(), help="Also write a report about a label tree.")
@given.place
@given.deciding
@given.plainly
def assess(model: str, source: tuple[str, ...], **options: Any) -> int:
    """Measure a model on rows whose classes are known.

    discriminant assess loans.model more.csv

    discriminant assess labels.model test.txt --page labels.html         (XMC text or svmlight)
    """
    _check_present(model, *source)
    from discriminant.cli.predict import assess as work

    return work(_session(options), model, source, options)


@cli.command()
@click.argument("model", type=click.Path())
@click.option("--to", type=click.Choice(("sql", "onnx", "python")), required=True)
@click.option("--out", type=click.Path(), help="Where to. Default: print it (not ONNX).")
@click.option(
    "--table", default="rows", show_default=True, help="Table that the SQL reads (--to sql)."
)
@click.option(
    "--dialect",
    type=click.Choice(("duckdb", "postgres", "sqlite")),
    default="duckdb",
    show_default=True,
    help="SQL dialect (--to sql).",
)
@click.option(
    "--keep",
    multiple=True,
    metavar="COLUMN",
    help="Column that the SQL passes on, such as the key (--to sql). May be repeated.",
)
@click.option(
    "--outputs",
    help="With commas between: label,p,action,... All that the model has, if none are named.",
)
@given.plainly
def export(model: str, **options: Any) -> int:
    """Write a model as SQL, as ONNX or as plain Python."""
    _check_present(model)
    from discriminant.cli.predict import export as work

    return work(_session(options), model, options)


@cli.command()
@_SOURCE
@click.option("--out", type=click.Path(), required=True, help="The file of moments.")
@click.option(
    "--detail",
    type=click.Choice(("diagonal", "pooled", "class", "fourth")),
    default="class",
    show_default=True,
    help="How much is kept.",
)
@given.reading
@given.plainly
def moments(source: tuple[str, ...], **options: Any) -> int:
    """Read a table once into weights, means and scatters of its classes."""
    _check_present(*source)
    from discriminant.cli.moments import moments as work

    return work(_session(options), source, options)


@cli.command()
@click.argument("files", type=click.Path(), nargs=-1, required=True)
@click.option("--out", type=click.Path(), required=True, help="The file of the sum.")
@given.plainly
def merge(files: tuple[str, ...], **options: Any) -> int:
    """Add files of moments: of months, of sites, of machines."""
    _check_present(*files)
    from discriminant.cli.moments import merge as work

    return work(_session(options), files, options)


@cli.command()
@click.argument("whole", type=click.Path())
@click.argument("part", type=click.Path())
@click.option("--out", type=click.Path(), required=True, help="The file of what is left.")
@given.plainly
def forget(whole: str, part: str, **options: Any) -> int:
    """Subtract the moments of some rows, as if they had never been included."""
    _check_present(whole, part)
    from discriminant.cli.moments import forget as work

    return work(_session(options), whole, part, options)


@cli.command()
@click.argument("before", type=click.Path())
@click.argument("after", type=click.Path())
@click.option("--label", multiple=True, help="Compare only rows of this class. May be repeated.")
@given.plainly
def drift(before: str, after: str, **options: Any) -> int:
    """Test whether the means of two files of moments differ: Hotelling's T2, and each feature."""
    _check_present(before, after)
    from discriminant.cli.moments import drift as work

    return work(_session(options), before, after, options)


@cli.command()
@click.argument("folder", type=click.Path(), default=".")
@click.option("--force", is_flag=True, help="Write over files of these names.")
@given.plainly
def examples(folder: str, **options: Any) -> int:
    """Write some tables to try, with a command for each. The folder is made if there is none."""
    from discriminant.cli.examples import write_examples

    return write_examples(_session(options), folder, force=options["force"])
