"""`GET /metrics` (contract F11): our own series, and those about the process.

In Prometheus' text format, or as OpenMetrics 1.0 for a client that prefers that. `metrics_text` writes
our own series; prometheus_client writes those about the process.
"""

from collections.abc import Sequence

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.exposition import generate_latest
from prometheus_client.openmetrics import exposition as openmetrics

from forq_trio.http.forq_api.errors import answer_error
from forq_trio.http.message import Request, Response
from forq_trio.http.router import Gate, Route
from forq_trio.model.endpoint import Answer, Operation
from forq_trio.telemetry.families import ReadFamilies
from forq_trio.telemetry.metrics_text import Exposition

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text"
OPENMETRICS_VERSION = "1.0.0"
OPENMETRICS_TYPE = f"{OPENMETRICS}; version={OPENMETRICS_VERSION}; charset=utf-8"


class MetricsPage:
    """Renders the families of these owners and the process's own series; counts nothing itself."""

    def __init__(self, owners: Sequence[ReadFamilies]) -> None:
        self._exposition = Exposition(owners)
        self._openmetrics = Exposition(owners, openmetrics=True)
        self._process = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self._process)

    def render(self) -> bytes:
        """The whole exposition as text."""
        return self._exposition.text().encode() + generate_latest(self._process)

    def render_openmetrics(self) -> bytes:
        """The whole exposition as OpenMetrics 1.0."""
        of_process: bytes = openmetrics.generate_latest(self._process)  # type: ignore[no-untyped-call]  # the library's
        return self._openmetrics.text().encode() + of_process

    async def scrape(self, request: Request) -> Response:
        """Answer a scrape; does not wait for anything."""
        if prefers_openmetrics(request.headers.get(b"accept", b"").decode("latin-1")):
            return Response(200, self.render_openmetrics(), OPENMETRICS_TYPE.encode())
        return Response(200, self.render(), CONTENT_TYPE.encode())

    def routes(self, gate: Gate) -> list[Route]:
        """The metrics' only route, behind `gate`."""
        operation = Operation(
            name="metrics",
            tag="Operation",
            summary="Counters and gauges for Prometheus",
            description=(
                "Served only with FORQ_METRICS_ENABLED=true. The key is FORQ_METRICS_AUTH_SECRET. A client that"
                f" prefers `{OPENMETRICS}; version={OPENMETRICS_VERSION}` gets that instead of the text format."
            ),
            answers=(
                Answer(200, "The series, in Prometheus' text format or as OpenMetrics.", str, CONTENT_TYPE),
                Answer(200, "The same.", str, OPENMETRICS_TYPE),
            ),
        )
        return [Route("GET", "/metrics", self.scrape, operation, answer_error, gate)]


def prefers_openmetrics(accept: str) -> bool:
    """Whether a header Accept names OpenMetrics 1.0, and the text format no earlier by its weights.

    What it says by wildcards is met by the text format, as ever.
    """
    weights = dict.fromkeys((OPENMETRICS, "text/plain"), 0.0)
    for part in accept.lower().split(","):
        kind, *rest = (each.strip() for each in part.split(";"))
        parameters = dict(each.partition("=")[::2] for each in rest)
        version = parameters.get("version", OPENMETRICS_VERSION).strip('"')
        if kind in weights and (kind != OPENMETRICS or version == OPENMETRICS_VERSION):
            weights[kind] = max(weights[kind], _weight(parameters.get("q", "1")))
    return 0 < weights[OPENMETRICS] >= weights["text/plain"]


def _weight(text: str) -> float:
    """A weight between 0 and 1; 0 for what is none."""
    try:
        weight = float(text)
    except ValueError:
        return 0.0
    return weight if 0 <= weight <= 1 else 0.0
