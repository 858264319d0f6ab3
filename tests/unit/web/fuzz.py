"""Random requests to the service and to the studio, damaged at random.

    make fuzz-service SECONDS=600
    python -m tests.unit.web.fuzz [--seconds 600] [--seed 0]

A third of the time each: bodies, queries and headers of the service; bodies and files of the
studio; and bytes on the connections of servers in processes of their own (fuzz_connections.py).
Every request must be answered, none with an internal error, and the servers must answer a valid
request bitwise as before. Prints the number of requests by status.
"""

import argparse
import copy
import io
import json
import random
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path
from urllib.parse import quote

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import discriminant as dd
from tests.unit.web.conftest import TOKEN, start, table

ARROW = "application/vnd.apache.arrow.stream"
WORDS = [
    b"null", b"true", b"[]", b"{}", b"[", b"{", b'"', b",", b":", b"1e999", b"-0", b"9" * 40,
    b"\\u0000", b"\x00", b"\xff", b"\xef\xbb\xbf", b"\r\n", b'""', b"size", b"colour", b"rows",
    b"data", b"inputs", b"shape", b"datatype", b"BYTES", b"FP64", b"parameters",
    b"binary_data_size", b"top_k", b"prior", b"explain", b"cost", b"reject", b"NaN", b"=1+1",
    b";", b"\t", b"-1", b"4294967295", b"0.5",
]  # fmt: skip


VALUES = [
    None, True, 0, -1, 1e308, -1e-320, 10**30, 2**63, 0.1, "", "\x00", "size", "NaN", "é" * 70_000,
    [], {}, [[]], [None], {"": {}}, [0] * 3000, [[[[[[1]]]]]], {"size": [1]},
]  # fmt: skip
HEADERS = [
    "accept", "accept-encoding", "content-type", "content-encoding", "content-length", "cookie",
    "expect", "inference-header-content-length", "origin", "range", "sec-fetch-site", "te",
    "transfer-encoding", "x-request-id", "authorization", "host", "if-match",
]  # fmt: skip


def service_requests():
    """Valid requests to the service: path, type, body, headers."""
    rows = table(6)[0]
    records = rows.to_dict("records")
    arrow = pa.Table.from_pandas(rows)
    body = io.BytesIO()
    with pa.ipc.new_stream(body, arrow.schema) as writer:
        writer.write_table(arrow, max_chunksize=2)
    file = io.BytesIO()
    with pa.ipc.new_file(file, arrow.schema) as writer:
        writer.write_table(arrow)
    tensors = [
        {
            "name": name,
            "datatype": "BYTES" if name == "colour" else "FP64",
            "shape": [6],
            "data": rows[name].tolist(),
        }
        for name in rows.columns
    ]
    numbers = rows["size"].to_numpy().tobytes()
    binary = [{**tensors[0], "parameters": {"binary_data_size": len(numbers)}}, *tensors[1:]]
    del binary[0]["data"]
    header = json.dumps({"inputs": binary}).encode()
    options = {
        "rows": records,
        "explain": True,
        "top_k": 2,
        "reject": 0.2,
        "prior": [0.2, 0.3, 0.5],
    }
    split = {"columns": list(rows.columns), "data": rows.to_numpy().tolist()}
    kind = "application/json"
    return [
        ("/predict", kind, json.dumps(records).encode(), {}),
        ("/predict", kind, json.dumps(options).encode(), {}),
        ("/predict?explain=true", "text/csv", rows.to_csv(index=False).encode(), {}),
        ("/predict", ARROW, body.getvalue(), {}),
        ("/predict", "application/vnd.apache.arrow.file", file.getvalue(), {}),
        ("/invocations", kind, json.dumps({"dataframe_split": split}).encode(), {}),
        ("/invocations", kind, json.dumps({"inputs": rows.to_dict("list")}).encode(), {}),
        ("/v2/models/mixed/infer", kind, json.dumps({"inputs": tensors}).encode(), {}),
        (
            "/v2/models/mixed/infer",
            "application/octet-stream",
            header + numbers,
            {"inference-header-content-length": str(len(header))},
        ),
    ]


def damage(body, rng):
    """A body with a few random changes."""
    body = bytearray(body)
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        place = rng.randrange(len(body) + 1)
        match rng.randrange(6):
            case 0:
                body[place : place + 1] = bytes([rng.randrange(256)])
            case 1:
                body[place:place] = rng.choice(WORDS)
            case 2:
                del body[place : place + rng.randrange(1, 30)]
            case 3:
                body[place:place] = body[place : place + rng.randrange(1, 60)]
            case 4:
                body[place : place + 4] = rng.randbytes(4)
            case 5:
                end = place + rng.randrange(1, 12)
                body[place:end] = rng.choice(WORDS)
    return bytes(body)


def damage_value(value, rng):
    """A JSON value with a few parts replaced, removed, repeated or exchanged."""
    value = copy.deepcopy(value)
    for _ in range(rng.choice((1, 1, 2, 4))):
        places = list(_places(value))
        if not places:
            return copy.deepcopy(rng.choice(VALUES))
        parent, key = rng.choice(places)
        match rng.randrange(5):
            case 0 | 1:
                parent[key] = copy.deepcopy(rng.choice(VALUES))
            case 2:
                del parent[key]
            case 3:
                other, place = rng.choice(places)
                parent[key] = copy.deepcopy(other[place])
            case 4 if isinstance(parent, list):
                parent.extend(copy.deepcopy([parent[key]] * rng.randrange(1, 50)))
            case 4:
                parent[rng.choice(["", "size", "rows", "prior", "model"])] = parent.pop(key)
    return value


def _places(value):
    """Every container in a JSON value, with each of its keys."""
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])


def damage_headers(headers, rng):
    """Headers with one that is random."""
    text = rng.choice([*WORDS, ARROW.encode(), b"text/csv", b"gzip", b"*/*", rng.randbytes(9)])
    value = "".join(chr(byte) for byte in text if byte >= 32 and byte != 127)
    return {**headers, rng.choice(HEADERS): value.encode("latin-1")}


class Faults(dict):
    """Requests that caused an internal error, by the place in the code."""

    def check(self, response, request, log):
        """Every refusal has a reason, and none is an internal error."""
        if response.status_code >= 500:
            lines = [json.loads(line) for line in log.getvalue().splitlines()]
            places = [str([each["kind"], *each["places"][-3:]]) for each in lines if "kind" in each]
            self[places[-1] if places else response.text] = request
        elif response.status_code >= 400 and response.content[:1] == b"{":
            assert response.json()["error"], request
        log.seek(0)
        log.truncate()

    def raise_any(self):
        """Raise an error that shows each of them."""
        texts = [f"{place}\n    {str(request)[:1500]}" for place, request in self.items()]
        assert not self, f"{len(self)} internal errors:\n" + "\n".join(texts)


def fuzz(client, log, *, seconds, seed=0):
    """Send damaged requests to the service; return the number of answers by status."""
    rng, statuses, valid, faults = random.Random(seed), Counter(), service_requests(), Faults()
    expected = client.post("/predict", content=valid[0][2], headers={"content-type": valid[0][1]})
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        path, kind, body, headers = rng.choice(valid)
        is_json = kind == "application/json"
        if rng.random() < 0.1:
            kind = rng.choice(valid)[1]
        if headers and rng.random() < 0.3:
            headers = {"inference-header-content-length": str(rng.randrange(2000))}
        if is_json and rng.random() < 0.5:
            body = json.dumps(damage_value(json.loads(body), rng)).encode()
        else:
            body = damage(body, rng)
        if rng.random() < 0.1:
            path += "&?"["?" not in path] + quote(damage(b"explain=true&top_k=2", rng), safe="&=")
        headers = {**headers, "content-type": kind}
        if rng.random() < 0.1:
            headers = damage_headers(headers, rng)
        response = client.post(path, content=body, headers=headers)
        statuses[response.status_code] += 1
        faults.check(response, (path, headers, body), log)
    faults.raise_any()
    after = client.post("/predict", content=valid[0][2], headers={"content-type": valid[0][1]})
    assert (after.status_code, after.content) == (200, expected.content)
    return statuses


# --- the studio -----------------------------------------------------------------------------------


def studio_files():
    """Small tables in the formats that the studio opens: name, bytes."""
    frame, labels = table(40)
    frame = frame.assign(day="2024-03-01", kind=labels)
    arrow = pa.Table.from_pandas(frame)
    parquet, stream, excel = io.BytesIO(), io.BytesIO(), io.BytesIO()
    pq.write_table(arrow, parquet)
    with pa.ipc.new_file(stream, arrow.schema) as writer:
        writer.write_table(arrow)
    with pd.ExcelWriter(excel) as book:
        frame.to_excel(book, index=False)
    return [
        ("rows.csv", frame.to_csv(index=False).encode()),
        ("rows.csv", frame.to_csv(index=False, sep=";").encode("utf-16")),
        ("rows.parquet", parquet.getvalue()),
        ("rows.arrow", stream.getvalue()),
        ("rows.jsonl", frame.to_json(orient="records", lines=True).encode()),
        ("rows.xlsx", excel.getvalue()),
    ]


def studio_bodies():
    """Valid requests about the table of irises: action, body."""
    model = {
        "model": "rda", "pooling": 0.3, "shrinkage": 0.1, "degree": 1, "prior": [0.2, 0.3, 0.5],
        "cost": [[0, 1, 2], [3, 0, 1], [1, 1, 0]], "reject": 0.2, "off": ["sepal width (cm)"],
    }  # fmt: skip
    models = [
        {**model, "model": name}
        for name in ("lda", "qda", "rda", "student", "nearest_mean", "ridge", "logistic")
    ]
    edits = {
        "removed": [0, 60],
        "shifts": [[2, [0.1, 0.2, 0.3, 0.4]]],
        "added": [[1, [5.5, 3.0, 4.0, 1.0]]],
    }
    plane = {
        "centre": [5.8, 3.0, 3.7, 1.2], "axes": [[1, 0, 0, 0], [0, 1, 0, 0]], "box": [-2, 2, -2, 2],
        "width": 90, "height": 70,
    }  # fmt: skip
    column = "sepal length (cm)"
    return [
        ("density", plane),
        ("surface", {"model": {"model": "rda", "off": [], "prior": None}}),
        *(("evaluate", {"model": each, "edits": edits, "label": "setosa"}) for each in models),
        *(("code", {"model": each, "edits": edits}) for each in models),
        *(("slices", {"model": each, "column": column}) for each in models),
        *(
            ("export", {"model": {**each, "degree": degree}, "edits": edits, "to": to})
            for each in models
            for degree in (1, 2)
            for to in ("model", "python", "javascript", "sql")
        ),
    ]


def fuzz_studio(client, log, *, seconds, seed=0):
    """Send damaged requests and files to the studio; return the number of answers by status."""
    rng, statuses, bodies, files = random.Random(seed), Counter(), studio_bodies(), studio_files()
    faults = Faults()
    bearer = {"authorization": f"Bearer {TOKEN}"}
    iris = {"source": {"example": "iris"}, "target": "species"}

    def send(path, content, headers=bearer):
        response = client.post(path, content=content, headers=headers)
        statuses[response.status_code] += 1
        faults.check(response, (path, headers, content), log)
        return response

    def open_iris():
        return send("/api/open", json.dumps(iris)).json()["id"]

    def count():
        answer = send(f"/api/tables/{open_iris()}/evaluate", json.dumps(bodies[2][1]))
        return answer.status_code, answer.content

    number, before = open_iris(), count()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if rng.random() < 0.2:
            number = fuzz_file(send, rng, files, number) or open_iris()
        action, body = rng.choice(bodies)
        if rng.random() < 0.7:
            content = json.dumps(damage_value(body, rng)).encode()
        else:
            content = damage(json.dumps(body).encode(), rng)
        headers = damage_headers(bearer, rng) if rng.random() < 0.1 else bearer
        if send(f"/api/tables/{number}/{action}", content, headers).status_code == 404:
            number = open_iris()
    faults.raise_any()
    assert count() == before
    return statuses


def fuzz_file(send, rng, files, number):
    """Upload a damaged file, and open it or compare its means; return the number of the table."""
    name, content = rng.choice(files)
    if rng.random() < 0.1:
        name = rng.choice(files)[0]
    content = damage(content, rng) if rng.random() < 0.9 else content
    upload = send(f"/api/upload?name={quote(damage(name.encode(), rng))}", content)
    if upload.status_code != 200:
        return None
    source = {"upload": upload.json()["upload"]}
    preview = send("/api/preview", json.dumps({"source": source}))
    target = preview.json()["target"] if preview.status_code == 200 else "kind"
    if rng.random() < 0.3:
        send(f"/api/tables/{number}/drift", json.dumps({"source": source}))
        return None
    plan = {"source": source, "target": target, "missing": "drop", "exclude": [], "categories": []}
    plan = damage_value(plan, rng) if rng.random() < 0.5 else plan
    table = send("/api/open", json.dumps(plan))
    return table.json()["id"] if table.status_code == 200 else None


def main():
    from tests.unit.web.fuzz_connections import fuzz_connections
    from tests.unit.web.test_studio import Page

    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    share = {"seconds": options.seconds / 3, "seed": options.seed}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder, "mixed.model")
        dd.Encoded(dd.LDA()).fit(*table()).save(path)
        service = start({"mixed": str(path)})
        page = Page(Path(folder))
        parts = {
            "service": lambda: fuzz(service.client, service.log, **share),
            "studio": lambda: fuzz_studio(page.client, page.log, **share),
            "connections": lambda: fuzz_connections(path, **share),
        }
        codes = []
        for name, part in parts.items():
            try:
                report(name, part())
            except AssertionError as error:
                print(f"{name}: {error}", flush=True)
                codes.append(1)
    raise SystemExit(any(codes))


def report(what, statuses):
    counts = ", ".join(f"{status}: {count:,}" for status, count in sorted(statuses.items()))
    print(f"{what}: {statuses.total():,} requests without an internal error ({counts})", flush=True)


if __name__ == "__main__":
    main()
