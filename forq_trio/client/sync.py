"""The blocking client. Safe to share between threads.

Generated from `aio.py` by script/blocking_client.py: change it there.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, Unpack

from forq_trio.client import protocol, sends
from forq_trio.client.sync_dead_letters import DeadLetterClient
from forq_trio.client.sync_history import History
from forq_trio.client.sync_keys import Keys
from forq_trio.client.sync_message_batches import MessageBatches
from forq_trio.client.sync_outboxes import Outboxes
from forq_trio.client.sync_pipelines import Pipelines
from forq_trio.client.sync_queues import QueueClient
from forq_trio.client.sync_results import Results
from forq_trio.client.sync_schedules import Schedules
from forq_trio.client.sync_settlements import Settlements
from forq_trio.client.sync_workers import Workers
from forq_trio.model.access import endpoints as token_api
from forq_trio.model.access.bodies import CreatedToken, NewToken, TokenInfo
from forq_trio.model.access.types import Scope
from forq_trio.model.checks import check_is_list, check_is_text
from forq_trio.model.endpoint import Endpoint
from forq_trio.model.errors import ForqError
from forq_trio.model.limits import WAIT_MS_MAX
from forq_trio.model.messages import endpoints as message_api
from forq_trio.model.messages.bodies import LeasedMessages, PeekQuery, ReceiveRequest
from forq_trio.model.messages.methods import CANCEL_MESSAGE, CANCEL_RUNNING_MESSAGE
from forq_trio.model.messages.new_message import MessageOptions, NewMessage
from forq_trio.model.messages.receipts import (
    AckRequest,
    DiscardRequest,
    ExtendRequest,
    ManyReceipts,
    NackRequest,
    OneReceipt,
    ReceiptResult,
    ReceiptResults,
    ReleaseRequest,
    receipts_of,
)
from forq_trio.model.messages.types import Delivery, MessageInfo, Produced
from forq_trio.model.messages.where import Wanted, json_of, where_of
from forq_trio.model.server import compaction_endpoints as compaction_api
from forq_trio.model.server.compaction import CompactionInfo


class ForqClient(
    Results,
    Settlements,
    QueueClient,
    DeadLetterClient,
    History,
    Keys,
    MessageBatches,
    Outboxes,
    Pipelines,
    Schedules,
    Workers,
):
    """A server at `url`, reached with `secret` (its FORQ_AUTH_SECRET, or a token). Use `with`, or `close` it.

    Without an argument they are those of FORQ_URL (else as docs/cli.md says) and of FORQ_AUTH_SECRET.

    retry_seconds: how long a call is repeated while no connection can be made or the server is overloaded; nothing else
    is repeated. transport: what carries the requests, for tests and special networks.

    Every method raises what its declaration in `forq_trio.model` says; and WrongKey, TooManyWrongKeys or
    Forbidden for a secret that does not allow it, ForqUnreachable when no answer comes, ForqProtocolError when the
    answer is not one of Forq's.
    """

    def produce(self, queue: str, content: str, **options: Unpack[MessageOptions]) -> Produced:
        """Store one message; returns once it is durable (see FORQ_DURABILITY).

        Options: the members of `NewMessage`. Raises what `check_message` raises, InvalidQueueName,
        ProduceToDeadLetterQueue, QueueFull, Overloaded, Stopping, StorageUnavailable (nothing stored) or
        OutcomeUnknown; TypeError for an unknown option, and for content that is not a str.
        """
        return self._produce(queue, NewMessage(content, **options))

    def produce_json(self, queue: str, value: Any, **options: Unpack[MessageOptions]) -> Produced:
        """Like `produce`, with `value` as JSON; also raises what `NewMessage.of_json` raises."""
        return self._produce(queue, NewMessage.of_json(value, **options))

    def produce_many(self, queue: str, messages: Sequence[NewMessage]) -> list[Produced | ForqError]:
        """Store the valid ones of up to 1,000 messages in one commit, all or none; the others are refused alone.

        Results in the order of the messages; for a refused one the error that `produce` would raise. Raises like
        `produce`. A request has 4 MiB at most: `forq_trio.client.batches` cuts more into several.
        """
        answer = self._call(message_api.SEND_MESSAGES, sends.batch_of(messages), queue=queue)
        return sends.read_send_results(answer.results, len(messages))

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
        """Lease up to `max_messages` (1-100) for `lease_ms` (None: the queue's), in claim order or at random.

        Waits up to `wait_ms` (0-30,000) for the first one; returns [] when none came. Among waiting receivers the one
        that waits longest is served first. A message whose lease ends before it is settled is delivered again. where:
        take only messages whose attributes have these values, e.g. {"region": "eu", "tier": {"not": "free"}}. Raises
        InvalidRequest for an invalid `where`, or one with `shuffle`; InvalidQueueName, OutOfRange, Overloaded,
        Stopping, StorageUnavailable or OutcomeUnknown.
        """
        order: Literal["fifo", "shuffle"] = "shuffle" if shuffle else "fifo"
        conditions = json_of(where_of(where, shuffle=shuffle))
        wanted = ReceiveRequest(max_messages, wait_ms, lease_ms, order, where=conditions)
        answer = self._exchange(
            message_api.RECEIVE_MESSAGES, wanted, wait_seconds=wait_ms / 1000, queue=queue
        )
        return protocol.read_answer(answer, LeasedMessages).messages

    def _ack_all(self, queue: str, receipts: OneReceipt | ManyReceipts) -> list[ReceiptResult]:
        return self._acks.ack(queue, receipts_of(receipts), self._ack)

    def _nack_all(
        self,
        queue: str,
        receipts: OneReceipt | ManyReceipts,
        delay_ms: int | None,
        reason: str | None,
        *,
        final: bool,
        max_attempts: int | None,
    ) -> list[ReceiptResult]:
        if reason is not None:
            check_is_text("reason", reason)
        wanted = NackRequest(receipts_of(receipts), delay_ms, reason, final, max_attempts)
        return self._settle(message_api.NACK_MESSAGES, queue, wanted)

    def _discard_all(
        self, queue: str, receipts: OneReceipt | ManyReceipts, reason: str
    ) -> list[ReceiptResult]:
        check_is_text("reason", reason)
        wanted = DiscardRequest(receipts_of(receipts), reason)
        return self._settle(message_api.DISCARD_MESSAGES, queue, wanted)

    def _extend_all(
        self, queue: str, receipts: OneReceipt | ManyReceipts, lease_ms: int | None
    ) -> list[ReceiptResult]:
        wanted = ExtendRequest(receipts_of(receipts), lease_ms)
        return self._settle(message_api.EXTEND_LEASES, queue, wanted)

    def _release_all(
        self, queue: str, receipts: OneReceipt | ManyReceipts, delay_ms: int
    ) -> list[ReceiptResult]:
        wanted = ReleaseRequest(receipts_of(receipts), delay_ms)
        return self._settle(message_api.RELEASE_MESSAGES, queue, wanted)

    def message(self, queue: str, message_id: str) -> MessageInfo:
        """One message, read without changing it. Raises MalformedMessageId or MessageNotFound."""
        return self._call(message_api.SHOW_MESSAGE, queue=queue, messageId=message_id)

    def peek(self, queue: str, *, limit: int = 1, shuffle: bool = False) -> list[MessageInfo]:
        """The next ready messages (1-100) in claim order, or random ones; nothing is claimed."""
        query = PeekQuery(limit=limit, order="shuffle" if shuffle else "fifo")
        answer = self._call(message_api.PEEK_MESSAGES, query=query, queue=queue)
        return answer.messages

    def create_token(
        self, name: str, scopes: Iterable[Scope], queues: str = "*", *, expires_at: int | None = None
    ) -> CreatedToken:
        """Create a token with `scopes` on the queues that the glob matches; only this result has its text.

        name: 1-64 characters of A-Z a-z 0-9 . _ -; expires_at: epoch ms, None for never. If there are TOKENS_MAX
        tokens, the one that expired longest ago is removed. Raises InvalidToken, TokenExists, TooManyTokens. For this
        method, `tokens` and `revoke_token` a client needs the secret, or a token with the scope admin for all queues.
        """
        check_is_list("scopes", scopes)
        wanted = NewToken(name, list(scopes), queues, expires_at)
        return self._call(token_api.CREATE_TOKEN, wanted)

    def tokens(self) -> list[TokenInfo]:
        """All tokens by name, also expired ones."""
        answer = self._call(token_api.LIST_TOKENS)
        return answer.tokens

    def revoke_token(self, name: str) -> None:
        """Revoke a token, with effect from the commit; its name is free again. Raises TokenNotFound."""
        self._call(token_api.REVOKE_TOKEN, name=name)

    def compaction_info(self) -> CompactionInfo:
        """The running compaction, or the last one since the start of the server, and how much of its file is free.

        A client needs the secret, or a token with the scope admin for all queues; so it does for the three below.
        """
        return self._call(compaction_api.SHOW_COMPACTION)

    def start_compaction(self) -> CompactionInfo:
        """Begin to give all free pages of the file back to the disk, or resume a paused compaction.

        It works in small steps between other calls, and continues after this call. A requested compaction that runs
        already is unchanged. Raises CompactionImpossible, Stopping.
        """
        return self._call(compaction_api.START_COMPACTION)

    def pause_compaction(self) -> CompactionInfo:
        """Pause the compaction until it is started again; nothing happens if none runs."""
        return self._call(compaction_api.PAUSE_COMPACTION)

    def stop_compaction(self) -> CompactionInfo:
        """End the compaction; pages that it gave back stay given back."""
        return self._call(compaction_api.STOP_COMPACTION)

    def healthcheck(self) -> None:
        """Return if the server and its database work; raise a ServiceError if not."""
        self._request("GET", "/healthcheck")

    def _produce(self, queue: str, message: NewMessage) -> Produced:
        # A batch of one: unlike the plain send, it is answered with the message's id.
        (result,) = self.produce_many(queue, [message])
        if isinstance(result, ForqError):
            raise result
        return result

    def _settle(self, endpoint: Endpoint[ReceiptResults], queue: str, wanted: object) -> list[ReceiptResult]:
        return (self._call(endpoint, wanted, queue=queue)).results

    def _ack(self, queue: str, receipts: list[str]) -> list[ReceiptResult]:
        answer = self._call(message_api.ACK_MESSAGES, AckRequest(receipts), queue=queue)
        return answer.results

    def cancel(self, queue: str, message_id: str, *, running: bool = False, reason: str = "") -> None:
        """Remove a message before anybody receives it: one that is ready, delayed or held.

        running: also one that a consumer has. Its receipt is void then, and the handler of a worker is cancelled at
        once; what that has done until then stays done. reason, with `running` only: what the handler's job says then
        (`removal_reason`), and the last error of the message; at most 1,024 characters.

        Its deduplication id is still remembered for its window, so that a repeated send does not bring it back. Raises
        InvalidQueueName, MalformedMessageId, OutOfRange; MessageNotFound for one that does not exist; MessageInFlight,
        without `running`, for one that a consumer has; and what `produce` raises when nothing was changed.
        """
        if running:
            self._perform(CANCEL_RUNNING_MESSAGE, queue=queue, message_id=message_id, reason=reason)
        else:
            self._perform(CANCEL_MESSAGE, queue=queue, message_id=message_id)
