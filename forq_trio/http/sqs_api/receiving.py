"""ReceiveMessage: leases messages, and answers what was asked of them."""

from collections.abc import Sequence

from forq_trio.broker.broker import Broker
from forq_trio.http.long_poll import receive_messages, undelivery
from forq_trio.http.message import nothing_done
from forq_trio.http.sqs_api.attempts import Attempts
from forq_trio.http.sqs_api.caller import SqsCaller, Undoable
from forq_trio.http.sqs_api.checks import in_range
from forq_trio.http.sqs_api.details import attributes_of_queue
from forq_trio.http.sqs_api.errors import (
    INVALID_ATTRIBUTE_NAME,
    OVER_LIMIT,
    SqsError,
    not_of_this_type,
    shown,
)
from forq_trio.http.sqs_api.messages import ALL_NAMES, check_id, extra_of, view
from forq_trio.http.sqs_api.names import SqsQueue
from forq_trio.http.sqs_api.senders import sender_of
from forq_trio.http.sqs_api.sending import sequence_text
from forq_trio.http.sqs_api.shapes import ReceivedAnswer, ReceiveMessageRequest
from forq_trio.http.sqs_api.sources import SOURCE, Sources
from forq_trio.in_place import require_task
from forq_trio.model import limits
from forq_trio.model.access.types import Scope
from forq_trio.model.messages.types import Delivery

_SENDER = "SenderId"
SYSTEM_ATTRIBUTES = (
    _SENDER,
    "SentTimestamp",
    "ApproximateReceiveCount",
    "ApproximateFirstReceiveTimestamp",
    "SequenceNumber",
    "MessageDeduplicationId",
    "MessageGroupId",
    "AWSTraceHeader",
    SOURCE,
)


class SqsReceiving:
    """The operation for consumers."""

    def __init__(self, broker: Broker, sender_key: bytes | None) -> None:
        self._broker = broker
        self._sender_key = sender_key
        self._attempts = Attempts(broker)
        self._sources = Sources(broker)

    async def receive(self, caller: SqsCaller, asked: ReceiveMessageRequest) -> Undoable:
        """The messages. If the answer does not arrive they are released."""
        queue = caller.queue(self._broker, asked.queue_url, Scope.CONSUME)
        system = _system_names(asked)
        most = in_range("MaxNumberOfMessages", asked.max_number_of_messages, 1, limits.SQS_BATCH_MAX, 1)
        lease = None
        if asked.visibility_timeout is not None:
            lease = in_range(
                "VisibilityTimeout", asked.visibility_timeout, 0, limits.SQS_VISIBILITY_SECONDS_MAX, 0
            )
        own_wait = attributes_of_queue(self._broker, queue.house_name).get(
            "ReceiveMessageWaitTimeSeconds", "0"
        )
        wait = in_range(
            "WaitTimeSeconds", asked.wait_time_seconds, 0, limits.SQS_WAIT_SECONDS_MAX, int(own_wait)
        )
        attempt = asked.receive_request_attempt_id
        if attempt is not None:
            if not queue.is_fifo:
                raise not_of_this_type("ReceiveRequestAttemptId", attempt)
            check_id("ReceiveRequestAttemptId", attempt)
        lease_ms = None if lease is None else lease * limits.SECOND_MS
        reads_sources = self._sources.needed(queue, system)
        own_ms = self._broker.known.settings_of(queue.house_name).lease_ms
        are_visible = (own_ms if lease_ms is None else lease_ms) == 0
        if are_visible:
            require_task()  # before anything is claimed: the wait for the next batch may need one
        found = await self._attempts.again(queue.house_name, attempt, lease_ms)
        if found is None:
            found = await self._claim(caller, queue, most, wait, lease_ms)
            self._attempts.note(queue.house_name, attempt, found)
        if not found:
            return Undoable(ReceivedAnswer([]), nothing_done)
        undo = undelivery(self._broker, queue.house_name, found)
        try:
            if are_visible:
                await self._broker.healthcheck()  # the next batch: after it they count as visible again
            sources = await self._sources.of(queue, found, caller.account) if reads_sources else {}
            messages = [
                view(
                    each,
                    asked.message_attribute_names or (),
                    self._system_of(each, queue, caller, system, sources.get(each.id)),
                )
                for each in found
            ]
        except BaseException:
            undo()
            raise
        return Undoable(ReceivedAnswer(messages), undo)

    async def _claim(
        self, caller: SqsCaller, queue: SqsQueue, most: int, wait_seconds: int, lease_ms: int | None
    ) -> list[Delivery]:
        in_flight_max = limits.SQS_IN_FLIGHT_MAX
        if self._broker.known.counts_of(queue.house_name).processing >= in_flight_max:
            if queue.is_fifo:
                return []
            raise SqsError(OVER_LIMIT, f"Too many messages are in flight: {in_flight_max} at most.")
        return await receive_messages(
            self._broker,
            caller.request,
            queue.house_name,
            max_messages=most,
            wait_ms=wait_seconds * limits.SECOND_MS,
            lease_ms=lease_ms,
        )

    def _system_of(
        self, delivery: Delivery, queue: SqsQueue, caller: SqsCaller, names: Sequence[str], source: str | None
    ) -> dict[str, str]:
        """The attributes of the system that were asked for, and that the message has. source: where it came from."""
        if not names:
            return {}
        alone = delivery.id if queue.is_fifo else None  # sent by another API: a group of its own
        extra = extra_of(delivery)
        sender = sender_of(delivery, self._sender_key) if _SENDER in names else None
        found: dict[str, str | None] = {
            _SENDER: sender or caller.account.number,
            "SentTimestamp": str(delivery.received_at),
            "ApproximateReceiveCount": str(delivery.attempts),
            "ApproximateFirstReceiveTimestamp": str(delivery.first_received_at),
            "SequenceNumber": sequence_text(delivery.sequence) if queue.is_fifo else None,
            "MessageDeduplicationId": extra.deduplication_id or alone,
            "MessageGroupId": delivery.group or alone,
            "AWSTraceHeader": extra.trace_header,
            SOURCE: source,
        }
        return {name: value for name in names if (value := found[name]) is not None}


def _system_names(asked: ReceiveMessageRequest) -> tuple[str, ...]:
    names = dict.fromkeys([*(asked.attribute_names or ()), *(asked.message_system_attribute_names or ())])
    for name in names:
        if name not in ALL_NAMES and name not in SYSTEM_ATTRIBUTES:
            raise SqsError(INVALID_ATTRIBUTE_NAME, f"Unknown Attribute {shown(name)}.")
    return tuple(names) if names.keys().isdisjoint(ALL_NAMES) else SYSTEM_ATTRIBUTES
