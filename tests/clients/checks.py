"""What clients of other projects get from the service; run by run.py, in their environment."""

import json
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd


def main():
    folder, several, one = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    rows = pd.read_json(folder / "rows.json", orient="split", precise_float=True)
    expected = json.loads((folder / "expected.json").read_text())
    check_triton(several, rows, expected)
    check_mlflow(one, rows, expected)


def check_triton(port, rows, expected):
    import tritonclient.http as triton
    from tritonclient.utils import InferenceServerException

    client = triton.InferenceServerClient(f"localhost:{port}")
    assert client.is_server_live() and client.is_server_ready()
    assert client.is_model_ready("mixed")
    assert "binary_tensor_data" in client.get_server_metadata()["extensions"]
    metadata = client.get_model_metadata("mixed")

    def inputs(*, binary):
        for tensor in metadata["inputs"]:
            given = triton.InferInput(tensor["name"], [len(rows)], tensor["datatype"])
            values = rows[tensor["name"]].to_numpy()
            values = values.astype(object) if tensor["datatype"] == "BYTES" else values
            given.set_data_from_numpy(values, binary_data=binary)
            yield given

    for binary_in in (True, False):
        for binary_out in (True, False):
            names = ("predicted", "probabilities")
            outputs = [triton.InferRequestedOutput(name, binary_data=binary_out) for name in names]
            answer = client.infer("mixed", [*inputs(binary=binary_in)], outputs=outputs)
            predicted = answer.as_numpy("predicted").tolist()
            texts = [text.decode() if isinstance(text, bytes) else text for text in predicted]
            assert texts == expected["mixed"]
            np.testing.assert_array_equal(answer.as_numpy("probabilities"), expected["p"])
        everything = client.infer("mixed", [*inputs(binary=binary_in)])
        np.testing.assert_array_equal(everything.as_numpy("probabilities"), expected["p"])

    answer = client.infer("tree", [*inputs(binary=True)], parameters={"top_k": 2})
    labels = [[text.decode() for text in row] for row in answer.as_numpy("labels").tolist()]
    assert labels == expected["top"]
    np.testing.assert_array_equal(answer.as_numpy("scores"), expected["scores"])

    matrix = rows[["size", "weight"]].to_numpy()
    tensor = triton.InferInput("rows", list(matrix.shape), "FP64")
    tensor.set_data_from_numpy(matrix)
    assert client.infer("array", [tensor]).as_numpy("predicted").tolist() == expected["array"]

    try:
        client.infer("mixed", [*inputs(binary=True)][:2])
    except InferenceServerException as error:
        assert "farbe" in str(error), error
    else:
        raise AssertionError("a missing column was accepted")
    print(f"tritonclient {version('tritonclient')}: ok")


def check_mlflow(port, rows, expected):
    import mlflow
    from mlflow.pyfunc.scoring_server.client import ScoringServerClient

    client = ScoringServerClient("127.0.0.1", port)
    client.ping()
    assert client.get_version()
    answer = client.invoke(rows)
    predictions = answer.get_predictions()
    assert predictions.iloc[:, 0].tolist() == expected["mixed"], predictions
    answer = client.invoke(rows.to_dict("records"))
    assert json.loads(answer.to_json())["predictions"] == expected["mixed"]
    answer = client.invoke(rows, params={"top_k": 1})
    records = json.loads(answer.to_json())["predictions"]
    assert [row["top"][0]["label"] for row in records] == expected["mixed"]
    print(f"mlflow {mlflow.__version__}: ok")


if __name__ == "__main__":
    main()
