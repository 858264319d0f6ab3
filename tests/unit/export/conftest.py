"""Targets on which exported models run."""

import pytest

from tests.shared.javascript import Chromium, Node

TARGETS = ("duckdb", "sqlite", "postgres", "onnx", "python", "node", "chromium")


@pytest.fixture(params=TARGETS)
def target(request):
    """A target; for PostgreSQL also the connection, for JavaScript the engine."""
    if request.param in ("postgres", "node", "chromium"):
        return request.param, request.getfixturevalue(request.param)
    return request.param, None


@pytest.fixture(scope="session")
def node():
    """A process of Node.js that evaluates modules."""
    if Node.path is None:
        pytest.skip("Node.js is not installed")
    with Node() as engine:
        yield engine


@pytest.fixture(scope="session")
def chromium(browser):
    """A browser page under a strict content security policy that evaluates modules."""
    with Chromium(browser) as engine:
        yield engine
