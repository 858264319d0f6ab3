"""The OpenAPI description follows the columns of the models."""

from tests.unit.web.conftest import NAMES, TOKEN, start


def row_schema(description, name):
    path = description["paths"][f"/models/{name}/predict"]
    body = path["post"]["requestBody"]["content"]["application/json"]["schema"]
    reference = body["oneOf"][0]["items"]["$ref"]
    return description["components"]["schemas"][reference.rpartition("/")[2]]


def references(value):
    if isinstance(value, dict):
        if "$ref" in value:
            yield value["$ref"]
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from references(item)


def test_columns_have_their_types_levels_and_statistics(client, rows):
    description = client.get("/openapi.json").json()
    schema = row_schema(description, "mixed")
    assert schema["required"] == ["size", "weight", "colour"]
    assert schema["properties"]["colour"] == {"type": "string", "enum": ["blue", "green", "red"]}
    size = schema["properties"]["size"]
    assert size["type"] == "number"
    assert size["examples"] == [float(f"{rows['size'].mean():.4g}")]
    assert f"standard deviation {rows['size'].std(ddof=0):.3g}" in size["description"]


def test_missing_cells_and_unseen_levels_are_allowed_where_the_model_allows_them(client):
    schema = row_schema(client.get("/openapi.json").json(), "filled")
    assert schema["required"] == []
    assert schema["properties"]["size"]["type"] == ["number", "null"]
    assert "enum" not in schema["properties"]["colour"]


def test_every_model_has_its_paths_and_every_reference_exists(client):
    description = client.get("/openapi.json").json()
    assert description["openapi"].startswith("3.1")
    for name in NAMES:
        assert f"/v2/models/{name}/infer" in description["paths"]
    schemas = description["components"]["schemas"]
    found = set(references(description))
    assert found
    assert {f"#/components/schemas/{name}" for name in schemas} >= found


def test_token_is_described_where_it_is_needed(model_folder, one):
    guarded = start({"mixed": str(model_folder / "mixed.model")}, token=TOKEN)
    headers = {"authorization": f"Bearer {TOKEN}"}
    description = guarded.client.get("/openapi.json", headers=headers).json()
    assert description["security"] == [{"token": []}]
    assert "/predict" in description["paths"]
    assert "security" not in one.get("/openapi.json").json()
