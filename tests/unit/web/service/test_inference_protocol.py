"""The Open Inference Protocol: tensors as JSON and as binary data."""

import json
import struct

import numpy as np
import pytest

import discriminant as dd


@pytest.fixture(scope="module")
def mixed(model_folder):
    return dd.load(model_folder / "mixed.model")


def inputs(rows, *, as_binary=()):
    """Inputs of a request, and the binary data behind its JSON."""
    tensors, data = [], b""
    for name in rows.columns:
        text = name == "colour"
        tensor = {"name": name, "datatype": "BYTES" if text else "FP64", "shape": [len(rows)]}
        if name in as_binary:
            part = (
                b"".join(struct.pack("<I", len(v)) + v.encode() for v in rows[name])
                if text
                else (rows[name].to_numpy().astype("<f8").tobytes())
            )
            tensor["parameters"] = {"binary_data_size": len(part)}
            data += part
        else:
            tensor["data"] = rows[name].tolist()
        tensors.append(tensor)
    return tensors, data


def infer(client, request, data=b"", name="mixed"):
    header = json.dumps(request).encode()
    headers = {"inference-header-content-length": str(len(header))} if data else {}
    return client.post(f"/v2/models/{name}/infer", content=header + data, headers=headers)


def test_metadata_names_inputs_and_outputs(client):
    found = client.get("/v2/models/mixed").json()
    assert {tensor["name"]: tensor["datatype"] for tensor in found["inputs"]} == {
        "size": "FP64",
        "weight": "FP64",
        "colour": "BYTES",
    }
    assert [tensor["name"] for tensor in found["outputs"]] == ["predicted", "probabilities"]
    assert found["parameters"]["classes"] == ["a", "b", "c"]
    array = client.get("/v2/models/array").json()
    assert array["inputs"] == [{"name": "rows", "datatype": "FP64", "shape": [-1, 2]}]
    assert array["outputs"][0]["datatype"] == "INT64"
    assert "binary_tensor_data" in client.get("/v2").json()["extensions"]


@pytest.mark.parametrize(
    "as_binary", [(), ("size",), ("colour", "size"), ("size", "weight", "colour")]
)
def test_json_and_binary_inputs_give_the_same_answer(client, mixed, rows, as_binary):
    tensors, data = inputs(rows[:9], as_binary=as_binary)
    answer = infer(client, {"id": "x1", "inputs": tensors}, data).json()
    outputs = {tensor["name"]: tensor for tensor in answer["outputs"]}
    assert (answer["id"], answer["model_name"]) == ("x1", "mixed")
    assert outputs["predicted"]["data"] == mixed.predict(rows[:9]).tolist()
    p = np.reshape(outputs["probabilities"]["data"], outputs["probabilities"]["shape"])
    np.testing.assert_array_equal(p, mixed.predict_proba(rows[:9]))


def test_binary_outputs_follow_the_json(client, mixed, rows):
    tensors, data = inputs(rows[:4])
    wanted = [
        {"name": "predicted", "parameters": {"binary_data": True}},
        {"name": "probabilities", "parameters": {"binary_data": True}},
    ]
    response = infer(client, {"inputs": tensors, "outputs": wanted}, data)
    length = int(response.headers["inference-header-content-length"])
    header, body = json.loads(response.content[:length]), response.content[length:]
    sizes = [tensor["parameters"]["binary_data_size"] for tensor in header["outputs"]]
    texts, place = [], 0
    while place < sizes[0]:
        (size,) = struct.unpack_from("<I", body, place)
        texts.append(body[place + 4 : place + 4 + size].decode())
        place += 4 + size
    assert texts == mixed.predict(rows[:4]).tolist()
    p = np.frombuffer(body[sizes[0] :], dtype="<f8").reshape(4, 3)
    np.testing.assert_array_equal(p, mixed.predict_proba(rows[:4]))


def test_matrix_is_the_input_of_a_model_without_names(client, model_folder, rows):
    X = rows[["size", "weight"]].to_numpy()[:6].astype("<f4")
    tensor = {"name": "rows", "datatype": "FP32", "shape": [6, 2]}
    by_json = infer(client, {"inputs": [{**tensor, "data": X.tolist()}]}, name="array").json()
    binary = {**tensor, "parameters": {"binary_data_size": X.nbytes}}
    by_binary = infer(client, {"inputs": [binary]}, X.tobytes(), name="array").json()
    assert by_json["outputs"] == by_binary["outputs"]
    expected = dd.load(model_folder / "array.model").predict(X.astype(float)).tolist()
    assert by_json["outputs"][0]["data"] == expected


def test_parameters_are_options(client, rows):
    tensors, _ = inputs(rows[:3])
    parameters = {"reject": '{"threshold": 0.999}', "top_k": 2, "explain": True}
    answer = infer(client, {"inputs": tensors, "parameters": parameters}).json()
    outputs = {tensor["name"]: tensor for tensor in answer["outputs"]}
    assert set(outputs["decision"]["data"]) <= {"a", "b", "c", "REJECT"}
    assert outputs["labels"]["shape"] == [3, 2]
    assert len(json.loads(answer["parameters"]["explanations"])) == 3


def changed(tensors, **values):
    return [{**tensors[0], **values}, *tensors[1:]]


def test_invalid_requests_are_refused_with_a_text(client, rows):
    tensors, data = inputs(rows[:3], as_binary=("size",))
    plain, _ = inputs(rows[:3])
    bad = [
        ({"inputs": plain[:2]}, b""),  # a column is missing
        ({"inputs": [*plain, plain[0]]}, b""),
        ({"inputs": {}}, b""),
        ({}, b""),
        ({"inputs": [1]}, b""),
        ({"inputs": changed(plain, datatype="FP128")}, b""),
        ({"inputs": changed(plain, datatype={"size": [1]})}, b""),
        ({"inputs": changed(plain, datatype=["FP64"])}, b""),
        ({"inputs": changed(plain, shape=[4])}, b""),
        ({"inputs": changed(plain, shape=[-3])}, b""),
        ({"inputs": changed(plain, shape=[1, 3])}, b""),
        ({"inputs": changed(plain, shape=[10**11])}, b""),
        ({"inputs": changed(plain, data=[1, 2, "x"])}, b""),
        ({"inputs": changed(plain, data=None)}, b""),
        ({"inputs": plain, "outputs": [{"name": "other"}]}, b""),
        ({"inputs": plain, "outputs": [3]}, b""),
        ({"inputs": plain, "parameters": {"nonsense": 1}}, b""),
        ({"inputs": plain, "parameters": []}, b""),
        ({"inputs": plain, "id": 5}, b""),
        ({"inputs": tensors}, data[:-1]),
        ({"inputs": tensors}, data + b"x"),
        ({"inputs": changed(tensors, parameters={"binary_data_size": -1})}, data),
        ({"inputs": changed(tensors, datatype="BYTES")}, data),
        ({"inputs": changed(tensors, datatype="INT8")}, data),
    ]
    for request, rest in bad:
        response = infer(client, request, rest)
        assert response.status_code in (400, 413), request
        assert isinstance(response.json()["error"], str)


@pytest.mark.parametrize("length", ["-1", "x", "999999", "1" * 20])
def test_invalid_length_of_the_json_is_refused(client, length):
    headers = {"inference-header-content-length": length}
    response = client.post("/v2/models/mixed/infer", content=b"{}", headers=headers)
    assert response.status_code == 400


def test_cut_and_wrong_bytes_name_the_row(client, rows):
    tensors, _ = inputs(rows[:2])
    for part, text in (
        (b"\x01\x00\x00\x00r\x09\x00\x00\x00x", "row 1"),
        (b"\x01\x00\x00\x00\xff" * 2, "row 0"),
    ):
        colour = {
            "name": "colour",
            "datatype": "BYTES",
            "shape": [2],
            "parameters": {"binary_data_size": len(part)},
        }
        response = infer(client, {"inputs": [*tensors[:2], colour]}, part)
        assert response.status_code == 400
        assert text in response.json()["error"]
