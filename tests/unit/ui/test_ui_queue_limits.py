"""What the limits of a queue hold back, and when the turn of each message comes."""

import pytest

from forq_trio.model.messages.types import QueueCounts
from forq_trio.model.queues.setting_values import Defaults, Rate, RatePer
from forq_trio.model.queues.settings import QueueSettings, rules_of
from forq_trio.ui.queue_limits import HoldUp, Limits

NOW = 1_000_000
RATE = Rate(5, 1_000)
EMPTY = NOW + 1_000
"""When a bucket without tokens is full again."""


NOTHING = QueueCounts()


def limits(counts=NOTHING, full_at_ms=0, **settings) -> Limits:
    return Limits(rules_of("q", QueueSettings(**settings), Defaults()), counts, full_at_ms, NOW)


def test_nothing_is_said_where_nothing_is_set() -> None:
    assert not limits().are_set
    assert limits().facts() == []


def test_what_a_rate_holds_back() -> None:
    found = limits(QueueCounts(ready=2_310), EMPTY - 80, rate=RATE)
    assert found.facts() == [
        ("Rate", "5 in 1 s, whole queue"),
        ("Held by it", "2,310"),
        ("Next token", "in 120 ms"),
        ("Turn of the last", "in 7 min 41 s"),
    ]
    assert [found.held("ready", place) for place in (1, 2, 6)] == [
        HoldUp("rate", "next"),
        HoldUp("rate", "320 ms"),
        HoldUp("rate", "1.1 s"),
    ]


def test_a_rate_with_tokens_holds_back_what_comes_after_them() -> None:
    found = limits(QueueCounts(ready=9), EMPTY - 400, rate=RATE)
    assert found.facts()[1:] == [("Held by it", "7"), ("Next token", "now"), ("Turn of the last", "in 1.4 s")]
    assert [found.held("ready", place) for place in (1, 2, 3)] == [
        HoldUp("", "now"),
        HoldUp("", "now"),
        HoldUp("rate", "200 ms"),
    ]


@pytest.mark.parametrize("rate", [RATE, Rate(7, 1_000), Rate(1, 3), Rate(1_000, 7)])
def test_a_rate_holds_the_messages_whose_turn_is_later(rate) -> None:
    for full_at_ms in range(NOW - 50, NOW + rate.period_ms + 60, max(1, rate.period_ms // 20)):
        held = sum(rate.turn_ms(place, full_at_ms, NOW) > 0 for place in range(1, 13))
        assert rate.holds(12, 3, full_at_ms, NOW) == held


def test_a_rate_of_groups_holds_what_is_held() -> None:
    assert Rate(1, 1, RatePer.GROUP).holds(12, 3, 0, NOW) == 3


def test_a_queue_that_is_full() -> None:
    found = limits(QueueCounts(ready=3, processing=40), EMPTY, rate=RATE, in_flight_max=40)
    assert found.facts()[-1] == ("In flight", "40 of 40")
    assert found.held("ready", 1) == HoldUp("queue", "–")


@pytest.mark.parametrize(
    ("settings", "by"),
    [
        ({"group_in_flight_max": 2}, "group"),
        ({"rate": Rate(1, 1, RatePer.GROUP)}, "rate"),
        ({"group_in_flight_max": 2, "rate": Rate(1, 1, RatePer.GROUP)}, "group or rate"),
    ],
)
def test_what_groups_hold_back(settings, by) -> None:
    found = limits(QueueCounts(held=7), **settings)
    assert ("Held by groups", "7") in found.facts()
    assert found.held("held", 1) == HoldUp(by, "–")
