"""The broker: validates calls, sends them to the writer actor as commands, reads through the pool of readers.

The methods are documented in forq_trio/model, once for the broker and the clients.

Its only state is when access tokens and sessions were last used, and the running redrive tasks. HTTP handlers, jobs and
applications that embed the queue share one broker.

Cancellation, for every method that changes something: if the call is cancelled before the writer took its command,
nothing happens. If it is cancelled later, the command is executed anyway and the caller does not learn the outcome. A
cancelled `receive` releases its messages, the attempt uncounted. To repeat a send safely, give it a `deduplication_id`.
"""

from forq_trio.broker.backends import Backends
from forq_trio.broker.bound_calls import BoundCalls
from forq_trio.broker.compactions import Compactions, CompactionTask
from forq_trio.broker.finished import Finished
from forq_trio.broker.message_batches import MessageBatchCalls
from forq_trio.broker.metrics import BrokerMetrics
from forq_trio.broker.offers import Offers
from forq_trio.broker.outboxes import OutboxCalls
from forq_trio.broker.publishing import Publishing
from forq_trio.broker.queues import Administration
from forq_trio.broker.receives import Receives
from forq_trio.broker.results import ResultCalls
from forq_trio.broker.schedules import ScheduleCalls
from forq_trio.broker.sqs import SqsCalls
from forq_trio.broker.tokens import Tokens
from forq_trio.broker.workers import WorkerCalls
from forq_trio.model import commands
from forq_trio.model.clock import Clock
from forq_trio.readers.pool import ReaderPool
from forq_trio.writer_actor import WriterActor


class Broker(
    Publishing,
    OutboxCalls,
    MessageBatchCalls,
    Offers,
    Receives,
    ResultCalls,
    Administration,
    BoundCalls,
    Finished,
    ScheduleCalls,
    SqsCalls,
    Tokens,
    Compactions,
    WorkerCalls,
):
    """Send, receive and settle messages. Made by `open_broker`; safe to use from any number of trio tasks.

    Its methods are those of the clients (`methods` of each topic in forq_trio/model), and some take more:

    key: the caller, if it is not the server's secret. It sees and changes only what its queues cover, and what it makes
    counts towards its share. started_by: the name of an access token, None for the server's secret.
    queue: in `redrives` None means all queues; in `ack` and `extend` (with a `lease_ms`) receipts of any queue.
    redrive_policy: a consumer's own bound on deliveries, for one receive.
    wait_ms: how long a `peek` waits for the first message (0-30,000); cancelled, nothing happens.
    on_step: called after each step of a removal with the number removed so far.
    seconds: after about this time, but no sooner than after 30 s, a `publish` may return with `moving` set; repeat the
    call to wait on.
    """

    def __init__(
        self,
        writer: WriterActor,
        readers: ReaderPool,
        clock: Clock,
        compaction: CompactionTask,
        backends: Backends | None = None,
    ) -> None:
        super().__init__(writer, readers, clock, backends)
        self._compaction = compaction
        self.metrics: BrokerMetrics | None = None  # of an embedded broker

    async def healthcheck(self) -> None:
        await self._writer.execute(commands.Ping())
