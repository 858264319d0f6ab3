"""Commands of the command line: names, options and help texts.

The commands are carried out by the other modules of this package; each is imported when its command
runs.
"""

from __future__ import annotations

import os
from typing import Any

import rich_click as click

from discriminant.cli import options as shared
from discriminant.cli.session import Session
from discriminant.redaction import is_address
from discriminant.table.missing_and_unseen import UNSEEN

_SOURCE = click.argument(
    "source",
    type=click.Path(),
    nargs=-1,
    required=True,
    metavar="SOURCE...",
    help="One or more files, a glob, a folder, or the URL of a database (with --table or --query).",
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
    help="Number of the first feature in svmlight files, for label trees (default: as in the fit; "
    "during a fit, 0 if a row has a feature 0, else 1).",
)
click.rich_click.COMMAND_GROUPS = {
    "discriminant": [
        {
            "name": "From a table to a decision",
            "commands": ["studio", "check", "report", "compare", "explain"],
        },
        {
            "name": "Models",
            "commands": ["fit", "predict", "explain-row", "assess", "export", "serve"],
        },
        {"name": "Moment files", "commands": ["moments", "merge", "forget", "drift"]},
        {"name": "Getting started", "commands": ["examples"]},
    ]
}


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="discriminant", prog_name="discriminant")
def cli() -> None:
    """Linear classification: read a table once, compare models, select one and explain it.

    To get started: discriminant examples
    """


def _check_present(*paths: str | None) -> None:
    """Raise an error if a file does not exist, before slow imports.

    Database addresses and patterns such as *.csv are checked later.
    """
    for path in paths:
        if path is None or is_address(path) or any(sign in path for sign in "*?["):
            continue
        try:
            os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            from discriminant.errors import FileError

            raise FileError.absent(path) from None
        # the file name is invalid: the reader raises an error that explains this
        except (OSError, ValueError):
            continue


def _session(options: dict[str, Any]) -> Session:
    context = click.get_current_context()
    command = str(context.obj) if context is not None else ""
    return Session(
        command, options.pop("as_json", False), options.pop("quiet", False), options.get("seed")
    )


@cli.command()
@_SOURCE
@shared.target_option
@shared.formula_option
@click.option(
    "--out", type=click.Path(), help="Report to write (default: the name of SOURCE with .html)."
)
@click.option(
    "--save",
    type=click.Path(),
    help="Model file to write (default: the name of the report with .model).",
)
@click.option("--no-model", is_flag=True, help="Do not save the model.")
@click.option("--facts", type=click.Path(), help="Also write the facts of the report as JSON.")
@click.option("--markdown", type=click.Path(), help="Also write the report as Markdown.")
@click.option("--title", help="Title of the report.")
@click.option(
    "--no-yardstick",
    is_flag=True,
    help="Do not fit scikit-learn's boosted trees, a benchmark that is never selected.",
)
@click.option("--model", help="Model to report on (default: selected by the comparison).")
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
@shared.reading_options
@shared.comparing_options
@shared.selecting_options
@shared.decision_options
@shared.output_options
def report(source: tuple[str, ...], **options: Any) -> int:
    """Compare models, select one, and write a report and the fitted model.

    discriminant report loans.csv --target default

    discriminant report 'loans/*.parquet' --target default --checkpoint loans.run

    discriminant report train.txt --model label-tree --test test.txt     (XMC text or svmlight)
    """
    _check_present(*source, options["test"])
    if options["model"] == "label-tree" and options["target"] is None:
        from discriminant.cli.label_tree import report as run_command

        return run_command(_session(options), source, options)
    from discriminant.cli.study_commands import report as run_command

    return run_command(_session(options), source, options)


@cli.command()
@_SOURCE
@shared.target_option
@shared.formula_option
@shared.reading_options
@shared.comparing_options
@shared.selecting_options
@shared.output_options
def compare(source: tuple[str, ...], **options: Any) -> int:
    """Compare models on the same held-out rows and print a table."""
    _check_present(*source)
    from discriminant.cli.study_commands import compare as run_command

    return run_command(_session(options), source, options)


@cli.command()
@_SOURCE
@shared.target_option
@shared.formula_option
@click.option("--model", help="Model to explain (default: the selected model).")
@shared.reading_options
@shared.comparing_options
@shared.selecting_options
@shared.output_options
def explain(source: tuple[str, ...], **options: Any) -> int:
    """Explain which features separate the classes, and list data checks."""
    _check_present(*source)
    from discriminant.cli.study_commands import explain as run_command

    return run_command(_session(options), source, options)


@cli.command()
@_SOURCE
@shared.target_option
@shared.source_options
@shared.column_options
@shared.folds_option
@shared.groups_option
@shared.time_option
@shared.seed_option
@shared.output_options
def check(source: tuple[str, ...], **options: Any) -> int:
    """Check the data before modelling: leaks, missing values, groups, duplicates, drift.

    No model is fitted. Missing cells and rows without a label are counted, and are not an error.

    discriminant check loans.csv --target default
    """
    _check_present(*source)
    from discriminant.cli.study_commands import check as run_command

    return run_command(_session(options), source, options)


@cli.command()
@_SOURCE
@shared.target_option
@shared.formula_option
@click.option(
    "--model", help="Model to fit: lda, qda, logistic, ... (default: selected by the comparison)."
)
@click.option("--out", type=click.Path(), required=True, help="Model file to write.")
@_WITH
@_FIRST
@shared.reading_options
@shared.comparing_options
@shared.selecting_options
@shared.decision_options
@shared.output_options
def fit(source: tuple[str, ...], **options: Any) -> int:
    """Fit a model to all rows and save it.

    discriminant fit loans.csv --target default --model lda --out loans.model

    discriminant fit loans.csv --formula "default ~ age + log(income)" --model lda --out loans.model

    discriminant fit goods.csv --target kind --model label-tree --out goods.model

    discriminant fit train.txt --model label-tree --out labels.model     (XMC text or svmlight)
    """
    _check_present(*source)
    if options["model"] == "label-tree":
        from discriminant.cli.label_tree import fit as run_command

        return run_command(_session(options), source, options)
    from discriminant.cli.study_commands import fit as run_command

    return run_command(_session(options), source, options)


@cli.command()
@click.argument("model", type=click.Path())
@_SOURCE
@click.option(
    "--out",
    type=click.Path(),
    required=True,
    help="File for the rows with their predictions: .csv, .txt, .parquet, .arrow "
    "or .feather. Use '-' to print a CSV.",
)
@click.option("--prefix", default="", help="Prefix for the names of the added columns.")
@click.option("--no-probabilities", is_flag=True, help="Add only the predicted class.")
@click.option(
    "--raw-csv",
    is_flag=True,
    help="Do not escape text cells that a spreadsheet would run as formulas.",
)
@_TOP
@_FIRST
@click.option(
    "--unseen",
    type=click.Choice(UNSEEN),
    help="How to treat categories not seen during fitting (default: the setting of the fit).",
)
@click.option(
    "--missing-text",
    multiple=True,
    help="Text that marks a missing cell in a CSV, in addition to those used in fitting. May be "
    "repeated.",
)
@shared.csv_options
@shared.database_options
@shared.decision_options
@shared.output_options
def predict(model: str, source: tuple[str, ...], **options: Any) -> int:
    """Predict the class and class probabilities for every row.

    discriminant predict loans.model new.csv --out predictions.csv

    discriminant predict loans.model bank.duckdb --table loans --out predictions.parquet
    """
    _check_present(model, *source)
    from discriminant.cli.model_commands import predict as run_command

    return run_command(_session(options), model, source, options)


@cli.command()
@click.argument("model", type=click.Path())
@_SOURCE
@click.option("--target", help="Column of true labels (default: the target of the fit).")
@_UNKNOWN
@_TOP
@_FIRST
@click.option("--page", type=click.Path(), help="Also write a report about a label tree.")
@shared.source_options
@shared.decision_options
@shared.output_options
def assess(model: str, source: tuple[str, ...], **options: Any) -> int:
    """Evaluate a model on labelled rows.

    discriminant assess loans.model more.csv

    discriminant assess labels.model test.txt --page labels.html         (XMC text or svmlight)
    """
    _check_present(model, *source)
    from discriminant.cli.model_commands import assess as run_command

    return run_command(_session(options), model, source, options)


@cli.command("explain-row")
@click.argument("model", type=click.Path())
@_SOURCE
@click.option(
    "--rows",
    type=click.IntRange(1, 1000),
    default=10,
    show_default=True,
    help="Number of rows to explain, starting with the first row.",
)
@shared.decision_options
@shared.output_options
def explain_row(model: str, source: tuple[str, ...], **options: Any) -> int:
    """Explain each prediction: what every column contributes, and what would change the class.

    discriminant explain-row loans.model applicant.csv
    """
    _check_present(model, *source)
    from discriminant.cli.model_commands import explain_row as run_command

    return run_command(_session(options), model, source, options)


@cli.command()
@click.argument("model", type=click.Path())
@click.option(
    "--to",
    type=click.Choice(("sql", "onnx", "python", "javascript")),
    required=True,
    help="Format to export to.",
)
@click.option("--out", type=click.Path(), help="File to write (default: print; ONNX needs a file).")
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
    help="Column to copy to the result of the SQL, such as the key (--to sql). May be repeated.",
)
@click.option(
    "--outputs",
    help="Outputs to include, separated by commas: label,p,action,... (default: all).",
)
@shared.output_options
def export(model: str, **options: Any) -> int:
    """Export a model as SQL, ONNX, plain Python or JavaScript."""
    _check_present(model)
    from discriminant.cli.model_commands import export as run_command

    return run_command(_session(options), model, options)


@cli.command()
@click.argument("models", type=click.Path(), nargs=-1, required=True, metavar="MODEL...")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="Port; 0 chooses a free one.",
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on. An address that other machines can reach needs a token.",
)
@click.option(
    "--token-file",
    type=click.Path(),
    help="File with the bearer token that requests must send (default: the environment variable "
    "DISCRIMINANT_TOKEN; without it, no token is needed on this machine).",
)
@click.option(
    "--allow-host",
    "allow_hosts",
    multiple=True,
    metavar="NAME",
    help="Name of this server to accept in the Host header of requests. May be repeated.",
)
@click.option(
    "--max-bytes",
    type=click.IntRange(1),
    default=32 << 20,
    show_default=True,
    help="Largest body of a request.",
)
@click.option(
    "--max-rows",
    type=click.IntRange(1),
    default=100_000,
    show_default=True,
    help="Largest number of rows of a request.",
)
@click.option(
    "--max-requests",
    type=click.IntRange(1),
    default=256,
    show_default=True,
    help="Largest number of requests in progress; further requests get status 503.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(0.1),
    default=30.0,
    show_default=True,
    help="Time limit for the body of a request, and for its prediction.",
)
@click.option(
    "--reload-seconds",
    type=click.FloatRange(0.1),
    default=1.0,
    show_default=True,
    help="Time between checks of the model files; a file that has changed is loaded again.",
)
@click.option(
    "--stop-seconds",
    type=click.FloatRange(0),
    default=30.0,
    show_default=True,
    help="Time allowed for requests in progress to complete after SIGTERM.",
)
def serve(models: tuple[str, ...], **options: Any) -> int:
    """Serve models over HTTP: JSON, CSV, Arrow, Open Inference Protocol and MLflow's format.

    discriminant serve loans.model

    discriminant serve loans.model iris.model --host 0.0.0.0 --token-file token.txt
    """
    _check_present(*models)
    from discriminant.web.service.command import ServeOptions, serve as serve_models

    serve_models(models, ServeOptions(**options))
    return 0


@cli.command()
@click.argument(
    "source",
    type=click.Path(),
    required=False,
    metavar="[SOURCE]",
    help="File, or URL of a database (with --table). Without it, the page asks for one.",
)
@click.option("--table", help="Table of the database.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="Port to listen on (default: any free one).",
)
@click.option("--no-browser", is_flag=True, help="Print the address without opening a browser.")
@click.option(
    "--max-bytes",
    type=click.IntRange(1),
    default=1 << 30,
    show_default=True,
    help="Largest file that the page may send.",
)
def studio(source: str | None, no_browser: bool, **options: Any) -> int:
    """Open a table in the browser: move points, priors and costs, and see the model follow.

    discriminant studio

    discriminant studio loans.csv
    """
    _check_present(source)
    from discriminant.cli.studio import studio as run_command

    return run_command(source, {"browser": not no_browser, **options})


@cli.command()
@_SOURCE
@shared.target_option
@click.option("--out", type=click.Path(), required=True, help="Moment file to write.")
@click.option(
    "--detail",
    type=click.Choice(("diagonal", "pooled", "class", "fourth")),
    default="class",
    show_default=True,
    help="Level of detail: variances, pooled covariance, class covariances, or fourth moments.",
)
@shared.reading_options
@shared.output_options
def moments(source: tuple[str, ...], **options: Any) -> int:
    """Compute class weights, means and scatter matrices in one pass over a table."""
    _check_present(*source)
    from discriminant.cli.moments import moments as run_command

    return run_command(_session(options), source, options)


@cli.command()
@click.argument("files", type=click.Path(), nargs=-1, required=True)
@click.option("--out", type=click.Path(), required=True, help="Moment file to write.")
@shared.output_options
def merge(files: tuple[str, ...], **options: Any) -> int:
    """Add moment files, for example of several months, sites or machines."""
    _check_present(*files)
    from discriminant.cli.moments import merge as run_command

    return run_command(_session(options), files, options)


@cli.command()
@click.argument("whole", type=click.Path())
@click.argument("part", type=click.Path())
@click.option("--out", type=click.Path(), required=True, help="Moment file to write.")
@shared.output_options
def forget(whole: str, part: str, **options: Any) -> int:
    """Subtract the moments of some rows, as if they had never been included."""
    _check_present(whole, part)
    from discriminant.cli.moments import forget as run_command

    return run_command(_session(options), whole, part, options)


@cli.command()
@click.argument("before", type=click.Path())
@click.argument("after", type=click.Path())
@click.option(
    "--label", multiple=True, help="Compare only the rows of this class. May be repeated."
)
@shared.output_options
def drift(before: str, after: str, **options: Any) -> int:
    """Test whether the means of two moment files differ (Hotelling's T2, and per feature)."""
    _check_present(before, after)
    from discriminant.cli.moments import drift as run_command

    return run_command(_session(options), before, after, options)


@cli.command()
@click.argument("folder", type=click.Path(), default=".")
@click.option("--force", is_flag=True, help="Overwrite existing files of the same names.")
@shared.output_options
def examples(folder: str, **options: Any) -> int:
    """Write example tables to a folder, with a command to try on each."""
    from discriminant.cli.example_data import write_examples

    return write_examples(_session(options), folder, force=options["force"])
