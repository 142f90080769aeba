"""The base class of the parts of `Broker`: declares what their methods use."""

from typing import TypeVar

import trio

from forq_trio.broker.access_tokens import AccessTokens
from forq_trio.broker.backends import Backends
from forq_trio.broker.endpoint_commands import command_of
from forq_trio.broker.known import Known
from forq_trio.broker.known_processes import KnownProcesses
from forq_trio.broker.known_workers import KnownWorkers
from forq_trio.broker.leases import Leases
from forq_trio.broker.lines import Lines
from forq_trio.broker.lists import Lists
from forq_trio.broker.redrives import Redrives
from forq_trio.broker.sessions import Sessions
from forq_trio.model.clock import Clock
from forq_trio.model.command_methods import CommandMethods
from forq_trio.model.commands import Command
from forq_trio.model.endpoint import CommandEndpoint
from forq_trio.readers.pool import ReaderPool
from forq_trio.writer_actor import WriterActor

AnswerT = TypeVar("AnswerT")


class BrokerBase(CommandMethods):
    """The objects behind a broker. Each covers one topic that programs seldom need directly.

    known: what is known without a query. known_workers: the workers that reported lately. known_processes: the servers
    on the same database. keys: access tokens by the text that requests show. sessions: of the admin UI. leases: of
    pipelines' consumers, step by step. lines: pages as lines of JSON. lists: lists and searches. redrive_tasks: the
    actor behind `start_redrive`.
    """

    def __init__(
        self, writer: WriterActor, readers: ReaderPool, clock: Clock, backends: Backends | None = None
    ) -> None:
        self._writer = writer
        self._readers = readers
        self._clock = clock
        self._timings = trio.Lock()  # one timing at a time: each step keeps the loop busy
        self._backends = backends or Backends(writer, readers)
        self._check_texts = self._backends.own.check_message
        self.known = Known(writer, self._backends)
        self.known_workers = KnownWorkers(clock)
        self.known_processes = KnownProcesses(clock, lambda: writer.parked.total)
        self.keys = AccessTokens(writer, clock)
        self.sessions = Sessions(writer, clock)
        self.leases = Leases(writer, clock)
        readers.execute = writer.execute
        self.lines = Lines(writer, readers, clock, self.known)
        self.lists = Lists(readers, clock)
        self.redrive_tasks = Redrives(self.known, self.lists, writer, clock)

    async def perform(self, endpoint: CommandEndpoint[AnswerT], **arguments: object) -> AnswerT:
        """Run the command of an endpoint, on the queue among the arguments if there is one; they are checked first.

        The outcome is the answer. Raises the error for an argument, and the one that is the outcome.
        """
        command: Command[AnswerT] = command_of(endpoint, arguments)
        queue = arguments.get("queue")
        return await self._backends.of(None if queue is None else str(queue)).execute(command)

    async def _perform(self, endpoint: CommandEndpoint[AnswerT], **arguments: object) -> AnswerT:
        return await self.perform(endpoint, **arguments)
