"""Verdicts do not flicker: what is shown, when, on a clock of the test."""

from forq_trio.monitor.health import Holding
from forq_trio.monitor.verdicts import Facts

BROKEN = Facts(ready=1, oldest_ms=60_001)
ATTENTION = Facts(lost=1, acked=1)
PAUSED = Facts(paused=True, paused_ms=0)
FINE = Facts()


def shown(*script: tuple[int, Facts]) -> list[str]:
    """The level after each of these facts, which hold for so many seconds, looked at every ten."""
    holding, now, levels = Holding(), 0, []
    for seconds, facts in script:
        for _ in range(0, seconds, 10):
            level = holding.judge(facts, float(now), now * 1_000).level
            now += 10
        levels.append(level)
    return levels


def test_broken_is_shown_after_a_minute() -> None:
    assert shown((60, BROKEN), (10, BROKEN)) == ["fine", "broken"]


def test_attention_is_shown_after_five_minutes() -> None:
    assert shown((300, ATTENTION), (10, ATTENTION)) == ["fine", "attention"]


def test_a_break_begins_it_anew() -> None:
    assert shown((60, BROKEN), (10, FINE), (60, BROKEN), (10, BROKEN)) == ["fine", "fine", "fine", "broken"]


def test_it_goes_a_minute_after_its_cause() -> None:
    assert shown((70, BROKEN), (50, FINE), (10, FINE)) == ["broken", "broken", "fine"]


def test_it_stays_where_its_cause_comes_back() -> None:
    assert shown((70, BROKEN), (50, FINE), (10, BROKEN), (50, FINE)) == ["broken"] * 4


def test_a_cause_behind_another_has_its_own_time() -> None:
    both = Facts(ready=1, oldest_ms=60_001, lost=1)
    assert shown((310, both), (60, ATTENTION)) == ["broken", "attention"]


def test_a_pause_is_shown_at_once_and_hides_what_needs_attention() -> None:
    both = Facts(lost=1, acked=1, paused=True)
    assert shown((310, ATTENTION), (10, both), (10, ATTENTION)) == ["attention", "paused", "attention"]
    assert shown((10, PAUSED), (10, FINE)) == ["paused", "fine"]


def test_a_pause_hides_at_once_what_was_wrong_with_the_consumers() -> None:
    paused = Facts(ready=1, oldest_ms=60_001, paused=True)
    assert shown((70, BROKEN), (10, paused), (60, paused), (60, BROKEN)) == [
        "broken",
        "paused",
        "paused",
        "fine",
    ]


def test_it_says_since_when() -> None:
    holding = Holding()
    for now in range(0, 70, 10):
        health = holding.judge(BROKEN, float(now), 5_000 + now * 1_000)
    assert health.since == 5_000
