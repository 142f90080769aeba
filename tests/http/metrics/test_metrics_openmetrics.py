"""/metrics as OpenMetrics: who gets it, that Prometheus' own parser reads it, the same series, and exemplars."""

import pytest
import trio
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from forq_trio.http.forq_api.metrics import MetricsPage, prefers_openmetrics
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import QueueCounts
from forq_trio.storage.engine import EngineSettings
from forq_trio.system import System, open_system
from forq_trio.telemetry.counters import Counters
from forq_trio.telemetry.histogram import Histogram
from oracle.engine import MemoryEngine
from support.actors import TrioClock, elapse, on_the_loop
from support.exposition import Samples, of_counters, of_queue, owners_without_server, samples_of
from support.forq_api import METRICS_SECRET, make_request, open_api
from support.spans import PARENT, TRACE

PROMETHEUS_2 = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)
PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
    "application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,"
    "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)
WAIT = "forq_message_wait_seconds"
COMMIT = "forq_commit_duration_seconds"


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        (PROMETHEUS_2, True),
        (PROMETHEUS_3, True),
        ("application/openmetrics-text; version=1.0.0", True),
        ('Application/OpenMetrics-Text ; charset=utf-8 ; version="1.0.0"', True),
        ("application/openmetrics-text", True),
        ("text/plain;q=0.9, application/openmetrics-text", True),
        ("application/openmetrics-text;q=0.9, text/plain", False),
        ("application/openmetrics-text; version=0.0.1", False),
        ("application/openmetrics-text; version=2.0.0", False),
        ("application/openmetrics-text; q=0", False),
        ("application/openmetrics-text; q=nan", False),
        ("application/openmetrics-text; q=much", False),
        ("application/openmetrics-text; q=7", False),
        ("text/plain;version=0.0.4", False),
        ("application/*", False),
        ("*/*", False),
        (";q,=;,,", False),
        ("", False),
    ],
)
def test_who_asks_for_openmetrics_gets_it(accept: str, expected: bool) -> None:
    assert prefers_openmetrics(accept) is expected


async def test_the_answer_says_what_it_is() -> None:
    async with open_api() as api:
        await api.send("x")
        key = {b"x-api-key": METRICS_SECRET.encode()}
        text = await api.handler(make_request("GET", "/metrics", headers=key))
        headers = key | {b"accept": PROMETHEUS_3.encode()}
        openmetrics = await api.handler(make_request("GET", "/metrics", headers=headers))
    assert text.content_type == b"text/plain; version=0.0.4; charset=utf-8"
    assert b"# TYPE forq_messages_produced_total counter\n" in text.body
    assert b"# EOF" not in text.body
    assert openmetrics.content_type == b"application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert b"# TYPE forq_messages_produced counter\n" in openmetrics.body
    assert openmetrics.body.endswith(b"\n# EOF\n")
    assert openmetrics.body.count(b"# EOF") == 1


def openmetrics_samples(exposition: bytes) -> Samples:
    """Value by name and labels, as Prometheus' own parser reads them, which refuses what breaks OpenMetrics' rules."""
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(exposition.decode())
        for sample in family.samples
    }


def with_numbers(samples: Samples) -> Samples:
    """Our own series, with the bounds of buckets as numbers: OpenMetrics writes 5.0 where the text has 5."""

    def number(name: str, text: str) -> str:
        return str(float(text)) if name == "le" else text

    return {
        (name, tuple((label, number(label, text)) for label, text in labels)): value
        for (name, labels), value in samples.items()
        if name.startswith("forq_")
    }


async def test_it_has_the_series_of_the_text(autojump_clock) -> None:
    async with open_system(MemoryEngine(EngineSettings()), TrioClock(), policy=on_the_loop()) as system:
        await system.broker.produce("q", "x")
        await elapse(7)
        (delivery,) = await system.broker.receive("q")
        await system.broker.ack("q", delivery)
        system.counters.refresh_counts({"q": QueueCounts(1)})
        page = MetricsPage(owners_without_server(system))
        text, openmetrics = page.render(), page.render_openmetrics()
    found = with_numbers(openmetrics_samples(openmetrics))
    assert found == with_numbers(samples_of(text))
    assert found["forq_messages_produced_total", of_queue("q")] == 1
    assert found[f"{WAIT}_bucket", of_queue("q", le="10.0")] == 1


async def exemplars_of(system: System) -> dict[tuple[str, str], tuple[str, float]]:
    """Trace and value by the name of the histogram and the bound of the bucket."""
    page = MetricsPage(owners_without_server(system))
    assert b"trace_id" not in page.render()
    return {
        (family.name, sample.labels["le"]): (sample.exemplar.labels["trace_id"], sample.exemplar.value)
        for family in text_string_to_metric_families(page.render_openmetrics().decode())
        for sample in family.samples
        if sample.exemplar
    }


def traced(number: int, flags: str = "01") -> dict[str, str]:
    return {"traceparent": f"00-{number:032x}-00f067aa0ba902b7-{flags}"}


async def test_a_message_is_an_exemplar_of_its_commit_and_of_its_wait(autojump_clock) -> None:
    async with open_system(MemoryEngine(EngineSettings()), TrioClock(), policy=on_the_loop()) as system:
        broker = system.broker
        await broker.produce("q", "early", attributes=PARENT)
        await broker.receive("q")
        assert await exemplars_of(system) == {}
        system.writer.note_exemplars()
        await broker.produce("q", "x", attributes=PARENT)
        await elapse(7)
        await broker.produce_many("q", [NewMessage("y"), NewMessage("z", attributes=traced(2))])
        await broker.produce("p", "not stored", attributes=traced(3, "00"))
        assert [each.content for each in await broker.receive("q", max_messages=3)] == ["x", "y", "z"]
        await broker.receive("p")
        found = await exemplars_of(system)
    commits = {trace for (name, _), (trace, _) in found.items() if name == COMMIT}
    assert commits <= {TRACE, f"{2:032x}"}
    assert commits
    waits = {bound: each for (name, bound), each in found.items() if name == WAIT}
    assert waits == {"10.0": (TRACE, 7.0), "0.001": (f"{2:032x}", 0.0)}


async def test_each_wait_is_that_of_its_message_also_for_receivers_that_were_parked(
    engine, autojump_clock
) -> None:
    """A batch serves receivers that wait and its own claims, of several queues, in an order of its own."""
    async with open_system(engine, TrioClock(), policy=on_the_loop()) as system:
        broker = system.broker
        system.writer.note_exemplars()
        for number, delay_ms in enumerate((7_000, 3_000, 700), 1):
            await broker.produce("q", str(number), attributes=traced(number), delay_ms=7_000 - delay_ms)
        await elapse(7)
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(broker.receive, "q")
            for _ in range(2):
                nursery.start_soon(broker.receive, "p")
            await trio.testing.wait_all_tasks_blocked()
            await broker.produce_across([("p", NewMessage("5", attributes=traced(5)))])
            await broker.produce("p", "6")
        found = await exemplars_of(system)
    waits = {trace: value for (name, _), (trace, value) in found.items() if name == WAIT}
    assert waits == {f"{1:032x}": 7.0, f"{2:032x}": 3.0, f"{3:032x}": 0.7, f"{5:032x}": 0.0}


async def test_messages_that_a_pipeline_claims_have_no_exemplar(engine, autojump_clock) -> None:
    """Their waits end when they are claimed, but they are delivered later, by pages."""
    async with open_system(engine, TrioClock(), policy=on_the_loop()) as system:
        broker = system.broker
        system.writer.note_exemplars()
        consumer = await broker.open_consumer("q", "sink")
        await broker.produce("q", "x", attributes=PARENT)
        lease = await broker.lease("q", "sink", consumer.generation, 1)
        assert lease.messages == 1
        found = await exemplars_of(system)
    assert {name for name, _ in found} == {COMMIT}


def test_a_histogram_has_one_exemplar_for_each_bucket_the_latest() -> None:
    counters = Counters()
    seconds = counters.commits.seconds.all
    for number in range(10_000):
        value = number % 20
        seconds.add(value)
        seconds.note_exemplar(f"{number:032x}", value, 1_700_000_000_123)
    assert seconds.exemplars is not None
    assert len(seconds.exemplars) == len(seconds.counts)
    assert len(Histogram((1.0,)).copy().counts) == 2
    text = MetricsPage(of_counters(counters)).render_openmetrics().decode()
    lines = [line for line in text.splitlines() if "trace_id" in line]
    assert lines[-1].endswith(f' # {{trace_id="{9_999:032x}"}} 19.0 1700000000.123')
    assert lines[-1].startswith(f'{COMMIT}_bucket{{le="+Inf"}} 10000 # ')
