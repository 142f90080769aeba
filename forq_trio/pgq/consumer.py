"""The consumer: a worker whose source are the tables of a database."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from forq_trio.model import limits
from forq_trio.model.durations import Duration, timedelta_of
from forq_trio.pgq.claims import InvalidRow
from forq_trio.pgq.statements import check_table_name
from forq_trio.pgq.tables import TableOptions, Tables
from forq_trio.worker.app import DRAIN_SECONDS_DEFAULT, Worker
from forq_trio.worker.lifespan import Lifespan
from forq_trio.worker.send_options import duration_ms
from forq_trio.worker.source import Source


class Consumer(Worker):
    """Runs handlers on the messages of tables of pgq's layout: as `forq_trio.worker.Worker`, without a server.

    `@consumer.on("Orders/1")` takes what `Worker.on` takes; the queue is the name of a table. `send` publishes.

    database_url: postgresql://… attempts_max: after this many deliveries a failure is final; 0: never. polling: after
    how long an empty table is checked again, if nothing wakes the consumer. history: the consumer ignores
    messages that are older than this. on_invalid: called for each row that is not a message, after it was discarded.
    The other options are those of `Worker`.

    Raises InvalidDatabaseUrl, and ValueError for a number out of its range; `run` and `serve` raise NoTable and
    WrongTable. While the database does not answer, the consumer tries again.
    """

    def __init__(
        self,
        database_url: str,
        *,
        attempts_max: int = limits.PGQ_ATTEMPTS_MAX_DEFAULT,
        polling: Duration = limits.PGQ_POLLING_SECONDS_DEFAULT,
        history: Duration | None = None,
        on_invalid: Callable[[InvalidRow], object] = lambda row: None,
        name: str | None = None,
        version: str = "",
        concurrency: int | None = None,
        drain_seconds: float = DRAIN_SECONDS_DEFAULT,
        lifespan: Lifespan | None = None,
    ) -> None:
        if not 0 <= attempts_max <= limits.MAX_ATTEMPTS_MAX:
            raise ValueError(f"attempts_max: 0 to {limits.MAX_ATTEMPTS_MAX:,}, not {attempts_max!r}")
        polling_seconds = duration_ms("polling", polling) / 1_000
        if not 0.01 <= polling_seconds <= 3_600:
            raise ValueError(f"polling: 0.01 to 3,600 seconds, not {polling!r}")
        oldest = None if history is None else timedelta_of(history)
        options = TableOptions(attempts_max, polling_seconds, oldest, on_invalid)
        self._tables = Tables(database_url, options)
        super().__init__(
            self._tables,
            name=name,
            version=version,
            concurrency=concurrency,
            drain_seconds=drain_seconds,
            presence=False,
            lifespan=lifespan,
        )

    @staticmethod
    def check_queue(name: str) -> object:
        return check_table_name(name)

    @asynccontextmanager
    async def _open_source(self) -> AsyncIterator[tuple[Source, Source]]:
        async with self._tables.opened() as tables:
            yield tables, tables
