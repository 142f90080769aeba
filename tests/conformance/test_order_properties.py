"""What holds of order and deduplication in every history, against rules so short that one can see they are right.

Each history has a queue of its own, so one engine serves all of them. They are drawn from the seed that the run shows.
"""

from collections import Counter
from itertools import count

import pytest

from support import effort

from .script import T0, ack, nack, receipts, receive, send

_numbers = count()
HISTORIES = effort.count("order_histories")

pytestmark = effort.many_trials
STEPS = 60
SEND, CLAIM, SETTLE = "send", "claim", "settle"


def steps(rng, draw):
    """Sends of what `draw` returns, claims of up to 3 messages, and settlements of one that is held."""
    for _ in range(STEPS):
        kind = rng.choice((SEND, SEND, CLAIM, SETTLE))
        yield kind, draw() if kind == SEND else rng.randint(1, 3)


class History:
    """A queue of its own, and what its consumer holds."""

    def __init__(self, engine, suffix=""):
        self.engine = engine
        self.queue = f"q{next(_numbers)}{suffix}"
        self.held = []

    def send(self, content, **fields):
        return send(self.engine, content, queue=self.queue, **fields)

    def claim(self, most):
        deliveries = receive(self.engine, most, queue=self.queue)
        self.held += deliveries
        return deliveries

    def settle(self, which, settle=ack, *how):
        """Settle one of those that are held, and return it."""
        if not self.held:
            return None
        delivery = self.held.pop(which % len(self.held))
        assert settle(self.engine, receipts([delivery])[0], *how, queue=self.queue)
        return delivery


@pytest.mark.parametrize(("suffix", "newest_first"), [("", False), ("_lifo", True)])
def test_s6_priority_then_arrival(engine, rng, suffix, newest_first):
    """A claim gets the first of all that is ready: the highest priority, in it the oldest (or the newest), whatever was
    given back in between."""
    for _ in range(HISTORIES):
        check_order(History(engine, suffix), steps(rng, lambda: rng.randrange(4)), newest_first)


def check_order(history, steps, newest_first):
    ready = []
    for kind, value in steps:
        if kind == SEND:
            produced = history.send("x", priority=value, max_attempts=1_000)
            ready.append((-value, -produced.sequence if newest_first else produced.sequence))
        elif kind == CLAIM:
            ready.sort()
            expected, ready = ready[:value], ready[value:]
            got = [(-delivery.priority, delivery.sequence) for delivery in history.claim(value)]
            assert got == [(priority, abs(sequence)) for priority, sequence in expected]
        else:
            back = history.settle(value, nack, 0)
            if back is not None:
                ready.append((-back.priority, -back.sequence if newest_first else back.sequence))


GROUPS = (None, "a", "a", "a", "b", "c")


def test_promise_3_first_in_first_out_within_a_group_and_priority(engine, rng):
    """Messages of one group and priority are handed out in order of arrival, and those without a group are a group; and
    whatever its turn, a claim gets something of the highest priority there is."""
    for _ in range(HISTORIES):
        check_groups(History(engine), steps(rng, lambda: (rng.choice(GROUPS), rng.randrange(2))))


def check_groups(history, steps):
    waiting = {}
    for kind, value in steps:
        if kind == SEND:
            group, priority = value
            produced = history.send("x", group=group, priority=priority)
            waiting.setdefault((group, priority), []).append(produced.sequence)
        elif kind == CLAIM:
            for delivery in history.claim(value):
                highest = max(priority for (_, priority), line in waiting.items() if line)
                assert delivery.priority == highest
                assert waiting[delivery.group, delivery.priority].pop(0) == delivery.sequence
        else:
            history.settle(value)
    left = history.claim(100)
    assert len(left) == sum(map(len, waiting.values()))


def test_promise_of_fairness(engine, rng):
    """While a group has a message ready, no other group gets more than two between two of its own.

    Two, not one: the last of a round and the first of the next one may be the same group's. Holds within one priority,
    without delays and messages that are given back, which keep the places they had; messages without a group are one.
    """
    for _ in range(HISTORIES):
        check_fairness(History(engine), steps(rng, lambda: rng.choice(GROUPS)))


def check_fairness(history, steps):
    ready = Counter()
    since = {}
    for kind, value in steps:
        if kind == SEND:
            history.send("x", group=value)
            if not ready[value]:
                since[value] = Counter()
            ready[value] += 1
        elif kind == CLAIM:
            for delivery in history.claim(value):
                got = delivery.group
                ready[got] -= 1
                since[got] = Counter()
                for other in since:
                    if other != got and ready[other]:
                        since[other][got] += 1
                        assert since[other][got] <= 2, f"{other} waited while {got} was served"
        else:
            history.settle(value)


def test_s7_never_two_of_an_id_within_its_window(engine, rng):
    """Of two messages with one id in one queue, the second is stored if and only if the window that began with the
    first is over; what became of the first meanwhile does not matter."""
    for _ in range(HISTORIES):
        check_ids(History(engine), rng)


def check_ids(history, rng):
    taken = {}
    now = T0
    for _ in range(20):
        key, window_ms = rng.choice("kl"), rng.choice((1, 5, 20))
        now += rng.choice((0, 0, 1, 5, 10, 30))
        produced = history.send("x", now=now, deduplication_id=key, deduplication_window_ms=window_ms)
        first, until = taken.get(key, (None, now))
        if now < until:
            assert produced.duplicate
            assert (produced.id, produced.sequence) == first
        else:
            assert not produced.duplicate
            assert (produced.id, produced.sequence) != first
            taken[key] = (produced.id, produced.sequence), now + window_ms
        if rng.random() < 0.5:
            history.claim(1)
            history.settle(0)
