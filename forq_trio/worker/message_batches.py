"""Message batches of a worker: opens them, adds members, from inside of handlers too, and chains messages."""

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar, Unpack, cast, overload
from uuid import uuid4

import anyio
from msgspec import UNSET

from forq_trio.model.durations import Duration
from forq_trio.model.errors import ForqError
from forq_trio.model.limits import (
    ATTRIBUTES_MAX,
    MESSAGE_BATCH_DEPTH_MAX,
    MESSAGE_BATCH_EXPIRES_MS_DEFAULT,
    PRODUCE_BATCH_BYTES_MAX,
    PRODUCE_BATCH_MAX,
)
from forq_trio.model.message_batches.methods import MessageBatchMethods
from forq_trio.model.message_batches.types import (
    BATCH_ATTRIBUTE,
    OWN_ATTRIBUTES,
    AddressedMessage,
    MessageBatch,
    NewMessageBatch,
)
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.send_commands import bytes_of
from forq_trio.model.messages.types import Produced
from forq_trio.worker.send_options import MemberOptions, duration_ms
from forq_trio.worker.source import Source, patiently

_CLOSE_SECONDS_MAX = 60.0
"""For how long a close is tried again while the server is away: it may restart."""
_SETTLE_SECONDS_MAX = 5.0
"""For how long a batch is closed after all where its task is cancelled, and for how long it is abandoned."""
_UNSETTLED = "a batch of messages could not be closed or abandoned"
_ATTRIBUTES_MAX = ATTRIBUTES_MAX - len(OWN_ATTRIBUTES)
"""Of a message of a batch, with those that the program adds to each: the server adds its own."""
_STEPS_MAX = MESSAGE_BATCH_DEPTH_MAX + 1
"""Of a chain, which has a batch for each step but one."""
_REQUEST_BYTES_MAX = PRODUCE_BATCH_BYTES_MAX // 4
"""Of a request that adds members; their JSON may be longer than they are."""


PayloadT = TypeVar("PayloadT")
PayloadT_contra = TypeVar("PayloadT_contra", contravariant=True)


class QueueOfHandler(Protocol[PayloadT_contra]):
    """A handler, of which only its queue is needed here, and by type checkers what it takes."""

    @property
    def queue(self) -> str: ...

    def later_blocking(self, payload: PayloadT_contra) -> object: ...


Target: TypeAlias = str | QueueOfHandler[PayloadT]
"""Where a message goes: a queue, or a handler."""
Step: TypeAlias = tuple[Target[PayloadT], PayloadT]
"""A handler or a queue, and the payload of its message."""
FirstT = TypeVar("FirstT")
SecondT = TypeVar("SecondT")
ThirdT = TypeVar("ThirdT")
FourthT = TypeVar("FourthT")
FifthT = TypeVar("FifthT")
SixthT = TypeVar("SixthT")
SeventhT = TypeVar("SeventhT")
EighthT = TypeVar("EighthT")
NinthT = TypeVar("NinthT")


class MessageSender(Protocol):
    """What sends the messages of a worker."""

    @property
    def source(self) -> Source:
        """Where the messages go. Raises RuntimeError if the worker is not open."""
        ...

    def message(self, queue: str, payload: Any, given: MemberOptions, attributes_max: int) -> NewMessage:
        """A message as the worker sends it, with so many attributes of the program's at most."""
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

    async def add(
        self, to: Target[PayloadT], payload: PayloadT, **options: Unpack[MemberOptions]
    ) -> Produced:
        """Send a message that is a member of the batch; returns once it is durable.

        to: a handler, or the name of a queue. options: as for `Worker.send`, but without a key. Raises
        MessageBatchEnded if all members have ended meanwhile, or the batch has expired; and what `Worker.send` raises.
        """
        (produced,) = await self.add_many(to, [payload], **options)
        return produced

    async def add_many(
        self, to: Target[PayloadT], payloads: Sequence[PayloadT], **options: Unpack[MemberOptions]
    ) -> list[Produced]:
        """Send messages that are members of the batch, in as few requests as possible. Raises like `add`.

        If it raises, the first messages may be sent.
        """
        queue = _queue_of(to)
        members = [
            AddressedMessage(queue, self._sender.message(queue, each, options, _ATTRIBUTES_MAX))
            for each in payloads
        ]
        produced: list[Produced] = []
        for some in _requests(members):
            for result in await _methods(self._sender).add_to_batch(self.id, some):
                if isinstance(result, ForqError):
                    raise result
                produced.append(result)
        return produced

    def add_blocking(
        self, to: Target[PayloadT], payload: PayloadT, **options: Unpack[MemberOptions]
    ) -> Produced:
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

    @overload
    def batch(
        self,
        *,
        then: Target[PayloadT],
        payload: PayloadT,
        on_dead: Target[PayloadT] | None = ...,
        needs: Literal["ended", "done"] = ...,
        expires: Duration | None = ...,
        outer: BatchSender | str | None = ...,
    ) -> AbstractAsyncContextManager[BatchSender]: ...

    @overload
    def batch(
        self,
        *,
        then: None = ...,
        payload: PayloadT,
        on_dead: Target[PayloadT],
        needs: Literal["ended", "done"] = ...,
        expires: Duration | None = ...,
        outer: BatchSender | str | None = ...,
    ) -> AbstractAsyncContextManager[BatchSender]: ...

    @overload
    def batch(
        self,
        *,
        then: None = ...,
        on_dead: None = ...,
        needs: Literal["ended", "done"] = ...,
        expires: Duration | None = ...,
        outer: BatchSender | str | None = ...,
    ) -> AbstractAsyncContextManager[BatchSender]: ...

    def batch(
        self,
        *,
        then: Target[Any] | None = None,
        payload: Any = UNSET,
        on_dead: Target[Any] | None = None,
        needs: Literal["ended", "done"] = "ended",
        expires: Duration | None = None,
        outer: BatchSender | str | None = None,
    ) -> AbstractAsyncContextManager[BatchSender]:
        """A batch: `async with app.batch(then=report, payload=Done(7)) as batch: await batch.add(thumb, picture)`.

        The server sends `payload` to `then` once when the last member has ended, and to `on_dead` once when the first
        becomes a dead letter; both are handlers or names of queues. needs: "done" sends `then` only if all were
        acknowledged. expires: after which time the batch ends in any case, None for a week. outer: the batch that
        this one is a member of, such as `job.batch`. Leaving the body closes the batch; an exception abandons it. While
        the server is away, that close is tried again for a minute, for 5 seconds if it is cancelled; then the batch is
        abandoned. docs/batches.md explains all of it. Raises what `AsyncForqClient.open_batch` and `close_batch` raise,
        and TypeError for `then` or `on_dead` without `payload`, and for `payload` without both of them.
        """
        sends = then is not None or on_dead is not None
        if sends and payload is UNSET:
            raise TypeError("payload: what is sent to `then` or `on_dead` is missing")
        if not sends and payload is not UNSET:
            raise TypeError("payload: there is neither `then` nor `on_dead` to send it to")
        return _opened(
            self._sender,
            then=then,
            payload=payload,
            on_dead=on_dead,
            needs=needs,
            expires=expires,
            outer=outer,
        )

    if TYPE_CHECKING:  # so that each payload is checked

        async def chain(
            self,
            first: Step[FirstT],
            second: Step[SecondT],
            third: Step[ThirdT] = ...,
            fourth: Step[FourthT] = ...,
            fifth: Step[FifthT] = ...,
            sixth: Step[SixthT] = ...,
            seventh: Step[SeventhT] = ...,
            eighth: Step[EighthT] = ...,
            ninth: Step[NinthT] = ...,
            /,
            *,
            expires: Duration | None = ...,
        ) -> str: ...

    else:

        async def chain(self, *steps: Step[Any], expires: Duration | None = None) -> str:
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
    then: Target[Any] | None,
    payload: Any,
    on_dead: Target[Any] | None,
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
    methods = _methods(sender)
    batch = BatchSender(sender, str(uuid4()))
    async with _abandoned_if_it_raises(methods, opened := [batch]):
        await methods.open_batch(new, batch_id=batch.id)
        yield batch
        await _close(methods, opened)


async def _send_chain(sender: MessageSender, steps: Sequence[Step[Any]], *, expires: Duration | None) -> str:
    """See `BatchOpener.chain`: a batch inside of another one for each step but the last; the id of the outermost.

    All but the innermost are closed before the first step is sent: each has the one inside of it as a member. So once a
    step can be handled, the chain needs one more request to go on.
    """
    if not 2 <= len(steps) <= _STEPS_MAX:
        raise ValueError(f"a chain has 2 to {_STEPS_MAX} steps, not {len(steps)}")
    for step in steps:
        if not isinstance(step, tuple) or len(step) != 2:
            raise TypeError(f"a step is a pair, (handler, payload), not {step!r}")
    methods = _methods(sender)
    first, *others = steps
    opened: list[BatchSender] = []
    async with _abandoned_if_it_raises(methods, opened):
        for to, payload in reversed(others):
            new = NewMessageBatch(
                then=_sent(sender, to, payload),
                needs="done",
                expires_ms=_expires_ms(expires),
                outer=opened[-1].id if opened else None,
            )
            opened.append(BatchSender(sender, str(uuid4())))
            await methods.open_batch(new, batch_id=opened[-1].id)
        chain, innermost = opened[0].id, opened[-1]
        for each in opened[:-1]:
            await methods.close_batch(each.id)
        await innermost.add(*first)
        await _close(methods, opened)
    return chain


@asynccontextmanager
async def _abandoned_if_it_raises(
    methods: MessageBatchMethods, opened: Sequence[BatchSender]
) -> AsyncIterator[None]:
    """Abandon these batches if the body raises or is cancelled: the last one may be open or not."""
    try:
        yield
    except BaseException:
        await _insist(  # noqa: ASYNC102  it is shielded, and has a bound
            methods, [partial(methods.abandon_batch, each.id) for each in opened]
        )
        raise


async def _close(methods: MessageBatchMethods, opened: list[BatchSender]) -> None:
    """Close the last of these batches, which has its members now. It is tried again if the server is away.

    Open, it would never send its message, and a caller that begins anew sends all members again. Cancelled, it closes
    the batch nevertheless. Once that is closed, none of them is to be abandoned: `opened` is empty then. Raises the
    last error if no try succeeds.
    """
    close = partial(methods.close_batch, opened[-1].id)
    until = anyio.current_time() + _CLOSE_SECONDS_MAX
    try:
        await patiently(cast("Source", methods), close, _UNSETTLED, until=lambda: until)
    except ForqError:
        raise
    except BaseException:  # cancelled
        if await _insist(methods, [close]):  # noqa: ASYNC102  as above
            opened.clear()
        raise


async def _insist(methods: MessageBatchMethods, calls: Sequence[Callable[[], Awaitable[object]]]) -> bool:
    """Make calls for a few seconds, also where the task is cancelled; returns whether all succeeded."""
    done = 0
    with anyio.move_on_after(_SETTLE_SECONDS_MAX, shield=True):
        for call in calls:
            with suppress(ForqError):
                await patiently(cast("Source", methods), call, _UNSETTLED)
                done += 1
    return done == len(calls)


def _methods(sender: MessageSender) -> MessageBatchMethods:
    """The methods of the worker's source. Raises TypeError for one that has no batches."""
    source = sender.source
    if not hasattr(source, "open_batch"):
        raise TypeError(f"{type(source).__name__} has no batches: they need a server or an embedded broker")
    return cast("MessageBatchMethods", source)


def _expires_ms(given: Duration | None) -> int:
    return MESSAGE_BATCH_EXPIRES_MS_DEFAULT if given is None else duration_ms("expires", given)


def _queue_of(to: Target[Any]) -> str:
    return to if isinstance(to, str) else to.queue


def _sent(sender: MessageSender, to: Target[Any] | None, payload: Any) -> AddressedMessage | None:
    """The message that a batch sends to a handler or a queue; None for none."""
    if to is None:
        return None
    queue = _queue_of(to)
    return AddressedMessage(queue, sender.message(queue, payload, {}, _ATTRIBUTES_MAX))


def _requests(members: Sequence[AddressedMessage]) -> Iterator[list[AddressedMessage]]:
    """The members in parts, each as large as one request may be."""
    some: list[AddressedMessage] = []
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
