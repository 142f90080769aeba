"""ReceiveMessage: leases messages, and answers what was asked of them."""

from collections.abc import Sequence

from forq_trio.broker.broker import Broker
from forq_trio.http.long_poll import receive_messages, undelivery
from forq_trio.http.message import nothing_done
from forq_trio.http.sqs_api.attempts import Attempts
from forq_trio.http.sqs_api.caller import SqsCaller, Undoable
from forq_trio.http.sqs_api.errors import INVALID_ATTRIBUTE_NAME, OVER_LIMIT, SqsError, invalid, shown
from forq_trio.http.sqs_api.messages import ALL_NAMES, check_id, extra_of, in_range, view
from forq_trio.http.sqs_api.names import SqsQueue
from forq_trio.http.sqs_api.sending import sequence_text
from forq_trio.http.sqs_api.shapes import ReceivedAnswer, ReceiveMessageRequest
from forq_trio.http.sqs_api.sources import SOURCE, Sources
from forq_trio.model import limits
from forq_trio.model.access.types import Scope
from forq_trio.model.messages.types import Delivery

SYSTEM_ATTRIBUTES = (
    "SenderId",
    "SentTimestamp",
    "ApproximateReceiveCount",
    "ApproximateFirstReceiveTimestamp",
    "SequenceNumber",
    "MessageDeduplicationId",
    "MessageGroupId",
    "AWSTraceHeader",
    SOURCE,
)
IN_FLIGHT_MAX = 120_000


class SqsReceiving:
    """The operation for consumers."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
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
        wait = in_range(
            "WaitTimeSeconds", asked.wait_time_seconds, 0, limits.SQS_WAIT_SECONDS_MAX, self._wait_of(queue)
        )
        attempt = asked.receive_request_attempt_id
        if attempt is not None:
            if not queue.is_fifo:
                reason = "The request include parameter that is not valid for this queue type."
                raise invalid("ReceiveRequestAttemptId", attempt, reason)
            check_id("ReceiveRequestAttemptId", attempt)
        lease_ms = None if lease is None else lease * limits.SECOND_MS
        reads_sources = self._sources.needed(queue, system)
        found = await self._attempts.again(queue.house_name, attempt, lease_ms)
        if found is None:
            found = await self._claim(caller, queue, most, wait, lease_ms)
            self._attempts.note(queue.house_name, attempt, found)
        sources = await self._sources.of(queue, found, caller.account) if reads_sources else {}
        messages = [
            view(
                each,
                asked.message_attribute_names or (),
                _system_of(each, queue, caller, system, sources.get(each.id)),
            )
            for each in found
        ]
        undo = undelivery(self._broker, queue.house_name, found) if found else nothing_done
        return Undoable(ReceivedAnswer(messages), undo)

    async def _claim(
        self, caller: SqsCaller, queue: SqsQueue, most: int, wait_seconds: int, lease_ms: int | None
    ) -> list[Delivery]:
        if self._broker.known.counts_of(queue.house_name).processing >= IN_FLIGHT_MAX:
            if queue.is_fifo:
                return []
            raise SqsError(OVER_LIMIT, f"Too many messages are in flight: {IN_FLIGHT_MAX} at most.")
        found = await receive_messages(
            self._broker,
            caller.request,
            queue.house_name,
            max_messages=most,
            wait_ms=wait_seconds * limits.SECOND_MS,
            lease_ms=lease_ms,
        )
        if found and not (
            self._broker.known.rules(queue.house_name).lease_ms if lease_ms is None else lease_ms
        ):
            await self._broker.healthcheck()  # the next batch: after it they count as visible again
        return found

    def _wait_of(self, queue: SqsQueue) -> int:
        details = self._broker.known.settings_of(queue.house_name).sqs
        return 0 if details is None else int(details.attributes.get("ReceiveMessageWaitTimeSeconds", "0"))


def _system_of(
    delivery: Delivery, queue: SqsQueue, caller: SqsCaller, names: Sequence[str], source: str | None
) -> dict[str, str]:
    """The attributes of the system that were asked for, and that the message has. source: where it came from."""
    if not names:
        return {}
    extra = extra_of(delivery)
    found: dict[str, str | None] = {
        "SenderId": extra.sender or caller.account.number,
        "SentTimestamp": str(delivery.received_at),
        "ApproximateReceiveCount": str(delivery.attempts),
        "ApproximateFirstReceiveTimestamp": str(delivery.first_received_at),
        "SequenceNumber": sequence_text(delivery.sequence) if queue.is_fifo else None,
        "MessageDeduplicationId": extra.deduplication_id,
        "MessageGroupId": delivery.group,
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
