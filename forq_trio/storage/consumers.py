"""The decisions about consumers and their leases, for all engines: plain functions over values.

Rules
- Leases are numbered one by one. The next one can be made once the open one is settled, or made ahead once the open
  one is complete. So a consumer has at most two unsettled leases, and settles them in order.
- A lease grows page by page until it is complete; after that it never changes. A read needs only the lease's pages,
  so it returns the same messages each time. A lease is complete when it is full, or when no more messages are ready.
  A lease made ahead is complete only when it is full, so a later call can still add messages.
- The number of a lease and the time when it was made identify it, even on a server that was restored from a backup,
  or on another server. The time is that of its last page: a backup may contain an incomplete lease, which then gets
  different messages on each server. A caller who gives both is refused if they belong to different leases. Each lease
  also stores the time of the one before it, so the check still works for a lease whose pages are dropped, for as
  long as a later one can be read.
- A message belongs to a lease while it has the receipt of the lease's page. Settling it in another way (by id, by a
  purge) takes it out of the lease, which then leaves that message alone.
- A step makes or settles as many pages as its allowance permits. A settlement stays in the mode in which it started,
  even when another caller continues it after the process was killed.
- The pages of acknowledged leases (the newest CONSUMER_LEASES_KEPT_MAX, within CONSUMER_KEPT_BYTES_MAX) stay until
  the consumer is idle. When the pages of all consumers, or of those that one key made, reach their bound in bytes,
  pages of acknowledged leases are evicted, beginning with the consumer that has been idle for longest. All other
  pages are dropped, a few in each step.
- No generation of a name is used twice: a new consumer begins above all generations of forgotten consumers. No lease
  number is used twice either: a new consumer begins above the last number of its name, and the leases that were not
  acknowledged under that name count as given back. The numbers of CONSUMER_NUMBERS_MAX names are stored. A name whose
  numbers are not stored begins above the highest number dropped, and counts as having acknowledged nothing.
"""

from collections.abc import Callable, Iterable, Mapping
from secrets import randbits
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from forq_trio.model import limits
from forq_trio.model.commands import ForgetConsumer, LeaseMessages, OpenConsumer, SettleLease
from forq_trio.model.consumers.types import (
    ConsumerTotals,
    NumberedLease,
    PipelineConsumer,
    Settling,
    consumer_key,
)
from forq_trio.model.errors import (
    ConsumerFenced,
    ConsumerNotFound,
    LeaseGone,
    LeaseOutOfOrder,
    TooManyConsumers,
)
from forq_trio.model.messages.types import RECEIPT_TOKEN_BITS


class PageLine(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A message as one line of a page: an ExportedMessage, with its attributes as stored."""

    id: str
    queue: str
    sequence: int
    content: str
    received_at: int
    attempts: int
    priority: int = limits.PRIORITY_DEFAULT
    group: str | None = None
    attributes: Any = None


encode_lines = msgspec.json.Encoder().encode_lines
read_line = msgspec.json.Decoder(PageLine).decode


def first_lines(body: bytes, size: int) -> bytes:
    """The first of these lines, up to and including the one that reaches this many bytes."""
    return body if len(body) <= size else body[: body.index(b"\n", max(size - 1, 0)) + 1]


def line_bytes(line: PageLine) -> int:
    """How many bytes a step is charged for a message: those of its line. JSON may make it six times as long."""
    return len(encode_lines([line]))


def page_token() -> int:
    """A new random token for the receipts of one page."""
    return randbits(RECEIPT_TOKEN_BITS)


class ForgottenNumbers(NamedTuple):
    """The lease numbers that a forgotten consumer had reached."""

    leased: int  # the highest one
    acknowledged: int  # the highest one that was acknowledged


def opened(
    known: Mapping[str, PipelineConsumer],
    totals: ConsumerTotals,
    command: OpenConsumer,
    now_ms: int,
    numbers_of: Callable[[str], ForgottenNumbers | None],
) -> PipelineConsumer:
    """The consumer once it is opened, under a new generation. Raises TooManyConsumers.

    numbers_of: the numbers of a forgotten consumer by its `consumer_key`; None if they are not stored.
    """
    key = consumer_key(command.queue, command.name)
    found = known.get(key)
    if found is None:
        leased, acknowledged = numbers_of(key) or ForgottenNumbers(totals.forgotten_number, 0)
        if len(known) >= limits.CONSUMERS_MAX:
            raise TooManyConsumers
        if sum([each.made_by == command.key.name for each in known.values()]) >= limits.CONSUMERS_A_KEY_MAX:
            raise TooManyConsumers(
                f"this key has made {limits.CONSUMERS_A_KEY_MAX} consumers, as many as one may; delete some first"
            )
        found = PipelineConsumer(
            queue=command.queue,
            name=command.name,
            generation=totals.forgotten_generation,
            leased=leased,
            acknowledged=acknowledged,
            released_before=leased + 1 if acknowledged < leased else 0,
            opened_at=now_ms,
            used_at=now_ms,
            made_by=command.key.name,
            created_at=now_ms,
        )
    idle_ms = found.idle_ms if command.idle_ms is None else command.idle_ms
    return replace(found, generation=found.generation + 1, idle_ms=idle_ms, opened_at=now_ms, used_at=now_ms)


def consumer_of(
    known: Mapping[str, PipelineConsumer], queue: str, name: str, generation: int | None
) -> PipelineConsumer:
    """The consumer, provided it is in this generation (None: in any). Raises ConsumerNotFound or ConsumerFenced."""
    found = known.get(consumer_key(queue, name))
    if found is None:
        raise ConsumerNotFound
    if generation is not None and generation != found.generation:
        raise ConsumerFenced(f"the consumer is open in generation {found.generation}, not {generation}")
    return found


def lease_to_fill(
    known: Mapping[str, PipelineConsumer], command: LeaseMessages, now_ms: int
) -> NumberedLease | None:
    """The lease that gets the next page; None if it is complete. Raises the errors of LeaseMessages."""
    consumer = consumer_of(known, command.queue, command.name, command.generation)
    number, lease = command.number, consumer.open
    readable = consumer.readable(number)
    if readable is not None:
        return readable if filling(consumer, number) else None
    if number <= consumer.leased:
        raise LeaseGone
    may_follow = lease is None or (
        command.ahead and consumer.complete and consumer.ahead is None and consumer.settling is None
    )
    if not may_follow or number != consumer.leased + 1:
        next_number = consumer.leased + 1 if lease is None else lease.number
        raise LeaseOutOfOrder(f"the turn is lease {next_number}'s, not {number}'s")
    return NumberedLease(number, made_at=now_ms, follows=consumer.leased_at)


def with_forgotten(totals: ConsumerTotals, consumer: PipelineConsumer) -> ConsumerTotals:
    """The totals after this consumer is forgotten."""
    return replace(totals, forgotten_generation=max(totals.forgotten_generation, consumer.generation))


def without_numbers(totals: ConsumerTotals, dropped: Iterable[int]) -> ConsumerTotals:
    """The totals after these lease numbers of forgotten consumers are deleted."""
    return replace(totals, forgotten_number=max(totals.forgotten_number, *dropped, 0))


def filling(consumer: PipelineConsumer, number: int) -> bool:
    """True if this unsettled lease is not complete yet."""
    if consumer.ahead is not None and consumer.ahead.number == number:
        return not consumer.ahead_complete
    return (
        consumer.open is not None
        and consumer.open.number == number
        and not consumer.complete
        and consumer.settling is None
    )


def sharing_full_bound(
    known: Mapping[str, PipelineConsumer], totals: ConsumerTotals, made_by: str
) -> list[PipelineConsumer]:
    """The consumers that together have reached a bound on the bytes of pages; none if the key's consumers have space.

    That is all consumers for the common bound, else those that this key made.
    """
    if totals.pages_bytes >= limits.CONSUMER_PAGES_BYTES_MAX:
        return list(known.values())
    if totals.pages_bytes < limits.CONSUMER_PAGES_BYTES_A_KEY_MAX:
        return []
    own = [each for each in known.values() if each.made_by == made_by]
    size = sum([each.stored_bytes for each in own])
    return own if size >= limits.CONSUMER_PAGES_BYTES_A_KEY_MAX else []


def evicting(sharing: Iterable[PipelineConsumer]) -> PipelineConsumer | None:
    """The consumer that has to drop pages to make space, with the lease to drop; None if no page can be dropped."""
    with_pages = [each for each in sharing if each.kept or each.dropping]
    if not with_pages:
        return None
    consumer = min(with_pages, key=lambda each: (not each.dropping, each.used_at, each.key))
    if consumer.dropping:
        return consumer
    return replace(consumer, kept=consumer.kept[1:], dropping=consumer.kept[:1])


def with_page(
    known: Mapping[str, PipelineConsumer],
    command: LeaseMessages,
    lease: NumberedLease,
    messages: int,
    size: int,
    now_ms: int,
) -> PipelineConsumer:
    """The consumer after a step that added a page of so many messages to this lease.

    messages: 0 if no more were ready, which completes the lease unless it is made ahead. If there is no lease to store,
    the time of use is stored only every CONSUMER_USE_SAVE_MS, so that a waiting consumer writes little.
    """
    consumer = known[consumer_key(command.queue, command.name)]
    if messages:
        lease = replace(
            lease,
            messages=lease.messages + messages,
            bytes=lease.bytes + size,
            pages=lease.pages + 1,
            made_at=now_ms,
        )
    elif not lease.pages:
        is_stored = now_ms - consumer.used_at < limits.CONSUMER_USE_SAVE_MS
        return consumer if is_stored else replace(consumer, used_at=now_ms)
    is_full = lease.messages >= command.max_messages or lease.bytes >= command.max_bytes
    complete = is_full or not (messages or command.ahead)
    consumer = replace(consumer, leased=lease.number, leased_at=lease.made_at, used_at=now_ms)
    if consumer.open is None or consumer.open.number == lease.number:
        return replace(consumer, open=lease, complete=complete)
    return replace(consumer, ahead=lease, ahead_complete=complete)


def lease_to_settle(
    known: Mapping[str, PipelineConsumer], command: SettleLease, now_ms: int
) -> PipelineConsumer | None:
    """The consumer with the mode in which its open lease is settled; None if there is nothing to do.

    Raises the errors of SettleLease.
    """
    consumer = consumer_of(known, command.queue, command.name, command.generation)
    lease = consumer.open
    if command.how is Settling.ACKNOWLEDGE:
        consumer.check_lease(command.number, command.made_at)
        if command.number <= consumer.acknowledged:
            return None
        if command.number > consumer.leased:
            raise LeaseOutOfOrder(f"the newest lease is {consumer.leased}, not {command.number}")
        if lease is None or command.number < lease.number or consumer.being_given_back:
            raise LeaseGone(f"lease {command.number} was given back")
        if filling(consumer, command.number):
            raise LeaseOutOfOrder(f"lease {command.number} is not complete")
        consumer = replace(consumer, used_at=now_ms)
    elif not _may_release(consumer, command, now_ms):
        return None
    elif command.how is Settling.RELEASE and consumer.settling is None and command.generation is None:
        consumer = replace(consumer, generation=consumer.generation + 1)
    return replace(consumer, settling=consumer.settling or command.how)


def _may_release(consumer: PipelineConsumer, command: SettleLease, now_ms: int) -> bool:
    """Whether the lease is open. To EXPIRE it, a settlement must have begun, or its consumer be idle for too long."""
    if consumer.open is None or consumer.open.number != command.number:
        return False
    return (
        command.how is Settling.RELEASE
        or consumer.settling is not None
        or consumer.open_lease_expired(now_ms)
    )


def after_settled_page(consumer: PipelineConsumer) -> PipelineConsumer:
    """The consumer after one more page of its open lease is settled."""
    lease = consumer.open
    assert lease is not None
    settled = consumer.settled_pages + 1
    if settled < lease.pages:
        return replace(consumer, settled_pages=settled)
    ended = replace(
        consumer,
        open=consumer.ahead,
        complete=consumer.ahead_complete,
        ahead=None,
        ahead_complete=False,
        settling=None,
        settled_pages=0,
    )
    if consumer.being_given_back:
        both = consumer.settling if consumer.ahead is not None else None
        return replace(ended, released_before=lease.number + 1, settling=both)
    return _trimmed(replace(ended, acknowledged=lease.number, kept=(*consumer.kept, lease)))


def _trimmed(consumer: PipelineConsumer) -> PipelineConsumer:
    """The consumer with only as many acknowledged leases as may stay; the older ones are to be dropped."""
    kept: list[NumberedLease] = []
    size = 0
    for lease in reversed(consumer.kept):
        size += lease.bytes
        if len(kept) == limits.CONSUMER_LEASES_KEPT_MAX or size > limits.CONSUMER_KEPT_BYTES_MAX:
            break
        kept.insert(0, lease)
    others = consumer.kept[: len(consumer.kept) - len(kept)]
    return replace(consumer, kept=tuple(kept), dropping=consumer.dropping + others)


def without_kept(consumer: PipelineConsumer) -> PipelineConsumer:
    """The consumer with all its acknowledged leases to be dropped."""
    return replace(consumer, kept=(), dropping=consumer.dropping + consumer.kept)


def to_forget(known: Mapping[str, PipelineConsumer], command: ForgetConsumer) -> PipelineConsumer | None:
    """The consumer to forget, with its leases to be dropped; None if there is none. Raises ConsumerFenced."""
    found = known.get(consumer_key(command.queue, command.name))
    if found is None:
        return None
    if command.generation is None:
        return without_kept(replace(found, generation=found.generation + 1))
    return without_kept(consumer_of(known, command.queue, command.name, command.generation))


def dropped(consumer: PipelineConsumer, pages_max: int) -> tuple[PipelineConsumer, list[tuple[int, int]]]:
    """The consumer after dropping up to `pages_max` pages, and the dropped pages as (lease number, page)."""
    pages: list[tuple[int, int]] = []
    left = list(consumer.dropping)
    while left and len(pages) < pages_max:
        lease = left[0]
        pages.append((lease.number, lease.pages - 1))
        if lease.pages > 1:
            left[0] = replace(lease, pages=lease.pages - 1, bytes=lease.bytes - lease.bytes // lease.pages)
        else:
            del left[0]
    return replace(consumer, dropping=tuple(left)), pages


def pages_within(first: int, rows: Iterable[tuple[int, bytes]]) -> list[bytes]:
    """The lines of page `first` and of the pages that follow it without a gap, as many as one read returns.

    rows: (page, lines), in order of pages. A gap is a page that was dropped in the meantime.
    """
    pages: list[bytes] = []
    size = 0
    for page, body in rows:
        size += len(body)
        if page != first + len(pages) or (pages and size > limits.CONSUMER_READ_BYTES_MAX):
            break
        pages.append(body)
    return pages
