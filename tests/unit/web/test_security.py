"""Access control: what is refused before it reaches the service."""

import json
import random

import pytest

from discriminant.errors import CommandError
from discriminant.web.security import Access, check_address, host_name, is_loopback, read_token
from discriminant.web.service.command import allowed_hosts
from tests.unit.web.conftest import TOKEN, start

ROWS = [{"size": 1.0, "weight": 2.0, "colour": "red"}]


@pytest.fixture(scope="module")
def guarded(model_folder):
    return start({"mixed": str(model_folder / "mixed.model")}, token=TOKEN, max_bytes=10_000)


def bearer(token=TOKEN):
    return {"authorization": f"Bearer {token}"}


def test_right_token_is_accepted(guarded):
    assert guarded.client.post("/predict", json=ROWS, headers=bearer()).status_code == 200


@pytest.mark.parametrize(
    "header",
    [None, "Bearer wrong", f"Basic {TOKEN}", TOKEN, "Bearer ", f"Bearer {TOKEN}x", "Bearer é"],
)
def test_missing_and_wrong_tokens_are_refused_everywhere(guarded, header):
    headers = {} if header is None else {"authorization": header.encode("latin-1")}
    paths = (
        "/predict",
        "/invocations",
        "/v2",
        "/metrics",
        "/openapi.json",
        "/v2/models/mixed/infer",
    )
    for path in paths:
        response = guarded.client.request("POST", path, json=ROWS, headers=headers)
        assert response.status_code == 401, path
        assert response.headers["www-authenticate"] == "Bearer"
        assert TOKEN not in response.text


def test_token_in_the_query_is_not_accepted(guarded):
    assert guarded.client.post(f"/predict?token={TOKEN}", json=ROWS).status_code == 401


def test_health_checks_need_no_token(guarded):
    for path in ("/ping", "/health", "/v2/health/live", "/v2/health/ready"):
        assert guarded.client.get(path).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8000",
        "localhost.evil.example",
        "127.0.0.1.nip.io",
        "[::2]:8000",
    ],
)
def test_foreign_host_is_refused(guarded, host):
    response = guarded.client.post("/predict", json=ROWS, headers={**bearer(), "host": host})
    assert (response.status_code, response.json()["kind"]) == (403, "HostError")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:1", "[::1]:8000", "LOCALHOST:8000"])
def test_names_of_this_machine_are_accepted_as_host(guarded, host):
    headers = {**bearer(), "host": host}
    assert guarded.client.post("/predict", json=ROWS, headers=headers).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://localhost:8001"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"},
    ],
)
def test_cross_site_request_is_refused(guarded, headers):
    response = guarded.client.post("/predict", json=ROWS, headers={**bearer(), **headers})
    assert (response.status_code, response.json()["kind"]) == (403, "OriginError")


def test_same_origin_request_is_accepted(guarded):
    headers = {"origin": "http://localhost:8000", "sec-fetch-site": "same-origin"}
    response = guarded.client.post("/predict", json=ROWS, headers={**bearer(), **headers})
    assert response.status_code == 200


def test_form_types_are_refused(one):
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        headers = {"content-type": kind}
        response = one.post("/predict", content=json.dumps(ROWS), headers=headers)
        assert response.status_code == 415


def test_oversized_body_is_refused_by_its_length_and_by_its_size(guarded):
    big = b"[" + b" " * 10_001 + b"]"
    kind = {"content-type": "application/json"}
    by_length = guarded.client.post("/predict", content=big, headers={**bearer(), **kind})
    parts = (big[start : start + 1000] for start in range(0, len(big), 1000))
    by_size = guarded.client.post("/predict", content=parts, headers={**bearer(), **kind})
    for response in (by_length, by_size):
        assert (response.status_code, response.json()["kind"]) == (413, "BodyTooLargeError")
        assert "10,000 bytes" in response.json()["error"]


@pytest.mark.parametrize("length", [b"-1", b"1e3", b"9" * 30])
def test_impossible_content_length_is_refused(length):
    access = Access()
    with pytest.raises(Exception, match=r"Content-Length|larger than") as caught:
        access.check(
            {"path": "/predict", "method": "POST"},
            {b"host": b"localhost", b"content-length": length},
        )
    assert caught.value.status in (400, 413)


def test_more_requests_than_the_limit_are_shed_with_retry_after(model_folder):
    busy = start({"mixed": str(model_folder / "mixed.model")}, max_requests=0)
    response = busy.client.post("/predict", json=ROWS)
    assert (response.status_code, response.headers["retry-after"]) == (503, "1")


def test_bodies_beyond_the_limit_for_all_requests_are_shed_and_then_accepted_again(model_folder):
    path = {"mixed": str(model_folder / "mixed.model")}
    full = start(path, max_total_bytes=100)
    body = b" " * 60 + json.dumps(ROWS).encode()
    kind = {"content-type": "application/json"}
    response = full.client.post("/predict", content=body, headers=kind)
    assert (response.status_code, response.json()["kind"]) == (503, "OverloadedError")
    for _ in range(3):  # the bytes of earlier requests do not count
        assert full.client.post("/predict", json=ROWS).status_code == 200


def test_every_response_has_the_security_headers(guarded):
    for path, headers in (("/ping", {}), ("/nothing", bearer()), ("/v2", {}), ("/v2", bearer())):
        found = guarded.client.get(path, headers=headers).headers
        assert found["x-content-type-options"] == "nosniff"
        assert found["content-security-policy"].startswith("default-src 'none'")
        assert found["referrer-policy"] == "no-referrer"
        assert found["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in found
        assert "server" not in found


@pytest.mark.parametrize(
    "name",
    [
        "../../etc/passwd",
        "..%2f..%2fetc%2fpasswd",
        "%2e%2e",
        "mixed.model",
        "mixed%00",
        "mixed/..",
        "C:%5Cx",
        "x" * 300,
        "<script>",
    ],
)
def test_model_names_never_become_paths(one, name):
    for path in (f"/models/{name}/predict", f"/v2/models/{name}/infer"):
        response = one.post(path, json=ROWS)
        assert response.status_code in (404, 405)
        assert "root:" not in response.text
        assert "script" not in response.text


def malformed(count, seed=0):
    """Bodies that are damaged or of the wrong shape, with a type."""
    random_bytes = random.Random(seed)
    good = json.dumps(ROWS).encode()
    fixed = [
        b"", b"null", b"1", b"[]", b"[1]", b'"text"', b"{}", b"[[]]", b"[{}]", b"{", b"[" * 5000,
        b'{"rows": 1}', b'{"rows": []}', b'{"rows": [null]}', b'{"rows": [{}], "x": 1}',
        b'[{"size": NaN}]', b'[{"size": 1e999, "weight": 1, "colour": "red"}]',
        b'[{"size": {}, "weight": 1, "colour": "red"}]', b'[{"size": true, "weight": "x"}]',
        b'[{"size": 1, "weight": 2, "colour": []}]', b"\xff\xfe", b"\x00" * 100,
        b'{"rows": [{"size":1,"weight":1,"colour":"red"}], "top_k": -1}',
        b'{"rows": [{"size":1,"weight":1,"colour":"red"}], "prior": {"a": -1}}',
        b'{"rows": [{"size":1,"weight":1,"colour":"red"}], "cost": [[1]]}',
        b'{"rows": [{"size":1,"weight":1,"colour":"red"}], "reject": "x"}',
    ]  # fmt: skip
    cases = [(body, "application/json") for body in fixed]
    kinds = ["application/json", "text/csv", "application/vnd.apache.arrow.stream"]
    while len(cases) < count:
        body = bytearray(good)
        for _ in range(random_bytes.randint(1, 8)):
            body[random_bytes.randrange(len(body))] = random_bytes.randrange(256)
        cut = random_bytes.randrange(1, len(body))
        cases.append((bytes(body[:cut]), random_bytes.choice(kinds)))
    return cases


def test_two_hundred_malformed_requests_are_refused_with_a_reason(model_folder):
    service = start({"mixed": str(model_folder / "mixed.model")})
    for body, kind in malformed(200):
        response = service.client.post("/predict", content=body, headers={"content-type": kind})
        assert 400 <= response.status_code < 500, (body, response.text)
        answer = response.json()
        assert answer["error"] and answer["kind"] and answer["request_id"]
        assert "Traceback" not in response.text
        assert "/" + "tmp" not in response.text
    assert "internal_error" not in service.log.getvalue()


def test_log_has_neither_tokens_nor_values_of_rows(guarded):
    secret_row = [{"size": 123456.789, "weight": 1.0, "colour": "unheard-of-colour"}]
    guarded.client.post("/predict", json=secret_row, headers=bearer())
    guarded.client.post("/predict?reject=0.987", json=ROWS, headers=bearer("wrong-token-value"))
    guarded.client.post("/predict", json=ROWS, headers={**bearer(), "x-request-id": TOKEN})
    guarded.client.get(f"/{TOKEN}", headers=bearer())
    log = guarded.log.getvalue()
    for secret in (TOKEN, "123456", "unheard-of", "wrong-token", "0.987"):
        assert secret not in log
    assert '"route":"/predict"' in log


# --- settings -------------------------------------------------------------------------------------


def test_token_comes_from_a_file_or_the_environment(tmp_path, monkeypatch):
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    assert read_token(str(file)) == TOKEN
    monkeypatch.setenv("DISCRIMINANT_TOKEN", TOKEN[::-1])
    assert read_token(None) == TOKEN[::-1]
    monkeypatch.delenv("DISCRIMINANT_TOKEN")
    assert read_token(None) is None


@pytest.mark.parametrize("text", ["", "short", "with spaces in the token", "two\nlines" * 3])
def test_unsuitable_token_is_refused(tmp_path, text):
    file = tmp_path / "token"
    file.write_text(text)
    with pytest.raises(CommandError, match="a token"):
        read_token(str(file))


def test_absent_token_file_is_named(tmp_path):
    with pytest.raises(CommandError, match="No such file"):
        read_token(str(tmp_path / "absent"))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org"])
def test_address_that_others_reach_needs_a_token(host):
    with pytest.raises(CommandError, match="--token-file"):
        check_address(host, None)
    check_address(host, TOKEN)
    assert allowed_hosts(host, ()) is None
    assert "api.example" in allowed_hosts(host, ("API.example",))


def test_loopback_needs_no_token():
    for host in ("127.0.0.1", "127.1.2.3", "localhost", "::1"):
        assert is_loopback(host)
        check_address(host, None)


def test_host_name_without_port():
    hosts = {"a:1": "a", "a": "a", "[::1]:2": "[::1]", "[::1]": "[::1]", "": ""}
    assert {host: host_name(host) for host in hosts} == hosts
