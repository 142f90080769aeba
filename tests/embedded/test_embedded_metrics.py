"""Metrics of embedded brokers: those of a server, in the registry of the program, collected in any thread."""

import asyncio
import os
import signal
import threading

import pytest
import trio
from opentelemetry.sdk.trace import TracerProvider
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics import exposition as openmetrics

from forq_trio import open_blocking_broker, open_broker
from forq_trio.broker.tracing import trace
from forq_trio.embedded.metrics import BrokerCollector
from forq_trio.storage.engine import EngineSettings
from forq_trio.system import open_system
from oracle.engine import MemoryEngine
from support.actors import on_the_loop
from support.exposition import Samples, all_families, of_queue, samples_of
from support.spans import PARENT, TRACE

PRODUCED = "forq_messages_produced_total"
OF_THE_UI = ("forq_ui_connections", "forq_ui_loop_seconds_total")
SET_ASIDE = "forq_sent_set_aside_total"


def registry_of(*brokers: object) -> CollectorRegistry:
    registry = CollectorRegistry()
    for broker in brokers:
        registry.register(BrokerCollector(broker))
    return registry


def scraped(registry: CollectorRegistry) -> Samples:
    return samples_of(generate_latest(registry))


def test_a_blocking_broker_has_all_families_of_a_server() -> None:
    with open_blocking_broker("memory:") as broker:
        registry = registry_of(broker)
        broker.produce("q", "x")
        (delivery,) = broker.receive("q")
        broker.ack("q", delivery)
        found = {metric.name: metric for metric in registry.collect()}
        samples = scraped(registry)
    wanted = {
        family.name.removesuffix("_total"): (family.type, family.meaning)
        for family in all_families()
        if family.name not in (*OF_THE_UI, SET_ASIDE)
    }
    assert found.pop(SET_ASIDE).type == "unknown"  # a gauge has the name that it would have in OpenMetrics
    assert {name: (each.type, each.documentation) for name, each in found.items()} == wanted
    assert samples[PRODUCED, of_queue("q")] == 1
    assert samples["forq_message_wait_seconds_count", of_queue("q")] == 1
    assert samples["forq_message_wait_seconds_bucket", of_queue("q", le="+Inf")] == 1
    assert samples["forq_commit_duration_seconds_count", ()] >= 3
    assert ("forq_budget_used", (("budget", "inbox"),)) in samples


def test_a_broker_of_trio_is_collected_in_its_thread_and_in_others() -> None:
    async def main() -> None:
        async with open_broker("memory:") as broker:
            registry = registry_of(broker)
            await broker.produce("q", "x")
            here = scraped(registry)
            there = await trio.to_thread.run_sync(scraped, registry)
            elsewhere = await trio.to_thread.run_sync(trio.run, scraped_by_trio, registry)
            counts = [samples[PRODUCED, of_queue("q")] for samples in (here, there, elsewhere)]
            assert counts == [1, 1, 1]

    async def scraped_by_trio(registry: CollectorRegistry) -> Samples:
        return scraped(registry)

    trio.run(main)


def test_a_broker_of_asyncio_is_collected_in_its_thread_and_in_others() -> None:
    async def main() -> None:
        async with open_broker("memory:") as broker:
            registry = registry_of(broker)
            await broker.produce("q", "x")
            here = scraped(registry)
            there = await asyncio.to_thread(scraped, registry)
            assert here[PRODUCED, of_queue("q")] == there[PRODUCED, of_queue("q")] == 1

    asyncio.run(main())


def test_nothing_changes_while_it_is_collected() -> None:
    """Queues come and go in trio's thread while another one collects: a dict that grew would end the scrape."""
    with open_blocking_broker("memory:") as broker:
        registry = registry_of(broker)
        ended = threading.Event()
        problems: list[Exception] = []

        def collect() -> None:
            try:
                while not ended.is_set():
                    samples = scraped(registry)
                    buckets = [
                        value
                        for (name, _), value in samples.items()
                        if name == "forq_commit_batch_calls_count"
                    ]
                    assert buckets
            except Exception as problem:
                problems.append(problem)

        thread = threading.Thread(target=collect)
        thread.start()
        for number in range(200):
            broker.produce(f"q{number}", "x")
        ended.set()
        thread.join(120)
    assert problems == []


def test_two_brokers_have_a_label_or_a_registry_each() -> None:
    with open_blocking_broker("memory:") as orders, open_blocking_broker("memory:") as mails:
        orders.produce("q", "x")
        both = registry_of({"orders": orders, "mails": mails})
        samples = scraped(both)
        assert samples[PRODUCED, of_queue("q", broker="orders")] == 1
        assert samples["forq_inbox_calls", (("broker", "mails"),)] == 0
        exposition = generate_latest(both).decode()
        assert exposition.count("# TYPE forq_inbox_calls gauge") == 1
        with pytest.raises(ValueError, match="forq_inbox_calls"):
            both.register(BrokerCollector(mails))
        one, other = registry_of(orders), registry_of(mails)
        assert scraped(one)[PRODUCED, of_queue("q")] == 1
        assert (PRODUCED, of_queue("q")) not in scraped(other)


def test_a_closed_broker_has_no_series() -> None:
    with open_blocking_broker("memory:") as broker:
        registry = registry_of(broker)
    assert scraped(registry) == {}

    async def main() -> None:
        async with open_broker("memory:") as broker:
            registry = registry_of(broker)
        assert scraped(registry) == {}
        assert await trio.to_thread.run_sync(scraped, registry) == {}

    trio.run(main)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_of_a_fork_has_no_series_and_does_not_wait() -> None:
    with open_blocking_broker("memory:") as broker:
        registry = registry_of(broker)
        read, write = os.pipe()
        child = os.fork()
        if child == 0:  # it must not return into pytest
            signal.alarm(30)
            os.write(write, str(scraped(registry)).encode())
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as told:
            assert told.read() == "{}"
        os.waitpid(child, 0)


async def test_the_broker_of_a_server_is_refused() -> None:
    async with open_system(MemoryEngine(EngineSettings()), policy=on_the_loop()) as system:
        with pytest.raises(ValueError, match="at /metrics"):
            BrokerCollector(system.broker)


async def test_openmetrics_shows_exemplars_once_the_broker_is_traced() -> None:
    async with open_broker("memory:") as broker:
        registry = registry_of(broker)
        trace(broker, TracerProvider())
        await broker.produce("q", "x", attributes=PARENT)
        await broker.receive("q")
        exposition = openmetrics.generate_latest(registry).decode()
    (line,) = [each for each in exposition.splitlines() if "trace_id" in each and "wait" in each]
    assert f'# {{trace_id="{TRACE}"}}' in line
