"""What an exported model is run on."""

import pytest

TARGETS = ("duckdb", "sqlite", "postgres", "onnx", "python")


@pytest.fixture(params=TARGETS)
def target(request):
    """A target, and for PostgreSQL the connection."""
    if request.param == "postgres":
        return request.param, request.getfixturevalue("postgres")
    return request.param, None
