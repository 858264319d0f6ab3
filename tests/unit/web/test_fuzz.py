"""Damaged requests at random; `make fuzz-service` does the same for longer."""

import pytest

from tests.unit.web.conftest import start
from tests.unit.web.fuzz import fuzz, fuzz_studio
from tests.unit.web.fuzz_connections import fuzz_connections
from tests.unit.web.test_studio import Page


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_damaged_requests_cause_no_internal_error(model_folder):
    service = start({"mixed": str(model_folder / "mixed.model")})
    statuses = fuzz(service.client, service.log, seconds=20)
    assert statuses.total() > 100
    assert statuses[400] > statuses.total() / 10


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_damaged_requests_and_files_cause_no_internal_error_in_the_studio(tmp_path):
    page = Page(tmp_path)
    with page.client:
        statuses = fuzz_studio(page.client, page.log, seconds=20)
    assert statuses[200] > 20
    assert statuses[400] > statuses.total() / 10


@pytest.mark.slow
def test_damaged_bytes_on_connections_stop_no_server(model_folder):
    statuses = fuzz_connections(model_folder / "mixed.model", seconds=20)
    assert statuses["400"] > statuses.total() / 10
