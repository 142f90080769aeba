"""Labels and histograms of queues that are gone go to others, and no sum ever falls or jumps."""

import pytest

from forq_trio.model import limits
from forq_trio.model.messages.types import QueueCounts
from forq_trio.storage.engine import DURATION_KINDS, HANDLING, Event
from forq_trio.telemetry.counters import Counters
from forq_trio.telemetry.families import QUEUE_TEXTS
from forq_trio.telemetry.metrics_text import Exposition
from forq_trio.telemetry.queue_counters import OTHER
from support.exposition import of_counters, of_queue, own_samples

PRODUCED = "forq_messages_produced_total"
CLEANED = "forq_messages_cleanup_total"
LABELS_MAX, HISTOGRAMS_MAX = 4, 2


@pytest.fixture(autouse=True)
def few_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "METRIC_QUEUES_MAX", LABELS_MAX)
    monkeypatch.setattr(limits, "HISTOGRAM_QUEUES_MAX", HISTOGRAMS_MAX)


@pytest.fixture
def counters() -> Counters:
    return Counters()


def send(counters: Counters, *queues: str) -> None:
    counters.queues.record([Event("produced", queue, 1) for queue in queues])


def produced(counters: Counters) -> dict[str, float]:
    """The counter of each label."""
    found = own_samples(counters).items()
    return {dict(labels)["queue_name"]: value for (name, labels), value in found if name == PRODUCED}


def test_queues_that_are_gone_use_up_no_labels(counters: Counters) -> None:
    for number in range(5 * LABELS_MAX):
        send(counters, f"short{number}")
        counters.keep(())
    send(counters, "long")
    assert produced(counters)["long"] == 1
    assert len(produced(counters)) == LABELS_MAX
    assert counters.queues.total("produced") == 5 * LABELS_MAX + 1


def test_the_one_that_has_been_gone_the_longest_leaves_first(counters: Counters) -> None:
    send(counters, "a", "b", "c", "d")
    for queues in ("acd", "ad", "d"):
        counters.keep(queues)
    send(counters, "e")
    assert sorted(produced(counters)) == ["a", "c", "d", "e"]
    send(counters, "f")
    assert sorted(produced(counters)) == ["a", "d", "e", "f"]


def test_a_queue_that_is_made_again_goes_on_as_long_as_it_has_its_place(counters: Counters) -> None:
    send(counters, "a", "b", "c", "d")
    counters.keep("bcd")
    send(counters, "a", "e")  # it was made again before the next look at what is gone
    assert produced(counters) == {"a": 2, "b": 1, "c": 1, "d": 1, OTHER: 1}
    counters.keep("bcde")
    send(counters, "f")
    send(counters, "a")
    assert produced(counters) == {"f": 1, "b": 1, "c": 1, "d": 1, OTHER: 2}
    assert counters.queues.total("produced") == 8


def test_a_queue_that_was_summed_gets_a_label_and_begins_at_zero(counters: Counters) -> None:
    send(counters, "a", "b", "c", "d", "late", "late")
    counters.keep(("b", "c", "d", "late"))
    counters.refresh_counts({"late": QueueCounts(2)})
    assert produced(counters) == {"b": 1, "c": 1, "d": 1, "late": 0, OTHER: 2}
    send(counters, "late")
    assert produced(counters) == {"b": 1, "c": 1, "d": 1, "late": 1, OTHER: 2}
    activity = counters.queues.activity("late")
    assert activity is not None
    assert activity.sent.count == 3  # for the monitor it is one queue all the time
    assert counters.queues.total("produced") == 7
    counters.keep(())
    send(counters, *"wxyz")
    assert produced(counters) == {**dict.fromkeys("wxyz", 1), OTHER: 2}
    assert counters.queues.total("produced") == 11


def test_no_place_is_taken_from_a_queue_that_is_there(counters: Counters) -> None:
    send(counters, "a", "b", "c", "d")
    counters.keep("abcd")
    send(counters, "e")
    assert produced(counters) == {**dict.fromkeys("abcd", 1), OTHER: 1}


def test_names_that_consumers_only_wait_for_leave_their_places(counters: Counters) -> None:
    counters.waiting({f"waited{number}": "x" for number in range(LABELS_MAX)})
    counters.keep(("a",))
    send(counters, "a")
    assert produced(counters) == {"a": 1}


def test_series_that_name_no_queue_do_not_fall(counters: Counters) -> None:
    for number in range(3 * LABELS_MAX):
        counters.queues.record([Event("cleaned_up", f"q{number}-dlq", 1, "expired")])
        counters.keep(())
    assert own_samples(counters)[CLEANED, (("reason", "expired"),)] == 3 * LABELS_MAX
    assert counters.queues.total("cleaned_up") == 3 * LABELS_MAX


def test_histograms_leave_their_places_too(counters: Counters) -> None:
    for number in range(5 * HISTOGRAMS_MAX):
        counters.durations.record({(kind, f"short{number}"): [1] for kind in DURATION_KINDS})
        counters.keep(())
    counters.durations.record({(HANDLING, "long"): [1, 1]})
    samples = own_samples(counters)
    assert samples["forq_message_handling_seconds_count", of_queue("long")] == 2
    assert len(counters.durations.histograms) == len(DURATION_KINDS) * (HISTOGRAMS_MAX - 1) + 1
    assert sum(counters.durations.buckets(HANDLING)) == 5 * HISTOGRAMS_MAX + 2


def test_a_scrape_forgets_what_was_written_of_queues_that_are_gone(counters: Counters) -> None:
    QUEUE_TEXTS.clear()
    exposition = Exposition(of_counters(counters))
    for number in range(20 * LABELS_MAX):
        counters.durations.record({(HANDLING, f"q{number}"): [1]})
        counters.refresh_counts({f"q{number}": QueueCounts(1)})
        assert f'forq_queue_depth{{queue_name="q{number}",' in exposition.text()
        counters.keep(())
    assert len(QUEUE_TEXTS) <= 2 * LABELS_MAX
    messages = [name for name, _ in exposition._histograms if name.startswith("forq_message_")]
    assert len(messages) <= HISTOGRAMS_MAX
    counters.durations.record(
        {(HANDLING, "q0"): [1, 1]}
    )  # made again: a histogram of its own, not the written one
    assert 'handling_seconds_count{queue_name="q0",queue_type="regular"} 2' in exposition.text()
