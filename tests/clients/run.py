"""`make service-clients`: the scoring service against clients of other projects.

    python tests/clients/run.py CLIENT_PYTHON

Starts `discriminant serve` on free ports and runs tests/clients/checks.py with a Python that has
tritonclient and mlflow-skinny. Exits with an error if an answer differs from the model's.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import numpy as np
import pandas as pd

import discriminant as dd


def main():
    client = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder))
        models = [f"{folder}/{name}.model" for name in ("mixed", "array", "tree")]
        several, one = start(*models), start(models[0])
        try:
            ports = [wait(several), wait(one)]
            command = [client, str(Path(__file__).with_name("checks.py")), folder, *map(str, ports)]
            code = subprocess.run(command).returncode
        finally:
            for server in (several, one):
                server.send_signal(signal.SIGTERM)
                server.wait(timeout=60)
    raise SystemExit(code)


def write(folder):
    """Write the models, rows to predict, and the predictions of the models in this process."""
    random = np.random.default_rng(0)
    codes = random.integers(0, 3, 300)
    frame = pd.DataFrame(
        {
            "size": random.normal(size=300) + codes,
            "weight": random.normal(size=300),
            "farbe, ü": random.choice(["rot", "grün", "日本"], 300),
        }
    )
    labels = np.array(["ä", "b", "日"])[codes]
    numbers = frame[["size", "weight"]].to_numpy()
    mixed = dd.Encoded(dd.LDA()).fit(frame, labels)
    array = dd.QDA().fit(numbers, codes)
    tree = dd.Encoded(dd.LabelTree()).fit(frame, labels)
    for name, model in (("mixed", mixed), ("array", array), ("tree", tree)):
        model.save(folder / f"{name}.model")
    rows = frame[:40]
    frame[:40].to_json(folder / "rows.json", orient="split", index=False, double_precision=15)
    rows = pd.read_json(folder / "rows.json", orient="split", precise_float=True)
    top, scores = tree.predict_topk(rows, k=2)
    expected = {
        "mixed": mixed.predict(rows).tolist(),
        "p": mixed.predict_proba(rows).tolist(),
        "array": array.predict(rows[["size", "weight"]].to_numpy()).tolist(),
        "top": tree.classes_[top].tolist(),
        "scores": scores.tolist(),
    }
    (folder / "expected.json").write_text(json.dumps(expected))


def start(*models):
    command = [sys.executable, "-m", "discriminant", "serve", *models, "--port", "0"]
    return subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )


def wait(server):
    """Return the port of a server once it is ready."""
    for line in server.stderr:
        facts = json.loads(line)
        if facts["event"] == "listening":
            port = int(facts["url"].rpartition(":")[2])
        if facts["event"] == "ready":
            break
    else:
        raise SystemExit("The service did not start.")
    time.sleep(0.1)
    urllib.request.urlopen(f"http://localhost:{port}/ping").close()
    return port


if __name__ == "__main__":
    main()
