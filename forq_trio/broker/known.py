"""What is known from memory as of the last commit, without a query and without waiting. `Broker.known`."""

from collections.abc import Mapping, Sequence

from forq_trio.broker.backends import Backends
from forq_trio.model.engine_facts import SendsRefused
from forq_trio.model.errors import DeadLettersOnly, QueueNotFound
from forq_trio.model.logs.history import HistoryCounts
from forq_trio.model.logs.types import Log, LogName
from forq_trio.model.messages.types import QueueCounts, check_queue_name
from forq_trio.model.publishing.types import Staging
from forq_trio.model.queues.bodies import QueueInfo
from forq_trio.model.queues.names import DLQ_SUFFIX, is_dead_letter_queue
from forq_trio.model.queues.settings import QueueRules, QueueSettings
from forq_trio.model.schedules.types import ScheduleTotals
from forq_trio.writer_actor import WriterActor


class Known:
    """The known queues, with their counts, settings and logs.

    Sends and settings create a queue. Calls that read or change a queue as a whole are refused for a name that nobody
    has used. Receives and peeks find such a queue empty, because a consumer may start first (F3).
    """

    def __init__(self, writer: WriterActor, backends: Backends) -> None:
        self._writer = writer
        self._backends = backends
        self.shared = False  # whether other processes use the database, too; their latest changes are unknown
        self._settings: Mapping[str, QueueSettings] = {}
        self._targets: frozenset[str | None] = frozenset()  # the dead-letter queues that those settings name

    def queue_names(self) -> Sequence[str]:
        """All known queues by name; the list never changes, so it is safe to iterate over."""
        return self._writer.snapshot().queue_names

    def queues(self, names: Sequence[str]) -> list[QueueInfo]:
        """These queues, without oldest_ready_age_ms; with zeros for a queue that is not known."""
        counts, last = self._writer.snapshot().counts, self._backends.last_counts_of
        return [self.queue(name, last(name) or counts.get(name) or QueueCounts()) for name in names]

    def queue(self, name: str, counts: QueueCounts, oldest_ready_age_ms: int | None = None) -> QueueInfo:
        """A queue with these counts."""
        settings = self._writer.snapshot().settings.get(name)
        return QueueInfo(
            queue=name,
            is_dlq=is_dead_letter_queue(name),
            ready=counts.ready,
            delayed=counts.delayed,
            processing=counts.processing,
            failed=counts.failed,
            held=counts.held,
            bytes=counts.bytes,
            waiting=self.waiting(name),
            paused=settings is not None and settings.paused,
            oldest_ready_age_ms=oldest_ready_age_ms,
            sends_refused=self.sends_refused,
            table=None if settings is None else settings.table,
        )

    def has_queue(self, queue: str) -> bool:
        """Whether a queue has or had messages, or has settings."""
        snapshot = self._writer.snapshot()
        return queue in snapshot.counts or queue in snapshot.settings

    def check_queue(self, queue: str) -> str:
        """Return `queue`, or raise InvalidQueueName, or QueueNotFound for a name that nobody has used.

        Besides those of `has_queue`, the dead-letter queues of known queues count as used, and so do queues that
        consumers wait for or have opened.
        """
        snapshot = self._writer.snapshot()
        if (
            self.has_queue(check_queue_name(queue))
            or (is_dead_letter_queue(queue) and self.has_queue(queue.removesuffix(DLQ_SUFFIX)))
            or self.waiting(queue)
            or any(settings.dead_letter_queue == queue for settings in snapshot.settings.values())
            or any(consumer.queue == queue for consumer in snapshot.consumers.values())
        ):
            return queue
        raise QueueNotFound(f"there is no queue called {queue}", field="queue")

    def counts(self) -> Mapping[str, QueueCounts]:
        """Messages by status of every known queue; for a queue bound to a table, as it was last counted."""
        counts = dict(self._writer.snapshot().counts)
        for queue, last in self._backends.last_counts().items():
            if queue in counts:
                counts[queue] = last
        return counts

    def stored_counts(self) -> Mapping[str, QueueCounts]:
        """Messages by status in the server's own database, for every queue that it has."""
        return dict(self._writer.snapshot().counts)

    def counts_of(self, queue: str) -> QueueCounts:
        """Messages by status of one queue, as in `counts`; zeros for a queue that is not known."""
        last = self._backends.last_counts_of(queue)
        return last or self._writer.snapshot().counts.get(queue) or QueueCounts()

    def waiting(self, queue: str) -> int:
        """How many receivers are parked on `queue`."""
        return self._writer.parked.count(queue)

    def rate_full_at(self, queue: str) -> int:
        """When the bucket of the queue's own rate is full again (epoch ms); 0 if it is full now, or there is none."""
        return self._writer.snapshot().rate_full_at(queue)

    @property
    def sends_refused(self) -> SendsRefused | None:
        """Why sends to all queues are refused; None while they are not."""
        return self._writer.storage.refusal

    def settings(self) -> Mapping[str, QueueSettings]:
        """The settings of the queues that have any; the mapping never changes."""
        return self._writer.snapshot().settings

    def settings_of(self, queue: str) -> QueueSettings:
        """The settings of a queue; all members are None if nothing was set. Raises InvalidQueueName."""
        return self._writer.snapshot().settings.get(check_queue_name(queue)) or QueueSettings()

    def rules(self, queue: str) -> QueueRules:
        """The settings of a queue with the defaults filled in. Raises InvalidQueueName."""
        return self._writer.snapshot().rules(check_queue_name(queue))

    def takes_dead_letters(self, queue: str) -> bool:
        """Whether a queue's name ends in -dlq, or another queue's settings send dead letters to it."""
        settings = self._writer.snapshot().settings
        if settings is not self._settings:  # a new mapping for each change
            self._settings = settings
            self._targets = frozenset([each.dead_letter_queue for each in settings.values()])
        return is_dead_letter_queue(queue) or queue in self._targets

    def check_dead_letter_queue(self, queue: str) -> None:
        """Raise InvalidQueueName or DeadLettersOnly unless `queue` takes dead letters."""
        if self.takes_dead_letters(check_queue_name(queue)):
            return
        own = queue + DLQ_SUFFIX  # no other name, which the caller may not be allowed to know
        there = self.rules(queue).dead_letter_queue == own and self.has_queue(own)
        raise DeadLettersOnly(f"{queue} takes no dead letters; its own are in {own}" if there else None)

    def dead_letter_queues(self) -> frozenset[str]:
        """All known queues that take dead letters."""
        snapshot = self._writer.snapshot()
        named = {settings.dead_letter_queue or "" for settings in snapshot.settings.values()}
        known = dict(snapshot.counts)  # a copy, because it may change during the iteration
        return frozenset(queue for queue in known if is_dead_letter_queue(queue) or queue in named)

    def log(self, name: LogName) -> Log:
        """Which entries of a log are stored."""
        return self._writer.snapshot().logs[name]

    def history_of(self, queue: str | None) -> HistoryCounts:
        """How much history a queue has; None: all queues together."""
        return self._writer.snapshot().history_of(queue)

    def staging(self) -> Staging:
        """How much is staged, in all and by key."""
        return self._writer.snapshot().staging

    @property
    def schedules(self) -> ScheduleTotals:
        """How many schedules there are, and when the next run is to be sent."""
        return self._writer.snapshot().schedules
