"""`GET /metrics` (contract F11) in Prometheus' text format: our own series, and those about the process.

`metrics_text` writes our own; prometheus_client writes those about the process.
"""

from collections.abc import Sequence

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.exposition import generate_latest

from forq_trio.http.forq_api.errors import answer_error
from forq_trio.http.message import Request, Response
from forq_trio.http.router import Gate, Route
from forq_trio.model.endpoint import Answer, Operation
from forq_trio.telemetry.families import ReadFamilies
from forq_trio.telemetry.metrics_text import Exposition

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class MetricsPage:
    """Renders the families of these owners and the process's own series; counts nothing itself."""

    def __init__(self, owners: Sequence[ReadFamilies]) -> None:
        self._exposition = Exposition(owners)
        self._process = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self._process)

    def render(self) -> bytes:
        """The whole exposition."""
        return self._exposition.text().encode() + generate_latest(self._process)

    async def scrape(self, request: Request) -> Response:
        """Answer a scrape; does not wait for anything."""
        return Response(200, self.render(), CONTENT_TYPE.encode())

    def routes(self, gate: Gate) -> list[Route]:
        """The metrics' only route, behind `gate`."""
        operation = Operation(
            name="metrics",
            tag="Operation",
            summary="Counters and gauges for Prometheus",
            description="Served only with FORQ_METRICS_ENABLED=true. The key is FORQ_METRICS_AUTH_SECRET.",
            answers=(Answer(200, "The series, in Prometheus' text format.", str, CONTENT_TYPE),),
        )
        return [Route("GET", "/metrics", self.scrape, operation, answer_error, gate)]
