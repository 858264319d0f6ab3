"""Header, records and lock of checkpoint folders."""

import os

import pytest

from discriminant.errors import CheckpointError
from discriminant.table.files.checkpoint_folder import (
    check_header_value,
    create_folder,
    lock_folder,
    open_header,
    read_record,
    translate_disk_errors,
    write_record,
)

RUN = {"rows": "0a1b", "files": [["a.csv", 12]]}


def test_header_is_written_once_and_then_read(tmp_path):
    create_folder(tmp_path / "c", "run.json")
    first = open_header(tmp_path / "c", "run.json", RUN)
    create_folder(tmp_path / "c", "run.json")
    assert (first, open_header(tmp_path / "c", "run.json", {"rows": "2c"})) == (RUN, RUN)


def test_header_of_another_run_is_rejected_with_both_values(tmp_path):
    with pytest.raises(CheckpointError, match="rows was 0a1b, and is 2c now"):
        check_header_value(tmp_path, "rows", "0a1b", "2c")


@pytest.mark.parametrize("change", [(b"0a1b", b"0a1c"), (b"12", b"13"), (b"{", b"[")])
def test_changed_record_is_rejected(tmp_path, change):
    write_record(tmp_path / "run.json", RUN)
    content = (tmp_path / "run.json").read_bytes()
    (tmp_path / "run.json").write_bytes(content.replace(*change))
    with pytest.raises(CheckpointError, match=r"run\.json is damaged .*Remove it"):
        open_header(tmp_path, "run.json", RUN)


def test_record_without_checksum_is_read(tmp_path):
    (tmp_path / "run.json").write_text('{"rows": "0a1b"}')
    assert read_record(tmp_path / "run.json") == {"rows": "0a1b"}


@pytest.mark.parametrize("name", ["lock", ".run.json.0a1b2c3d"])
def test_folder_of_a_process_killed_at_its_start_is_used(tmp_path, name):
    (tmp_path / name).write_text("")
    create_folder(tmp_path, "run.json")


def test_folder_with_other_files_is_rejected(tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(CheckpointError, match="not a checkpoint"):
        create_folder(tmp_path, "run.json")


def test_folder_is_locked_until_the_lock_is_closed(tmp_path):
    lock = lock_folder(tmp_path)
    with pytest.raises(CheckpointError, match=f"process {os.getpid()} on .* is using now"):
        lock_folder(tmp_path)
    os.close(lock)
    os.close(lock_folder(tmp_path))


def test_disk_error_names_the_folder_and_what_to_do(tmp_path):
    with (
        pytest.raises(CheckpointError, match=f"{tmp_path} cannot be used: full. Name another"),
        translate_disk_errors(tmp_path),
    ):
        raise OSError(28, "full")
