"""The timeline of a message from its lifecycle events."""

from typing import get_args

from forq_trio.model.keys.types import OnceMore
from forq_trio.model.logs.events import EventKind, MessageEvent
from forq_trio.ui.event_timeline import SHOWN_MAX, event_timeline, is_whole


def event(number: int, kind: EventKind, **more) -> MessageEvent:
    members = {
        "id": number,
        "at": 1_000 * number,
        "kind": kind,
        "queue": "orders",
        "message_id": "0199164b-4dea-78d9-9b4c-c699d5037962",
        "sequence": 7,
        "attempt": 0,
        "reason": None,
        "target": None,
        "received_at": 1_000,
        "duration_ms": None,
        "bytes": 3,
    }
    return MessageEvent(**members | more)


def test_a_life_is_told_newest_first() -> None:
    steps = event_timeline(
        [
            event(1, "produced"),
            event(2, "delivered", attempt=1, duration_ms=1_000),
            event(5, "nacked", attempt=1, duration_ms=3_000, reason="failed"),
            event(6, "dead_lettered", attempt=1, reason="failed", target="orders-dlq"),
        ]
    )
    assert [(step.entry.what, step.entry.detail, step.entry.reason, step.after_ms) for step in steps] == [
        ("Moved to orders-dlq", "attempt 1, attempts used up", None, 1_000),
        ("Nack", "attempt 1, after 3 s", "failed", 3_000),
        ("Delivered", "attempt 1, after 1 s", None, 1_000),
        ("Sent", "", None, None),
    ]


def test_what_waits_behind_a_message_is_told_where_it_was_offered() -> None:
    events = [event(1, "produced"), event(2, "delivered"), event(9, "extended")]
    for at, places in ((500, 3), (1_000, 2), (5_000, 1), (9_000, 0)):
        once_more = OnceMore("x", {}, 50_000, 7, 3, at)
        steps = event_timeline(events, once_more)
        assert steps[places].entry.what == "Offered, waits as one more"
        assert steps[places].entry.detail == "the last of 3 offers"
        assert sum(step.after_ms or 0 for step in steps) == 9_000 - min(at, 1_000)


def test_every_kind_has_words() -> None:
    steps = event_timeline([event(n, kind, target="x") for n, kind in enumerate(get_args(EventKind))])
    assert len({step.entry.what for step in steps}) == len(get_args(EventKind))


def test_of_many_the_middle_is_folded() -> None:
    many = [event(1, "produced"), *(event(n, "extended") for n in range(2, 101))]
    steps = event_timeline(many)
    assert len(steps) == SHOWN_MAX + 1
    (fold,) = [step for step in steps if step.entry is None]
    assert (fold.words, len(fold.folded)) == ("80 events more", 80)
    assert steps[-1].entry.what == "Sent"
    assert len(event_timeline(many[: SHOWN_MAX + 1])) == SHOWN_MAX + 1


def test_events_that_do_not_begin_with_the_send_are_not_the_whole() -> None:
    assert not is_whole([])
    assert not is_whole([event(2, "acked")])
    assert is_whole([event(1, "produced")])
