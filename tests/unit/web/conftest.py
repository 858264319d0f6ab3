"""Models, and a service in this process or in one of its own."""

import asyncio
import io
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import httpx2 as httpx
import numpy as np
import pandas as pd
import pytest
from starlette.testclient import TestClient

import discriminant as dd
from discriminant.web.request_log import JsonLog
from discriminant.web.security import Access
from discriminant.web.service.app import Service, ServiceOptions, build_app

TOKEN = "a-token-for-the-tests-of-the-service"


def table(n=240, seed=0):
    """Two numbers and a category, which depend on the class."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 3, n)
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=n) + codes,
            "weight": rng.normal(size=n) * 2 - codes,
            "colour": rng.choice(["red", "green", "blue"], n),
        }
    )
    return frame, np.array(["a", "b", "c"])[codes]


@pytest.fixture(scope="session")
def rows():
    return table()[0]


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory):
    """Model files: mixed columns, numbers only, an array, costs, a regressor."""
    folder = tmp_path_factory.mktemp("models")
    frame, labels = table()
    numbers = frame[["size", "weight"]]
    dd.Encoded(dd.LDA()).fit(frame, labels).save(folder / "mixed.model")
    dd.LDA().fit(numbers, labels).save(folder / "numbers.model")
    dd.QDA().fit(numbers.to_numpy(), (labels == "c").astype(int)).save(folder / "array.model")
    decision = dd.Decision(dd.Encoded(dd.LDA()), reject={"threshold": 0.7})
    decision.fit(frame, labels).save(folder / "careful.model")
    dd.Encoded(dd.Logistic(), missing="mean", unseen="ignore").fit(frame, labels).save(
        folder / "filled.model"
    )
    regressor = dd.Encoded(dd.LinearRegression()).fit(frame[["size", "colour"]], frame["weight"])
    regressor.save(folder / "line.model")
    return folder


NAMES = ("mixed", "numbers", "array", "careful", "filled", "line")


def run_async(coroutine):
    """Run a coroutine in a thread of its own: Playwright leaves an event loop in the main one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()


def start(paths, *, token=None, options=None, **access):
    """A service in this process, its models loaded: `.client`, `.log` and `.service`."""
    log = io.StringIO()
    service = Service(
        paths,
        options or ServiceOptions(max_rows=2000),
        JsonLog(log, secrets=() if token is None else (token,)),
        token=token is not None,
    )
    service.load()
    app = build_app(service, Access(token=token, **access))
    client = TestClient(app, base_url="http://localhost:8000", raise_server_exceptions=False)
    return SimpleNamespace(client=client, log=log, service=service)


@pytest.fixture(scope="session")
def service(model_folder):
    return start({name: str(model_folder / f"{name}.model") for name in NAMES})


@pytest.fixture(scope="session")
def client(service):
    return service.client


@pytest.fixture(scope="session")
def one(model_folder):
    """A client of a service with one model."""
    return start({"mixed": str(model_folder / "mixed.model")}).client


class Process:
    """`discriminant serve` in a process of its own."""

    def __init__(self, folder, *arguments, env=None):
        self.log_file = folder / f"log-{time.monotonic_ns()}"
        self._log = self.log_file.open("w")
        self.popen = subprocess.Popen(
            [sys.executable, "-m", "discriminant", "serve", *map(str, arguments), "--port", "0"],
            stderr=self._log,
            stdout=self._log,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", **(env or {})},
        )

    def wait_until_listening(self):
        while not self.lines():
            assert self.popen.poll() is None, self.log_file.read_text()
            time.sleep(0.02)
        self.url = self.lines()[0]["url"]
        return self

    def wait_until_ready(self):
        self.wait_until_listening()
        for _ in range(600):
            if httpx.get(f"{self.url}/ping").status_code == 200:
                return self
            time.sleep(0.1)
        raise AssertionError(self.log_file.read_text())

    def lines(self):
        text = self.log_file.read_text()
        return [json.loads(line) for line in text.splitlines() if line.startswith("{")]

    def stop(self, number=signal.SIGTERM):
        if self.popen.poll() is None:
            self.popen.send_signal(number)
        code = self.popen.wait(timeout=60)
        self._log.close()
        return code


@pytest.fixture
def process(model_folder, tmp_path):
    """Start `discriminant serve` with arguments; it is stopped after the test."""
    started = []

    def run(*arguments, **more):
        arguments = arguments or (model_folder / "mixed.model",)
        started.append(Process(tmp_path, *arguments, **more))
        return started[-1]

    yield run
    for each in started:
        each.stop(signal.SIGKILL)
