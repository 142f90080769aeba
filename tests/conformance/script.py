"""The few words this suite is written in. Times are milliseconds; `now` is what the batch is told."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from forq_trio.model.commands import (
    Ack,
    Claim,
    Command,
    Configure,
    Nack,
    Nacked,
    Pause,
    Produce,
    Redrive,
    Removed,
    Sweep,
    SweepKind,
)
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import (
    Delivery,
    MessageInfo,
    NewMessageWithDefaultBound,
    Produced,
    QueueCounts,
    Receipt,
)
from forq_trio.model.queues.settings import QueueSettings, SettingsChange
from forq_trio.storage.engine import BatchResult, Engine
from support import batches

T0 = 1_700_000_000_000
LEASE_MS = 300_000
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


def run(
    engine: Engine,
    *commands: Command[Any],
    now: int = T0,
    parked: Mapping[str, Sequence[Claim]] | None = None,
) -> BatchResult:
    """See `support.batches.run`."""
    return batches.run(engine, *commands, now_ms=now, parked=parked)


def do(engine: Engine, command: Command[Any], now: int = T0) -> Any:
    """The outcome of a command in a batch of its own."""
    return run(engine, command, now=now).outcomes[0]


def send(engine: Engine, content: str = "x", *, queue: str = "q", now: int = T0, **fields: Any) -> Produced:
    kind = NewMessageWithDefaultBound if "default_max_receives" in fields else NewMessage
    return do(engine, Produce(queue, kind(content, **fields)), now)


def claim(most: int = 1, *, queue: str = "q", lease_ms: int | None = LEASE_MS, **terms: Any) -> Claim:
    return Claim(queue, most, lease_ms, **terms)


def receive(
    engine: Engine, most: int = 1, *, queue: str = "q", lease_ms: int = LEASE_MS, now: int = T0
) -> tuple[Delivery, ...]:
    return do(engine, claim(most, queue=queue, lease_ms=lease_ms), now)


def receive_one(
    engine: Engine, *, queue: str = "q", lease_ms: int = LEASE_MS, now: int = T0
) -> tuple[Delivery, Receipt]:
    """The one message that is there for the taking, and its receipt."""
    (delivery,) = receive(engine, queue=queue, lease_ms=lease_ms, now=now)
    return delivery, Receipt.parse(delivery.receipt)


def receipts(deliveries: Sequence[Delivery]) -> tuple[Receipt, ...]:
    return tuple(Receipt.parse(delivery.receipt) for delivery in deliveries)


def contents(deliveries: Sequence[Delivery | MessageInfo]) -> list[str]:
    return [delivery.content for delivery in deliveries]


def ack(engine: Engine, receipt: Receipt, *, queue: str = "q", now: int = T0) -> bool:
    return do(engine, Ack(queue, (receipt,)), now)[0]


def nack(
    engine: Engine,
    receipt: Receipt,
    delay_ms: int | None = None,
    reason: str | None = None,
    *,
    queue: str = "q",
    now: int = T0,
) -> Nacked:
    return do(engine, Nack(queue, (receipt,), delay_ms, reason), now)[0]


def configure(engine: Engine, queue: str = "q", *, now: int = T0, **changes: Any) -> QueueSettings:
    """Change settings; what is set then."""
    return do(engine, Configure(queue, SettingsChange(**changes)), now)


def pause(engine: Engine, queue: str = "q", *, paused: bool = True) -> None:
    do(engine, Pause(queue, paused))


def redrive(
    engine: Engine, *message_ids: str, queue: str = "q-dlq", target: str | None = None, now: int = T0
) -> tuple[bool, ...]:
    return do(engine, Redrive(queue, message_ids, target), now)


def woken_by(engine: Engine, *commands: Command[Any], queue: str = "q", now: int = T0) -> list[str]:
    """What a receiver that waits on `queue` for up to 10 messages gets in the very batch of these commands."""
    result = run(engine, *commands, now=now, parked={queue: [claim(10, queue=queue)]})
    ((place, deliveries),) = result.served.get(queue, [(0, ())])
    assert place == 0
    return contents(deliveries)


def drain(engine: Engine, *, queue: str = "q", now: int = T0) -> list[str]:
    """Everything that can be had, each received alone and acknowledged; contents in order."""
    drained = []
    while deliveries := receive(engine, queue=queue, now=now):
        assert ack(engine, *receipts(deliveries), queue=queue, now=now)
        drained += contents(deliveries)
    return drained


def sweep(engine: Engine, kind: SweepKind, now: int = T0) -> Removed:
    return do(engine, Sweep(kind), now)


def look(engine: Engine, message_id: str, queue: str = "q") -> MessageInfo | None:
    """The message as a reader sees it."""
    return batches.looking(engine, lambda reader: reader.message(queue, message_id))


def fail(engine: Engine, *, queue: str = "q", now: int = T0, attempts: int = 5) -> None:
    """Use up all attempts of the one message of `queue`, at one moment."""
    for _ in range(attempts):
        _, receipt = receive_one(engine, queue=queue, now=now)
        assert nack(engine, receipt, 0, queue=queue, now=now)


def counted(engine: Engine) -> dict[str, QueueCounts]:
    """Messages by status of every known queue, their bytes aside."""
    return {queue: replace(counts, bytes=0) for queue, counts in engine.snapshot().counts.items()}


def send_dead_letter(engine: Engine, content: str = "x", *, now: int = T0, **fields: Any) -> Produced:
    """Send a message to the empty queue `q` and have it fail into `q-dlq`."""
    produced = send(engine, content, now=now, **fields)
    fail(engine, now=now, attempts=fields.get("max_attempts", 5))
    sweep(engine, SweepKind.FAILED, now=now)
    return produced


def has_no_message(engine: Engine, queue: str = "q", now: int = T0) -> bool:
    return receive(engine, queue=queue, lease_ms=0, now=now) == ()
