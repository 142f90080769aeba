"""The source and the lifespan of a worker: closed, or open in an event loop; and its source for threads meanwhile."""

import os
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, TypeAlias

import anyio.to_thread

from forq_trio.model.access.secrets import check_secret
from forq_trio.worker.blocking import BlockingSource
from forq_trio.worker.lifespan import Lifespan, state_of
from forq_trio.worker.opened import Opened
from forq_trio.worker.source import Source, open_source

if TYPE_CHECKING:
    from forq_trio.client.sync import ForqClient

NOT_OPEN = "the worker is not open: send inside of `async with app.open()`, or in a handler"

Sources: TypeAlias = AbstractAsyncContextManager[tuple[Source, Source]]
"""Opens a source, as `open_source` does."""


class WorkerSource:
    """Where a worker gets its messages, and sends to. given, secret: see `Worker`. Raises InvalidSecret."""

    def __init__(self, given: "str | Source | None", secret: str | None) -> None:
        self._opened: Opened | None = None
        self._opens_in: int | None = None  # the process in which it is open, or is just being opened
        self._blocking: BlockingSource | None = None
        self.give(given, secret)

    def give(self, given: "str | Source | None", secret: str | None) -> None:
        """Say where it is, also anew: a worker may learn it later. Raises InvalidSecret; RuntimeError if it is open.

        What threads have opened is closed.
        """
        self._refuse_open()
        self._given = given
        self._secret = secret and check_secret(secret)
        if self._blocking is not None:
            self._blocking.close()
        self._blocking = None
        if given is None or isinstance(given, str):
            self._blocking = BlockingSource(given, self._secret)

    @property
    def opened(self) -> Opened | None:
        """What is open in this process; None while nothing is."""
        opened = self._opened
        return opened if opened is not None and opened.is_here else None

    def sources(self) -> Sources:
        """Opens the source that the worker was given."""
        return open_source(self._given, self._secret)

    @asynccontextmanager
    async def open(self, sources: Sources, lifespan: Lifespan | None) -> AsyncIterator[Opened]:
        """Open a source, then the lifespan. Raises RuntimeError if the worker is open, and what both raise."""
        self._refuse_open()
        self._opens_in = os.getpid()
        try:
            if self._blocking is not None and self._blocking.is_open:
                await anyio.to_thread.run_sync(self._blocking.close)  # a file may be open once
            async with sources as (asking, sending):
                opened = self._opened = Opened(asking, sending)
                try:
                    async with state_of(lifespan) as opened.state:
                        yield opened
                finally:
                    self._opened = None
        finally:
            self._opens_in = None

    def _refuse_open(self) -> None:
        """Raise RuntimeError if it is open in this process, or another task is opening it."""
        if self._opens_in == os.getpid():
            raise RuntimeError("the worker is open already")

    @property
    def to_send(self) -> Source:
        """The open source, to send to. Raises RuntimeError if the worker is not open, or in another event loop."""
        if (opened := self.opened) is not None:
            opened.check_event_loop("await this there")
            return opened.sending
        if self._given is None or isinstance(self._given, str):
            raise RuntimeError(NOT_OPEN)
        return self._given

    def to_send_blocking(self) -> "ForqClient":
        """The source for threads of this process, while the worker is not open in it. Raises as `BlockingSource` does.

        Raises RuntimeError for a worker whose source is an object of the caller's.
        """
        if self._blocking is None:
            raise RuntimeError(NOT_OPEN)
        return self._blocking.opened()
