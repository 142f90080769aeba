"""The rules both engines share, over plain values."""

from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forq_trio.model import limits
from forq_trio.model.errors import InvalidSetting
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import Failure, Status
from forq_trio.model.queues.back_off import backoff_ms
from forq_trio.model.queues.setting_values import ExponentialBackOff, Order, Overflow
from forq_trio.model.queues.settings import QueueSettings, rules_of
from forq_trio.storage import rules
from forq_trio.storage.engine import EngineSettings

NOW = 1_000_000
DEFAULTS = EngineSettings()
RULES = rules_of("q", None, DEFAULTS)


def with_settings(**settings):
    return rules_of("q", QueueSettings(**settings), DEFAULTS)


@pytest.mark.parametrize(
    ("attempts", "delay_ms"),
    [(1, 1_000), (2, 5_000), (3, 15_000), (4, 30_000), (5, 60_000), (6, 60_000), (1_000, 60_000)],
)
def test_f5_backoff_by_attempt(attempts, delay_ms):
    assert backoff_ms(attempts, RULES.back_off, 1) == delay_ms


def test_backoff_before_any_attempt_is_the_first_step():
    assert backoff_ms(0, RULES.back_off, 1) == 1_000


def test_f5_a_nack_before_the_last_attempt_delays():
    fate = rules.after_nack(1, 4, None, None, NOW, RULES)
    assert fate == (Status.DELAYED, NOW + 30_000)


def test_f5_a_nack_at_the_last_attempt_fails_and_keeps_the_due_time():
    assert rules.after_nack(1, 5, None, 0, NOW, RULES) == (Status.FAILED, None)
    assert rules.after_nack(1, 6, None, 10, NOW, RULES) == (Status.FAILED, None)


def test_a_nack_with_a_delay_of_its_own():
    assert rules.after_nack(1, 1, None, 42, NOW, RULES) == (Status.DELAYED, NOW + 42)
    assert rules.after_nack(1, 1, None, 0, NOW, RULES) == (Status.READY, NOW)


def test_a_message_may_have_its_own_bound_of_attempts():
    assert rules.after_nack(1, 1, 1, None, NOW, RULES).status is Status.FAILED
    assert rules.after_nack(1, 5, 6, None, NOW, RULES) == (Status.DELAYED, NOW + 60_000)
    assert not rules.attempts_used_up(5, 6, RULES)
    assert rules.attempts_used_up(2, None, with_settings(max_attempts=2))


def test_f6_the_end_of_a_lease_makes_ready_at_once_or_failed():
    assert rules.after_lease_end(4, None, NOW, RULES) == (Status.READY, NOW)
    assert rules.after_lease_end(5, None, NOW, RULES) == (Status.FAILED, None)


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


def test_f7_without_settings_a_queue_has_the_defaults():
    assert RULES.dead_letter_queue == "q-dlq"
    assert (RULES.ttl_ms, RULES.max_attempts) == (DEFAULTS.queue_ttl_ms, DEFAULTS.attempts_max)
    assert (RULES.lease_ms, RULES.delay_ms, RULES.back_off) == (300_000, 0, DEFAULTS.backoff_ms)
    assert (RULES.max_messages, RULES.max_bytes, RULES.group_in_flight_max) == (None, None, None)
    assert (RULES.overflow, RULES.order, RULES.paused) == (Overflow.REJECT, Order.FIFO, False)


def test_f7_a_dead_letter_queue_has_none_itself_and_another_ttl():
    found = rules_of("q-dlq", None, DEFAULTS)
    assert (found.dead_letter_queue, found.ttl_ms) == ("", DEFAULTS.dlq_ttl_ms)


def test_s6_a_name_that_ends_in_lifo_is_an_order_unless_another_is_set():
    assert rules_of("q_lifo", None, DEFAULTS).order is Order.LIFO
    assert rules_of("q_lifo", QueueSettings(order=Order.FIFO), DEFAULTS).order is Order.FIFO
    assert rules_of("q_lifo-dlq", None, DEFAULTS).order is Order.FIFO


def test_what_is_set_holds_and_the_rest_are_defaults():
    found = with_settings(lease_ms=0, dead_letter_queue="", max_bytes=7, paused=True)
    assert (found.lease_ms, found.dead_letter_queue, found.max_bytes, found.paused) == (0, "", 7, True)
    assert found.ttl_ms == DEFAULTS.queue_ttl_ms


@pytest.mark.parametrize(
    ("own", "target"), [(None, "q-dlq"), ("", ""), ("elsewhere", "elsewhere"), ("q", "")]
)
def test_where_a_dead_letter_goes(own, target):
    assert rules.dead_letter_target("q", own, RULES) == target


def test_dead_letters_end_somewhere():
    targets = {"a": "b", "b": "c", "c": "", "x": "y", "y": "x", "to x": "x"}
    for queue in "abc":
        rules.check_dead_letters_end(queue, "before", targets.__getitem__)
    for queue in ("x", "y", "to x"):
        with pytest.raises(InvalidSetting, match="dead_letter_queue"):
            rules.check_dead_letters_end(queue, "before", targets.__getitem__)


def test_dead_letters_end_soon():
    most = limits.DEAD_LETTER_STEPS_MAX
    targets = {str(number): str(number + 1) for number in range(100_000)} | {str(most): ""}
    rules.check_dead_letters_end("1", "before", targets.__getitem__)
    with pytest.raises(InvalidSetting, match="through over 16 queues"):
        rules.check_dead_letters_end("0", "before", targets.__getitem__)


def test_a_dead_letter_queue_that_stays_is_not_followed():
    asked = []

    def target_of(queue):
        asked.append(queue)
        return "same"

    rules.check_dead_letters_end("q", "same", target_of)
    assert asked == ["q"]


@pytest.mark.parametrize(
    ("position", "order", "place"),
    [
        (5, Order.FIFO, 5),
        (-9, Order.FIFO, 9),
        (1_000, Order.FIFO, 9),
        (5, Order.LIFO, -9),
        (-9, Order.LIFO, -9),
        (1_000, Order.LIFO, -9),
        (5, Order.DUE, 2_000),
        (1_000, Order.DUE, 2_000),
    ],
)
def test_the_place_of_a_message_that_is_moved(position, order, place):
    assert rules.moved_position(9, position, order, 2_000) == place


@pytest.mark.parametrize(
    ("message", "due_ms"),
    [
        (NewMessage("x"), NOW + 30),
        (NewMessage("x", delay_ms=0), NOW),
        (NewMessage("x", delay_ms=7), NOW + 7),
        (NewMessage("x", process_after=NOW - 5), NOW - 5),
    ],
)
def test_when_a_message_falls_due(message, due_ms):
    assert rules.due_time(message, NOW, with_settings(delay_ms=30)) == due_ms


@pytest.mark.parametrize(
    ("next_round", "last_of_group", "position"),
    [
        (None, None, 100),  # nobody is there
        (40, None, 40),  # a new group gets its turn in the round that comes next
        (40, 30, 40),  # so does one whose last message was served before
        (40, 60, 61),  # behind the last of one's own group
        (40, 100, 100),  # but never behind the place by arrival
        (300, None, 100),  # not even when a later round comes next
    ],
)
def test_the_round_of_a_group(next_round, last_of_group, position):
    assert rules.group_position(100, next_round, last_of_group) == position


def test_bytes_are_those_of_content_attribute_keys_and_values():
    assert rules.message_bytes("abc", None) == 3
    assert rules.message_bytes("größe", {}) == 7
    assert rules.message_bytes("", {"k": "ü", "key": ""}) == 6


def test_the_latest_failures_are_kept():
    failures = ()
    for attempt in range(1, limits.FAILURES_PER_MESSAGE_MAX + 3):
        failures = rules.failed_again(failures, Failure(attempt, NOW, None))
    assert [failure.attempt for failure in failures] == list(range(3, limits.FAILURES_PER_MESSAGE_MAX + 3))


def test_waiting_starts_when_a_message_could_be_had():
    assert rules.waited_ms(NOW - 10, NOW - 30, NOW) == 10
    assert rules.waited_ms(NOW - 30, NOW - 10, NOW) == 10
    assert rules.waited_ms(NOW + 5, NOW, NOW) == 0


@pytest.mark.parametrize(
    ("attempts", "delay_ms"), [(0, 10), (1, 10), (2, 30), (3, 90), (4, 200), (5, 200), (100_000, 200)]
)
def test_a_back_off_by_formula_grows_to_its_bound(attempts, delay_ms):
    formula = ExponentialBackOff(initial_ms=10, factor=3, max_ms=200)
    assert backoff_ms(attempts, formula, 1) == delay_ms


@pytest.mark.parametrize(
    ("attempts", "delay_ms"),
    [
        (101, 131_501),
        (102, 138_076),
        (168, 3_456_312),
        (169, 3_600_000),
        (1_000, 3_600_000),
        (2**40, 3_600_000),
    ],
)
def test_a_back_off_that_grows_slowly_reaches_its_bound_too(attempts, delay_ms):
    assert backoff_ms(attempts, ExponentialBackOff(1_000, 1.05), 1) == delay_ms


@pytest.mark.parametrize("attempts", [2, 3, 500, 2**40])
def test_a_back_off_whose_powers_no_float_has(attempts):
    assert backoff_ms(attempts, ExponentialBackOff(1, 100, max_ms=100), 1) == 100
    assert backoff_ms(attempts, ExponentialBackOff(5_000, 1, max_ms=9_000), 1) == 5_000
    assert backoff_ms(attempts, ExponentialBackOff(5_000, 1, max_ms=4_000), 1) == 4_000


@given(
    st.integers(1, 10**6),
    st.fractions(1, 100, max_denominator=64),
    st.integers(1, 10**6),
    st.integers(1, 400),
)
def test_a_back_off_is_the_power_of_its_factor_and_at_most_its_bound(initial, factor, longest, attempts):
    exact = min(initial * factor ** (attempts - 1), Fraction(longest))
    delay_ms = backoff_ms(attempts, ExponentialBackOff(initial, float(factor), longest), 1)
    assert abs(delay_ms - exact) <= Fraction(1, 2) + exact / 10**9


@given(st.integers(1, 2**40), st.integers(1, 1_000), st.floats(0, 1))
def test_the_random_share_of_a_back_off_is_bounded_and_the_same_for_the_same_message(seq, attempts, jitter):
    formula = ExponentialBackOff(initial_ms=1_000, factor=1, max_ms=1_000, jitter=jitter)
    delay_ms = backoff_ms(attempts, formula, seq)
    assert round(1_000 * (1 - jitter)) <= delay_ms <= 1_000
    assert backoff_ms(attempts, formula, seq) == delay_ms


def test_the_random_shares_are_spread():
    formula = ExponentialBackOff(initial_ms=1_000, factor=1, max_ms=1_000, jitter=1)
    delays = [backoff_ms(attempts, formula, seq) for seq in range(1, 101) for attempts in (1, 2, 3)]
    in_tenths = Counter(delay // 100 for delay in delays)
    assert all(in_tenths[tenth] >= 10 for tenth in range(10))


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
