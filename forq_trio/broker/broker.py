"""The broker: validates calls, sends them to the writer actor as commands, reads through the pool of readers.

Its only state is when access tokens and sessions were used, and the tasks over dead letters that run; HTTP handlers,
jobs and applications that embed the queue share one broker.

Cancellation, for every method that changes something: cancelled before the writer took the command, nothing happens;
cancelled later, it is executed all the same and the caller does not learn the outcome. A cancelled `receive` gives its
messages back with the attempt uncounted. To repeat a send safely, give it a `deduplication_id`.
"""

import msgspec
import trio

from forq_trio.broker.compactions import Compactions, CompactionTask
from forq_trio.broker.lists import Lists
from forq_trio.broker.logs import Logs
from forq_trio.broker.publishing import Publishing
from forq_trio.broker.queues import Administration
from forq_trio.broker.quotas import Quotas
from forq_trio.broker.receives import Receives
from forq_trio.broker.redrives import Redrives
from forq_trio.broker.sessions import KnownSessions, Sessions
from forq_trio.broker.tokens import KnownTokens, Tokens
from forq_trio.broker.views import redrive_info
from forq_trio.model import commands
from forq_trio.model.clock import Clock
from forq_trio.model.commands import Removed, SweepKind
from forq_trio.model.errors import RedriveNotFound
from forq_trio.model.redrives import RedriveAction, RedriveTask
from forq_trio.model.searches import MessageFilter
from forq_trio.readers.pool import ReaderPool
from forq_trio.wire.dead_letters import DeadLetterFilter, RedriveInfo
from forq_trio.writer_actor import WriterActor


class Broker(Publishing, Receives, Administration, Logs, Lists, Tokens, Sessions, Quotas, Compactions):
    """Send, receive and settle messages. Made by `open_broker`; safe to use from any number of trio tasks.

    redrive_tasks: the actor behind `start_redrive`.
    """

    def __init__(
        self, writer: WriterActor, readers: ReaderPool, clock: Clock, compaction: CompactionTask
    ) -> None:
        super().__init__(writer, readers, clock)
        self._compaction = compaction
        self._known_tokens = KnownTokens(writer, clock)
        self._known_sessions = KnownSessions(writer, clock)
        self.redrive_tasks = Redrives(self, writer, clock)

    async def start_redrive(
        self,
        queue: str,
        wanted: DeadLetterFilter | None = None,
        *,
        target: str | None = None,
        rate_per_second: int | None = None,
        dry_run: bool = False,
        above_sequence: int | None = None,
        started_by: str | None = None,
    ) -> RedriveInfo:
        """Start a task that moves all dead letters that match and are there now; returns once it is stored.

        target: None moves each back to where it came from. rate_per_second: 1-10,000, None for no limit.
        dry_run: only count. above_sequence: only messages with a greater sequence. started_by: the name of an access
        token, None for the holder of the server's secret. Raises InvalidQueueName, DeadLettersOnly, QueueNotFound,
        OutOfRange, InvalidAttributes, InvalidContent or TooManyRedrives. If this call is cancelled, the task starts all
        the same.
        """
        await trio.lowlevel.checkpoint()
        task = await self.redrive_tasks.start(
            queue,
            self._filter_of(wanted, above_sequence),
            target=target,
            rate_per_second=rate_per_second,
            dry_run=dry_run,
            started_by=started_by,
        )
        return redrive_info(task)

    async def start_deletion(
        self,
        queue: str,
        wanted: DeadLetterFilter | None = None,
        *,
        rate_per_second: int | None = None,
        dry_run: bool = False,
        above_sequence: int | None = None,
        started_by: str | None = None,
    ) -> RedriveInfo:
        """Start a task that deletes all dead letters that match and are there now, for good.

        It is a redrive with the action "delete": it is seen, paused, resumed and cancelled like one. Members and errors
        are those of `start_redrive`.
        """
        await trio.lowlevel.checkpoint()
        task = await self.redrive_tasks.start(
            queue,
            self._filter_of(wanted, above_sequence),
            action=RedriveAction.DELETE,
            rate_per_second=rate_per_second,
            dry_run=dry_run,
            started_by=started_by,
        )
        return redrive_info(task)

    async def redrives(self, queue: str | None) -> list[RedriveInfo]:
        """The redrives of a queue (None: of all) that run or are paused and the latest that ended, the latest first.

        Raises DeadLettersOnly.
        """
        if queue is not None:
            self.known.check_dead_letter_queue(queue)
        await trio.lowlevel.checkpoint()
        return [redrive_info(task) for task in self.redrive_tasks.all(queue)]

    async def redrive_info(self, queue: str, redrive_id: str) -> RedriveInfo:
        """A redrive, with its progress. Raises RedriveNotFound."""
        await trio.lowlevel.checkpoint()
        return redrive_info(self._redrive_of(queue, redrive_id))

    async def pause_redrive(self, queue: str, redrive_id: str) -> RedriveInfo:
        """Stop a redrive until it is resumed, also over a restart; a paused one is unchanged.

        Raises RedriveNotFound, and RedriveStateConflict if it has ended. If this call is cancelled, it is carried out
        all the same; so are `resume_redrive` and `cancel_redrive`.
        """
        self._redrive_of(queue, redrive_id)
        return redrive_info(await self.redrive_tasks.pause(redrive_id))

    async def resume_redrive(self, queue: str, redrive_id: str) -> RedriveInfo:
        """Let a paused or failed redrive go on from where it was; one that runs is unchanged.

        Raises RedriveNotFound, TooManyRedrives, and RedriveStateConflict if it is done or cancelled.
        """
        self._redrive_of(queue, redrive_id)
        return redrive_info(await self.redrive_tasks.resume(redrive_id))

    async def cancel_redrive(self, queue: str, redrive_id: str) -> RedriveInfo:
        """Stop a redrive for good; returns once it has ended. What it moved stays moved. Raises RedriveNotFound."""
        self._redrive_of(queue, redrive_id)
        return redrive_info(await self.redrive_tasks.cancel(redrive_id))

    async def dismiss_redrive(self, queue: str, redrive_id: str) -> None:
        """Forget a redrive that has ended. Raises RedriveNotFound, and RedriveStateConflict for one that has not."""
        self._redrive_of(queue, redrive_id)
        await self.redrive_tasks.dismiss(redrive_id)

    def _filter_of(self, wanted: DeadLetterFilter | None, above_sequence: int | None) -> MessageFilter:
        return msgspec.structs.replace(self._times_of(wanted), above_sequence=above_sequence)

    def _redrive_of(self, queue: str, redrive_id: str) -> RedriveTask:
        task = self.redrive_tasks.get(redrive_id)
        if task.queue != queue:
            raise RedriveNotFound
        return task

    async def save_uses(self) -> int:
        """Store when access tokens and sessions were last used, and return of how many; sends no command for none."""
        return await self._save_token_uses() + await self._save_session_uses()

    def post_uses(self) -> None:
        """`save_uses` without waiting, for the moment before the writer stops."""
        self._post_token_uses()
        self._post_session_uses()

    async def healthcheck(self) -> None:
        """Return if the write connection works; raise a ServiceError if not."""
        await self._writer.execute(commands.Ping())

    async def sweep(self, kind: SweepKind) -> Removed:
        """Run one step of a sweep (contract F13), at most SWEEP_BATCH_MAX messages."""
        return await self._writer.execute(commands.Sweep(kind))

    async def optimize(self) -> None:
        """Let the database refresh its statistics."""
        await self._writer.execute(commands.Optimize())
