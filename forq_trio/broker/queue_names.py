"""Creates queues for access tokens, each of which may make only a share of all (storage/relational/parts/counts.py)."""

from collections.abc import Iterable

from forq_trio.model.commands import NameQueues
from forq_trio.model.errors import ForqError
from forq_trio.model.holders import token_of_task
from forq_trio.writer_actor import WriterActor


async def name_queues(writer: WriterActor, *queues: str | None) -> None:
    """Create those of these queues that do not exist, if the call runs for an access token. Call it before using them.

    Raises TooManyQueues if the token has made as many as it may, and the errors of `WriterActor.execute`.
    """
    for refusal in (await refused_queues(writer, queues)).values():
        raise refusal


async def refused_queues(writer: WriterActor, queues: Iterable[str | None]) -> dict[str, ForqError]:
    """`name_queues`, but returns the errors of the queues that may not be created, by queue."""
    token = token_of_task()
    if token is None:
        return {}
    known = writer.snapshot().counts
    new = tuple(dict.fromkeys([queue for queue in queues if queue and queue not in known]))
    if not new:
        return {}
    outcomes = await writer.execute(NameQueues(new, token))
    return {queue: refusal for queue, refusal in zip(new, outcomes, strict=True) if refusal is not None}
