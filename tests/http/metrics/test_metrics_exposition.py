"""What a scrape says: buckets add up, labels are bounded, gauges are as of now or as of the last refresh."""

import sys
import time
from itertools import pairwise

import pytest

from forq_trio.http.forq_api.metrics import MetricsPage
from forq_trio.jobs.database_watch import DatabaseWatch
from forq_trio.model import limits
from forq_trio.model.messages.types import QueueCounts
from forq_trio.model.server.database_state import DatabaseReading, DatabaseState, HeldSnapshot, SnapshotKeeper
from forq_trio.readers.pool import ReaderPool
from forq_trio.storage.engine import DURATION_KINDS, EngineSettings, Event
from forq_trio.telemetry.counters import STATES, Counters
from forq_trio.telemetry.families import by_queue, gauge
from forq_trio.telemetry.queue_counters import COUNTED, OTHER
from forq_trio.telemetry.rejections import Cause
from oracle.engine import MemoryEngine
from support.exposition import buckets, of_counters, of_queue, own_samples, samples_of, samples_shown

WAIT = "forq_message_wait_seconds"
END_TO_END = "forq_message_end_to_end_seconds"
WAITING = "forq_queue_waiting_consumers"
AGE = "forq_queue_oldest_claimable_age_seconds"


def test_every_kind_of_duration_is_exposed() -> None:
    counters = Counters()
    for kind in DURATION_KINDS:
        counters.durations.record({(kind, "q"): [1]})
        assert own_samples(counters)[f"forq_message_{kind}_seconds_count", of_queue("q")] == 1


def test_buckets_are_cumulative_and_agree_with_count_and_sum() -> None:
    counters = Counters()
    counters.durations.record({("wait", "q"): [0, 1, 2, 5_000, 5_001, 3_600_000, 3_600_001]})
    samples = own_samples(counters)
    found = buckets(samples, WAIT, of_queue("q"))
    assert list(found) == sorted(found)
    assert all(lower <= upper for lower, upper in pairwise(found.values()))
    assert found[0.001] == 2
    assert found[0.002] == 3
    assert found[2.5] == 3
    assert found[5] == 4
    assert found[10] == 5
    assert found[3_600] == 6
    assert found[float("inf")] == samples[f"{WAIT}_count", of_queue("q")] == 7
    assert samples[f"{WAIT}_sum", of_queue("q")] == 7_210.005


def test_commits_have_their_histograms_without_labels() -> None:
    counters = Counters()
    for calls, seconds in ((1, 0.0001), (2, 0.00011), (3, 0.5), (5_000, 11)):
        counters.commits.record(calls, seconds, 0)
    samples = own_samples(counters)
    by_calls = buckets(samples, "forq_commit_batch_calls")
    assert (by_calls[1], by_calls[2], by_calls[4], by_calls[4_096]) == (1, 2, 3, 3)
    assert by_calls[float("inf")] == samples["forq_commit_batch_calls_count", ()] == 4
    assert samples["forq_commit_batch_calls_sum", ()] == 5_006
    by_seconds = buckets(samples, "forq_commit_duration_seconds")
    assert (by_seconds[0.0001], by_seconds[0.00025], by_seconds[0.5], by_seconds[10]) == (1, 2, 3, 3)
    assert by_seconds[float("inf")] == 4


def test_a_histogram_that_moves_is_written_anew() -> None:
    counters = Counters()
    metrics = MetricsPage(of_counters(counters))
    for expected in (1, 2):
        counters.durations.record({("wait", "q"): [5]})
        for _ in range(2):
            samples = samples_of(metrics.render())
            assert samples[f"{WAIT}_count", of_queue("q")] == expected
            assert samples[f"{WAIT}_sum", of_queue("q")] == expected * 0.005


def test_states_add_up_to_the_depth() -> None:
    counters = Counters()
    counters.refresh_counts({"q": QueueCounts(1, 20, 300, 4_000, 50_000, 7)})
    samples = own_samples(counters)
    states = {state: samples["forq_queue_messages", of_queue("q", state=state)] for state in STATES}
    assert states == {"ready": 1, "processing": 20, "failed": 300, "delayed": 4_000, "held": 50_000}
    assert samples["forq_queue_depth", of_queue("q")] == sum(states.values())
    assert samples["forq_queue_bytes", of_queue("q")] == 7


def test_gauges_of_a_queue_that_is_gone_end() -> None:
    counters = Counters()
    counters.refresh_counts({"q": QueueCounts(1)})
    counters.refresh_counts({})
    assert {
        name for name, labels in own_samples(counters) if labels and labels[0][0] == "queue_name"
    } == set()


def test_waiting_consumers_and_calls_are_asked_for_at_the_scrape() -> None:
    counters = Counters()
    parked: dict[str, list[str]] = {}
    waiting_calls = 0
    metrics = MetricsPage(
        [
            lambda: [gauge(WAITING, "", by_queue(counters.waiting(parked)))],
            lambda: [gauge("forq_inbox_calls", "", waiting_calls)],
        ]
    )
    counters.refresh_counts({"known": QueueCounts()})
    before = samples_of(metrics.render())
    parked["new"] = ["one", "two"]
    waiting_calls = 3
    after = samples_of(metrics.render())
    assert before["forq_queue_waiting_consumers", of_queue("known")] == 0
    assert before["forq_inbox_calls", ()] == 0
    assert after["forq_queue_waiting_consumers", of_queue("known")] == 0
    assert after["forq_queue_waiting_consumers", of_queue("new")] == 2
    assert after["forq_inbox_calls", ()] == 3


def test_every_cause_of_rejection_is_there_from_the_start() -> None:
    counters = Counters()
    counters.record_rejection(Cause.FORBIDDEN)
    samples = own_samples(counters)
    counted = {cause: samples["forq_rejections_total", (("cause", cause.value),)] for cause in Cause}
    assert counted == {cause: cause is Cause.FORBIDDEN for cause in Cause}


def test_histograms_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HISTOGRAM_QUEUES_MAX", 4)
    counters = Counters()
    for number in range(2 * limits.HISTOGRAM_QUEUES_MAX):
        for kind in DURATION_KINDS:
            counters.durations.record({(kind, f"q{number}"): [1], (kind, f"q{number}-dlq"): [1]})
    samples = own_samples(counters)
    for name in (WAIT, END_TO_END):
        counts = {labels: value for (sample, labels), value in samples.items() if sample == f"{name}_count"}
        assert len(counts) == limits.HISTOGRAM_QUEUES_MAX + 2
        assert sum(counts.values()) == 4 * limits.HISTOGRAM_QUEUES_MAX
        assert counts[of_queue("q0")] == counts[of_queue("q0-dlq")] == 1
        half = limits.HISTOGRAM_QUEUES_MAX * 3 / 2
        assert counts[of_queue(OTHER)] == half
        assert counts[(("queue_name", OTHER), ("queue_type", "dlq"))] == half


def test_a_queue_that_is_called_other_shares_its_histogram() -> None:
    counters = Counters()
    counters.durations.record({("wait", OTHER): [1]})
    counters.durations.record({("wait", f"q{number}"): [1] for number in range(limits.HISTOGRAM_QUEUES_MAX)})
    assert own_samples(counters)[f"{WAIT}_count", of_queue(OTHER)] == 2


def test_gauges_past_the_bound_are_summed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "METRIC_QUEUES_MAX", 20)
    counters = Counters()
    extra = 5
    counts = QueueCounts(1, 2, 3, 4, 5, 6)
    counters.refresh_counts({f"q{number}": counts for number in range(limits.METRIC_QUEUES_MAX + extra)})
    parked = {f"parked{number}": ["x"] for number in range(extra)}
    samples = own_samples(counters, lambda: [gauge(WAITING, "", by_queue(counters.waiting(parked)))])
    queues = {dict(labels)["queue_name"] for _, labels in samples if "queue_name" in dict(labels)}
    assert len(queues) == limits.METRIC_QUEUES_MAX + 1
    for state, each in zip(("ready", "processing", "failed", "delayed", "held"), range(1, 6), strict=True):
        assert samples["forq_queue_messages", of_queue(OTHER, state=state)] == each * extra
    assert samples["forq_queue_bytes", of_queue(OTHER)] == 6 * extra
    assert samples["forq_queue_waiting_consumers", of_queue(OTHER)] == extra


def busy_tally() -> tuple[Counters, MetricsPage]:
    """As many queues as have names, with something of everything."""
    counters = Counters()
    queues = [f"a-rather-long-queue-name-{number}" for number in range(limits.METRIC_QUEUES_MAX)]
    for kind in COUNTED:
        counters.queues.record([Event(kind, queue, 1, "failed") for queue in queues])
    counters.refresh_counts(dict.fromkeys(queues, QueueCounts(1, 2, 3, 4, 5, 6)))
    parked = dict.fromkeys(queues, "x")
    gauges = [
        lambda: [gauge("forq_queue_dead_letters", "", by_queue({(queue, False): 1 for queue in queues}))],
        lambda: [gauge(AGE, "", by_queue({(queue, False): 12.345 for queue in queues}))],
        lambda: [gauge(WAITING, "", by_queue(counters.waiting(parked)))],
    ]
    for queue in queues:
        counters.durations.record({(kind, queue): [1] for kind in DURATION_KINDS})
    return counters, MetricsPage([*of_counters(counters), *gauges])


def test_f11_a_scrape_with_a_thousand_queues_takes_less_than_100_ms_of_processor_time() -> None:
    counters, metrics = busy_tally()
    seconds = []
    for _ in range(3):
        counters.durations.record({(kind, queue): [1] for kind, (queue, _) in counters.durations.histograms})
        started = time.thread_time()
        exposition = metrics.render()
        seconds.append(time.thread_time() - started)
    traced = sys.gettrace() is not None  # a coverage run, several times slower
    assert min(seconds) < (1.0 if traced else 0.1)
    lines = [line for line in exposition.splitlines() if not line.startswith(b"#")]
    assert (
        len({line.rpartition(b" ")[0] for line in lines}) == len(lines) > 20_000
    )  # to parse them takes a second


def test_the_database_has_series_once_it_was_looked_at() -> None:
    watch = DatabaseWatch(ReaderPool(MemoryEngine(EngineSettings()).open_reader, size=1))
    assert len([*watch.families()]) == 4
    assert samples_shown([watch.families]) == {}
    dump = SnapshotKeeper("session", "pg_dump", 4711, "active", "7", 0)
    reading = DatabaseReading(44, 12, 100, 0, 709_882, None, 2_400, (dump,))
    watch.state = DatabaseState(reading, HeldSnapshot(dump, 252_500))
    samples = samples_shown([watch.families])
    assert samples["forq_database_oldest_snapshot_seconds", ()] == 252.5
    assert samples["forq_database_dead_rows", ()] == 709_882
    assert samples["forq_database_bytes", ()] == 2_400
    connections = {"ours": 12, "all": 44, "limit": 100}
    assert {
        whose: samples["forq_database_connections", (("whose", whose),)] for whose in connections
    } == connections
    watch.state = DatabaseState(reading, None)
    assert samples_shown([watch.families])["forq_database_oldest_snapshot_seconds", ()] == 0
