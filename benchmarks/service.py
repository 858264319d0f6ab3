"""CPU time of the scoring service for each request, beside FastAPI with scikit-learn; a load test.

    python benchmarks/service.py [--peer .venv-clients/bin/python] [--requests 2000] [--rounds 5]
    python benchmarks/service.py --minutes 10        70% of the measured capacity for 10 minutes
    python benchmarks/service.py --overload          200 connections that send 1,000 rows each

Our server and that of FastAPI run in one process with uvicorn, uvloop and httptools, and answer the
same rows of 20 numbers with classes and probabilities of 3 classes; `mlflow models serve` answers
with classes only. The CPU time is that of the server's processes, user and system, from /proc; the
rounds of the servers alternate, and the best round counts. The
load test sends requests at fixed times, compares every answer with the model's, and reports errors,
response times and the growth of memory.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import psutil
import pyarrow as pa

import discriminant as dd

WIDTH = 20
CONNECTIONS = 4


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--peer", help="python with FastAPI and scikit-learn; without it, no peer")
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--minutes", type=float, default=0.0)
    parser.add_argument("--overload", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = write_model(Path(folder))
        ours = Server([sys.executable, "-m", "discriminant", "serve", f"{folder}/plain.model"])
        servers = {"discriminant": ours}
        if options.peer:
            script = Path(__file__).with_name("service_peer.py")
            servers["FastAPI + scikit-learn"] = Server(
                [options.peer, str(script), f"{folder}/rows.npz"], flag=False
            )
            servers["mlflow models serve"] = mlflow_server(options.peer, Path(folder))
        try:
            for server in servers.values():
                server.wait()
            if options.overload:
                asyncio.run(overload(ours))
            elif options.minutes:
                asyncio.run(load_test(ours, model, options.minutes))
            else:
                compare(servers, options)
        finally:
            for server in servers.values():
                server.stop()


def write_model(folder):
    random = np.random.default_rng(0)
    codes = random.integers(0, 3, 3000)
    X = random.normal(size=(3000, WIDTH))
    X[:, 0] += codes
    X[:, 1] -= codes
    y = np.array(["a", "b", "c"])[codes]
    np.savez(folder / "rows.npz", X=X, y=y)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(WIDTH)])
    model = dd.Encoded(dd.LDA()).fit(frame, y)
    model.save(folder / "plain.model")
    return model


def mlflow_server(python, folder):
    """MLflow's own scoring server of the same model of scikit-learn."""
    script = Path(__file__).with_name("service_peer.py")
    subprocess.run([python, str(script), f"{folder}/rows.npz", f"{folder}/mlflow"], check=True)
    mlflow = str(Path(python).with_name("mlflow"))
    command = [mlflow, "models", "serve", "--model-uri", f"{folder}/mlflow"]
    return Server([*command, "--env-manager", "local"], path="/invocations")


def some_rows(n, seed=1):
    X = np.random.default_rng(seed).normal(size=(n, WIDTH))
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(WIDTH)])


class Server:
    """A server in a process of its own."""

    def __init__(self, command, *, flag=True, path="/predict"):
        self.path = path
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        port = ["--port", str(self.port)] if flag else [str(self.port)]
        folders = (
            f"{Path(command[0]).parent.absolute()}:{os.environ['PATH']}"  # for mlflow's uvicorn
        )
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PATH": folders}
        if command[0] != sys.executable:
            environment.pop("PYTHONPATH", None)  # another environment
        self.process = subprocess.Popen(
            [*command, *port], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def wait(self):
        """Wait until the server predicts."""
        for _ in range(600):
            try:
                if asyncio.run(send(self.port, messages(self.path)["1 row, JSON"], 1))[0] == 200:
                    return
            except (OSError, asyncio.IncompleteReadError):
                pass
            time.sleep(0.2)
        raise SystemExit("The server did not start.")

    def cpu(self):
        """Seconds of user and system time so far."""
        own = psutil.Process(self.process.pid)
        times = [each.cpu_times() for each in (own, *own.children(recursive=True))]
        return sum(each.user + each.system for each in times)

    def memory(self):
        """Resident memory in MB."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def stop(self):
        own = psutil.Process(self.process.pid)
        for each in (own, *own.children(recursive=True)):
            each.send_signal(signal.SIGTERM)
        self.process.wait(timeout=60)


def request(path, body, kind="application/json"):
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {kind}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def read_response(reader):
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
    return int(head[9:12]), await reader.readexactly(length)


async def send(port, message, times):
    """Send a request `times` times on one connection; return the last status and body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 26)
    status, body = 0, b""
    for _ in range(times):
        writer.write(message)
        status, body = await read_response(reader)
        if status != 200:
            break
    writer.close()
    return status, body


async def send_all(port, message, times):
    statuses = await asyncio.gather(
        *(send(port, message, times // CONNECTIONS) for _ in range(CONNECTIONS))
    )
    assert {status for status, _ in statuses} == {200}, statuses[0]


def messages(path="/predict"):
    one, many = some_rows(1), some_rows(1000)
    if path == "/invocations":
        split = {
            name: {"dataframe_split": rows.to_dict("split", index=False)}
            for name, rows in (("1 row, JSON", one), ("1,000 rows, JSON", many))
        }
        return {name: request(path, json.dumps(body).encode()) for name, body in split.items()}
    sink = pa.BufferOutputStream()
    table = pa.Table.from_pandas(many)
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    arrow = "application/vnd.apache.arrow.stream"
    return {
        "1 row, JSON": request("/predict", json.dumps({"rows": one.to_dict("records")}).encode()),
        "1,000 rows, JSON": request(
            "/predict", json.dumps({"rows": many.to_dict("records")}).encode()
        ),
        "1,000 rows, Arrow": request("/predict", sink.getvalue().to_pybytes(), arrow),
    }


def compare(servers, options):
    print(f"{'request':20}{'server':26}{'CPU, ms a request':>20}{'ours':>8}")
    for name in messages():
        times = options.requests if name.startswith("1 row") else max(options.requests // 20, 40)
        best = {}
        for _ in range(options.rounds):
            for label, server in servers.items():
                message = messages(server.path).get(name)
                if message is None or ("Arrow" in name and label != "discriminant"):
                    continue
                before = server.cpu()
                asyncio.run(send_all(server.port, message, times))
                used = (server.cpu() - before) / (times // CONNECTIONS * CONNECTIONS) * 1e3
                best[label] = min(best.get(label, used), used)
        for label, used in best.items():
            ratio = "" if label == "discriminant" else f"{best['discriminant'] / used:.2f}"
            print(f"{name:20}{label:26}{used:20.3f}{ratio:>8}")


async def overload(server, connections=200, seconds=10.0):
    """Send 1,000 rows on many connections at once, and time the first answer afterwards."""
    message, end = messages()["1,000 rows, JSON"], time.perf_counter() + seconds
    statuses = Counter()

    async def client():
        while time.perf_counter() < end:
            status, _ = await send(server.port, message, 1)
            statuses[status] += 1

    await asyncio.gather(*(client() for _ in range(connections)))
    started = time.perf_counter()
    status, _ = await send(server.port, messages()["1 row, JSON"], 1)
    recovery = time.perf_counter() - started
    print(f"{connections} connections, {seconds:g} s: {dict(statuses)}")
    print(f"then {status} in {recovery * 1e3:.0f} ms; memory {server.memory():.0f} MB")
    if set(statuses) - {200, 503} or status != 200:
        raise SystemExit(1)


async def load_test(server, model, minutes):
    rows = some_rows(64)
    expected = [p.tolist() for p in model.predict_proba(rows)]
    parts = [
        request("/predict", json.dumps({"rows": [row]}).encode()) for row in rows.to_dict("records")
    ]
    started = time.perf_counter()
    await send_all(server.port, parts[0], 4000)
    rate = 0.7 * 4000 / (time.perf_counter() - started)
    print(f"{rate:.0f} requests a second for {minutes:g} minutes")
    errors, wrong, seconds = 0, 0, []
    first_memory = server.memory()
    end = time.perf_counter() + 60 * minutes

    async def client(number):
        nonlocal errors, wrong
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        due, i = time.perf_counter(), number
        while due < end:
            due += CONNECTIONS / rate
            await asyncio.sleep(max(due - time.perf_counter(), 0))
            writer.write(parts[i % 64])
            status, body = await read_response(reader)
            seconds.append(time.perf_counter() - due)  # from when it was due
            if status != 200:
                errors += 1
            else:
                answer = json.loads(body)["predictions"][0]["probabilities"]
                wrong += not np.allclose([*answer.values()], expected[i % 64], rtol=1e-12, atol=0)
            i += 1
        writer.close()

    await asyncio.gather(*(client(number) for number in range(CONNECTIONS)))
    ms = np.percentile(seconds, [50, 99, 99.9]) * 1e3
    growth = server.memory() / first_memory - 1
    print(
        f"{len(seconds):,} requests: {errors} errors, {wrong} wrong answers; response time "
        f"{ms[0]:.1f} ms (median), {ms[1]:.1f} ms (99%), {ms[2]:.1f} ms (99.9%); memory "
        f"{first_memory:.0f} MB, {100 * growth:+.1f}%"
    )
    if errors or wrong:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
