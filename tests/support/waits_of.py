"""Batches of n commands of every kind, and with every setting that changes how they work: their waits are counted.

A case is a function of a `World` and of n. It prepares what the batch needs, and returns its commands; what the batch
needs besides (receivers, the time) it notes in the world. The cases are in `waits_of_messages` and `waits_of_work`.
"""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from forq_trio.model.commands import (
    Claim,
    Command,
    Configure,
    LeaseMessages,
    OfferMany,
    OpenConsumer,
    Produce,
)
from forq_trio.model.keys.types import Offering
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import Delivery, Produced
from forq_trio.model.queues.settings import SettingsChange
from forq_trio.storage.engine import Batch, BatchResult, Receiver
from support.actors import T0
from support.batches import run_to_the_end

LEASE_MS = 3_600_000


class World:
    """An engine, and the time. receivers, is_due: of the batch that is counted; is_due: it moves what is staged."""

    def __init__(self, engine: Any) -> None:
        self.engine = engine
        self.now_ms = T0
        self.receivers: dict[str, tuple[Receiver, ...]] = {}
        self.is_due = False

    def run(self, *commands: Command[Any], is_due: bool = False) -> BatchResult:
        """Run a batch, and what it leaves to the next one."""
        results: list[BatchResult] = []

        def run(some: Sequence[Command[Any]]) -> Sequence[Any]:
            results.append(self._run(some, is_due=is_due))
            return results[-1].outcomes

        outcomes = run_to_the_end(commands, run)
        return replace(results[0], outcomes=outcomes)

    def _run(self, commands: "Commands", *, is_due: bool) -> BatchResult:
        result = self.engine.execute_batch(Batch(commands, self.now_ms, self.receivers, moves_staged=is_due))
        self.engine.commit()
        return result

    def run_counted(self, commands: "Commands") -> BatchResult:
        """Run the batch of a case."""
        return self._run(commands, is_due=self.is_due)

    def configure(self, queues: Sequence[str], **changes: Any) -> None:
        """Change settings, and run what follows: all held messages of the queues become ready, in parts."""
        self.run(*[Configure(queue, SettingsChange(**changes)) for queue in queues])
        while self.engine.tx.grouped.queues_unholding():
            self.run()

    def send(self, queues: Sequence[str], count: int = 1, **members: Any) -> list[Produced]:
        """Send so many messages to each queue, one after the other."""
        sends = [
            Produce(queue, NewMessage(f"x{number}", **members)) for queue in queues for number in range(count)
        ]
        return self.run(*sends).outcomes

    def claim(self, queues: Sequence[str], count: int = 1, lease_ms: int = LEASE_MS) -> list[Delivery]:
        outcomes = self.run(*[Claim(queue, count, lease_ms) for queue in queues]).outcomes
        return [delivery for deliveries in outcomes for delivery in deliveries]

    def leased(self, count: int, queues: Sequence[str] = ("q",), **members: Any) -> list[Delivery]:
        """Messages in process: so many of each queue."""
        self.send(queues, count, **members)
        return self.claim(queues, count)


Commands = Sequence[Command[Any]]
Case = Callable[[World, int], Commands]
CASES: dict[str, tuple[type[Command[Any]] | None, Case]] = {}
"""By name, with the kind of the commands; None for batches without commands."""


def case(kind: type[Command[Any]] | None) -> Callable[[Case], Case]:
    def note(prepare: Case) -> Case:
        CASES[prepare.__name__] = kind, prepare
        return prepare

    return note


EVERYDAY = {
    *("acks", "acks_in_many_queues_with_groups", "extends", "last_nacks", "nacks", "releases"),
    *("claims", "claims_of_many_queues", "claims_of_what_is_sent_at_once", "claims_under_a_limit_of_groups"),
    *("delays_that_end", "leases_that_end", "messages_that_expire", "receivers_that_wait"),
    *("leases_messages", "acknowledges_leases", "offers", "relays", "runs_that_are_due", "redrives"),
    *("sends", "sends_across", "sends_to_many_queues", "sends_with_deduplication"),
    *("sends_with_groups_to_many_queues", "many_with_deduplication", "many_with_groups", "uses_of_tokens"),
}
"""What messages pass. Batches of what administrators do, and of rare settings, are left to tier 2."""


def cases() -> list[Any]:
    """Every case by its name, each with its tier."""
    assert CASES.keys() >= EVERYDAY
    return [pytest.param(name, marks=() if name in EVERYDAY else pytest.mark.tier2) for name in CASES]


def names(n: int, name: str = "q") -> list[str]:
    return [f"{name}{number}" for number in range(n)]


def offering(key: str, **members: Any) -> Offering:
    return Offering(key=key, content="x", **members)


def offered(world: World, n: int, **members: Any) -> list[Any]:
    """n pending keys."""
    return list(
        world.run(OfferMany("q", tuple(offering(name, **members) for name in names(n, "k")))).outcomes[0]
    )


def moved_pages(world: World, n: int) -> list[Produced]:
    """A leased message in a page of a consumer, of each of n queues."""
    sent = world.send(names(n))
    world.run(*[OpenConsumer(queue, "k") for queue in names(n)])
    leases = [LeaseMessages(queue, "k", 1, 1, 1, 10_000) for queue in names(n)]
    for lease in leases:
        world.run(lease)
    return sent
