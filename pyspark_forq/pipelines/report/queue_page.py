"""Pages of single queues, beside the page of a report: one file each, like that one."""

import re
from hashlib import sha256

from pyspark_forq.pipelines.report import look
from pyspark_forq.pipelines.report.facts import OTHERS, Facts, QueueFacts

DIRECTORY = "queues"
"""Where the pages are, beside the report's."""
_NAME_LENGTH_MAX = 64
_PAGE_NAME = re.compile(r"[A-Za-z0-9._-]{0,64}-[0-9a-f]{12}\.html")
_FLOWS = {"produced": "Sent", "acked": "Acked"}
_FAILURES = {"failures": "Failed", "dead_lettered": "Dead-lettered"}
_EVENTS = (
    "produced",
    "delivered",
    "acked",
    "nacked",
    "lease_expired",
    "released",
    "dead_lettered",
    "requeued",
    "expired",
    "deleted",
    "cancelled",
)


def page_name(queue: str) -> str:
    """The name of a queue's file: the same in each report, another one for each queue, and valid on any file system.

    The hash keeps queues apart that differ only in upper and lower case, where a file system ignores that.
    """
    plain = re.sub(r"[^A-Za-z0-9._-]", "_", queue).lstrip(".-")[:_NAME_LENGTH_MAX]
    return f"{plain}-{sha256(queue.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}.html"


def is_page_name(name: str) -> bool:
    """Whether a file with this name is a page of a queue."""
    return _PAGE_NAME.fullmatch(name) is not None


def render(facts: Facts, *, made_at_ms: int, source: str) -> dict[str, str]:
    """The pages of the queues that the report shows one by one, by the names of their files."""
    return {
        page_name(queue.name): _page(facts, queue, made_at_ms, source)
        for queue in facts.queues
        if queue.name != OTHERS
    }


def _page(facts: Facts, queue: QueueFacts, made_at_ms: int, source: str) -> str:
    charts = (
        look.flow_chart(queue, "Messages a minute", _FLOWS),
        look.backlog_chart(queue),
        look.flow_chart(queue, "Failures a minute", _FAILURES),
        *(look.latency_chart(queue, measure) for measure in look.MEASURES),
    )
    return look.render(
        "queue.html",
        facts,
        made_at_ms=made_at_ms,
        source=source,
        queue=queue,
        verdict=look.verdict(queue),
        charts=charts,
        measures=look.MEASURES,
        happened=[(name, queue.counts[name]) for name in _EVENTS],
        most_happened=max([queue.counts[name] for name in _EVENTS]),
    )
