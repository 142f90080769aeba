"""The tables of a database as the source of a worker, with pgq's statements as its methods.

Every settlement names its claim, so a consumer that is late changes nothing. Locks end by the database's clock, so the
local clock does not matter.
"""

import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from copy import copy
from datetime import timedelta
from math import inf
from typing import Any, Unpack
from weakref import WeakValueDictionary

import anyio
from msgspec import Struct
from msgspec.structs import replace

from forq_trio.model import limits
from forq_trio.model.errors import (
    CallerError,
    DatabaseRefused,
    ForqError,
    MalformedReceipt,
    OutcomeUnknown,
    ReceiptNotCurrent,
)
from forq_trio.model.keys.types import Mode, Offered, OfferOptions
from forq_trio.model.messages.new_message import MessageOptions, NewMessage
from forq_trio.model.messages.receipts import ReceiptResult, refused
from forq_trio.model.messages.types import Delivery, MessageInfo, Produced, QueueCounts
from forq_trio.model.messages.where import Wanted
from forq_trio.model.queues.bodies import QueueConfiguration
from forq_trio.model.queues.setting_values import Defaults
from forq_trio.model.queues.settings import QueueSettings, QueueTable, rules_of
from forq_trio.pgq.claims import STATUS_OF, InvalidRow, asked_of, epoch_ms, list_messages
from forq_trio.pgq.connections import PgqConnections
from forq_trio.pgq.layout import check_columns, check_table
from forq_trio.pgq.messages import message_of, rows_of
from forq_trio.pgq.publisher import publish_each
from forq_trio.pgq.receipts import PgqReceipt, parameters
from forq_trio.pgq.statements import statement
from forq_trio.pgq.wakes import Wakes
from forq_trio.pgq.walks import ClaimKey, Walks

logger = logging.getLogger("forq_trio.pgq")


class TableOptions(Struct, frozen=True):
    """The options of a consumer; see `Consumer`."""

    attempts_max: int = limits.PGQ_ATTEMPTS_MAX_DEFAULT
    polling_seconds: float = limits.PGQ_POLLING_SECONDS_DEFAULT
    history: timedelta | None = None
    on_invalid: Callable[[InvalidRow], object] = lambda row: None
    table_connections_max: int = limits.PGQ_CONNECTIONS_MAX


class Tables:
    """A `Source` of `forq_trio.worker`; open while `opened` is."""

    def __init__(self, database_url: str, options: TableOptions, listen_url: str | None = None) -> None:
        """listen_url: a URL of the same database without a pool; None for `database_url`. Raises InvalidDatabaseUrl."""
        self._connections = PgqConnections(database_url, options.table_connections_max)
        self._wakes = Wakes(listen_url or database_url)
        self._options = options
        self._turns: WeakValueDictionary[tuple[Any, ...], anyio.Lock] = WeakValueDictionary()
        self._unanswered: set[str] = set()
        self._walks = Walks()

    @asynccontextmanager
    async def opened(self) -> AsyncIterator["Tables"]:
        """Listen for new messages while the body runs; then close the connections."""
        failure: Exception | None = None
        try:
            async with anyio.create_task_group() as tasks:
                await tasks.start(self._wakes.run)
                try:
                    yield self
                except Exception as error:  # raised below as it is, in no group
                    failure = error
                tasks.cancel_scope.cancel()
        finally:
            self._connections.close()
        if failure is not None:
            raise failure

    def bounded(self, attempts_max: int) -> "Tables":
        """The same tables, over the same connections, with this bound on deliveries."""
        other = copy(self)
        other._options = replace(self._options, attempts_max=attempts_max)
        return other

    async def listen(self) -> None:
        """Listen for new messages until cancelled. It makes waits shorter and is needed for nothing else."""
        await self._wakes.run()

    def close(self) -> None:
        """Close the connections that nobody uses."""
        self._connections.close()

    async def receive(
        self,
        queue: str,
        *,
        max_messages: int = 1,
        wait_ms: int = 0,
        lease_ms: int | None = None,
        where: Wanted | None = None,
    ) -> list[Delivery]:
        """Claim up to `max_messages`; if there are none, wait for some, and check at least once per interval.

        If several calls wait for messages of a table, they check in turn, so that a message wakes only one of them.
        Raises what `PgqConnections.run` raises. Cancelled while it claims, it returns what it has claimed.
        """
        most = self._options.attempts_max
        asked = asked_of(max_messages, _lease(lease_ms), where, most, self._options.history)
        key = (queue, most, asked["equal"], str(asked["keys"]), str(asked["values"]), str(asked["absent"]))
        if not wait_ms:
            return await self._claim(queue, asked, anyio.current_time(), key)
        ends_at = anyio.current_time() + wait_ms / 1_000
        turn = self._turns.setdefault(key, anyio.Lock())
        has_turn = False
        with anyio.move_on_after(wait_ms / 1_000):
            await turn.acquire()
            has_turn = True
        if not has_turn:
            return []
        try:
            return await self._claim(queue, asked, ends_at, key)
        finally:
            turn.release()

    async def _claim(
        self, queue: str, asked: dict[str, Any], ends_at: float, key: ClaimKey
    ) -> list[Delivery]:
        """Like `receive`, until the time `ends_at`."""
        options = self._options
        while True:
            woken = self._wakes.event(queue)
            claimed, invalid, pause_seconds, _ = await self._connections.run(
                queue, lambda connection: self._walks.claim(connection, queue, asked, key), kind="claim"
            )
            for row in invalid:
                logger.error("%s: row %s is discarded: %s", queue, row.id, row.reason)
                try:
                    options.on_invalid(row)
                except Exception:  # the messages that were claimed with the row are still delivered
                    logger.exception("%s: on_invalid failed for row %s", queue, row.id)
            left = ends_at - anyio.current_time()
            if claimed or (pause_seconds and left <= 0):
                return claimed
            pause_seconds = min(left, pause_seconds, self._polling_seconds(queue))
            with self._wakes.waiting(queue), anyio.move_on_after(pause_seconds):
                await woken.wait()

    def _polling_seconds(self, queue: str) -> float:
        """The seconds between two checks of a waiting call: a table is checked as often, however many wait."""
        tables = Counter(table for table, *_ in self._turns)
        looks = len(tables) * tables[queue] - 1
        return max(self._options.polling_seconds, looks / limits.PGQ_LOOKS_A_SECOND_MAX)

    async def ack(self, queue: str, receipts: list[str]) -> list[ReceiptResult]:
        """Finish messages as processed. The reason of an earlier failure is removed, so the row means success."""
        return await self._finish(queue, receipts, None)

    async def discard(self, queue: str, receipts: list[str], *, reason: str) -> list[ReceiptResult]:
        """Finish messages for good, with a reason."""
        return await self._finish(queue, receipts, reason)

    async def nack(
        self,
        queue: str,
        receipts: list[str],
        *,
        delay_ms: int | None = None,
        reason: str | None = None,
        final: bool = False,
        max_attempts: int | None = None,
    ) -> list[ReceiptResult]:
        """Make messages claimable again, at once or after a delay; after the last attempt, finish them.

        max_attempts: the bound now, if it is below that of the tables, which have no other one for a message.
        """
        most = min(self._options.attempts_max or inf, max_attempts or inf)
        last = [each for each in receipts if final or PgqReceipt.parse(each).number >= most]
        finished = await self._finish(queue, last, reason or "unknown") if last else []
        done = [replace(result, failed=result.ok) for result in finished]
        again = [each for each in receipts if each not in set(last)]
        done += (
            await self._return_claimed(queue, again, delay_ms, reason=reason or "unknown") if again else []
        )
        by_receipt = {result.receipt: result for result in done}
        return [by_receipt[each] for each in receipts]

    async def release(self, queue: str, receipts: list[str], *, delay_ms: int = 0) -> list[ReceiptResult]:
        """Make messages claimable again; the delivery does not count."""
        return await self._return_claimed(queue, receipts, delay_ms, uncounted=1)

    async def extend(
        self, queue: str, receipts: list[str], lease_ms: int | None = None
    ) -> list[ReceiptResult]:
        """Set the locks to end after `lease_ms` from now; None for the consumer's lease."""
        rows = await self._settle("extend", queue, receipts, lease=_lease(lease_ms))
        ends = {place: epoch_ms(until) for place, until in rows}
        return [
            ReceiptResult(each, True, ends[place]) if place in ends else refused(each, ReceiptNotCurrent())
            for place, each in enumerate(receipts, 1)
        ]

    async def produce(self, queue: str, content: str, **options: Unpack[MessageOptions]) -> Produced:
        """Publish a message: its content is a JSON object, its attributes are the metadata."""
        (produced,) = await self.produce_each(queue, [NewMessage(content, **options)])
        if isinstance(produced, ForqError):
            raise produced
        return produced

    def check_message(self, message: NewMessage) -> None:
        """Raise what `produce_each` would raise for this message."""
        rows_of([message_of(message)])

    async def produce_each(
        self, queue: str, messages: Sequence[NewMessage]
    ) -> list[Produced | DatabaseRefused]:
        """Publish messages. If the database refuses some, all others are stored together.

        Raises what `message_of` raises, InvalidPayload, and what `receive` raises.
        """
        rows = list(map(message_of, messages))
        results = await self._connections.run(
            queue, lambda connection: publish_each(connection, queue, *rows), kind="send"
        )
        self._walks.forget(queue)
        self._wakes.wake(queue)
        return [each if isinstance(each, DatabaseRefused) else Produced(str(each), 0) for each in results]

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
        """Raises CallerError: the tables have no keys."""
        raise CallerError("a table of pgq has no keys")

    async def check(self, queue: str) -> None:
        """Check the table. Raises InvalidTableName, NoTable, and WrongTable, which names what is missing."""
        await self._connections.run(queue, lambda connection: check_table(connection, queue))

    async def counts(self, queue: str) -> QueueCounts:
        """How many messages are not finished, counted up to PGQ_COUNTED_MAX; their bytes are not counted."""
        given = {"limit": limits.PGQ_COUNTED_MAX, "attempts": self._options.attempts_max or None}
        rows = await self._connections.run(
            queue,
            lambda connection: connection.execute(statement("live_counts", queue), given).fetchall(),
            kind="count",
        )
        found = {STATUS_OF[state]: count for state, count in rows}
        return QueueCounts(**found)

    async def peek(self, queue: str, limit: int) -> list[MessageInfo]:
        """The messages that the next claims get."""
        given = asked_of(limit, _lease(None), None, self._options.attempts_max, None)
        return await self._connections.run(
            queue, lambda connection: list_messages(connection, "peek", queue, given)
        )

    async def message(self, queue: str, message_id: str) -> MessageInfo | None:
        """A message that is not finished; None if there is none with this id."""
        given = {"id": message_id, "attempts": self._options.attempts_max or None}
        found = await self._connections.run(
            queue, lambda connection: list_messages(connection, "look", queue, given)
        )
        return found[0] if found else None

    def is_receipt(self, text: str) -> bool:
        """Whether a text has the form of the receipts that `receive` gives."""
        try:
            PgqReceipt.parse(text)
        except MalformedReceipt:
            return False
        return True

    async def settings(self, queue: str) -> QueueConfiguration:
        """The rules that hold for each table. Raises NoTable, and WrongTable that names what is missing."""
        await self._connections.run(queue, lambda connection: check_columns(connection, queue))
        attempts = self._options.attempts_max or limits.MAX_ATTEMPTS_MAX
        settings = QueueSettings(max_attempts=attempts, table=QueueTable("pgq", queue))
        return QueueConfiguration(settings, rules_of(queue, settings, Defaults()))

    async def _finish(self, queue: str, receipts: list[str], reason: str | None) -> list[ReceiptResult]:
        """Finish messages; it counts as success if an earlier try has done so and its answer was lost."""
        try:
            rows = await self._settle("finish", queue, receipts, reason=reason)
        except OutcomeUnknown:
            if len(self._unanswered) > limits.RECEIPTS_BATCH_MAX:  # by now others have claimed their messages
                self._unanswered.clear()
            self._unanswered.update(receipts)
            raise
        if self._unanswered.intersection(receipts):
            rows += await self._settle("ended_so", queue, receipts, reason=reason)
            self._unanswered.difference_update(receipts)
        return _results(receipts, rows)

    async def _return_claimed(
        self,
        queue: str,
        receipts: list[str],
        delay_ms: int | None,
        *,
        reason: str | None = None,
        uncounted: int = 0,
    ) -> list[ReceiptResult]:
        delay = timedelta(milliseconds=delay_ms) if delay_ms else None
        rows = await self._settle(
            "return_claimed", queue, receipts, reason=reason, delay=delay, uncounted=uncounted
        )
        self._walks.forget(queue)
        self._wakes.wake(queue)
        return _results(receipts, rows)

    async def _settle(
        self, name: str, queue: str, receipts: Sequence[str], **more: Any
    ) -> list[tuple[Any, ...]]:
        given = parameters(map(PgqReceipt.parse, receipts)) | more
        return await self._connections.run(
            queue, lambda connection: connection.execute(statement(name, queue), given).fetchall()
        )


def _lease(lease_ms: int | None) -> timedelta:
    return timedelta(milliseconds=limits.LEASE_MS_DEFAULT if lease_ms is None else lease_ms)


def _results(receipts: Iterable[str], rows: Iterable[tuple[int]]) -> list[ReceiptResult]:
    """The result for each receipt. rows: the places of the receipts that were current."""
    current = {place for (place,) in rows}
    return [
        ReceiptResult(each, True) if place in current else refused(each, ReceiptNotCurrent())
        for place, each in enumerate(receipts, 1)
    ]
