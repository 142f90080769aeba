"""Tells which messages the limits of a queue hold back: by which limit, how many, and until when."""

from msgspec import Struct

from forq_trio.drawing import format
from forq_trio.model.messages.types import QueueCounts
from forq_trio.model.queues.settings import QueueRules
from forq_trio.ui.settings_form import rate_words
from forq_trio.ui.site import Site


class HoldUp(Struct, frozen=True):
    """Why a message is not delivered, and when it will be, as far as that is known."""

    by: str
    turn: str


class Limits(Struct, frozen=True):
    """The limits of a queue at one moment. full_at_ms: when the bucket of its own rate is full (epoch ms)."""

    rules: QueueRules
    counts: QueueCounts
    full_at_ms: int
    now_ms: int

    @property
    def are_set(self) -> bool:
        rules = self.rules
        return not (rules.rate is None and rules.in_flight_max is None and rules.group_in_flight_max is None)

    @property
    def is_full(self) -> bool:
        """Whether as many messages are in flight as the limit allows."""
        most = self.rules.in_flight_max
        return most is not None and self.counts.processing >= most

    @property
    def held_by_rate(self) -> int:
        """How many messages wait for the rate, of the queue or of their groups."""
        rate = self.rules.rate
        if rate is None:
            return 0
        return rate.holds(self.counts.ready, self.counts.held, self.full_at_ms, self.now_ms)

    def facts(self) -> list[tuple[str, str]]:
        """Rows for the side of the queue's page: a label, and words."""
        found: list[tuple[str, str]] = []
        rules, rate = self.rules, self.rules.queue_rate
        if rules.rate is not None:
            found.append(("Rate", rate_words(rules.rate)))
        if rate is not None:
            wait_ms = rate.turn_ms(1, self.full_at_ms, self.now_ms)
            found.append(("Held by it", format.whole(self.held_by_rate)))
            found.append(("Next token", f"in {format.duration(wait_ms)}" if wait_ms else "now"))
            if self.held_by_rate:
                last_ms = rate.turn_ms(self.counts.ready, self.full_at_ms, self.now_ms)
                found.append(("Turn of the last", f"in {format.duration(last_ms)}"))
        if rules.group_rate is not None or rules.group_in_flight_max is not None:
            found.append(("Held by groups", format.whole(self.counts.held)))
        if rules.in_flight_max is not None:
            in_flight = f"{format.whole(self.counts.processing)} of {format.whole(rules.in_flight_max)}"
            found.append(("In flight", in_flight))
        return found

    def held(self, status: str, place: int) -> HoldUp:
        """What holds a message back. place: its place in the order of delivery among those that are ready, from 1."""
        if status == "held":
            limits = (self.rules.group_in_flight_max, "group"), (self.rules.group_rate, "rate")
            return HoldUp(
                " or ".join(word for limit, word in limits if limit is not None) or "group", format.NOTHING
            )
        if self.is_full:
            return HoldUp("queue", format.NOTHING)
        rate = self.rules.queue_rate
        wait_ms = 0 if rate is None else rate.turn_ms(place, self.full_at_ms, self.now_ms)
        if not wait_ms:
            return HoldUp("", "now")
        return HoldUp("rate", "next" if place == 1 else format.duration(wait_ms))


def limits_of(site: Site, queue: str) -> Limits:
    """The limits of a queue now."""
    broker = site.broker
    now_ms = site.clock.now_ms()
    return Limits(
        broker.known.rules(queue), broker.known.counts_of(queue), broker.known.rate_full_at(queue), now_ms
    )
