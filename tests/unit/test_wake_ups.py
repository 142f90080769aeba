"""Whether applications are to notify who waits: the times of looks, and when the lock is wanted."""

from math import inf

import pytest

from forq_trio.model import limits
from forq_trio.model.wake_ups import WakeUps

T = 1_000.0


@pytest.fixture
def wakes() -> WakeUps:
    wakes = WakeUps()
    wakes.await_until(T)
    return wakes


def test_the_lock_is_wanted_while_somebody_waits_and_shortly_after(wakes):
    assert not WakeUps().wanted(T)
    assert wakes.wanted(T)
    assert wakes.wanted(T + limits.WAKE_AWAITED_SECONDS / 2)
    assert not wakes.wanted(T + limits.WAKE_AWAITED_SECONDS)


def test_with_the_lock_there_is_a_look_at_once_and_others_ever_later(wakes):
    wakes.set_lock(T, held=True)
    looks = []
    now = T
    for _ in range(6):
        wakes.await_until(now)
        now = wakes.next_look_at(now)
        looks.append(round(now - T, 6))
        wakes.note_look(now)
    assert looks == [0.0, 0.04, 0.12, 0.28, 0.6, 1.24]


def test_a_look_at_another_time_puts_off_none_of_them(wakes):
    wakes.set_lock(T, held=True)
    wakes.note_look(T)
    wakes.note_look(T + 0.01)
    assert wakes.next_look_at(T + 0.01) == T + 0.04


def test_nobody_looks_for_nobody(wakes):
    wakes.set_lock(T, held=True)
    assert wakes.next_look_at(T + limits.WAKE_AWAITED_SECONDS) == inf


def test_who_does_not_get_the_lock_looks_often(wakes):
    wakes.note_look(T)
    assert wakes.next_look_at(T) == T + limits.WAKE_UNTOLD_SECONDS


def test_who_is_notified_too_often_looks_instead_for_a_while(wakes):
    wakes.set_lock(T, held=True)
    for number in range(limits.WAKE_NOTICES_MAX + 1):
        assert wakes.wanted(T)
        wakes.notice(T + number / 100)
    again = T + number / 100 + limits.WAKE_QUIET_SECONDS
    wakes.await_until(again - 0.01)
    assert not wakes.wanted(again - 0.01)
    wakes.note_look(again - 0.02)
    assert wakes.next_look_at(again - 0.02) == again - 0.02 + limits.WAKE_LOOK_SECONDS
    wakes.await_until(again)
    assert wakes.wanted(again)


def test_notices_of_several_seconds_are_not_too_many(wakes):
    for number in range(10 * limits.WAKE_NOTICES_MAX):
        wakes.notice(T + number / limits.WAKE_NOTICES_MAX)
    now = T + number / limits.WAKE_NOTICES_MAX
    wakes.await_until(now)
    assert wakes.wanted(now)
