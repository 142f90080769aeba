"""The methods of the asynchronous client for dead letters and redrives.

`sync_dead_letters.py` is generated from this file by script/blocking_client.py.
"""

from collections.abc import Mapping, Sequence

from forq_trio.client import protocol
from forq_trio.client.aio_connection import AsyncConnection
from forq_trio.model.checks import check_is_list, check_is_text, check_pairs
from forq_trio.model.dead_letters import endpoints as letter_api
from forq_trio.model.dead_letters.bodies import (
    DeadLetterFilter,
    DeadLettersQuery,
    DeleteMessages,
    MoveResult,
    RedriveMessages,
    Resubmission,
    StartRedrive,
)
from forq_trio.model.dead_letters.methods import DeadLetterMethods
from forq_trio.model.dead_letters.redrives import ChangedRedrive, RedriveInfo
from forq_trio.model.dead_letters.searches import DeadLetterPage
from forq_trio.model.messages.types import MessageInfo, Produced
from forq_trio.model.values import seen


class AsyncDeadLetterClient(DeadLetterMethods, AsyncConnection):
    """The methods of a client for dead letters, which administrators call."""

    async def search_dead_letters(
        self,
        queue: str,
        wanted: DeadLetterFilter | None = None,
        *,
        before_sequence: int | None = None,
        limit: int = 50,
    ) -> DeadLetterPage:
        query = seen(DeadLettersQuery, wanted or DeadLetterFilter(), before=before_sequence, limit=limit)
        return await self._call(letter_api.SEARCH_DEAD_LETTERS, query=query, queue=queue)

    async def dead_letter(self, queue: str, message_id: str) -> MessageInfo:
        return await self._call(letter_api.SHOW_DEAD_LETTER, queue=queue, messageId=message_id)

    async def redrive(
        self, queue: str, message_ids: Sequence[str], *, target: str | None = None
    ) -> list[MoveResult]:
        check_is_list("message_ids", message_ids)
        wanted = RedriveMessages(list(message_ids), target)
        answer = await self._call(letter_api.REDRIVE_DEAD_LETTERS, wanted, queue=queue)
        return answer.results

    async def delete_dead_letters(self, queue: str, message_ids: Sequence[str]) -> list[MoveResult]:
        check_is_list("message_ids", message_ids)
        wanted = DeleteMessages(list(message_ids))
        answer = await self._call(letter_api.DELETE_DEAD_LETTERS, wanted, queue=queue)
        return answer.results

    async def resubmit(
        self,
        queue: str,
        message_id: str,
        *,
        content: str | None = None,
        attributes: Mapping[str, str] | None = None,
        target: str | None = None,
        remove: bool = False,
    ) -> Produced:
        if content is not None:
            check_is_text("content", content)
        edited = None if attributes is None else dict(attributes)
        check_pairs(edited or {})
        copy = Resubmission(content, edited, target, remove)
        return await self._call(letter_api.RESUBMIT_DEAD_LETTER, copy, queue=queue, messageId=message_id)

    async def start_redrive(
        self,
        queue: str,
        wanted: DeadLetterFilter | None = None,
        *,
        target: str | None = None,
        rate_per_second: int | None = None,
        dry_run: bool = False,
    ) -> ChangedRedrive:
        start = StartRedrive(wanted or DeadLetterFilter(), target, rate_per_second, dry_run)
        return await self._call(letter_api.START_REDRIVE, start, queue=queue)

    async def start_deletion(
        self,
        queue: str,
        wanted: DeadLetterFilter | None = None,
        *,
        rate_per_second: int | None = None,
        dry_run: bool = False,
    ) -> ChangedRedrive:
        start = StartRedrive(wanted or DeadLetterFilter(), None, rate_per_second, dry_run, "delete")
        return await self._call(letter_api.START_REDRIVE, start, queue=queue)

    async def redrives(self, queue: str) -> list[RedriveInfo]:
        answer = await self._call(letter_api.LIST_REDRIVES, queue=queue)
        return answer.redrives

    async def redrive_info(self, queue: str, redrive_id: str) -> RedriveInfo:
        return await self._call(letter_api.SHOW_REDRIVE, queue=queue, redriveId=redrive_id)

    async def pause_redrive(self, queue: str, redrive_id: str) -> ChangedRedrive:
        waits = protocol.CANCEL_SECONDS
        return await self._call(
            letter_api.PAUSE_REDRIVE, wait_seconds=waits, queue=queue, redriveId=redrive_id
        )

    async def resume_redrive(self, queue: str, redrive_id: str) -> ChangedRedrive:
        return await self._call(letter_api.RESUME_REDRIVE, queue=queue, redriveId=redrive_id)

    async def cancel_redrive(self, queue: str, redrive_id: str) -> ChangedRedrive:
        waits = protocol.CANCEL_SECONDS
        return await self._call(
            letter_api.CANCEL_REDRIVE, wait_seconds=waits, queue=queue, redriveId=redrive_id
        )

    async def dismiss_redrive(self, queue: str, redrive_id: str) -> None:
        await self._call(letter_api.DISMISS_REDRIVE, queue=queue, redriveId=redrive_id)
