"""The methods of the asynchronous client for those who look through the history of finished messages.

`sync_history.py` is generated from this file by script/blocking_client.py.
"""

from collections.abc import Sequence

from forq_trio.client import protocol, sends
from forq_trio.client.aio_connection import AsyncConnection
from forq_trio.model.checks import check_is_list
from forq_trio.model.errors import ForqError
from forq_trio.model.logs import history_endpoints as history_api
from forq_trio.model.logs.history import FinishedMessage, FinishedPage
from forq_trio.model.logs.history_bodies import FinishedQuery, HistoryFilter, RequeueFinished
from forq_trio.model.logs.history_methods import HistoryMethods
from forq_trio.model.messages.types import Produced
from forq_trio.model.values import seen


class AsyncHistory(HistoryMethods, AsyncConnection):
    """The methods of a client for the history; `history` itself and `history_range` are for pipelines."""

    async def search_history(
        self, queue: str, wanted: HistoryFilter | None = None, *, before: int | None = None, limit: int = 50
    ) -> FinishedPage:
        query = seen(FinishedQuery, wanted or HistoryFilter(), before=before, limit=limit)
        return await self._call(history_api.SEARCH_HISTORY, query=query, queue=queue)

    async def finished_message(self, queue: str, message_id: str) -> FinishedMessage:
        return await self._call(history_api.SHOW_FINISHED_MESSAGE, queue=queue, messageId=message_id)

    async def requeue_finished(self, queue: str, message_ids: Sequence[str]) -> list[Produced | ForqError]:
        check_is_list("message_ids", message_ids)
        wanted = RequeueFinished(list(message_ids))
        answer = await self._call(history_api.REQUEUE_FINISHED, wanted, queue=queue)
        return sends.read_send_results(answer.results, len(wanted.message_ids))

    async def purge_history(self, queue: str) -> int:
        waits = protocol.PURGE_SECONDS
        answer = await self._call(history_api.PURGE_HISTORY, wait_seconds=waits, queue=queue)
        return answer.purged
