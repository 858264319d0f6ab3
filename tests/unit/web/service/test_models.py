"""Models of a service: names, and new versions of their files."""

import asyncio
import io
import json
import os
import threading

import pytest

import discriminant as dd
from discriminant import store
from discriminant.errors import CommandError, DiscriminantError
from discriminant.web.request_log import JsonLog
from discriminant.web.service.models import ModelRegistry, load_model, model_names
from tests.unit.web.conftest import run_async, start, table


def test_name_is_the_stem_of_the_file():
    assert list(model_names(["a/loans.model", "iris.v2.model"])) == ["loans", "iris.v2"]


def test_same_name_twice_is_refused():
    with pytest.raises(CommandError, match="both be served as 'loans'"):
        model_names(["a/loans.model", "b/loans.model"])


def test_file_that_is_no_model_is_refused(tmp_path):
    frame, labels = table()
    path = tmp_path / "sums.model"
    store.save(dd.moments(frame[["size"]], labels), path)
    with pytest.raises(DiscriminantError):
        load_model("sums", str(path))
    path.write_bytes(b"\x80\x04 a pickle")
    with pytest.raises(DiscriminantError):
        load_model("sums", str(path))


def fit(path, seed):
    frame, labels = table(seed=seed)
    dd.Encoded(dd.LDA()).fit(frame, labels).save(path)


def watched(registry, change, until):
    """Watch the files while `change` happens, until a condition holds."""
    from concurrent.futures import ThreadPoolExecutor

    async def run():
        with ThreadPoolExecutor(1) as pool:
            task = asyncio.create_task(registry.watch(pool, 0.01))
            change()
            for _ in range(500):
                await asyncio.sleep(0.01)
                if until():
                    break
            task.cancel()
        assert until()

    run_async(run())


def test_changed_file_is_loaded_and_requests_in_progress_keep_their_model(tmp_path):
    path = tmp_path / "m.model"
    fit(path, 0)
    registry = ModelRegistry({"m": str(path)}, JsonLog(io.StringIO()))
    registry.load_all()
    before = registry.model("m")
    watched(registry, lambda: fit(path, 1), lambda: registry.model("m") is not before)
    assert registry.model("m").digest != before.digest
    assert before.predictor.model.predict(table()[0]).shape == (240,)


def test_damaged_and_absent_files_leave_the_model_in_use(tmp_path):
    path, log = tmp_path / "m.model", io.StringIO()
    fit(path, 0)
    registry = ModelRegistry({"m": str(path)}, JsonLog(log))
    registry.load_all()
    before = registry.model("m")
    damaged = tmp_path / "damaged"
    damaged.write_bytes(path.read_bytes()[:-9])
    watched(
        registry, lambda: os.replace(damaged, path), lambda: "model_not_loaded" in log.getvalue()
    )
    assert registry.model("m") is before
    watched(registry, path.unlink, lambda: "model_file_absent" in log.getvalue())
    assert registry.model("m") is before
    watched(registry, lambda: fit(path, 1), lambda: registry.model("m") is not before)


def test_reload_under_load_drops_no_request(tmp_path):
    path = tmp_path / "m.model"
    fit(path, 0)
    served = start({"m": str(path)})
    rows = table(3)[0].to_dict("records")
    statuses, stop = [], threading.Event()

    def send():
        while not stop.is_set():
            statuses.append(served.client.post("/predict", json=rows).status_code)

    threads = [threading.Thread(target=send) for _ in range(2)]
    for thread in threads:
        thread.start()
    digests = set()
    for seed in range(1, 8):
        fit(path, seed)
        served.service.registry._load("m")
        digests.add(served.service.registry.model("m").digest)
    stop.set()
    for thread in threads:
        thread.join()
    assert len(digests) == 7
    assert len(statuses) > 10
    assert set(statuses) == {200}
    assert json.loads(served.log.getvalue().splitlines()[-1])["event"]
