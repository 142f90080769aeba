"""DelayedQueue: typed messages with a key and a time (docs/compatibility/delayed-queue.md).

A queue has a name and the kind of its payloads. In the server it is the queue `{name}.{kind}`. Consumers of a server's
queue get all its messages, so each kind needs a queue of its own, with its order, counts and dead letters. The kind has
no dot, so no two pairs of name and kind share a queue.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Generic, TypedDict, TypeVar, Unpack

import anyio

from forq_trio.delayed.cron import of_epoch_ms
from forq_trio.delayed.envelope import AckEnvelope, BatchEnvelope, DeliveryType
from forq_trio.delayed.offers import Due, OfferedMessage, Scheduled, at_once, offering, parts, refusal
from forq_trio.delayed.payloads import Serializer, UnreadablePayload, check_kind_of_queue, serializer_of
from forq_trio.delayed.retry import with_retries
from forq_trio.delayed.source import KeyedSource
from forq_trio.model import limits
from forq_trio.model.checks import check_range, storable_reason
from forq_trio.model.clock import Clock, SystemClock
from forq_trio.model.durations import Duration, ms_of
from forq_trio.model.errors import CallerError, ForqError, QueueNotFound
from forq_trio.model.keys.checks import check_phrase
from forq_trio.model.keys.types import Mode, Offered, Offering, Outcome
from forq_trio.model.messages.types import Delivery, KeyPage, check_queue_name
from forq_trio.model.queues.setting_values import Order
from forq_trio.model.queues.settings import SettingsOptions

T = TypeVar("T")
PayloadT = TypeVar("PayloadT")
R = TypeVar("R")

logger = logging.getLogger("forq_trio.delayed")

ACQUIRE_TIMEOUT = timedelta(milliseconds=limits.LEASE_MS_DEFAULT)
RETRY_SECONDS = 10.0
SET_ASIDE_DELAY_MS = 12 * limits.HOUR_MS
RELEASE_SECONDS = 2.0


@dataclass(frozen=True)
class UnreadMessage:
    """A message that a poll could not read."""

    message_id: str  # its key, or its id if it has no key
    content: str
    reason: str  # why
    source: str


class DelayedOptions(TypedDict, Generic[T], total=False):
    """The options of `DelayedQueue`, as `create` takes them."""

    kind: str | None
    serializer: Serializer[T] | None
    acquire_timeout: Duration
    deliveries_max: int | None
    retry_seconds: float
    clock: Clock | None
    on_set_aside: Callable[[UnreadMessage], None]


class DelayedQueue(Generic[T]):
    """Messages of type T, each with a key and a time, over a `Broker` or an `AsyncForqClient`.

    payload_type: T. `serializer` reads and writes it; by default text stays as it is, bytes become base64, and all else
    JSON (msgspec). kind: None for the type's name. acquire_timeout: how long a polled message is hidden from others,
    1 ms to 12 h. deliveries_max: after how many deliveries a message becomes a dead letter, 1 to 1,000,000; None for
    1,000,000. retry_seconds: how long a call is repeated after temporary errors, before it raises QueueUnavailable.
    clock: the local time; None for the machine's. on_set_aside: called for each message that could not be read.

    Every method raises QueueUnavailable, and what the source's methods raise for a wrong call. If a call that changes
    something is cancelled, the change may be made or not.
    """

    def __init__(
        self,
        source: KeyedSource,
        name: str,
        payload_type: type[T],
        *,
        kind: str | None = None,
        serializer: Serializer[T] | None = None,
        acquire_timeout: Duration = ACQUIRE_TIMEOUT,
        deliveries_max: int | None = None,
        retry_seconds: float = RETRY_SECONDS,
        clock: Clock | None = None,
        on_set_aside: Callable[[UnreadMessage], None] = lambda _: None,
    ) -> None:
        self.kind = check_kind_of_queue(getattr(payload_type, "__name__", "") if kind is None else kind)
        self.name = check_queue_name(f"{name}.{self.kind}")
        self.source = source
        self.clock: Clock = clock or SystemClock()
        self._serializer: Serializer[T] = serializer or serializer_of(payload_type)
        self._lease_ms = check_range("acquire_timeout in ms", ms_of(acquire_timeout), 1, limits.LEASE_MS_MAX)
        most = limits.MAX_ATTEMPTS_MAX
        self._deliveries_max = check_range(
            "deliveries_max", most if deliveries_max is None else deliveries_max, 1, most
        )
        self._retry_seconds = retry_seconds
        self._on_set_aside = on_set_aside

    @staticmethod
    async def create(
        source: KeyedSource,
        name: str,
        payload_type: type[PayloadT],
        **options: Unpack[DelayedOptions[PayloadT]],
    ) -> "DelayedQueue[PayloadT]":
        """Make a queue and set it up. options: those of the class."""
        queue = DelayedQueue(source, name, payload_type, **options)
        await queue.set_up()
        return queue

    async def set_up(self) -> None:
        """Give the server's queue the settings it needs: order by time, lease, deliveries, a year to live.

        A queue that has these settings is not changed. Polls also work without this call, but in the order of arrival
        and with the server's five deliveries.
        """
        wanted: SettingsOptions = {
            "order": Order.DUE,
            "lease_ms": self._lease_ms,
            "max_attempts": self._deliveries_max,
            "ttl_ms": limits.TTL_MS_MAX,
        }
        try:
            found = (await self._try(lambda: self.source.settings(self.name))).settings
        except QueueNotFound:
            found = None
        if found is None or any(getattr(found, name) != value for name, value in wanted.items()):
            await self._try(lambda: self.source.configure(self.name, **wanted))

    async def offer_or_update(self, key: str, payload: T, due: Due = None) -> Outcome:
        """Store a message, or replace payload and time of the one that the key has.

        The outcome is `ignored` if the key's message has this payload and time already, also if that time has passed.
        If the message is in process, it is delivered again, and the acknowledgement of the old delivery removes
        nothing.
        """
        return await self._offer(key, payload, due, "createOrUpdate")

    async def offer_if_not_exists(self, key: str, payload: T, due: Due = None) -> Outcome:
        """Store a message, unless the key has one, which is not changed; then the outcome is `ignored`."""
        return await self._offer(key, payload, due, "createIfAbsent")

    async def offer_batch(self, messages: Sequence[Scheduled[T]]) -> list[OfferedMessage[T]]:
        """Offer many messages in their order; one that is refused does not affect the others.

        Up to 1,000 messages and 4 MiB of JSON are one request. More messages take several requests, of which the first
        may be done when an error is raised.
        """
        now_ms = self.clock.now_ms()
        offers = [
            offering(
                each.key,
                self.kind,
                self._serializer.encode(each.payload),
                each.due,
                "createOrUpdate" if each.can_update else "createIfAbsent",
                now_ms,
            )
            for each in messages
        ]
        results = await self._offer_all(offers)
        return [
            OfferedMessage(message, result.outcome)
            if isinstance(result, Offered)
            else OfferedMessage(message, None, result)
            for message, result in zip(messages, results, strict=True)
        ]

    async def try_poll(self) -> AckEnvelope[T] | None:
        """The next message that is due, hidden from others for the acquire timeout; None if there is none."""
        found = await self._take(1, 0)
        return found[0][1] if found else None

    async def try_poll_many(self, most: int) -> BatchEnvelope[T]:
        """Up to `most` messages that are due, in the order of their times; none for 0 or less.

        Cancelled, it tries briefly to release the messages that it has.
        """
        found: list[tuple[str, AckEnvelope[T]]] = []
        receipts: list[str] = []
        async with self._released_on_error(receipts):
            while len(found) < most:
                more = await self._take(min(most - len(found), limits.RECEIVE_BATCH_MAX), 0)
                if not more:
                    break
                found += more
                receipts += [receipt for receipt, _ in more]
        return self._batch(found)

    async def poll(self) -> AckEnvelope[T]:
        """The next message, waiting for it. A waiting poll costs the server no work.

        Cancelled, it takes no message: one that was on its way is delivered to another poll.
        """
        while True:
            found = await self._take(1, limits.WAIT_MS_MAX)
            if found:
                return found[0][1]

    async def read(self, key: str) -> AckEnvelope[T] | None:
        """The message of a key, due or not, in process or not, without hiding it; None if there is none.

        Its acknowledgement removes it unless payload or time were updated since. Raises UnreadablePayload.
        """
        found = await self._try(lambda: self.source.keyed_message(self.name, key, self.kind))
        if found is None or found.message.keyed is None:
            return None
        message, revision = found.message, found.message.keyed.revision
        try:
            payload = self._serializer.decode(message.content)
        except Exception as error:
            raise UnreadablePayload(f"the message {key!r} does not fit {self.name}: {error}") from error

        async def acknowledge() -> None:
            await self._try(lambda: self.source.ack_revision(self.name, key, revision, self.kind))

        again = DeliveryType.REDELIVERY if message.attempts else DeliveryType.FIRST
        at = of_epoch_ms(self.clock.now_ms())
        return AckEnvelope(payload, key, again, at, self.name, acknowledge)

    async def contains_message(self, key: str) -> bool:
        """Whether the key has a message, in whatever state."""
        return await self._try(lambda: self.source.contains_key(self.name, key, self.kind))

    async def drop_message(self, key: str) -> bool:
        """Remove the message of a key, even if it is in process; returns whether there was one."""
        return await self._try(lambda: self.source.drop_key(self.name, key, self.kind))

    async def drop_all_messages(self, confirm: str) -> int:
        """Remove all messages of this queue; returns how many. confirm: its `name`; WrongPhrase for another."""
        check_phrase(self.name, confirm)
        try:
            return await self._try(lambda: self.source.drop_keys(self.name, self.kind, confirm=confirm))
        except QueueNotFound:
            return 0

    async def pending(self, prefix: str, after: str | None = None) -> KeyPage:
        """A page of the messages whose keys begin with `prefix`, by key. after: the `next` of the page before."""
        return await self._try(
            lambda: self.source.keyed_messages(self.name, prefix=prefix, kind=self.kind, after=after)
        )

    async def cancel(self, message_id: str) -> None:
        """Remove a message before anybody gets it. Raises MessageInFlight, MessageNotFound."""
        await self._try(lambda: self.source.cancel(self.name, message_id))

    async def _try(self, call: Callable[[], Awaitable[R]], *, repeatable: bool = True) -> R:
        return await with_retries(call, self._retry_seconds, repeatable=repeatable)

    async def _offer(self, key: str, payload: T, due: Due, mode: Mode) -> Outcome:
        content = self._serializer.encode(payload)
        offer = offering(key, self.kind, content, due, mode, self.clock.now_ms())
        (result,) = await self._offer_all([offer])
        if isinstance(result, ForqError):
            raise result
        return result.outcome

    async def _offer_all(self, offers: Sequence[Offering]) -> list[Offered | ForqError]:
        """The results of all offers. If a due time is past by the server's clock only, the message is due at once."""
        results: list[Offered | ForqError | None] = [refusal(each) for each in offers]

        async def offer(wanted: dict[int, Offering]) -> None:
            for index, result in zip(wanted, await self._offer_parts(list(wanted.values())), strict=True):
                results[index] = result

        await offer({index: each for index, each in enumerate(offers) if results[index] is None})
        late = {index: at_once(each, results[index]) for index, each in enumerate(offers)}
        await offer({index: each for index, each in late.items() if each is not None})
        return [result for result in results if result is not None]

    async def _offer_parts(self, offers: Sequence[Offering]) -> list[Offered | ForqError]:
        # Not repeatable: a second offer would be ignored after the first one, or undo a later one of somebody else.
        results: list[Offered | ForqError] = []
        for part in parts(offers):
            results += await self._try(partial(self.source.offer_many, self.name, part), repeatable=False)
        return results

    async def _take(self, most: int, wait_ms: int) -> list[tuple[str, AckEnvelope[T]]]:
        """Up to `most` messages with their receipts. Unreadable ones are set aside, and others are claimed instead."""
        while True:
            deliveries = await self._try(
                lambda: self.source.receive(
                    self.name, max_messages=most, wait_ms=wait_ms, lease_ms=self._lease_ms
                )
            )
            taken = []
            async with self._released_on_error([each.receipt for each in deliveries]):
                for each in deliveries:
                    envelope = await self._envelope(each)
                    if envelope is not None:
                        taken.append((each.receipt, envelope))
            if taken or not deliveries:
                return taken

    async def _envelope(self, delivery: Delivery) -> AckEnvelope[T] | None:
        """The message; None if it cannot be read and was set aside."""
        try:
            if delivery.key is None or delivery.kind != self.kind:
                what = "it has no key" if delivery.key is None else f"its kind is {delivery.kind!r}"
                raise UnreadablePayload(f"{what}, and the kind of {self.name} is {self.kind!r}")
            payload = self._serializer.decode(delivery.content)
        except Exception as error:
            await self._bury(delivery, f"{type(error).__name__}: {error}")
            return None
        return AckEnvelope(
            payload,
            delivery.key,
            DeliveryType.FIRST if delivery.attempts == 1 else DeliveryType.REDELIVERY,
            of_epoch_ms(delivery.lease_until - self._lease_ms),
            self.name,
            lambda: self._acknowledge([delivery.receipt]),
            partial(self._retry, delivery.receipt),
        )

    async def _bury(self, delivery: Delivery, reason: str) -> None:
        """Make a message a dead letter, with the reason; if the queue has no dead letters, delay it by 12 hours."""
        words = storable_reason(f"does not fit {self.name}: {reason}")
        lost = await self._has_no_dead_letters()
        await self._try(
            lambda: self.source.nack(
                self.name,
                [delivery.receipt],
                reason=words,
                final=not lost,
                delay_ms=SET_ASIDE_DELAY_MS if lost else None,
            )
        )
        aside = UnreadMessage(delivery.key or delivery.id, delivery.content, words, self.name)
        logger.error("a message was set aside: %s %s", aside.message_id, words)
        self._on_set_aside(aside)

    async def _has_no_dead_letters(self) -> bool:
        """Whether the queue deletes failed messages. If the key may not read the settings: False, the default."""
        try:
            found = await self._try(lambda: self.source.settings(self.name))
        except CallerError:
            return False
        return not found.effective.dead_letter_queue

    def _batch(self, found: Sequence[tuple[str, AckEnvelope[T]]]) -> BatchEnvelope[T]:
        receipts = [receipt for receipt, _ in found]
        return BatchEnvelope(
            tuple(envelope for _, envelope in found), self.name, lambda: self._acknowledge(receipts)
        )

    async def _acknowledge(self, receipts: list[str]) -> None:
        """Remove messages; receipts that are no longer current change nothing."""
        for start in range(0, len(receipts), limits.RECEIPTS_BATCH_MAX):
            part = receipts[start : start + limits.RECEIPTS_BATCH_MAX]
            await self._try(partial(self.source.ack, self.name, part))

    async def _retry(self, receipt: str, delay: Duration, reason: str | None) -> bool:
        call = partial(self.source.nack, self.name, [receipt], delay_ms=ms_of(delay), reason=reason)
        (result,) = await self._try(call)
        return result.ok

    @asynccontextmanager
    async def _released_on_error(self, receipts: list[str]) -> AsyncIterator[None]:
        """If the body fails or is cancelled, try briefly to release messages, the attempt uncounted."""
        try:
            yield
        except BaseException:
            with anyio.move_on_after(RELEASE_SECONDS, shield=True):
                for start in range(0, len(receipts), limits.RECEIPTS_BATCH_MAX):
                    part = receipts[start : start + limits.RECEIPTS_BATCH_MAX]
                    with suppress(ForqError):
                        await self.source.release(self.name, part)
            raise
