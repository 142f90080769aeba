"""The kinds of lifecycle events, and the events of the log."""

from collections.abc import Iterator

from docs._generate.markdown import code, page, table, with_code, with_links
from forq_trio.model.logs.events import MEANINGS
from forq_trio.telemetry.log import LogEvent

SOURCE = "forq_trio/model/logs/events.py and forq_trio/telemetry/log.py"


def pages() -> Iterator[tuple[str, str]]:
    yield "events.md", page("Events", SOURCE, *_blocks())


def _blocks() -> Iterator[str]:
    yield "## Lifecycle events"
    yield "What happens to a message. [Lifecycle events](../events.md) says how they are read, and for how long."
    rows = [
        [code(kind), with_links(each.when), each.attempt, each.reason, each.duration]
        for kind, each in MEANINGS.items()
    ]
    yield table(["kind", "when", "`attempt`", "`reason`", "`durationMs`"], rows)
    yield "## Log events"
    yield "Everything that the server logs. [Configuration](../configuration.md#logs) says where, and in which form."
    logged = [[code(event.value), event.level, with_code(event.doc)] for event in LogEvent]
    yield table(["event", "level", "meaning"], logged)
