"""The server in a process of its own: start, stop, slow clients, and what it refuses at the start."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import httpx2 as httpx
import pytest

import discriminant as dd
from tests.unit.web.conftest import TOKEN, table

RECORDS = table(5)[0].to_dict("records")


def port_of(url):
    return int(url.rpartition(":")[2])


def serve(*arguments, **environment):
    """Run the command to its end."""
    command = [sys.executable, "-m", "discriminant", "serve", *map(str, arguments)]
    variables = {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=variables)


def test_served_model_answers_bitwise_and_stops_on_sigterm(process, model_folder):
    running = process().wait_until_ready()
    answer = httpx.post(f"{running.url}/predict", json=RECORDS).json()
    model = dd.load(model_folder / "mixed.model")
    p = [list(row["probabilities"].values()) for row in answer["predictions"]]
    assert p == model.predict_proba(table(5)[0]).tolist()
    assert running.stop(signal.SIGTERM) == 0
    assert running.lines()[-1]["event"] == "stopped"


def test_server_listens_before_large_imports(process):
    running = process().wait_until_listening()
    assert httpx.get(f"{running.url}/v2/health/live").status_code == 200
    events = [line["event"] for line in running.lines()]
    assert events[0] == "listening"
    running.wait_until_ready()
    code = (
        "import sys\n"
        "import discriminant.cli.serve, discriminant.web.service.app, discriminant.web.server\n"
        "heavy = 'numpy scipy sklearn pandas pyarrow numba uvicorn starlette'.split()\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_requests_in_progress_complete_after_sigterm(process, model_folder):
    running = process(model_folder / "mixed.model", "--max-rows", 10**6).wait_until_ready()
    body = json.dumps(RECORDS * 20_000)
    answers = []

    def send():
        kind = {"content-type": "application/json"}
        answers.append(httpx.post(f"{running.url}/predict", content=body, headers=kind, timeout=60))

    sending = threading.Thread(target=send)
    sending.start()
    time.sleep(0.3)
    running.popen.send_signal(signal.SIGTERM)
    sending.join()
    assert running.popen.wait(timeout=60) == 0
    assert [answer.status_code for answer in answers] == [200]
    assert len(answers[0].json()["predictions"]) == 100_000


def test_killed_server_starts_again_with_the_same_answers(process):
    first = process().wait_until_ready()
    before = httpx.post(f"{first.url}/predict", json=RECORDS).json()
    assert first.stop(signal.SIGKILL) == -signal.SIGKILL
    second = process().wait_until_ready()
    assert httpx.post(f"{second.url}/predict", json=RECORDS).json() == before


def test_slow_body_is_refused(process, model_folder):
    running = process(model_folder / "mixed.model", "--seconds", 0.5).wait_until_ready()
    with socket.create_connection(("127.0.0.1", port_of(running.url)), timeout=20) as client:
        client.sendall(
            b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 100\r\n\r\n[{"
        )
        answer = client.recv(4096)
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"BodyTooSlowError" in answer
    assert httpx.post(f"{running.url}/predict", json=RECORDS).status_code == 200


def test_headers_without_end_are_refused(process):
    running = process().wait_until_ready()
    with socket.create_connection(("127.0.0.1", port_of(running.url)), timeout=20) as client:
        client.sendall(b"GET /ping HTTP/1.1\r\nHost: localhost\r\n")
        received = b"x"
        try:
            for _ in range(1000):
                client.sendall(b"X-Filler: " + b"x" * 1000 + b"\r\n")
            received = client.recv(4096)
        except (BrokenPipeError, ConnectionResetError):
            received = b""
    assert received == b""
    assert httpx.get(f"{running.url}/ping").status_code == 200


@pytest.mark.slow
def test_two_hundred_slow_connections_do_not_stop_the_service(process):
    running = process().wait_until_ready()
    clients = []
    for _ in range(200):
        client = socket.create_connection(("127.0.0.1", port_of(running.url)), timeout=30)
        client.sendall(b"POST /predict HTTP/1.1\r\nHost: loc")
        clients.append(client)
    assert httpx.post(f"{running.url}/predict", json=RECORDS).status_code == 200
    time.sleep(11)  # the time limit for headers
    assert {client.recv(100) for client in clients} == {b""}
    for client in clients:
        client.close()


def test_requests_that_are_no_http_are_refused(process):
    running = process().wait_until_ready()
    for text in (
        b"\x16\x03\x01\x02\x00" + b"x" * 100,
        b"GET\r\n\r\n",
        b"POST /predict HTTP/9\r\n\r\n",
    ):
        with socket.create_connection(("127.0.0.1", port_of(running.url)), timeout=20) as client:
            client.sendall(text)
            assert client.recv(100)[:12] in (b"HTTP/1.1 400", b"")
    assert httpx.get(f"{running.url}/ping").status_code == 200


def test_new_version_of_the_file_is_served_without_a_restart(process, tmp_path):
    path = tmp_path / "m.model"
    frame, labels = table()
    dd.Encoded(dd.LDA()).fit(frame, labels).save(path)
    running = process(path, "--reload-seconds", 0.1).wait_until_ready()
    before = httpx.get(f"{running.url}/models").json()["models"][0]
    dd.Encoded(dd.QDA()).fit(frame, labels).save(path)
    for _ in range(200):
        after = httpx.get(f"{running.url}/models").json()["models"][0]
        if after != before:
            break
        time.sleep(0.05)
    assert (before["kind"], after["kind"]) == ("LDA", "QDA")


def test_token_is_never_in_the_log(process, model_folder, tmp_path):
    file = tmp_path / "token"
    file.write_text(TOKEN)
    running = process(model_folder / "mixed.model", "--token-file", file).wait_until_ready()
    url = f"{running.url}/predict"
    assert httpx.post(url, json=RECORDS).status_code == 401
    headers = {"authorization": f"Bearer {TOKEN}"}
    assert httpx.post(url, json=RECORDS, headers=headers).status_code == 200
    assert httpx.get(f"{running.url}/{TOKEN}", headers=headers).status_code == 404
    running.stop()
    assert TOKEN not in running.log_file.read_text()


# --- refused at the start -------------------------------------------------------------------------


def test_address_that_others_reach_is_refused_without_a_token(model_folder):
    found = serve(model_folder / "mixed.model", "--host", "0.0.0.0", "--port", 0)
    assert found.returncode == 2
    assert "--token-file" in found.stderr
    assert "listening" not in found.stderr


def test_token_on_the_command_line_is_no_option(model_folder):
    found = serve(model_folder / "mixed.model", "--token", TOKEN, "--port", 0)
    assert found.returncode == 2
    assert "listening" not in found.stderr


def test_absent_and_damaged_models_end_the_command_with_the_reason(model_folder, tmp_path):
    found = serve(tmp_path / "absent.model", "--port", 0)
    assert (found.returncode, "absent.model" in found.stderr) == (2, True)
    damaged = tmp_path / "damaged.model"
    damaged.write_bytes((model_folder / "mixed.model").read_bytes()[:-5])
    found = serve(damaged, "--port", 0)
    assert (found.returncode, "damaged.model" in found.stderr) == (2, True)
    assert "Traceback" not in found.stderr


def test_port_in_use_is_named(model_folder):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        found = serve(model_folder / "mixed.model", "--port", port)
    assert (found.returncode, f"port {port}" in found.stderr) == (2, True)
