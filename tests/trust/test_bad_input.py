"""Bad input: one table of seventy-eight rows, and what the user must get of each.

An error has a kind, a place (file, line, row, column, value), a cause and a way out; the command
line ends with 2, and what was there before is there still. A row is shown by cases, found by its
number:

    commands   cases/commands.py: the command line, a file and a command
    deeds      cases/deeds.py: the command line, where more must be done than that
    arrays     cases/arrays.py: estimators, over all that can meet it
    opened     cases/tables.py: `open_source` and `Encoded`
    tests      elsewhere, by name
"""

# ruff: noqa: E501 -- a table of cases is read line by line

import importlib
import json
import re
import warnings
from typing import NamedTuple

import pytest

from discriminant.errors import DiscriminantError
from tests.trust.cases.arrays import ARRAYS
from tests.trust.cases.commands import BAD_INPUT, COMMANDS
from tests.trust.cases.deeds import DEEDS
from tests.trust.cases.running import call, costs_of, give, prepare, state
from tests.trust.cases.tables import OPENED

pytestmark = pytest.mark.filterwarnings("ignore::discriminant.errors.DiscriminantWarning")

MOST_SECONDS, MOST_BYTES = 2.0, 200 << 20  # beyond what a good table takes


class Row(NamedTuple):
    number: int
    given: str
    said: str  # what must be said
    shown: str  # by which cases
    tests: tuple[str, ...] = ()  # and by which tests elsewhere


STORE, SQL, BROWSER = (
    "tests.unit.store.test_store",
    "tests.unit.export.test_hostile_names",
    "tests.unit.report.test_browser",
)
TABLE = [
    Row(1, "NaN in a cell", "row, line, column, how many; --missing", "commands arrays opened"),
    Row(2, "an infinity, or 1e400", "row, line, column, the text", "commands arrays opened"),
    Row(3, "text among numbers", "row, line, column, the text; decimal comma", "commands arrays opened"),
    Row(4, "decimal commas throughout", "taken, and said", "commands"),
    Row(5, "0xFF, 1_000, TRUE", "no number; row, line, column", "commands opened"),
    Row(6, "integers beyond 2**53", "a warning: digits of the column are lost", "commands arrays opened"),
    Row(7, "complex numbers, durations, lists, objects", "column and type", "commands arrays opened"),
    Row(8, "categories at the fit", "encoded and said, or refused by name", "commands arrays"),
    Row(9, "an unseen category", "row, line, column, the text; error, ignore or reject", "commands opened"),
    Row(10, "an unseen class", "new labels with counts", "commands arrays"),
    Row(11, "a column is missing", "its name", "commands arrays opened"),
    Row(12, "a column too many", "ignored, with a note", "commands arrays opened"),
    Row(13, "columns in another order", "matched by name, same answers", "commands deeds"),
    Row(14, "an array of another width", "both widths; that names cannot be checked", "arrays opened"),
    Row(15, "two columns of one name", "both positions", "commands arrays opened"),
    Row(16, "names that look alike", "a warning with the pairs", "commands opened"),
    Row(17, "an empty file", "that it is empty", "commands arrays opened"),
    Row(18, "a header only", "no data rows", "commands opened"),
    Row(19, "no features", "what was set aside, and why", "commands arrays opened"),
    Row(20, "one row", "the fewest that will do", "commands arrays"),
    Row(21, "one class", "refused", "commands arrays opened"),
    Row(22, "no such label column", "the columns, and the nearest name", "commands opened"),
    Row(23, "labels that are all different, or too many", "refused with their number", "commands opened"),
    Row(24, "a missing label", "rows", "commands arrays opened"),
    Row(25, "classes called NA, null, nan", "kept as text", "commands"),
    Row(26, "classes 001 and 1", "kept apart", "commands"),
    Row(27, "classes A and 'A '", "a warning with both", "commands opened"),
    Row(28, "labels of text and of numbers", "refused", "commands arrays opened"),
    Row(29, "a continuous label", "that this is regression, briefly", "commands arrays opened"),
    Row(30, "a class of one row", "class, count, the fewest that will do", "commands arrays"),
    Row(31, "a column that is constant, or within classes", "named; left out, or: it separates", "commands arrays"),
    Row(32, "collinear columns", "columns, rank, condition number, digits", "commands arrays"),
    Row(33, "more columns than rows", "shrunk, and said how far", "commands arrays"),
    Row(34, "separated classes", "which, how, by which columns; ridge or Jeffreys", "commands arrays"),
    Row(35, "a fit that has not converged", "a warning, converged_ False, exit code 3", "commands arrays"),
    Row(36, "a negative weight", "row", "commands arrays opened"),
    Row(37, "weights zero, NaN, infinite", "row, or that all are zero", "commands arrays"),
    Row(38, "a class of no weight", "class", "commands arrays"),
    Row(39, "weights too few", "both lengths", "arrays"),
    Row(40, "priors that do not sum to 1", "their sum", "arrays"),
    Row(41, "priors negative, NaN, zero, too few", "class", "arrays"),
    Row(42, "costs of another shape, or of other classes", "shape and classes", "commands arrays"),
    Row(43, "a cost negative, NaN, or of being right", "the cell by its classes", "commands arrays"),
    Row(44, "a cost of rejecting that is negative, or too dear", "refused; a note that it never rejects", "commands arrays"),
    Row(45, "thresholds outside [0, 1], unsorted, NaN", "value and bound", "arrays"),
    Row(46, "a hierarchy with a cycle, an orphan, a leaf twice", "nodes by their names", "commands arrays", ("tests.unit.extreme.test_bad_input:test_a_hierarchy_that_is_no_tree_over_the_labels_is_named", "tests.unit.extreme.test_hierarchy:test_what_is_no_tree_over_the_labels_is_refused_by_the_names_of_its_nodes")),
    Row(47, "a code with equal rows", "pairs of classes", "arrays"),
    Row(48, "another delimiter", "taken, and said", "commands"),
    Row(49, "a byte order mark", "taken, and said", "commands"),
    Row(50, "UTF-16, latin-1", "the guess, byte and line", "commands opened"),
    Row(51, "a row too long", "line, fields expected and found", "commands opened"),
    Row(52, "a row too short", "line, fields expected and found", "commands opened"),
    Row(53, "every row one field too long", "refused", "commands opened"),
    Row(54, "a quote not closed", "line where it opens", "commands opened"),
    Row(55, "NUL bytes; CR for line ends", "line; taken", "commands opened"),
    Row(56, "lines, fields and headers without end", "the limit", "commands opened"),
    Row(57, "Parquet, Arrow or gzip cut off", "incomplete", "commands opened"),
    Row(58, "Parquet with a flipped bit", "column and part", "commands opened"),
    Row(59, "extension types", "column and type; refused", "commands opened"),
    Row(60, "a gzip bomb", "stopped, with both sizes; --max-bytes", "commands opened"),
    Row(61, "a link, pipe, device, directory", "what it is; not read", "commands opened"),
    Row(62, "a file that changes while it is read", "both sizes; refused", "deeds"),
    Row(63, "a model cut off", "the byte where it ends", "commands", ("tests.trust.test_damaged_files:test_a_model_cut_at_any_byte_is_refused_with_that_byte",)),
    Row(64, "a model changed", "both digests", "commands", (f"{STORE}:test_a_number_changed_in_a_file_is_told_by_its_digest", "tests.trust.test_damaged_files:test_a_model_with_any_byte_changed_is_refused")),
    Row(65, "a model of a later version", "version found, versions read; upgrade", "commands", (f"{STORE}:test_a_later_format_is_told_with_what_can_be_read_and_how_to_upgrade",)),
    Row(66, "a model of an old version", "loads, to the last bit", "", (f"{STORE}:test_a_file_of_the_first_format_comes_back_to_the_last_bit", f"{STORE}:test_a_model_of_the_first_format_says_what_it_said")),
    Row(67, "a pickle for a model", "why it is not opened; nothing is run", "commands", ("tests.trust.test_hostile_files:test_a_file_that_could_run_code_is_told_so",)),
    Row(68, "a terabyte, NaN, a name twice in a model", "refused before memory is taken", "commands", ("tests.trust.test_hostile_files:test_every_hostile_file_is_refused_and_none_is_run",)),
    Row(69, "names of files that do harm", "shown, and inert (uploads come with the web app)", "deeds"),
    Row(70, "markup in names", "inert in the page", "", (f"{BROWSER}:test_of_three_hundred_hostile_names_none_comes_alive", "tests.trust.test_injection:test_a_page_from_the_command_line_with_hostile_names_is_inert")),
    Row(71, "SQL in names and labels", "quoted; the same answers on three databases", "deeds", (f"{SQL}:test_three_hundred_strings_are_columns_classes_categories_and_tables_and_nothing_else", f"{SQL}:test_a_nul_in_a_name_is_refused_by_name")),
    Row(72, "formulas in a CSV that is written", "a ' in front; numbers untouched; --raw-csv", "deeds", ("tests.trust.test_injection:test_of_three_hundred_texts_none_is_a_formula_in_what_is_written", "tests.unit.cli.test_cli:test_numbers_and_plain_texts_are_left_alone", "tests.unit.cli.test_cli:test_formulas_among_names_and_labels_come_out_harmless")),
    Row(73, "an export that cannot be", "the part; no file", "deeds", ("tests.unit.export.test_refusals:test_what_cannot_be_said_is_named_and_no_file_is_begun",)),
    Row(74, "killed while writing", "the old file or the new one", "", ("tests.trust.test_kills:test_a_process_killed_while_it_writes_loses_nothing",)),
    Row(75, "a full disk", "the bytes it needs; the old file is there", "deeds", (f"{STORE}:test_a_full_disk_is_told_with_what_was_needed_and_leaves_the_old_file",)),
    Row(76, "a folder that cannot be written", "before the fit, not after it", "deeds", (f"{STORE}:test_a_read_only_folder_is_told_before_the_work",)),
    Row(77, "two writers of one model", "locked by pid; never a mix", "deeds", (f"{STORE}:test_a_second_writer_is_told_who_holds_the_file", f"{STORE}:test_many_writers_never_make_a_mix")),
    Row(78, "Ctrl-C, SIGTERM, a closed terminal", "what was kept, the command again; 130, 143, 129", "deeds"),
]  # fmt: skip


# --- the table is whole --------------------------------------------------------------------------


def test_every_number_has_one_row():
    assert sorted(row.number for row in TABLE) == list(range(1, 79))


def test_every_row_is_shown_where_it_says():
    numbers = {
        "commands": {case.number for case in COMMANDS},
        "deeds": {number for number, _ in DEEDS},
        "arrays": {case[0] for case in ARRAYS},
        "opened": {case[0] for case in OPENED},
    }
    wrong = [
        (row.number, kind)
        for row in TABLE
        for kind, found in numbers.items()
        if (kind in row.shown.split()) != (row.number in found)
    ]
    assert wrong == [] and all(row.shown or row.tests for row in TABLE)


def test_every_test_that_a_row_names_is_there():
    for place in (place for row in TABLE for place in row.tests):
        module, _, name = place.partition(":")
        assert callable(getattr(importlib.import_module(module), name)), place


# --- what is shown -------------------------------------------------------------------------------


def of(cases):
    return [pytest.param(*case[2:], id=f"{case[0]}-{case[1]}") for case in cases]


@pytest.mark.parametrize("case", [pytest.param(c, id=f"{c.number}-{c.what}") for c in COMMANDS])
def test_a_command_tells_place_cause_and_way_out_and_leaves_what_was_there(case, tmp_path):
    folder = prepare(tmp_path)
    give(case.given, folder)
    before = state(folder)
    found = call(case.run, folder)
    assert found.code == case.code, found.all
    assert re.search(case.words, found.all, re.DOTALL), found.all
    assert found.seconds <= MOST_SECONDS
    if case.code == BAD_INPUT:
        assert found.stdout == "" and state(folder) == before
        assert found.stderr.count("Error: ") == 1 and "\n  in: discriminant" in found.stderr


REFUSED = [case for case in COMMANDS if case.code == BAD_INPUT and case.number not in (56, 60)]


@pytest.mark.parametrize("case", [pytest.param(c, id=f"{c.number}-{c.what}") for c in REFUSED])
def test_the_same_is_one_object_of_json_with_the_kind_of_the_error(case, tmp_path):
    folder = prepare(tmp_path)
    give(case.given, folder)
    told = json.loads(call(f"{case.run} --json", folder).stdout)
    assert re.fullmatch(r"[A-Z]\w+Error", told["error"]["kind"])
    assert re.search(case.words, told["error"]["message"], re.DOTALL)


@pytest.mark.parametrize("deed", [pytest.param(d, id=f"{n}-{d.__name__}") for n, d in DEEDS])
def test_what_takes_more_than_a_file_and_a_command(deed, tmp_path):
    deed(prepare(tmp_path))


@pytest.mark.parametrize(("act", "fault", "words"), of(ARRAYS))
def test_bad_rows_are_told_by_place_number_and_way_out(act, fault, words):
    messages = told(act, fault)
    assert any(re.search(words, text, re.DOTALL) for text in messages), messages


@pytest.mark.parametrize(("act", "fault", "words"), of(OPENED))
def test_a_bad_table_is_told_by_place_number_and_way_out(act, fault, words, tmp_path):
    messages = told(lambda: act(tmp_path), fault)
    assert any(re.search(words, text, re.DOTALL) for text in messages), messages


def told(act, fault):
    """The messages of that kind, raised or warned of."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        try:
            act()
        except DiscriminantError as error:
            return [str(error)] if isinstance(error, fault) else [f"other: {error!r}"]
    return [str(warning.message) for warning in found if issubclass(warning.category, fault)]


# --- what it costs -------------------------------------------------------------------------------


def test_what_has_no_end_is_refused_in_two_seconds_and_two_hundred_megabytes(tmp_path):
    dangerous = [case for case in COMMANDS if case.dangerous]
    lines, size = [], 0
    for number, case in enumerate(dangerous):
        place = tmp_path / str(number)
        place.mkdir()
        give(case.given, prepare(place))
        size = max(size, sum(len(v) for v in state(place).values() if isinstance(v, bytes)))
        lines.append(re.sub(r"(?<= )(?=\w+[.]|pipe)", f"{number}/", case.run))
    usual = [
        "fit good.csv --target y --model lda --out new.model",
        "predict good.model good.csv --out new.csv",
    ]
    (*_, good), found = _split(costs_of([*usual, *lines], prepare(tmp_path)), len(usual))
    assert [cost.code for cost in found] == [BAD_INPUT] * len(dangerous)
    assert max(cost.seconds for cost in found) <= MOST_SECONDS
    assert found[-1].bytes - good.bytes <= size + MOST_BYTES


def _split(costs, number):
    return costs[:number], costs[number:]
