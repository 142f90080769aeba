"""The asynchronous client, for trio and for asyncio.

What each method means is said in forq_trio/model, for the broker, too. script/blocking_client.py generates
`sync.py` from this file, and the other `sync_*.py` in the same way: every method is written once and exists in both
clients, plain and typed, which type checkers and editors would not see with a decorator.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Literal, Unpack

from forq_trio.client import protocol, sends
from forq_trio.client.aio_dead_letters import AsyncDeadLetterClient
from forq_trio.client.aio_history import AsyncHistory
from forq_trio.client.aio_keys import AsyncKeys
from forq_trio.client.aio_message_batches import AsyncMessageBatches
from forq_trio.client.aio_outboxes import AsyncOutboxes
from forq_trio.client.aio_pipelines import AsyncPipelines
from forq_trio.client.aio_queues import AsyncQueueClient
from forq_trio.client.aio_results import AsyncResults
from forq_trio.client.aio_schedules import AsyncSchedules
from forq_trio.client.aio_workers import AsyncWorkers
from forq_trio.model.access import endpoints as token_api
from forq_trio.model.access.bodies import CreatedToken, NewToken, TokenInfo
from forq_trio.model.access.methods import TokenMethods
from forq_trio.model.access.types import Scope
from forq_trio.model.checks import check_is_list, check_is_text
from forq_trio.model.endpoint import Endpoint
from forq_trio.model.errors import ForqError
from forq_trio.model.limits import WAIT_MS_MAX
from forq_trio.model.messages import endpoints as message_api
from forq_trio.model.messages.bodies import LeasedMessages, PeekQuery, ReceiveRequest
from forq_trio.model.messages.methods import MessageMethods
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
from forq_trio.model.messages.settlement_methods import SettlementMethods
from forq_trio.model.messages.types import Delivery, MessageInfo, Produced
from forq_trio.model.messages.where import Wanted, json_of, where_of
from forq_trio.model.server import compaction_endpoints as compaction_api
from forq_trio.model.server.compaction import CompactionInfo
from forq_trio.model.server.methods import ServerMethods


class AsyncForqClient(
    AsyncResults,
    SettlementMethods,
    MessageMethods,
    AsyncQueueClient,
    ServerMethods,
    TokenMethods,
    AsyncDeadLetterClient,
    AsyncHistory,
    AsyncKeys,
    AsyncMessageBatches,
    AsyncOutboxes,
    AsyncPipelines,
    AsyncSchedules,
    AsyncWorkers,
):
    """A server at `url`, reached with `secret` (its FORQ_AUTH_SECRET, or a token). Use `async with`, or `aclose` it.

    Without an argument they are those of FORQ_URL (else as docs/cli.md says) and of FORQ_AUTH_SECRET.

    retry_seconds: how long a call is repeated while no connection can be made or the server is overloaded; nothing else
    is repeated. transport: what carries the requests, for tests and special networks.

    Every method raises what its declaration in `forq_trio.model` says; and WrongKey, TooManyWrongKeys or
    Forbidden for a secret that does not allow it, ForqUnreachable when no answer comes, ForqProtocolError when the
    answer is not one of Forq's.

    Cancelling a call closes its connection; the request may or may not have been carried out. The server notices at
    once and releases the messages of a cancelled `receive`. Acks of one pass of the event loop share a request, which
    goes on for the others when one of them is cancelled.
    """

    async def produce(self, queue: str, content: str, **options: Unpack[MessageOptions]) -> Produced:
        return await self._produce(queue, NewMessage(content, **options))

    async def produce_json(self, queue: str, value: Any, **options: Unpack[MessageOptions]) -> Produced:
        return await self._produce(queue, NewMessage.of_json(value, **options))

    async def produce_many(self, queue: str, messages: Sequence[NewMessage]) -> list[Produced | ForqError]:
        answer = await self._call(message_api.SEND_MESSAGES, sends.batch_of(messages), queue=queue)
        return sends.read_send_results(answer.results, len(messages))

    async def receive(
        self,
        queue: str,
        *,
        max_messages: int = 1,
        wait_ms: int = WAIT_MS_MAX,
        lease_ms: int | None = None,
        shuffle: bool = False,
        where: Wanted | None = None,
    ) -> list[Delivery]:
        order: Literal["fifo", "shuffle"] = "shuffle" if shuffle else "fifo"
        conditions = json_of(where_of(where, shuffle=shuffle))
        wanted = ReceiveRequest(max_messages, wait_ms, lease_ms, order, where=conditions)
        answer = await self._exchange(
            message_api.RECEIVE_MESSAGES, wanted, wait_seconds=wait_ms / 1000, queue=queue
        )
        return protocol.read_answer(answer, LeasedMessages).messages

    async def _ack_all(self, queue: str, receipts: OneReceipt | ManyReceipts) -> list[ReceiptResult]:
        return await self._acks.ack(queue, receipts_of(receipts), self._ack)

    async def _nack_all(
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
        return await self._settle(message_api.NACK_MESSAGES, queue, wanted)

    async def _discard_all(
        self, queue: str, receipts: OneReceipt | ManyReceipts, reason: str
    ) -> list[ReceiptResult]:
        check_is_text("reason", reason)
        wanted = DiscardRequest(receipts_of(receipts), reason)
        return await self._settle(message_api.DISCARD_MESSAGES, queue, wanted)

    async def _extend_all(
        self, queue: str, receipts: OneReceipt | ManyReceipts, lease_ms: int | None
    ) -> list[ReceiptResult]:
        wanted = ExtendRequest(receipts_of(receipts), lease_ms)
        return await self._settle(message_api.EXTEND_LEASES, queue, wanted)

    async def _release_all(
        self, queue: str, receipts: OneReceipt | ManyReceipts, delay_ms: int
    ) -> list[ReceiptResult]:
        wanted = ReleaseRequest(receipts_of(receipts), delay_ms)
        return await self._settle(message_api.RELEASE_MESSAGES, queue, wanted)

    async def message(self, queue: str, message_id: str) -> MessageInfo:
        return await self._call(message_api.SHOW_MESSAGE, queue=queue, messageId=message_id)

    async def peek(self, queue: str, *, limit: int = 1, shuffle: bool = False) -> list[MessageInfo]:
        query = PeekQuery(limit=limit, order="shuffle" if shuffle else "fifo")
        answer = await self._call(message_api.PEEK_MESSAGES, query=query, queue=queue)
        return answer.messages

    async def create_token(
        self, name: str, scopes: Iterable[Scope], queues: str = "*", *, expires_at: int | None = None
    ) -> CreatedToken:
        check_is_list("scopes", scopes)
        wanted = NewToken(name, list(scopes), queues, expires_at)
        return await self._call(token_api.CREATE_TOKEN, wanted)

    async def tokens(self) -> list[TokenInfo]:
        answer = await self._call(token_api.LIST_TOKENS)
        return answer.tokens

    async def revoke_token(self, name: str) -> None:
        await self._call(token_api.REVOKE_TOKEN, name=name)

    async def compaction_info(self) -> CompactionInfo:
        return await self._call(compaction_api.SHOW_COMPACTION)

    async def start_compaction(self) -> CompactionInfo:
        return await self._call(compaction_api.START_COMPACTION)

    async def pause_compaction(self) -> CompactionInfo:
        return await self._call(compaction_api.PAUSE_COMPACTION)

    async def stop_compaction(self) -> CompactionInfo:
        return await self._call(compaction_api.STOP_COMPACTION)

    async def healthcheck(self) -> None:
        await self._request("GET", "/healthcheck")

    async def _produce(self, queue: str, message: NewMessage) -> Produced:
        # A batch of one: unlike the plain send, it is answered with the message's id.
        (result,) = await self.produce_many(queue, [message])
        if isinstance(result, ForqError):
            raise result
        return result

    async def _settle(
        self, endpoint: Endpoint[ReceiptResults], queue: str, wanted: object
    ) -> list[ReceiptResult]:
        return (await self._call(endpoint, wanted, queue=queue)).results

    async def _ack(self, queue: str, receipts: list[str]) -> list[ReceiptResult]:
        answer = await self._call(message_api.ACK_MESSAGES, AckRequest(receipts), queue=queue)
        return answer.results
