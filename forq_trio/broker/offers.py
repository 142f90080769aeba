"""Messages with a key: offers, reads, reschedules and drops them. A part of `Broker`."""

import json
from collections.abc import Callable, Sequence
from typing import Unpack

import msgspec

from forq_trio.broker.base import BrokerBase
from forq_trio.broker.parts import purge_in_steps
from forq_trio.broker.queue_names import name_queues, refused_queues
from forq_trio.model import commands, limits
from forq_trio.model.checks import check_message, check_producible, check_range
from forq_trio.model.errors import CallerError, ForqError, InvalidRequest, KeyNotFound, OutOfRange
from forq_trio.model.keys.checks import check_key, check_kind, check_offering, check_phrase, check_prefix
from forq_trio.model.keys.methods import KeyMethods
from forq_trio.model.keys.types import Mode, Offered, Offering, OfferOptions
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import KeyedMessage, KeyPage, check_queue_name


class Offers(KeyMethods, BrokerBase):
    """A key is unique per queue and kind while its message is pending. Cancellation is that of `Broker`."""

    async def offer(
        self,
        queue: str,
        key: str,
        content: str,
        *,
        kind: str = "",
        mode: Mode = "createOrUpdate",
        max_wait_ms: int | None = None,
        **options: Unpack[OfferOptions],
    ) -> Offered:
        offering = Offering(content, mode, max_wait_ms, key=key, kind=kind, **options)
        return await self.offer_message(queue, offering)

    async def offer_message(self, queue: str, message: Offering) -> Offered:
        """`offer` for an `Offering`, which contains the key, the kind, the mode and the options."""
        (offered,) = await self.offer_many(queue, [message])
        if isinstance(offered, ForqError):
            raise offered
        return offered

    async def offer_many(self, queue: str, messages: Sequence[Offering]) -> list[Offered | ForqError]:
        check_producible(queue)
        check_range("number of messages", len(messages), 0, limits.OFFER_BATCH_MAX, "messages")
        now_ms = self._clock.now_ms()
        results: list[Offered | ForqError | None] = []
        for message in messages:
            try:
                check_offering(message, now_ms)
                self._check_texts(message)
                results.append(None)
            except CallerError as error:
                results.append(error)
        if None in results:
            await name_queues(self._writer, queue)
            await self._refuse_queues(messages, results)
        valid = [each for each, result in zip(messages, results, strict=True) if result is None]
        outcomes: tuple[Offered | ForqError, ...] = ()
        if valid:
            outcomes = await self._writer.execute(commands.OfferMany(queue, tuple(valid)))
        rest = iter(outcomes)
        return [next(rest) if result is None else result for result in results]

    async def _refuse_queues(
        self, messages: Sequence[Offering], results: list[Offered | ForqError | None]
    ) -> None:
        """Refuse only those messages whose dead-letter queues the token may not make."""
        named = [each.dead_letter_queue for each, result in zip(messages, results, strict=True) if not result]
        refused = await refused_queues(self._writer, [name for name in named if name])
        for index, message in enumerate(messages):
            if refused and results[index] is None:
                results[index] = refused.get(message.dead_letter_queue or "")

    async def keyed_message(self, queue: str, key: str, kind: str = "") -> KeyedMessage | None:
        _check(queue, key, kind)
        return await self._readers.run(lambda reader: reader.keyed_message(queue, key, kind))

    async def contains_key(self, queue: str, key: str, kind: str = "") -> bool:
        return await self.keyed_message(queue, key, kind) is not None

    async def keyed_messages(
        self,
        queue: str,
        *,
        prefix: str = "",
        kind: str | None = None,
        after: str | None = None,
        limit: int = limits.BROWSE_PAGE_MAX,
    ) -> KeyPage:
        check_queue_name(queue)
        check_prefix(prefix)
        if kind is not None:
            check_kind(kind)
        check_range("limit", limit, 1, limits.BROWSE_PAGE_MAX)
        place = None if after is None else _read_place(after)
        found, following = await self._readers.run(
            lambda reader: reader.keyed_messages(queue, prefix, kind, place, limit)
        )
        return KeyPage(found, None if following is None else json.dumps(following))

    async def reschedule_key(
        self,
        queue: str,
        key: str,
        *,
        kind: str = "",
        process_after: int | None = None,
        delay_ms: int | None = None,
        once_more: bool = False,
    ) -> Offered:
        _check(queue, key, kind)
        now_ms = self._clock.now_ms()
        check_message(NewMessage("", process_after=process_after, delay_ms=delay_ms), now_ms)
        due = process_after if delay_ms is None else now_ms + delay_ms
        if due is None:
            raise InvalidRequest("a new due time, or a delay, is needed", field="processAfter")
        command = commands.RescheduleKey(queue, key, kind, due, once_more)
        offered = await self._writer.execute(command)
        if offered is None:
            raise KeyNotFound
        return offered

    async def ack_revision(self, queue: str, key: str, revision: int, kind: str = "") -> bool:
        _check(queue, key, kind)
        check_range("revision", revision, 1, limits.SEQUENCE_MAX)
        return await self._writer.execute(commands.AckRevision(queue, key, kind, revision))

    async def drop_key(self, queue: str, key: str, kind: str = "", *, once_more: bool = False) -> bool:
        _check(queue, key, kind)
        return await self._writer.execute(commands.DropKey(queue, key, kind, once_more))

    async def drop_keys(
        self, queue: str, kind: str, *, confirm: str, on_step: Callable[[int], None] = lambda _: None
    ) -> int:
        check_kind(kind)
        self.known.check_queue(queue)
        check_phrase(queue, confirm)

        return await purge_in_steps(
            self._writer, lambda queue, up_to: commands.DropKeys(queue, kind, up_to), queue, on_step
        )


def _check(queue: str, key: str, kind: str) -> None:
    check_queue_name(queue)
    check_key(key, kind)


def _read_place(after: str) -> tuple[str, str]:
    try:
        kind, key = msgspec.json.decode(after, type=tuple[str, str])
        check_key(key, kind)
    except (msgspec.ValidationError, msgspec.DecodeError, UnicodeEncodeError, CallerError):
        raise OutOfRange("after takes the `next` of the page before", field="after") from None
    return kind, key
