"""Counting and its exposition: contract F11."""

from forq_trio.model import limits
from forq_trio.model.messages.types import QueueCounts
from forq_trio.storage.engine import OFFERED, Event
from forq_trio.telemetry.counters import Counters
from forq_trio.telemetry.queue_counters import COUNTED, OTHER
from support.exposition import Samples, own_samples, samples_of
from support.forq_api import METRICS_SECRET, SECRET, Api, make_request

FORQ = {*(each.name for kind, each in COUNTED.items() if kind != OFFERED), "forq_queue_depth"}


def forq_samples(counters: Counters) -> Samples:
    """The series that Forq has, without ours."""
    return {key: value for key, value in own_samples(counters).items() if key[0] in FORQ}


def test_f11_counters_by_queue_and_type():
    for kind in ("produced", "consumed", "acked", "nacked"):
        counters = Counters()
        counters.queues.record([Event(kind, "a", 2), Event(kind, "a-dlq", 3), Event(kind, "a", 5)])
        assert forq_samples(counters) == {
            (f"forq_messages_{kind}_total", (("queue_name", "a"), ("queue_type", "regular"))): 7,
            (f"forq_messages_{kind}_total", (("queue_name", "a-dlq"), ("queue_type", "dlq"))): 3,
        }


def test_f11_moved_to_dlq_and_stale_recovered_name_their_queue():
    counters = Counters()
    for queue, reason in (("a", "failed"), ("b", "failed"), ("a", "expired")):
        counters.queues.record([Event("moved_to_dlq", queue, 1, reason)])
    counters.queues.record([Event("stale_recovered", "a", 4), Event("requeued", "a-dlq", 2)])
    name = "forq_messages_moved_to_dlq_total"
    assert forq_samples(counters) == {
        (name, (("queue_name", "a"), ("reason", "failed"))): 1,
        (name, (("queue_name", "b"), ("reason", "failed"))): 1,
        (name, (("queue_name", "a"), ("reason", "expired"))): 1,
        ("forq_messages_stale_recovered_total", (("queue_name", "a"),)): 4,
        ("forq_messages_requeued_total", (("queue_name", "a-dlq"),)): 2,
    }


def test_f11_cleanup_is_counted_by_reason_over_all_queues():
    counters = Counters()
    counters.queues.record(
        [Event("cleaned_up", queue, 1, "expired") for queue in ("a-dlq", "b-dlq", "c-dlq")]
    )
    counters.queues.record(
        [Event("cleaned_up", "a-dlq", 1, "deleted_by_user"), Event("cleaned_up", "a-dlq", 2, "failed")]
    )
    name = "forq_messages_cleanup_total"
    assert forq_samples(counters) == {
        (name, (("reason", "expired"),)): 3,
        (name, (("reason", "deleted_by_user"),)): 1,
        (name, (("reason", "failed"),)): 2,
    }


def test_f11_depth():
    counters = Counters()
    counters.refresh_counts({"a": QueueCounts(1, 2, 3, 4), "gone": QueueCounts(1)})
    counters.refresh_counts({"a": QueueCounts(1, 2, 3, 5), "a-dlq": QueueCounts()})
    assert forq_samples(counters) == {
        ("forq_queue_depth", (("queue_name", "a"), ("queue_type", "regular"))): 11,
        ("forq_queue_depth", (("queue_name", "a-dlq"), ("queue_type", "dlq"))): 0,
    }


def test_f11_released_messages_are_not_exposed():
    counters = Counters()
    counters.queues.record([Event("released", "a", 1)])
    assert forq_samples(counters) == {}


def test_queue_names_past_the_bound_are_summed():
    counters = Counters()
    counters.queues.record(
        [Event("produced", f"q{number}", 1) for number in range(limits.METRIC_QUEUES_MAX - 1)]
    )
    counters.refresh_counts({"last": QueueCounts(1), "past": QueueCounts(2), "past-dlq": QueueCounts(3)})
    for _ in range(2):
        counters.queues.record(
            [Event("produced", queue, 10) for queue in ("past1", "past2", "past-dlq", "last", "q0")]
        )
    regular, dlq = ("queue_type", "regular"), ("queue_type", "dlq")
    name = "forq_messages_produced_total"
    samples = forq_samples(counters)
    assert samples[name, (("queue_name", OTHER), regular)] == 40
    assert samples[name, (("queue_name", OTHER), dlq)] == 20
    assert samples[name, (("queue_name", "last"), regular)] == 20
    assert samples[name, (("queue_name", "q0"), regular)] == 21
    assert samples["forq_queue_depth", (("queue_name", OTHER), regular)] == 2
    assert samples["forq_queue_depth", (("queue_name", OTHER), dlq)] == 3
    names = {dict(labels)["queue_name"] for _, labels in samples}
    assert len(names) == limits.METRIC_QUEUES_MAX + 1


def test_what_is_kept_is_bounded():
    counters = Counters()
    for number in range(3 * limits.METRIC_QUEUES_MAX):
        counters.queues.record([Event("produced", f"q{number}", 1)])
    series = [*counters.queues._by_event, *counters.queues._others]
    assert len(series) == limits.SERIES_QUEUES_MAX + 1
    assert len(counters.queues._labelled) == limits.METRIC_QUEUES_MAX


def test_a_queue_that_is_called_other_is_summed_with_those_past_the_bound():
    counters = Counters()
    counters.queues.record([Event("produced", OTHER, 1)])
    counters.queues.record([Event("produced", f"q{number}", 1) for number in range(limits.METRIC_QUEUES_MAX)])
    labels = (("queue_name", OTHER), ("queue_type", "regular"))
    assert forq_samples(counters)["forq_messages_produced_total", labels] == 2


async def test_f11_the_writer_feeds_the_counters(api: Api):
    await api.send("1", "2")
    message = await api.receive()
    await api.call("POST", f"q/messages/{message['id']}/ack")
    response = await scrape(api)
    labels = (("queue_name", "q"), ("queue_type", "regular"))
    samples = samples_of(response.body)
    assert samples["forq_messages_produced_total", labels] == 2
    assert samples["forq_messages_consumed_total", labels] == 1
    assert samples["forq_messages_acked_total", labels] == 1
    assert response.content_type.startswith(b"text/plain; version=0.0.4")


async def scrape(api: Api, secret: str = METRICS_SECRET):
    return await api.handler(make_request("GET", "/metrics", headers={b"x-api-key": secret.encode()}))


async def test_f11_the_metrics_have_a_key_of_their_own(api: Api):
    assert (await scrape(api)).status == 200
    assert (await scrape(api, SECRET)).status == 401


async def test_the_process_is_described(api: Api):
    names = {name for name, _ in samples_of((await scrape(api)).body)}
    assert {"process_resident_memory_bytes", "process_cpu_seconds_total", "python_info"} <= names


async def test_prometheus_shows_the_secret_as_a_bearer_token(api: Api):
    for secret, status in ((METRICS_SECRET, 200), (SECRET, 401), ("", 401)):
        headers = {b"authorization": b"Bearer " + secret.encode()}
        assert (await api.handler(make_request("GET", "/metrics", headers=headers))).status == status
