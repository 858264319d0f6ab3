"""Row S1: no hostile file is loaded, run, waited for or given much memory."""

import gc
import time
import tracemalloc

import pytest

import discriminant as dd
from discriminant.errors import StoredFileError
from tests.trust.hostile_files import hostile_files

MOST_BYTES = 64 << 20
MOST_SECONDS = 1.0


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return hostile_files(tmp_path_factory.mktemp("hostile"))


@pytest.mark.parametrize("mmap", [False, True], ids=["read", "mapped"])
def test_every_hostile_file_is_refused_and_none_is_run(files, mmap, tmp_path):
    place, faults = tmp_path / "file", []
    for name, content in files.items():
        place.write_bytes(content)
        try:
            dd.load(place, mmap=mmap)
            faults.append(f"{name}: loaded")
        except StoredFileError:
            pass
        except Exception as fault:
            faults.append(f"{name}: {type(fault).__name__}: {fault}")
    assert faults == []
    assert not [found for found in tmp_path.parent.rglob("was run")]


def test_there_are_at_least_two_hundred_of_them(files):
    assert len(set(files.values())) >= 200


def refuse(place, content):
    place.write_bytes(content)
    with pytest.raises(StoredFileError):
        dd.load(place)


def test_no_hostile_file_takes_much_memory(files, tmp_path):
    most = {}
    for name, content in files.items():
        tracemalloc.start()
        refuse(tmp_path / "file", content)
        most[name] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert max(most.values()) <= MOST_BYTES, max(most, key=most.get)


def test_no_hostile_file_takes_much_time(files, tmp_path):
    slowest = {}
    gc.freeze()  # collections look at what loading makes, not at the heap of all other tests
    for name, content in files.items():
        started = time.process_time()  # not the time of others on the same machine
        refuse(tmp_path / "file", content)
        slowest[name] = time.process_time() - started
    gc.unfreeze()
    assert max(slowest.values()) <= MOST_SECONDS, max(slowest, key=slowest.get)


@pytest.mark.parametrize("start", ["pickle", "joblib", "npy", "npz"])
def test_a_file_that_could_run_code_is_told_so(files, start, tmp_path):
    place = tmp_path / "file"
    for name, content in files.items():
        if name.startswith(start) and not name.startswith(("pickle 0", "pickle 1")):
            place.write_bytes(content)
            with pytest.raises(StoredFileError, match=r"can run any code .* It was not opened"):
                dd.load(place)
