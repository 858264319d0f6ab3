"""Arrow releases every block of a Python stream before reading returns."""

import io
import time
from threading import Thread

import pyarrow as pa
import pytest
from pyarrow import csv

from discriminant.table.files.pyarrow_readers import arrow_input


class Recorder(io.BytesIO):
    """Stream that counts its reads."""

    reads = 0

    def read(self, size=-1):
        self.reads += 1
        return super().read(size)


def test_exit_waits_for_blocks_that_a_thread_still_holds():
    released = []

    def work(blocks):
        time.sleep(0.3)
        blocks.clear()
        released.append(True)

    with arrow_input(io.BytesIO(b"a\n1\n")) as open_input:
        blocks = [open_input()]
        blocks.append(blocks[0].read(2))
        thread = Thread(target=work, args=(blocks,))
        thread.start()
        assert not released
    thread.join(0.1)
    assert released


def test_equal_blocks_are_tracked_one_by_one():
    with arrow_input(io.BytesIO(b"aaaa")) as open_input:
        handle = open_input()
        first, second = handle.read(2), handle.read(2)
        assert first == second
        del handle, first
        start = time.perf_counter()
        Thread(target=lambda blocks: (time.sleep(0.3), blocks.clear()), args=([second],)).start()
        del second
    assert time.perf_counter() - start > 0.2


def test_csv_that_cannot_be_converted_is_not_read_after_the_error():
    stream = Recorder(b"a,b\n" + b"1.5,2.5\n" * 200_000)
    with pytest.raises(pa.ArrowInvalid), arrow_input(stream) as open_input:
        csv.read_csv(
            open_input(),
            read_options=csv.ReadOptions(block_size=1 << 12),
            convert_options=csv.ConvertOptions(column_types={"a": pa.date32()}),
        )
    reads = stream.reads
    time.sleep(0.1)
    assert stream.reads == reads


def test_stream_of_an_unread_handle_does_not_wait():
    start = time.perf_counter()
    with arrow_input(io.BytesIO(b"")):
        pass
    assert time.perf_counter() - start < 1
