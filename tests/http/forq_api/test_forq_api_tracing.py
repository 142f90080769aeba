"""`forq serve` where an SDK of OpenTelemetry is set up before it starts, as `opentelemetry-instrument` does it."""

import json
import os
from pathlib import Path

import httpx
import pytest

from support.real_server import SECRET, real_server
from support.spans import PARENT, TRACE

pytestmark = pytest.mark.process

METRICS_SECRET = "m" * 32
AS_THE_DISTRIBUTION_DOES = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

provider = TracerProvider()
to = open({file!r}, "a", buffering=1)
exporter = ConsoleSpanExporter(out=to, formatter=lambda span: span.to_json(indent=None) + "\\n")
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
"""


def test_a_server_traces_its_requests_to_their_commits_and_has_exemplars(tmp_path: Path) -> None:
    file = tmp_path / "spans"
    (tmp_path / "sitecustomize.py").write_text(AS_THE_DISTRIBUTION_DOES.format(file=str(file)))
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    settings = {
        "FORQ_METRICS_ENABLED": "true",
        "FORQ_METRICS_AUTH_SECRET": METRICS_SECRET,
        "PYTHONPATH": path,
    }
    with real_server(tmp_path / "forq.db", **settings) as server:
        headers = {"X-API-Key": SECRET, **PARENT}
        with httpx.Client(base_url=server.url, headers=headers, verify=False) as http:
            assert http.post("/api/v1/queues/q/messages", json={"content": "x"}).status_code == 204
            asked = {"X-API-Key": METRICS_SECRET, "Accept": "application/openmetrics-text"}
            exposition = http.get("/metrics", headers=asked).text
        assert server.stop() == 0
    stored, request = (json.loads(line) for line in file.read_text().splitlines())
    assert (stored["name"], request["name"]) == ("send q", "POST /api/v1/queues/{queue}/messages")
    assert stored["parent_id"] == request["context"]["span_id"]
    assert request["parent_id"] == f"0x{PARENT['traceparent'].split('-')[2]}"
    assert request["attributes"]["http.response.status_code"] == 204
    assert f'trace_id="{TRACE}"' in exposition
