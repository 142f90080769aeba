"""The methods of the asynchronous client for results of messages.

`sync_results.py` is generated from this file by script/blocking_client.py.
"""

from forq_trio.client.aio_connection import AsyncConnection
from forq_trio.model.messages import endpoints as message_api
from forq_trio.model.messages.receipts import AckRequest, ManyReceipts, OneReceipt, ReceiptResult, receipts_of
from forq_trio.model.results import endpoints as result_api
from forq_trio.model.results.methods import ResultMethods
from forq_trio.model.results.types import AckResult, MessageResult


class AsyncResults(ResultMethods, AsyncConnection):
    """The methods of a client for results; `ack` gives them."""

    async def message_result(self, queue: str, message_id: str, *, wait_ms: int = 0) -> MessageResult:
        query = result_api.ResultQuery(wait_ms=wait_ms)
        return await self._call(
            result_api.SHOW_RESULT,
            query=query,
            wait_seconds=wait_ms / 1000,
            queue=queue,
            messageId=message_id,
        )

    async def _ack_with_result(
        self, queue: str, receipts: OneReceipt | ManyReceipts, result: AckResult
    ) -> list[ReceiptResult]:
        wanted = AckRequest(receipts_of(receipts), result)
        return (await self._call(message_api.ACK_MESSAGES, wanted, queue=queue)).results
