"""Random bytes on the connections of `discriminant serve` and `discriminant studio`.

Requests are damaged in any place, sent in pieces, pipelined, left incomplete or aborted. After
every 50 connections, each server must answer a valid request as at the start; at the end, it must
have logged no internal error and stop with code 0. Growth of memory is limited.
"""

import json
import os
import random
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import psutil

from tests.unit.web.conftest import TOKEN, Process, table

GROWTH = 100e6  # bytes
WAIT = 0.5  # seconds for an answer


def damage_message(message, rng):
    """Bytes of a request, damaged as in fuzz.py, also in its request line and headers."""
    from tests.unit.web.fuzz import damage

    head, _, body = message.partition(b"\r\n\r\n")
    match rng.randrange(6):
        case 0:
            return rng.randbytes(rng.randrange(1, 3000))
        case 1:
            return damage(head, rng) + b"\r\n\r\n" + body
        case 2:
            lines = head.split(b"\r\n")
            lines.insert(rng.randrange(len(lines) + 1), damage(rng.choice(lines), rng))
            return b"\r\n".join(lines) + b"\r\n\r\n" + body
        case 3:  # chunks of a wrong size
            sizes = [b"5", b"ffffffffffffffff", b"-1", b"0x3", b"", b"3;x=y", b"2"]
            chunks = b"".join(
                rng.choice(sizes) + b"\r\n" + body[i : i + 5] + b"\r\n"
                for i in range(0, min(len(body), 100), 5)
            )
            lines = [each for each in head.split(b"\r\n") if b"Content-Length" not in each]
            return b"\r\n".join([*lines, b"Transfer-Encoding: chunked"]) + b"\r\n\r\n" + chunks
        case 4:  # pipelined
            return message * rng.randrange(2, 6) + damage(message, rng)
        case _:
            return damage(message, rng)


def exchange(port, message, rng):
    """Send bytes in some manner; return the first status of the answer, or "closed" or "none"."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
        try:
            if rng.random() < 0.15:  # slowly
                for i in range(0, min(len(message), 40), 8):
                    client.sendall(message[i : i + 8])
                    time.sleep(0.002)
                message = message[40:]
            client.sendall(message)
            if rng.random() < 0.2:  # aborted
                linger = struct.pack("ii", 1, 0)
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                return "aborted"
            if rng.random() < 0.5:
                client.shutdown(socket.SHUT_WR)
            if not select.select([client], [], [], WAIT)[0]:
                return "none"
            answer = client.recv(100)
        except OSError:  # the server has closed the connection
            return "closed"
    return int(answer[9:12]) if answer[:5] == b"HTTP/" else "closed"


def post(path, body, token=None):
    lines = [b"POST " + path + b" HTTP/1.1", b"Host: localhost", b"Content-Type: application/json"]
    if token:
        lines.append(b"Authorization: Bearer " + token.encode())
    lines.append(b"Content-Length: " + str(len(body)).encode())
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def answer_to(port, message):
    """The body of the answer to a valid request."""
    with socket.create_connection(("127.0.0.1", port), timeout=120) as client:
        client.sendall(message.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
        answer = b"".join(iter(lambda: client.recv(1 << 16), b""))
    assert answer.startswith(b"HTTP/1.1 200"), answer
    return answer.partition(b"\r\n\r\n")[2]


def fuzz_connections(model, *, seconds, seed=0):
    """Send damaged bytes to both servers; return the number of answers by status."""
    rng, statuses = random.Random(seed), Counter()
    records = json.dumps(table(6)[0].to_dict("records")).encode()
    with tempfile.TemporaryDirectory() as folder:
        service = Process(Path(folder), model).wait_until_ready()
        command = [sys.executable, "-m", "discriminant", "studio", "--no-browser"]
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        log = Path(folder, "studio")
        with log.open("w") as stream:
            studio = subprocess.Popen(command, stderr=stream, env=environment)
        while "/#token=" not in (text := log.read_text()):
            assert studio.poll() is None, text
            time.sleep(0.02)
        url, _, token = text.split()[1].partition("/#token=")
        ports = [int(each.rpartition(":")[2]) for each in (service.url, url)]
        preview = post(b"/api/preview", b'{"source": {"example": "iris"}}', token)
        messages = [post(b"/predict", records), preview]
        before = [answer_to(*each) for each in zip(ports, messages, strict=True)]
        sizes = [psutil.Process(each.pid).memory_info().rss for each in (service.popen, studio)]
        try:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                for _ in range(50):
                    which = rng.randrange(2)
                    message = damage_message(messages[which], rng)
                    status = exchange(ports[which], message, rng)
                    statuses[str(status)] += 1
                    assert status != 500, message
                after = [answer_to(*each) for each in zip(ports, messages, strict=True)]
                assert after == before
            for size, each in zip(sizes, (service.popen, studio), strict=True):
                assert psutil.Process(each.pid).memory_info().rss - size < GROWTH
        finally:
            code = service.stop()
            studio.send_signal(signal.SIGINT)
            codes = [code, studio.wait(timeout=60)]
        text = service.log_file.read_text() + log.read_text()
    assert codes == [0, 0]
    assert "internal_error" not in text, text
    assert TOKEN not in text
    assert token not in text.replace(url + "/#token=" + token, "")
    return statuses
