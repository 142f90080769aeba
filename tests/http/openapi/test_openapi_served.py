"""docs/openapi.json is what a server with everything turned on serves."""

import json
from pathlib import Path

import httpx
import pytest

from support.processes import WAIT_SECONDS_MAX
from support.real_server import SECRET, real_server

pytestmark = pytest.mark.process

DOCUMENT = Path(__file__).parents[3] / "docs" / "openapi.json"


def test_a_server_serves_the_document_of_docs(tmp_path) -> None:
    metrics = {"FORQ_METRICS_ENABLED": "true", "FORQ_METRICS_AUTH_SECRET": SECRET}
    with real_server(tmp_path / "forq.db", **metrics) as server:
        served = httpx.get(f"{server.url}/openapi.json", timeout=WAIT_SECONDS_MAX, verify=False).json()
    committed = json.loads(DOCUMENT.read_text(encoding="utf-8"))
    served["info"]["version"] = committed["info"]["version"]  # a checkout may have been installed earlier
    assert served == committed
    assert [*served["paths"]] == [*committed["paths"]]
