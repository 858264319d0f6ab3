"""BLAS is held to one thread while we sum, and left as it was."""

import threading

import numpy as np
import pandas as pd
import pytest
import scipy.linalg  # noqa: F401 -- brings a BLAS of its own
from threadpoolctl import threadpool_info, threadpool_limits

import discriminant as dd
from discriminant.engines.threads import one_blas_thread


def threads():
    return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]


@pytest.fixture(autouse=True)
def two_threads():
    with threadpool_limits(2, user_api="blas"):
        if set(threads()) != {2}:
            pytest.skip("this BLAS has one thread only")
        yield


def test_whoever_leaves_first_the_last_one_restores_what_was_before():
    first, second = one_blas_thread(), one_blas_thread()
    before = threads()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert set(threads()) == {1}  # the other is still inside
    second.__exit__(None, None, None)
    assert threads() == before


def test_another_thread_may_be_the_last_to_leave():
    before, inside = threads(), threading.Event()
    first, go = one_blas_thread(), threading.Event()

    def stay():
        with one_blas_thread():
            inside.set()
            go.wait()

    first.__enter__()
    other = threading.Thread(target=stay)
    other.start()
    inside.wait()
    first.__exit__(None, None, None)
    go.set()
    other.join()
    assert threads() == before


def test_many_threads_that_come_and_leave_leave_it_as_it_was():
    before = threads()

    def come_and_leave():
        for _ in range(200):
            with one_blas_thread():
                pass

    all_of_them = [threading.Thread(target=come_and_leave) for _ in range(8)]
    for one in all_of_them:
        one.start()
    for one in all_of_them:
        one.join()
    assert threads() == before


def test_a_reading_of_a_file_leaves_it_as_it_was(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(6000, 3)), columns=list("abc"))
    frame.assign(y=rng.choice(["u", "v"], 6000)).to_parquet(
        tmp_path / "1.parquet", row_group_size=50
    )
    before = threads()
    rows = dd.rows(tmp_path / "1.parquet", target="y")
    dd.evaluate(dd.LDA().fit(rows), rows)
    assert threads() == before
