"""The operations on queues as a whole: made, listed, changed, tagged, purged, deleted."""

from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from math import inf

import trio
from msgspec import UNSET
from msgspec.structs import replace

from forq_trio.broker.broker import Broker
from forq_trio.http.sqs_api.attributes import (
    ALL,
    COUNTS,
    allows_redrive,
    differing,
    read_attributes,
    settings_of_new,
    show_attributes,
)
from forq_trio.http.sqs_api.caller import ANY_SCOPE, SqsCaller
from forq_trio.http.sqs_api.details import (
    DetailChanges,
    attributes_of_queue,
    queue_in_house,
    stored_details_of,
)
from forq_trio.http.sqs_api.errors import (
    ACCESS_DENIED,
    INVALID_ATTRIBUTE_VALUE,
    INVALID_PARAMETER,
    PURGE_IN_PROGRESS,
    QUEUE_NAME_EXISTS,
    SqsError,
    invalid,
    missing,
    no_such_queue,
)
from forq_trio.http.sqs_api.names import SqsQueue, new_queue
from forq_trio.http.sqs_api.pages import QueuePages
from forq_trio.http.sqs_api.shapes import (
    CreateQueueRequest,
    GetQueueAttributesRequest,
    GetQueueUrlRequest,
    ListDeadLetterSourceQueuesRequest,
    ListQueuesRequest,
    Nothing,
    QueueAttributesAnswer,
    QueueUrlAnswer,
    QueueUrlRequest,
    QueueUrlsAnswer,
    SetQueueAttributesRequest,
    SourceQueuesAnswer,
)
from forq_trio.http.sqs_api.tags import checked_tags
from forq_trio.model import limits
from forq_trio.model.access.types import Scope
from forq_trio.model.errors import Overloaded, QueueNotEmpty
from forq_trio.model.queues.names import default_dead_letter_queue
from forq_trio.model.queues.settings import SettingsChange

PURGE_REST_SECONDS = 60


class SqsQueues:
    """The operations for those who own queues."""

    def __init__(self, broker: Broker, changes: DetailChanges) -> None:
        self._broker = broker
        self._changes = changes
        self._pages = QueuePages(broker)
        self._purged_at: dict[str, float] = {}

    async def create(self, caller: SqsCaller, asked: CreateQueueRequest) -> QueueUrlAnswer:
        """Make a queue, or find one whose attributes are those that are given."""
        origin = caller.origin  # first: it may refuse the Host
        queue = new_queue(asked.queue_name, caller.region, caller.account)
        caller.check(queue, Scope.ADMIN, *(() if asked.attributes or asked.tags else (Scope.PRODUCE,)))
        if ((asked.attributes or {}).get("FifoQueue") == "true") != queue.is_fifo:
            text = "The name of a FIFO queue can only include alphanumeric characters, hyphens, or underscores, must"
            raise SqsError(INVALID_PARAMETER, f"{text} end with .fifo suffix and be 1 to 80 in length.")
        # moto, in whose place this server may stand, takes a blank behind a name.
        given = {name.strip(): value for name, value in (asked.attributes or {}).items()}
        change = read_attributes(given, queue, partial(self._is_target, caller))
        if not self._exists(queue):
            await self._broker.take_over()  # another server may have made it a moment ago
        if self._exists(queue):
            present = self._attributes(queue)
            name = differing(given, present)
            if name is not None:
                text = f"A queue already exists with the same name and a different value for attribute {name}"
                raise SqsError(QUEUE_NAME_EXISTS, text)
            await trio.lowlevel.checkpoint()
        else:
            self._check_source(queue, change.settings)
            settings = replace(settings_of_new(queue), **change.settings.given())
            tags = checked_tags(asked.tags or {}, queue)
            await self._changes.store(queue, settings, attributes=change.attributes, tags=tags)
        return QueueUrlAnswer(queue.url(origin))

    async def delete(self, caller: SqsCaller, asked: QueueUrlRequest) -> Nothing:
        """Delete a queue with its messages."""
        queue = caller.queue(self._broker, asked.queue_url, Scope.ADMIN)
        for _ in range(limits.SQS_DELETE_TRIES):
            await self._broker.purge(queue.house_name)
            with suppress(QueueNotEmpty):  # very many messages were sent since
                await self._broker.delete_queue_with_messages(queue.house_name)
                self._purged_at.pop(queue.house_name, None)
                return Nothing()
        raise Overloaded("messages are sent to the queue while it is deleted")

    async def url(self, caller: SqsCaller, asked: GetQueueUrlRequest) -> QueueUrlAnswer:
        await trio.lowlevel.checkpoint()
        if not asked.queue_name:
            raise missing("QueueName")
        if asked.queue_owner_account not in (None, caller.account.number):
            raise no_such_queue()
        return QueueUrlAnswer(caller.queue(self._broker, asked.queue_name, *ANY_SCOPE).url(caller.origin))

    async def queues(self, caller: SqsCaller, asked: ListQueuesRequest) -> QueueUrlsAnswer:
        prefix = asked.queue_name_prefix or ""
        page, token = await self._pages.page(
            caller, asked.max_results, asked.next_token, lambda queue: queue.name.startswith(prefix), prefix
        )
        origin = caller.origin
        return QueueUrlsAnswer([queue.url(origin) for queue in page], token)

    async def attributes(self, caller: SqsCaller, asked: GetQueueAttributesRequest) -> QueueAttributesAnswer:
        await trio.lowlevel.checkpoint()
        queue = caller.queue(self._broker, asked.queue_url, *ANY_SCOPE)
        may_count, names = caller.may(queue, Scope.BROWSE), asked.attribute_names or ()
        if not may_count and any(name in COUNTS for name in names):
            raise SqsError(ACCESS_DENIED, f"Counts of the resource {queue.arn} are denied: they need browse.")
        return QueueAttributesAnswer(self._attributes(queue, names, counted=may_count))

    async def set_attributes(self, caller: SqsCaller, asked: SetQueueAttributesRequest) -> Nothing:
        queue = caller.queue(self._broker, asked.queue_url, Scope.ADMIN)
        if not asked.attributes:
            raise missing("Attributes")
        if "FifoQueue" in asked.attributes and (asked.attributes["FifoQueue"] == "true") != queue.is_fifo:
            text = "Invalid value for the parameter FifoQueue. Reason: Modifying queue type is not supported."
            raise SqsError(INVALID_ATTRIBUTE_VALUE, text)
        change = read_attributes(asked.attributes, queue, partial(self._is_target, caller))
        self._check_source(queue, change.settings)
        await self._changes.store(queue, change.settings, attributes=change.attributes)
        return Nothing()

    async def purge(self, caller: SqsCaller, asked: QueueUrlRequest) -> Nothing:
        queue = caller.queue(self._broker, asked.queue_url, Scope.ADMIN)
        now = trio.current_time()  # not the wall clock, which may be set back
        if now - self._purged_at.get(queue.house_name, -inf) < PURGE_REST_SECONDS:
            text = f"Only one PurgeQueue operation on {queue.name} is allowed every 60 seconds."
            raise SqsError(PURGE_IN_PROGRESS, text)
        self._purged_at.pop(queue.house_name, None)
        self._purged_at[queue.house_name] = now
        while now - self._purged_at[first := next(iter(self._purged_at))] >= PURGE_REST_SECONDS:
            del self._purged_at[first]
        try:
            await self._broker.purge(queue.house_name)
        except BaseException:
            self._purged_at.pop(queue.house_name, None)  # it may be tried again at once
            raise
        return Nothing()

    async def sources(
        self, caller: SqsCaller, asked: ListDeadLetterSourceQueuesRequest
    ) -> SourceQueuesAnswer:
        """The queues whose failed messages go to this one."""
        target = caller.queue(self._broker, asked.queue_url, *ANY_SCOPE)
        page, token = await self._pages.page(
            caller,
            asked.max_results,
            asked.next_token,
            lambda queue: self._target_of(queue.house_name) == target.house_name,
        )
        origin = caller.origin
        return SourceQueuesAnswer([queue.url(origin) for queue in page], token)

    def _target_of(self, house_name: str) -> str:
        """Where the dead letters of a queue go. Without all its rules, which take ten times as long to make."""
        settings = self._broker.known.settings().get(house_name)
        if settings is not None and settings.dead_letter_queue is not None:
            return settings.dead_letter_queue
        return default_dead_letter_queue(house_name)

    def _is_target(self, caller: SqsCaller, queue: SqsQueue) -> bool:
        """Whether there is this queue for dead letters. Raises SqsError if the client may not name it as one."""
        caller.check(queue, Scope.ADMIN)
        return self._exists(queue)

    def _exists(self, queue: SqsQueue) -> bool:
        return self._broker.known.has_queue(queue.house_name)

    def _attributes(
        self, queue: SqsQueue, names: Iterable[str] = (ALL,), *, counted: bool = False
    ) -> dict[str, str]:
        known = self._broker.known
        name = queue.house_name
        return show_attributes(
            names,
            queue,
            known.rules(name),
            stored_details_of(self._broker, name),
            known.counts_of(name) if counted else None,
            lambda target: queue_in_house(self._broker, target, queue.region, queue.account),
        )

    def _check_source(self, queue: SqsQueue, change: SettingsChange) -> None:
        """Raise SqsError if the new dead-letter queue does not take messages of this queue."""
        target = change.dead_letter_queue
        if target is UNSET or not target:
            return
        if not allows_redrive(attributes_of_queue(self._broker, str(target)), queue):
            raise invalid("RedrivePolicy", target, "The dead-letter queue does not allow this source queue.")
