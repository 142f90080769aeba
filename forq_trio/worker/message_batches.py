"""Message batches of a worker: opens them, adds members, from inside of handlers too, and chains messages."""

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from typing import Any, Literal, Protocol, TypeAlias, Unpack, cast
from uuid import uuid4

import anyio

from forq_trio.model.durations import Duration
from forq_trio.model.errors import ForqError
from forq_trio.model.limits import (
    MESSAGE_BATCH_EXPIRES_MS_DEFAULT,
    PRODUCE_BATCH_BYTES_MAX,
    PRODUCE_BATCH_MAX,
)
from forq_trio.model.message_batches.methods import MessageBatchMethods
from forq_trio.model.message_batches.types import BATCH_ATTRIBUTE, BatchMessage, MessageBatch, NewMessageBatch
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.send_commands import bytes_of
from forq_trio.model.messages.types import Produced
from forq_trio.worker.send_options import MemberOptions, duration_ms

_ABANDON_SECONDS_MAX = 5.0
_REQUEST_BYTES_MAX = PRODUCE_BATCH_BYTES_MAX // 4
"""Of a request that adds members; their JSON may be longer than they are."""


class QueueOfHandler(Protocol):
    """A handler, of which only its queue is needed here."""

    @property
    def queue(self) -> str: ...


Target: TypeAlias = str | QueueOfHandler
"""Where a message goes: a queue, or a handler."""
Step: TypeAlias = tuple[Target, Any]
"""A handler or a queue, and the payload of its message."""


class MessageSender(Protocol):
    """What sends the messages of a worker."""

    @property
    def source(self) -> object:
        """Where the messages go. Raises RuntimeError if the worker is not open."""
        ...

    def message(self, queue: str, payload: Any, given: MemberOptions) -> NewMessage:
        """A message as the worker sends it."""
        ...

    def from_thread(self, function: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """The result of an async function, for a thread. Raises RuntimeError if the worker is not open."""
        ...


_SENDER: ContextVar[MessageSender | None] = ContextVar("sender of the worker", default=None)
"""What sends the messages of the worker whose handler runs."""


@contextmanager
def sending_with(sender: MessageSender) -> Iterator[None]:
    """While the body runs, handlers that it starts find their batch (`Job.batch`)."""
    token = _SENDER.set(sender)
    try:
        yield
    finally:
        _SENDER.reset(token)


class BatchSender:
    """A batch to which messages are added. id: as the server knows it."""

    def __init__(self, sender: MessageSender, batch_id: str) -> None:
        self.id = batch_id
        self._sender = sender

    def __repr__(self) -> str:
        return f"<BatchSender {self.id}>"

    async def add(self, to: Target, payload: Any, **options: Unpack[MemberOptions]) -> Produced:
        """Send a message that is a member of the batch; returns once it is durable.

        to: a handler, or the name of a queue. options: as for `Worker.send`, but without a key. Raises
        MessageBatchEnded if all members have ended meanwhile, or the batch has expired; and what `Worker.send` raises.
        """
        (produced,) = await self.add_many(to, [payload], **options)
        return produced

    async def add_many(
        self, to: Target, payloads: Sequence[Any], **options: Unpack[MemberOptions]
    ) -> list[Produced]:
        """Send messages that are members of the batch, in as few requests as possible. Raises like `add`.

        If it raises, the first messages may be sent.
        """
        queue = _queue_of(to)
        members = [BatchMessage(queue, self._sender.message(queue, each, options)) for each in payloads]
        produced: list[Produced] = []
        for some in _requests(members):
            for result in await _methods(self._sender).add_to_batch(self.id, some):
                if isinstance(result, ForqError):
                    raise result
                produced.append(result)
        return produced

    def add_blocking(self, to: Target, payload: Any, **options: Unpack[MemberOptions]) -> Produced:
        """`add` from a thread: in a handler that is a plain `def`."""
        added: Produced = self._sender.from_thread(partial(self.add, to, payload, **options))
        return added

    async def progress(self) -> MessageBatch:
        """How far the batch is. Raises MessageBatchNotFound, also for a batch that another access token opened."""
        return await _methods(self._sender).batch(self.id)


def batch_of(attributes: Mapping[str, str] | None) -> BatchSender | None:
    """The batch of a message that a handler of a worker has; None if it is in none, and outside of a worker."""
    batch_id = (attributes or {}).get(BATCH_ATTRIBUTE)
    sender = _SENDER.get()
    return None if batch_id is None or sender is None else BatchSender(sender, batch_id)


class BatchOpener:
    """Opens batches and sends chains: what a Worker can do besides."""

    _sender: MessageSender

    def batch(
        self,
        *,
        then: Target | None = None,
        payload: Any = None,
        on_dead: Target | None = None,
        needs: Literal["ended", "done"] = "ended",
        expires: Duration | None = None,
        outer: BatchSender | str | None = None,
    ) -> AbstractAsyncContextManager[BatchSender]:
        """A batch: `async with app.batch(then=report, payload=Done(7)) as batch: await batch.add(thumb, picture)`.

        The server sends `payload` to `then` once when the last member has ended, and to `on_dead` once when the first
        becomes a dead letter; both are handlers or names of queues. needs: "done" sends `then` only if all were
        acknowledged. expires: after which time the batch ends in any case, None for a week. outer: the batch that
        this one is a member of, such as `job.batch`. Leaving the body closes the batch; an exception abandons it.
        docs/batches.md explains all of it. Raises what `AsyncForqClient.open_batch` raises.
        """
        return _opened(
            self._sender,
            then=then,
            payload=payload,
            on_dead=on_dead,
            needs=needs,
            expires=expires,
            outer=outer,
        )

    async def chain(self, *steps: Step, expires: Duration | None = None) -> str:
        """Send the first message, and each other one when the one before it was acknowledged.

        steps: 2 to 9 handlers or names of queues, each with a payload. Returns the id of the batch of all steps.
        expires: as for `batch`. Raises ValueError for fewer steps, MessageBatchTooDeep for more, and what `batch`
        raises. If it raises, nothing is sent after the first step.
        """
        return await _send_chain(self._sender, steps, expires=expires)

    async def batch_progress(self, batch_id: str) -> MessageBatch:
        """How far a batch is, for a day after its end. Raises MessageBatchNotFound, also for one of another token."""
        return await BatchSender(self._sender, batch_id).progress()


@asynccontextmanager
async def _opened(
    sender: MessageSender,
    *,
    then: Target | None,
    payload: Any,
    on_dead: Target | None,
    needs: Literal["ended", "done"],
    expires: Duration | None,
    outer: BatchSender | str | None,
) -> AsyncIterator[BatchSender]:
    """See `BatchOpener.batch`."""
    new = NewMessageBatch(
        then=_sent(sender, then, payload),
        on_dead=_sent(sender, on_dead, payload),
        needs=needs,
        expires_ms=_expires_ms(expires),
        outer=outer.id if isinstance(outer, BatchSender) else outer,
    )
    batch = BatchSender(sender, str(uuid4()))
    await _methods(sender).open_batch(new, batch_id=batch.id)
    try:
        yield batch
    except BaseException:
        with anyio.move_on_after(_ABANDON_SECONDS_MAX, shield=True), suppress(ForqError):
            await _methods(sender).abandon_batch(batch.id)
        raise
    await _methods(sender).close_batch(batch.id)


async def _send_chain(sender: MessageSender, steps: Sequence[Step], *, expires: Duration | None) -> str:
    """See `BatchOpener.chain`: a batch inside of another one for each step but the last; the id of the outermost."""
    if len(steps) < 2:
        raise ValueError("a chain has at least two steps")
    first, *others = steps
    opened: list[BatchSender] = []
    async with _all_closed(opened, sender):
        for to, payload in reversed(others):
            new = NewMessageBatch(
                then=_sent(sender, to, payload),
                needs="done",
                expires_ms=_expires_ms(expires),
                outer=opened[-1].id if opened else None,
            )
            batch = BatchSender(sender, str(uuid4()))
            await _methods(sender).open_batch(new, batch_id=batch.id)
            opened.append(batch)
        await opened[-1].add(*first)
    return opened[0].id


@asynccontextmanager
async def _all_closed(opened: list[BatchSender], sender: MessageSender) -> AsyncIterator[None]:
    """Close the batches that the body opens, the outermost first; abandon them if it raises."""
    try:
        yield
    except BaseException:
        with anyio.move_on_after(_ABANDON_SECONDS_MAX, shield=True), suppress(ForqError):
            for each in opened:
                await _methods(sender).abandon_batch(each.id)
        raise
    for each in opened:
        await _methods(sender).close_batch(each.id)


def _methods(sender: MessageSender) -> MessageBatchMethods:
    """The methods of the worker's source. Raises TypeError for one that has no batches."""
    source = sender.source
    if not hasattr(source, "open_batch"):
        raise TypeError(f"{type(source).__name__} has no batches: they need a server or an embedded broker")
    return cast("MessageBatchMethods", source)


def _expires_ms(given: Duration | None) -> int:
    return MESSAGE_BATCH_EXPIRES_MS_DEFAULT if given is None else duration_ms("expires", given)


def _queue_of(to: Target) -> str:
    return to if isinstance(to, str) else to.queue


def _sent(sender: MessageSender, to: Target | None, payload: Any) -> BatchMessage | None:
    """The message that a batch sends to a handler or a queue; None for none."""
    if to is None:
        return None
    queue = _queue_of(to)
    return BatchMessage(queue, sender.message(queue, payload, {}))


def _requests(members: Sequence[BatchMessage]) -> Iterator[list[BatchMessage]]:
    """The members in parts, each as large as one request may be."""
    some: list[BatchMessage] = []
    size = 0
    for each in members:
        more = bytes_of(each.message.content, each.message.attributes)
        if some and (len(some) == PRODUCE_BATCH_MAX or size + more > _REQUEST_BYTES_MAX):
            yield some
            some, size = [], 0
        some.append(each)
        size += more
    if some:
        yield some
