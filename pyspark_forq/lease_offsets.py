"""Offsets of a drain, and the check that the offset of a checkpoint belongs to this query's consumer on this server.

An offset names a lease: `{"seq": 8, "madeAt": 1767225600000, "queue": "orders", "consumer": "lake", "since": …}`. The
number alone would also fit other leases: of another queue or consumer, of another server, or of a server that was
restored from a backup and has reached the number again. A checkpoint with another lease is refused before any request
changes the consumer, so that a running query with this consumer goes on.

- madeAt is when the lease was made; null if a query begins behind a lease whose time is no longer known.
- since is when the consumer was created. It is only used to explain why a checkpoint does not fit: a server that was
  restored from a backup has the same consumer, another server does not.
- An offset of an earlier version has only the number. If the server has acknowledged that lease, the offset is proven,
  and the query goes on behind it. Such an offset does not acknowledge a lease that is still open, and does not repeat a
  batch that was not committed: a sink that has written that batch would skip it, whatever messages the lease has now.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple, TypeAlias

from forq_trio.model.consumers.bodies import ConsumerInfo
from pyspark_forq.errors import ForqDataSourceError

Offset: TypeAlias = dict[str, int | str | None]
"""As Spark stores it, in JSON."""

ADVICE = "Start with a new checkpoint: what write_once wrote stays as it is"


class Lease(NamedTuple):
    """The lease that an offset names. made_at, since: None if the offset does not have them."""

    number: int
    made_at: int | None
    queue: str | None
    consumer: str | None
    since: int | None


def offset_of(number: int, made_at: int | None, info: ConsumerInfo) -> Offset:
    """The offset of a lease of this consumer."""
    return {
        "seq": number,
        "madeAt": made_at,
        "queue": info.queue,
        "consumer": info.name,
        "since": info.created_at,
    }


def read_offset(offset: Mapping[str, int | str | None]) -> Lease:
    """Read an offset, also one of an earlier version. Raises ForqDataSourceError for that of another source."""
    number, made_at, since = (offset.get(name) for name in ("seq", "madeAt", "since"))
    queue, consumer = offset.get("queue"), offset.get("consumer")
    if not isinstance(number, int) or isinstance(made_at, str) or isinstance(since, str):
        raise ForqDataSourceError(
            f"the checkpoint is not one of mode 'consume': its offset is {dict(offset)}"
        )
    return Lease(
        number,
        made_at,
        None if queue is None else str(queue),
        None if consumer is None else str(consumer),
        since,
    )


def made_at_of(info: ConsumerInfo, number: int) -> int | None:
    """When the lease with this number was made; None if the server does not know."""
    return next((lease.made_at for lease in info.leases if lease.number == number), None)


def check_names(lease: Lease, queue: str, consumer: str) -> None:
    """Raise ForqDataSourceError if an offset belongs to another queue or consumer."""
    for what, said, wanted in (("queue", lease.queue, queue), ("consumer", lease.consumer, consumer)):
        if said is not None and said != wanted:
            raise ForqDataSourceError(
                f"the checkpoint is of {what} {said!r}, and this query reads {what} {wanted!r}: a checkpoint belongs"
                " to one queue and one consumer, so use another one"
            )


def check_lease(lease: Lease, info: ConsumerInfo) -> None:
    """Raise ForqDataSourceError if the server has not reached the lease, or has another one with that number."""
    named = f"lease {lease.number} of consumer {info.name!r}"
    if lease.number > info.leased:
        raise ForqDataSourceError(
            f"the checkpoint is at {named}, and the server's newest is {info.leased}: {_cause(lease, info)}. {ADVICE}"
        )
    made_at = made_at_of(info, lease.number)
    if None not in (made_at, lease.made_at) and made_at != lease.made_at:
        raise ForqDataSourceError(
            f"the checkpoint is at {named} of {_at(lease.made_at)}, and the server's was made at {_at(made_at)}:"
            f" {_cause(lease, info)}. {ADVICE}"
        )


def unproven(lease: Lease, info: ConsumerInfo) -> ForqDataSourceError:
    """The error for an offset that may name another lease than the open one, which it would acknowledge."""
    return ForqDataSourceError(
        f"the checkpoint does not say which lease {lease.number} of consumer {info.name!r} it has written, and the"
        f" server's still has {info.open_messages} messages, which nobody may have read: an earlier version wrote the"
        " checkpoint, and was killed before it acknowledged the lease, or the server is another one. Let that version"
        " run once more; or start with a new checkpoint, which begins with this lease"
    )


def unproven_batch(lease: Lease, consumer: str) -> ForqDataSourceError:
    """The error for a batch to repeat whose offset may name another lease than the server's with that number."""
    return ForqDataSourceError(
        f"the checkpoint has a batch that was not committed, and does not say when its lease {lease.number} of consumer"
        f" {consumer!r} was made: an earlier version wrote it, and the server's lease of that number may be another"
        " one. Let that version run once more, which commits the batch, or start with a new checkpoint"
    )


def _cause(lease: Lease, info: ConsumerInfo) -> str:
    if lease.since is None or info.created_at is None:
        return "the server is another one, or was restored from a backup"
    if lease.since == info.created_at:
        return "the server was restored from a backup"
    return "the server is another one, or the consumer was deleted since"


def _at(made_at: int | None) -> str:
    assert made_at is not None
    return (
        datetime.fromtimestamp(made_at / 1_000, UTC).isoformat(" ", "milliseconds").replace("+00:00", " UTC")
    )
