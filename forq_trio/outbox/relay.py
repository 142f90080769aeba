"""The relay: sends what an application committed into its outbox, in the order of commit, each message exactly once.

It reads a page behind the position that the server stores, has the server store page and position in one commit, and
removes the page here. A relay may be killed at any point, and several may run at once: of a page that does not continue
from the stored position the server stores nothing. While nothing is written a relay runs no query.
"""

import inspect
import os
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from functools import partial
from typing import Any, Protocol, Self

import anyio

from forq_trio.model import limits
from forq_trio.model.errors import (
    CallerError,
    ContentTooLarge,
    ForqProtocolError,
    InvalidRequest,
    ServiceError,
    error_of,
)
from forq_trio.model.outboxes.types import OutboxPosition, OutboxRefusal, RelayedMessage
from forq_trio.outbox.backlog import Backlog
from forq_trio.outbox.changes import Changes, watch
from forq_trio.outbox.database import OutboxDatabase, path_of
from forq_trio.outbox.errors import NoOutbox

_FIRST_PAUSE_SECONDS = 0.1
_PAUSE_SECONDS_MAX = 5.0
_CLOSE_SECONDS_MAX = 10.0


class RelayTarget(Protocol):
    """What a relay sends to: a `Broker` or an `AsyncForqClient`."""

    async def relay_outbox(
        self, outbox: str, after: int, messages: Sequence[RelayedMessage]
    ) -> OutboxPosition: ...

    async def outbox_position(self, outbox: str) -> OutboxPosition: ...


class Relay:
    """Sends the messages of an outbox. `async with Relay(database, source)` runs it beside the body.

    Leaving the body stops the relay after the page that it is sending. database: the path of the application's
    database, or sqlite:///path. source: a `Broker` or an `AsyncForqClient`, which the caller closes. on_set_aside:
    called for each message that the server refused for good. watch_with: makes what notices writes; None for the
    kernel's reports, where there are any.

    relayed, set_aside, looks: how many messages it has moved, how many it has set aside, and how often it has read the
    outbox. backlog: what waits. last_problem: why it waits before it tries again; None if all goes well.

    While the server or the database fails, the relay tries again, after 0.1 to 5 seconds. If the database is replaced,
    it is opened again. Raises OutboxOlder; NoOutbox if there is no outbox at the start; and what the source raises for
    a key that may not send at all. Cancelled, it ends after its statement; nothing is lost or sent twice.
    """

    def __init__(
        self,
        database: str | os.PathLike[str],
        source: RelayTarget,
        *,
        on_set_aside: Callable[[OutboxRefusal], None] = lambda refusal: None,
        watch_with: Callable[[str], Changes] | None = None,
    ) -> None:
        check_source(source, "relay_outbox")
        self.relayed = 0
        self.set_aside = 0
        self.looks = 0
        self.last_problem: Exception | None = None
        self._path = path_of(database)
        self._source = source
        self._on_set_aside = on_set_aside
        self._watch_with = watch_with or watch
        self._position = 0
        self._page_max = limits.OUTBOX_PAGE_MAX
        self._woken = anyio.Event()
        self.backlog = Backlog()
        self._beside: AbstractAsyncContextManager[None]

    async def __aenter__(self) -> Self:
        self._beside = self._running_beside()
        await self._beside.__aenter__()
        return self

    async def __aexit__(self, *raised: Any) -> None:
        await self._beside.__aexit__(*raised)  # noqa: ASYNC102  the relay ends behind its statement

    @asynccontextmanager
    async def _running_beside(self) -> AsyncIterator[None]:
        with closing(self._watch_with(self._path)) as changes:
            async with _beside(partial(self._listen, changes)), _beside(self._relay_for_ever):
                yield

    def wake(self) -> None:
        """Read the outbox now. It is not needed, because each write wakes the relay. For the event loop's thread."""
        self._woken.set()

    async def run(self) -> None:
        """Relay until cancelled."""
        async with self:
            await anyio.sleep_forever()

    async def relay_all(self) -> int:
        """Move all messages that are committed now; returns how many. For jobs and tests.

        Raises the errors of the source, instead of trying again.
        """
        database = OutboxDatabase(self._path)
        before = self.relayed
        try:
            await self._begin(database)
            while await self._relay_page(database, locked=False):
                pass
        finally:
            with anyio.move_on_after(_CLOSE_SECONDS_MAX, shield=True):
                await database.close()
        return self.relayed - before

    async def _listen(self, changes: Changes) -> None:
        while True:
            await changes.wait()
            self._woken.set()

    async def _relay_for_ever(self) -> None:
        database = OutboxDatabase(self._path)
        pause = _FIRST_PAUSE_SECONDS
        begun = False
        try:
            while True:
                self._woken = woken = anyio.Event()  # before the read: a write during it wakes again
                try:
                    if not begun:
                        await self._begin(database)
                        begun = True
                    moved = await self._relay_page(database, locked=False)
                    moved = moved or await self._relay_page(database, locked=True)
                except (ServiceError, ForqProtocolError, sqlite3.OperationalError, NoOutbox) as problem:
                    if isinstance(problem, NoOutbox):
                        if not database.identity:
                            raise
                        begun = False
                    self.last_problem = problem
                    await anyio.sleep(pause)
                    if not isinstance(problem, sqlite3.OperationalError):  # SQLite waits for locks itself
                        pause = min(2 * pause, _PAUSE_SECONDS_MAX)
                    continue
                self.last_problem = None
                pause = _FIRST_PAUSE_SECONDS
                if not moved:
                    await woken.wait()
        finally:
            with anyio.move_on_after(_CLOSE_SECONDS_MAX, shield=True):
                await database.close()

    async def _begin(self, database: OutboxDatabase) -> None:
        """Read the outbox's id and the stored position, and remove the messages that an earlier relay has moved."""
        await database.begin()
        self._position = (await self._source.outbox_position(database.identity)).position
        await database.remove(self._position)

    async def _relay_page(self, database: OutboxDatabase, *, locked: bool) -> bool:
        """Move a page; False if there was none. locked: see `OutboxDatabase.page`."""
        messages = await database.page(self._position, self._page_max, locked=locked)
        self.looks += 1
        self.backlog.note(self._position if messages else database.last_id, database.last_id)
        if not messages:
            return False
        if isinstance(messages, OutboxRefusal):
            await self._set_aside(database, messages)
            return True
        before = self._position
        try:
            stored = await self._source.relay_outbox(database.identity, before, messages)
        except (InvalidRequest, ContentTooLarge) as error:
            await self._search(database, messages, error)
            return True
        self._position = stored.position
        if stored.position != before:
            self.relayed += sum(before < each.id <= stored.position for each in messages)
            await database.remove(stored.position)
            self.backlog.note(stored.position, database.last_id)
        if stored.refused is not None:
            await self._refused(database, stored.refused, moved=stored.position != before)
        else:  # another relay may have set aside what was searched for
            self._page_max = min(2 * self._page_max, limits.OUTBOX_PAGE_MAX)
        return True

    async def _refused(self, database: OutboxDatabase, refusal: OutboxRefusal, *, moved: bool) -> None:
        """Set a message aside that will never be stored; raise the error of one that may be later."""
        error = error_of(refusal.code, message=refusal.message)
        if isinstance(error, CallerError):
            await self._set_aside(database, refusal)
        elif not moved:
            raise error

    async def _search(
        self, database: OutboxDatabase, messages: Sequence[RelayedMessage], error: CallerError
    ) -> None:
        """Find the message because of which a whole request was refused, by halving pages, and set it aside.

        Raises the error if no message is to blame, which shows when a request without messages is refused, too.
        """
        if len(messages) > 1:
            self._page_max = len(messages) // 2
            return
        await self._source.relay_outbox(database.identity, self._position, [])
        self._page_max = limits.OUTBOX_PAGE_MAX
        await self._set_aside(database, OutboxRefusal.of(messages[0].id, error))

    async def _set_aside(self, database: OutboxDatabase, refusal: OutboxRefusal) -> None:
        await database.set_aside(refusal)
        self.set_aside += 1
        self._on_set_aside(refusal)


@asynccontextmanager
async def _beside(task: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """Run a task while the body runs. If it fails, the body is cancelled. Errors come out as they are, in no group."""
    failures: list[Exception] = []

    async def run() -> None:
        try:
            await task()
        except Exception as error:
            failures.append(error)
            tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)  # noqa: ASYNC113  the body need not wait for its start
        try:
            yield
        except Exception as error:
            failures.append(error)
        tasks.cancel_scope.cancel()
    if failures:
        raise failures[0]


def check_source(source: object, method: str) -> None:
    """Raise TypeError for a blocking broker or client, whose methods return what they would have to await."""
    if not inspect.iscoroutinefunction(getattr(source, method, None)):
        raise TypeError(f"this needs a Broker or an AsyncForqClient, not {type(source).__name__}")
