"""Random requests to the service, in every format, damaged at random.

    python -m tests.unit.web.fuzz [--seconds 600] [--seed 0]

Every request must be answered, none with an internal error, and the service must still predict
bitwise as before. Prints the number of requests by status.
"""

import argparse
import io
import json
import random
import tempfile
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa

import discriminant as dd
from tests.unit.web.conftest import start, table

ARROW = "application/vnd.apache.arrow.stream"
WORDS = [
    b"null", b"true", b"[]", b"{}", b"[", b"{", b'"', b",", b":", b"1e999", b"-0", b"9" * 40,
    b"\\u0000", b"\x00", b"\xff", b"\xef\xbb\xbf", b"\r\n", b'""', b"size", b"colour", b"rows",
    b"data", b"inputs", b"shape", b"datatype", b"BYTES", b"FP64", b"parameters",
    b"binary_data_size", b"top_k", b"prior", b"explain", b"cost", b"reject", b"NaN", b"=1+1",
    b";", b"\t", b"-1", b"4294967295", b"0.5",
]  # fmt: skip


def seeds():
    """Valid requests: path, type, body."""
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


def fuzz(client, log, *, seconds, seed=0):
    """Send damaged requests for some time; return the number of answers by status."""
    rng, statuses, valid = random.Random(seed), Counter(), seeds()
    expected = client.post("/predict", content=valid[0][2], headers={"content-type": valid[0][1]})
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        path, kind, body, headers = rng.choice(valid)
        if rng.random() < 0.1:
            kind = rng.choice(valid)[1]
        if headers and rng.random() < 0.3:
            headers = {"inference-header-content-length": str(rng.randrange(2000))}
        body = damage(body, rng)
        response = client.post(path, content=body, headers={**headers, "content-type": kind})
        statuses[response.status_code] += 1
        assert response.status_code in (200, 400, 413, 415), (path, kind, body, response.text)
        log.truncate(0)
    after = client.post("/predict", content=valid[0][2], headers={"content-type": valid[0][1]})
    assert (after.status_code, after.content) == (200, expected.content)
    return statuses


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "mixed.model")
        dd.Encoded(dd.LDA()).fit(*table()).save(path)
        service = start({"mixed": str(path)})
        statuses = fuzz(service.client, service.log, seconds=options.seconds, seed=options.seed)
    print(f"{statuses.total():,} requests without an internal error:", dict(statuses))


if __name__ == "__main__":
    main()
