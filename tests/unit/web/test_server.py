"""The server in a process of its own: start, stop, slow clients, refusals at the start."""

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

import httpx2 as httpx
import pytest

import discriminant as dd
from tests.unit.web.conftest import TOKEN, Process, table

RECORDS = table(5)[0].to_dict("records")


def port_of(url):
    return int(url.rpartition(":")[2])


def serve(*arguments, **environment):
    """Run the command to its end."""
    command = [sys.executable, "-m", "discriminant", "serve", *map(str, arguments)]
    variables = {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=variables)


@pytest.fixture(scope="module")
def guarded(model_folder, tmp_path_factory):
    """A server with a token, short time limits, and a model `changing`; the file is `.changing`."""
    folder = tmp_path_factory.mktemp("guarded")
    token, changing = folder / "token", folder / "changing.model"
    token.write_text(TOKEN)
    dd.Encoded(dd.LDA()).fit(*table()).save(changing)
    models = (model_folder / "mixed.model", changing)
    times = ("--seconds", 2, "--reload-seconds", 0.1)
    running = Process(folder, *models, "--token-file", token, *times).wait_until_ready()
    running.changing = changing
    yield running
    assert running.stop() == 0
    assert running.lines()[-1]["event"] == "stopped"


def predict(running, rows=RECORDS, name="mixed", token=TOKEN):
    headers = {"authorization": f"Bearer {token}"}
    return httpx.post(f"{running.url}/models/{name}/predict", json=rows, headers=headers)


def test_served_model_answers_bitwise(guarded, model_folder):
    answer = predict(guarded).json()
    model = dd.load(model_folder / "mixed.model")
    p = [list(row["probabilities"].values()) for row in answer["predictions"]]
    assert p == model.predict_proba(table(5)[0]).tolist()


def test_server_listens_before_large_imports(process):
    running = process().wait_until_listening()
    assert httpx.get(f"{running.url}/v2/health/live").status_code == 200
    events = [line["event"] for line in running.lines()]
    assert events[0] == "listening"
    running.wait_until_ready()
    code = (
        "import sys\n"
        "import discriminant.cli.commands, discriminant.web.service.app, discriminant.web.server\n"
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


@pytest.mark.slow
def test_killed_server_starts_again_with_the_same_answers(process):
    first = process().wait_until_ready()
    before = httpx.post(f"{first.url}/predict", json=RECORDS).json()
    assert first.stop(signal.SIGKILL) == -signal.SIGKILL
    second = process().wait_until_ready()
    assert httpx.post(f"{second.url}/predict", json=RECORDS).json() == before


def test_slow_body_is_refused(guarded):
    with socket.create_connection(("127.0.0.1", port_of(guarded.url)), timeout=20) as client:
        client.sendall(
            b"POST /models/mixed/predict HTTP/1.1\r\nHost: localhost\r\n"
            b"Authorization: Bearer " + TOKEN.encode() + b"\r\n"
            b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n[{"
        )
        answer = b"".join(iter(lambda: client.recv(4096), b""))  # until the server closes
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"BodyTooSlowError" in answer
    assert predict(guarded).status_code == 200


def test_headers_without_end_are_refused(guarded):
    with socket.create_connection(("127.0.0.1", port_of(guarded.url)), timeout=20) as client:
        client.sendall(b"GET /ping HTTP/1.1\r\nHost: localhost\r\n")
        received = b"x"
        try:
            for _ in range(1000):
                client.sendall(b"X-Filler: " + b"x" * 1000 + b"\r\n")
            received = client.recv(4096)
        except (BrokenPipeError, ConnectionResetError):
            received = b""
    assert received == b""
    assert predict(guarded).status_code == 200


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


def test_answers_to_clients_that_are_gone_are_no_internal_errors(guarded):
    body = json.dumps(RECORDS).encode()
    head = (
        "POST /models/mixed/predict HTTP/1.1\r\nHost: localhost\r\n"
        f"Authorization: Bearer {TOKEN}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    for _ in range(40):
        client = socket.create_connection(("127.0.0.1", port_of(guarded.url)), timeout=20)
        reset = struct.pack("ii", 1, 0)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
        client.sendall(3 * (head.encode() + body))
        client.close()
    assert predict(guarded).status_code == 200
    assert "internal_error" not in guarded.log_file.read_text()


def test_warnings_of_the_http_library_are_lines_of_the_log(guarded):
    with socket.create_connection(("127.0.0.1", port_of(guarded.url)), timeout=20) as client:
        client.sendall(b"\x00\x01\r\n\r\n")
        client.recv(100)
    assert predict(guarded).status_code == 200
    lines = guarded.log_file.read_text().splitlines()
    assert all(line.startswith("{") for line in lines)
    assert "server" in {json.loads(line)["event"] for line in lines}


@pytest.mark.parametrize(
    "text", [b"\x16\x03\x01\x02\x00" + b"x" * 100, b"GET\r\n\r\n", b"POST /predict HTTP/9\r\n\r\n"]
)
def test_requests_that_are_no_http_are_refused(guarded, text):
    with socket.create_connection(("127.0.0.1", port_of(guarded.url)), timeout=20) as client:
        client.sendall(text)
        assert client.recv(100)[:12] in (b"HTTP/1.1 400", b"")
    assert predict(guarded).status_code == 200


def test_new_version_of_the_file_is_served_without_a_restart(guarded):
    def kind():
        headers = {"authorization": f"Bearer {TOKEN}"}
        return httpx.get(f"{guarded.url}/models", headers=headers).json()["models"][1]["kind"]

    assert kind() == "LDA"
    dd.Encoded(dd.QDA()).fit(*table()).save(guarded.changing)
    for _ in range(600):
        if kind() == "QDA":
            break
        time.sleep(0.05)
    assert kind() == "QDA"


def test_token_is_never_in_the_log(guarded):
    assert predict(guarded, token="x" * 20).status_code == 401
    assert predict(guarded).status_code == 200
    headers = {"authorization": f"Bearer {TOKEN}"}
    assert httpx.get(f"{guarded.url}/{TOKEN}?token={TOKEN}", headers=headers).status_code == 404
    text = guarded.log_file.read_text()
    assert '"status":401' in text
    assert TOKEN not in text


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
