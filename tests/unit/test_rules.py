"""The rules both engines share, over plain values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forq_trio.model import Status
from forq_trio.storage import rules
from forq_trio.storage.engine import EngineSettings

NOW = 1_000_000
SETTINGS = EngineSettings()


@pytest.mark.parametrize(
    ("attempts", "delay_ms"),
    [(1, 1_000), (2, 5_000), (3, 15_000), (4, 30_000), (5, 60_000), (6, 60_000), (1_000, 60_000)],
)
def test_f5_backoff_by_attempt(attempts, delay_ms):
    assert rules.backoff_ms(attempts, SETTINGS.backoff_ms) == delay_ms


def test_backoff_before_any_attempt_is_the_first_step():
    assert rules.backoff_ms(0, SETTINGS.backoff_ms) == 1_000


def test_f5_a_nack_before_the_last_attempt_delays():
    fate = rules.after_nack(4, None, None, NOW, SETTINGS)
    assert fate == (Status.DELAYED, NOW + 30_000)


def test_f5_a_nack_at_the_last_attempt_fails_and_keeps_the_due_time():
    assert rules.after_nack(5, None, 0, NOW, SETTINGS) == (Status.FAILED, None)
    assert rules.after_nack(6, None, 10, NOW, SETTINGS) == (Status.FAILED, None)


def test_a_nack_with_a_delay_of_its_own():
    assert rules.after_nack(1, None, 42, NOW, SETTINGS) == (Status.DELAYED, NOW + 42)
    assert rules.after_nack(1, None, 0, NOW, SETTINGS) == (Status.READY, NOW)


def test_a_message_may_have_its_own_bound_of_attempts():
    assert rules.after_nack(1, 1, None, NOW, SETTINGS).status is Status.FAILED
    assert rules.after_nack(5, 6, None, NOW, SETTINGS) == (Status.DELAYED, NOW + 60_000)
    assert not rules.attempts_used_up(5, 6, SETTINGS)
    assert rules.attempts_used_up(2, None, EngineSettings(attempts_max=2))


def test_f6_the_end_of_a_lease_makes_ready_at_once_or_failed():
    assert rules.after_lease_end(4, None, NOW, SETTINGS) == (Status.READY, NOW)
    assert rules.after_lease_end(5, None, NOW, SETTINGS) == (Status.FAILED, None)


def test_a_release_never_fails_and_uncounts_the_attempt():
    assert rules.after_release(0, NOW) == (Status.READY, NOW)
    assert rules.after_release(7, NOW) == (Status.DELAYED, NOW + 7)
    assert [rules.uncounted(attempts) for attempts in (0, 1, 5)] == [0, 0, 4]


def test_f2_time_to_live_starts_when_the_message_falls_due():
    assert rules.expires_after(NOW + 500, 60_000) == NOW + 60_500


def test_initial_status_is_delayed_only_for_the_future():
    assert rules.initial_status(NOW - 1, NOW) is Status.READY
    assert rules.initial_status(NOW, NOW) is Status.READY
    assert rules.initial_status(NOW + 1, NOW) is Status.DELAYED


def test_f7_dead_letter_name():
    assert rules.dead_letter_name("mail") == "mail-dlq"


@pytest.mark.parametrize(
    ("available", "wanted", "given_"),
    [
        (0, [1, 1], [0, 0]),
        (1, [5, 5], [1, 0]),
        (2, [5, 5], [1, 1]),
        (3, [5, 5], [2, 1]),
        (7, [5, 5], [5, 2]),
        (99, [5, 5], [5, 5]),
        (4, [1, 2, 3], [1, 2, 1]),
        (3, [], []),
    ],
)
def test_share_gives_everyone_one_then_fills_the_earliest(available, wanted, given_):
    assert rules.share(available, wanted) == given_


@given(st.integers(0, 60), st.lists(st.integers(1, 12), max_size=12))
def test_share_wastes_nothing_and_starves_nobody(available, wanted):
    sizes = rules.share(available, wanted)
    assert sum(sizes) == min(available, sum(wanted))
    assert all(0 <= size <= most for size, most in zip(sizes, wanted, strict=True))
    if available >= len(wanted):
        assert all(sizes)
    else:
        assert sizes == [1] * available + [0] * (len(wanted) - available)


def test_slices_are_consecutive_and_in_claim_order():
    assert list(rules.slices([10, 11, 12, 13], [2, 0, 1])) == [[10, 11], [], [12]]
