"""The blocking client. Safe to share between threads.

Generated from `aio.py` by script/blocking_client.py: change it there.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, Unpack, cast, overload

from forq_trio.client import configurations, protocol, sends
from forq_trio.client.sync_dead_letters import DeadLetterClient
from forq_trio.client.sync_history import History
from forq_trio.client.sync_keys import Keys
from forq_trio.client.sync_outboxes import Outboxes
from forq_trio.client.sync_pipelines import Pipelines
from forq_trio.client.sync_schedules import Schedules
from forq_trio.client.sync_workers import Workers
from forq_trio.client.types import (
    CompactionInfo,
    CreatedToken,
    Delivery,
    MessageInfo,
    MessageOptions,
    NewMessage,
    Produced,
    QueueConfiguration,
    QueueHealth,
    QueueInfo,
    QueueTable,
    ReceiptResult,
    Scope,
    SettingsOptions,
    TokenInfo,
)
from forq_trio.model.checks import check_is_list, check_is_text
from forq_trio.model.errors import ForqError
from forq_trio.model.where import Wanted, json_of, where_of
from forq_trio.wire.endpoints import compaction as compaction_api
from forq_trio.wire.endpoints import messages as message_api
from forq_trio.wire.endpoints import queues as queue_api
from forq_trio.wire.endpoints import tokens as token_api
from forq_trio.wire.endpoints.endpoint import Endpoint
from forq_trio.wire.limits import WAIT_MS_MAX
from forq_trio.wire.messages import LeasedMessages, PeekQuery, ReceiveRequest
from forq_trio.wire.queues import QueuesQuery, SettingsChange
from forq_trio.wire.receipts import (
    AckRequest,
    DiscardRequest,
    ExtendRequest,
    ManyReceipts,
    NackRequest,
    OneReceipt,
    ReceiptResults,
    ReleaseRequest,
    outcome_of,
    receipts_of,
)
from forq_trio.wire.tokens import NewToken


class ForqClient(DeadLetterClient, History, Keys, Outboxes, Pipelines, Schedules, Workers):
    """A server at `url`, reached with `secret` (its FORQ_AUTH_SECRET, or a token). Use `with`, or `close` it.

    retry_seconds: how long a call is repeated while no connection can be made or the server is overloaded; nothing else
    is repeated. transport: what carries the requests, for tests and special networks.

    Every method raises what its declaration in `forq_trio.wire.methods` says; and WrongKey, TooManyWrongKeys or
    Forbidden for a secret that does not allow it, ForqUnreachable when no answer comes, ForqProtocolError when the
    answer is not one of Forq's.
    """

    def produce(self, queue: str, content: str, **options: Unpack[MessageOptions]) -> Produced:
        """Store one message; returns once durable. The options are the members of `NewMessage`.

        Raises TypeError for content that is not a str.
        """
        return self._produce(queue, NewMessage(content, **options))

    def produce_json(self, queue: str, value: Any, **options: Unpack[MessageOptions]) -> Produced:
        """`produce`, with `value` as JSON; raises what `NewMessage.of_json` raises, too."""
        return self._produce(queue, NewMessage.of_json(value, **options))

    def produce_many(self, queue: str, messages: Sequence[NewMessage]) -> list[Produced | ForqError]:
        """Store the valid ones of up to 1,000 messages (4 MiB) in one commit; the others are refused alone.

        Results in the order of the messages; for a refused one the error that `produce` would raise.
        `forq_trio.client.batches` cuts more than that into such requests.
        """
        answer = self._call(message_api.SEND_MESSAGES, sends.batch_of(messages), queue=queue)
        return sends.read_send_results(answer.results, len(messages))

    def cancel(self, queue: str, message_id: str) -> None:
        """Remove a message before anybody receives it: one that is ready, delayed or held.

        Its deduplication id is still remembered for its window. Raises MessageNotFound for one that does not exist,
        MessageInFlight for one that a consumer has.
        """
        self._call(message_api.CANCEL_MESSAGE, queue=queue, messageId=message_id)

    def receive(
        self,
        queue: str,
        *,
        max_messages: int = 1,
        wait_ms: int = WAIT_MS_MAX,
        lease_ms: int | None = None,
        shuffle: bool = False,
        where: Wanted | None = None,
    ) -> list[Delivery]:
        """Lease up to `max_messages` (1-100) for `lease_ms` (None: the queue's); in order, or at random.

        Waits up to `wait_ms` (0-30,000) for the first and returns an empty list when none came. A message whose
        lease ends before it is settled is delivered again. where: take only messages whose attributes have these
        values, e.g. {"region": "eu", "tier": {"not": "free"}}. Raises InvalidRequest for a `where` that is none.
        """
        order: Literal["fifo", "shuffle"] = "shuffle" if shuffle else "fifo"
        conditions = json_of(where_of(where, shuffle=shuffle))
        wanted = ReceiveRequest(max_messages, wait_ms, lease_ms, order, where=conditions)
        answer = self._exchange(
            message_api.RECEIVE_MESSAGES, wanted, wait_seconds=wait_ms / 1000, queue=queue
        )
        return protocol.read_answer(answer, LeasedMessages).messages

    @overload
    def ack(self, queue: str, receipts: OneReceipt) -> ReceiptResult: ...

    @overload
    def ack(self, queue: str, receipts: ManyReceipts) -> list[ReceiptResult]: ...

    def ack(self, queue: str, receipts: OneReceipt | ManyReceipts) -> ReceiptResult | list[ReceiptResult]:
        """Remove a received message, or up to 1,000 of them.

        One receipt, or its Delivery: raises ReceiptNotCurrent if it is no longer current, MalformedReceipt if it is
        none. Several: a result for each, in their order, also for those that are refused; raises TypeError for what is
        neither.
        """
        results = self._acks.ack(queue, receipts_of(receipts), self._ack)
        return outcome_of(receipts, results)

    @overload
    def nack(
        self,
        queue: str,
        receipts: OneReceipt,
        *,
        delay_ms: int | None = ...,
        reason: str | None = ...,
        final: bool = ...,
    ) -> ReceiptResult: ...

    @overload
    def nack(
        self,
        queue: str,
        receipts: ManyReceipts,
        *,
        delay_ms: int | None = ...,
        reason: str | None = ...,
        final: bool = ...,
    ) -> list[ReceiptResult]: ...

    def nack(
        self,
        queue: str,
        receipts: OneReceipt | ManyReceipts,
        *,
        delay_ms: int | None = None,
        reason: str | None = None,
        final: bool = False,
    ) -> ReceiptResult | list[ReceiptResult]:
        """Give messages back after a failed attempt, for `delay_ms` (None: the back-off). Else like `ack`.

        final: they fail now, however many attempts are left, and go to the dead-letter queue.
        """
        if reason is not None:
            check_is_text("reason", reason)
        wanted = NackRequest(receipts_of(receipts), delay_ms, reason, final)
        return self._settle(message_api.NACK_MESSAGES, queue, receipts, wanted)

    @overload
    def discard(self, queue: str, receipts: OneReceipt, *, reason: str) -> ReceiptResult: ...

    @overload
    def discard(self, queue: str, receipts: ManyReceipts, *, reason: str) -> list[ReceiptResult]: ...

    def discard(
        self, queue: str, receipts: OneReceipt | ManyReceipts, *, reason: str
    ) -> ReceiptResult | list[ReceiptResult]:
        """End received messages that no attempt can process: they never come again, and are no dead letters.

        reason: kept as their last error in the history. Else like `ack`.
        """
        check_is_text("reason", reason)
        wanted = DiscardRequest(receipts_of(receipts), reason)
        return self._settle(message_api.DISCARD_MESSAGES, queue, receipts, wanted)

    @overload
    def extend(self, queue: str, receipts: OneReceipt, lease_ms: int | None = ...) -> ReceiptResult: ...

    @overload
    def extend(
        self, queue: str, receipts: ManyReceipts, lease_ms: int | None = ...
    ) -> list[ReceiptResult]: ...

    def extend(
        self, queue: str, receipts: OneReceipt | ManyReceipts, lease_ms: int | None = None
    ) -> ReceiptResult | list[ReceiptResult]:
        """Let leases end `lease_ms` (None: the queue's lease) from now; a result has the new end. Else like `ack`."""
        wanted = ExtendRequest(receipts_of(receipts), lease_ms)
        return self._settle(message_api.EXTEND_LEASES, queue, receipts, wanted)

    @overload
    def release(self, queue: str, receipts: OneReceipt, *, delay_ms: int = ...) -> ReceiptResult: ...

    @overload
    def release(self, queue: str, receipts: ManyReceipts, *, delay_ms: int = ...) -> list[ReceiptResult]: ...

    def release(
        self, queue: str, receipts: OneReceipt | ManyReceipts, *, delay_ms: int = 0
    ) -> ReceiptResult | list[ReceiptResult]:
        """Give messages back unprocessed, the attempt uncounted, after `delay_ms`. Else like `ack`."""
        wanted = ReleaseRequest(receipts_of(receipts), delay_ms)
        return self._settle(message_api.RELEASE_MESSAGES, queue, receipts, wanted)

    def queues(self) -> list[QueueInfo]:
        """All queues by name; one request for a thousand of them."""
        page = self._call(queue_api.LIST_QUEUES)
        found = page.queues
        while page.next is not None:
            page = self._call(queue_api.LIST_QUEUES, query=QueuesQuery(after=page.next))
            found += page.queues
        return found

    def queue_stats(self, queue: str) -> QueueInfo:
        """One queue. Raises QueueNotFound."""
        return self._call(queue_api.SHOW_QUEUE, queue=queue)

    def queue_health(self, queue: str) -> QueueHealth:
        """The health of one queue, in words, and what to do about it. Only a server watches its queues."""
        return self._call(queue_api.SHOW_HEALTH, queue=queue)

    def message(self, queue: str, message_id: str) -> MessageInfo:
        """One message, read without changing it."""
        return self._call(message_api.SHOW_MESSAGE, queue=queue, messageId=message_id)

    def peek(self, queue: str, *, limit: int = 1, shuffle: bool = False) -> list[MessageInfo]:
        """The next ready messages (1-100) in the order they will be received, or random ones; nothing is claimed."""
        query = PeekQuery(limit=limit, order="shuffle" if shuffle else "fifo")
        answer = self._call(message_api.PEEK_MESSAGES, query=query, queue=queue)
        return answer.messages

    def settings(self, queue: str) -> QueueConfiguration:
        """The settings of a queue, as they were set and with the defaults filled in."""
        return configurations.read_configuration(self._exchange(queue_api.SHOW_SETTINGS, queue=queue))

    def configure(self, queue: str, **changes: Unpack[SettingsOptions]) -> QueueConfiguration:
        """Change settings: those not named are not changed, None resets to the default. Returns the settings then.

        Applies at once to all messages of the queue; order, delay and time to live apply only to those sent from now
        on. Raises TypeError for a name that is no setting.
        """
        change = SettingsChange(**cast("Any", changes))
        answer = self._exchange(queue_api.CHANGE_SETTINGS, change, queue=queue)
        return configurations.read_configuration(answer)

    def reset_settings(self, queue: str) -> None:
        """Reset all settings to the defaults; a paused queue stays paused."""
        self._call(queue_api.FORGET_SETTINGS, queue=queue)

    def bind(self, queue: str, table: str, *, layout: Literal["pgq"] = "pgq") -> QueueTable:
        """Bind a queue to a table of pgq's layout in the server's PostgreSQL database: its messages are the rows there.

        The queue has no messages, and no settings but the lease and the attempts. Raises WrongTable, which says what
        the table lacks.
        """
        return self._call(queue_api.BIND_QUEUE, QueueTable(layout, table), queue=queue)

    def bound_table(self, queue: str) -> QueueTable:
        """The table to which a queue is bound. Raises QueueNotBound."""
        return self._call(queue_api.SHOW_TABLE, queue=queue)

    def unbind(self, queue: str) -> None:
        """The queue has messages of its own again; the table stays as it is. Raises QueueNotBound."""
        self._call(queue_api.UNBIND_QUEUE, queue=queue)

    def pause(self, queue: str) -> None:
        """Deliver no messages of the queue until `resume`; sends go on."""
        self._call(queue_api.PAUSE_QUEUE, queue=queue)

    def resume(self, queue: str) -> None:
        """End a pause."""
        self._call(queue_api.RESUME_QUEUE, queue=queue)

    def purge(self, queue: str) -> int:
        """Remove all messages that were sent to the queue before this call, whatever their status; returns how many."""
        answer = self._call(queue_api.PURGE_QUEUE, wait_seconds=protocol.PURGE_SECONDS, queue=queue)
        return answer.purged

    def delete_queue(self, queue: str) -> None:
        """Forget an empty queue and its settings. Raises QueueNotEmpty while it has messages."""
        self._call(queue_api.REMOVE_QUEUE, queue=queue)

    def create_token(
        self, name: str, scopes: Iterable[Scope], queues: str = "*", *, expires_at: int | None = None
    ) -> CreatedToken:
        """Create a token for the queues that the glob matches, until `expires_at` (epoch ms; None: for ever).

        Only this result has its text. Needs the secret, or a token with the scope admin for all queues; so do
        `tokens` and `revoke_token`.
        """
        check_is_list("scopes", scopes)
        wanted = NewToken(name, list(scopes), queues, expires_at)
        return self._call(token_api.CREATE_TOKEN, wanted)

    def tokens(self) -> list[TokenInfo]:
        """All tokens by name, also those that expired."""
        answer = self._call(token_api.LIST_TOKENS)
        return answer.tokens

    def revoke_token(self, name: str) -> None:
        """Revoke a token, at once."""
        self._call(token_api.REVOKE_TOKEN, name=name)

    def compaction_info(self) -> CompactionInfo:
        """The server's running compaction, or the last one since its start, and how much of its file is free.

        Needs the secret, or a token with the scope admin for all queues; so do the three below.
        """
        return self._call(compaction_api.SHOW_COMPACTION)

    def start_compaction(self) -> CompactionInfo:
        """Begin to give all free pages of the server's file back to its disk, or resume a paused compaction.

        It goes on in the server after this call; one that somebody asked for is unchanged.
        """
        return self._call(compaction_api.START_COMPACTION)

    def pause_compaction(self) -> CompactionInfo:
        """Pause the compaction until it is started again; nothing happens if none runs."""
        return self._call(compaction_api.PAUSE_COMPACTION)

    def stop_compaction(self) -> CompactionInfo:
        """End the compaction; pages that it gave back stay given back."""
        return self._call(compaction_api.STOP_COMPACTION)

    def healthcheck(self) -> None:
        """Return if the server and its database work."""
        self._request("GET", "/healthcheck")

    def _produce(self, queue: str, message: NewMessage) -> Produced:
        # A batch of one: unlike the plain send, it is answered with the message's id.
        (result,) = self.produce_many(queue, [message])
        if isinstance(result, ForqError):
            raise result
        return result

    def _settle(
        self,
        endpoint: Endpoint[ReceiptResults],
        queue: str,
        receipts: OneReceipt | ManyReceipts,
        wanted: object,
    ) -> ReceiptResult | list[ReceiptResult]:
        answer = self._call(endpoint, wanted, queue=queue)
        return outcome_of(receipts, answer.results)

    def _ack(self, queue: str, receipts: list[str]) -> list[ReceiptResult]:
        answer = self._call(message_api.ACK_MESSAGES, AckRequest(receipts), queue=queue)
        return answer.results
