"""Damaged requests at random; `python -m tests.unit.web.fuzz` does the same for longer."""

import pytest

from tests.unit.web.conftest import start
from tests.unit.web.fuzz import fuzz


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_damaged_requests_cause_no_internal_error(model_folder):
    service = start({"mixed": str(model_folder / "mixed.model")})
    statuses = fuzz(service.client, service.log, seconds=20)
    assert statuses.total() > 100
    assert statuses[400] > statuses.total() / 10
