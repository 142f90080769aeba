"""A handler: a function and its options for one queue, checked before anything is received."""

import inspect
import re
import typing
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from types import CodeType
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Literal,
    ParamSpec,
    Protocol,
    TypedDict,
    TypeVar,
    Unpack,
    get_args,
    overload,
)

from msgspec import Struct

from forq_trio.model import limits
from forq_trio.model.checks import storable_reason
from forq_trio.model.durations import Duration, ms_of
from forq_trio.model.errors import CallerError
from forq_trio.model.messages.types import check_queue_name
from forq_trio.model.messages.where import Wanted, where_of
from forq_trio.worker.exception_groups import causes_of, deciding, plain, reason_in_words
from forq_trio.worker.jobs import Job
from forq_trio.worker.outcomes import ACK, DeadLetter, Discard, Retry, Settlement, UnreadableContent, text_of
from forq_trio.worker.payloads import Payload
from forq_trio.worker.result_codec import ResultCodec, stores_results
from forq_trio.worker.retries import RetryOption, RetryPolicies
from forq_trio.worker.send_options import SendOptions, Sent, duration_ms
from forq_trio.worker.source import Source

PayloadT = TypeVar("PayloadT")
P = ParamSpec("P")
R = TypeVar("R", covariant=True)
T = TypeVar("T")
_VALUES = (str, bytes, int, float, bool, dict, list, tuple, set)
"""Types that a second parameter which is meant for a value has, and one for the Job has not."""
OnUnreadable = Literal["dead", "retry"]
Pool = Literal["process"]

CallNext = Callable[[], Awaitable[object]]
"""What a middleware awaits to go on: the next middleware, or the handler."""
Middleware = Callable[[Job, CallNext], Awaitable[object]]

LEASE_MS_MIN = 1_000
RESULT_SECONDS = 30.0
"""How long `result` waits by default."""
CONCURRENCY_MAX = 1_000
BATCH_MAX = limits.RECEIVE_BATCH_MAX


class WorkerSetupError(Exception):
    """A worker that cannot start; the text begins with the file and line of the handler"""


class SendingWorker(Protocol):
    """A Worker, as its handlers know it: what sends their messages."""

    async def send(self, queue: str, payload: Any, **options: Unpack[SendOptions]) -> Sent: ...

    def send_blocking(self, queue: str, payload: Any, **options: Unpack[SendOptions]) -> Sent: ...

    @property
    def result_waits(self) -> "ResultContents": ...


class ResultContents(Protocol):
    """What waits for results as they are stored: see `result_waits`."""

    async def content(self, queue: str, message_id: str, seconds: float) -> str: ...

    def content_blocking(self, queue: str, message_id: str, seconds: float) -> str: ...


class HandlerOptions(Struct, frozen=True):
    """The options of `Router.on`; see there."""

    concurrency: int = 10
    retry: RetryOption = None
    dead: tuple[type[Exception], ...] = ()
    lease: Duration | None = None
    timeout: Duration | None = None
    batch: int | None = None
    where: Wanted | None = None
    weight: float = 1
    pool: Pool | None = None
    on_unreadable: OnUnreadable = "dead"
    keep_result: Duration | None = None


class OnOptions(TypedDict, total=False):
    """The options of `Router.on` but `batch`, for type checkers: with that one the handler takes lists."""

    concurrency: int
    retry: RetryOption
    dead: type[Exception] | tuple[type[Exception], ...]
    lease: Duration | None
    timeout: Duration | None
    where: Wanted | None
    weight: float
    pool: Pool | None
    on_unreadable: OnUnreadable
    keep_result: Duration | None


class Handler(Generic[PayloadT, P, R]):
    """The function of a queue, still callable as itself: `await send_email(mail, job)` in a unit test.

    PayloadT: what it sends; its function takes the same, or with `batch` a list of that.

    takes_job: whether it has a second parameter. in_thread: whether it is a plain function. sends: None until a Worker
    has included its router. around: the lists of middleware of its routers, the outermost first.
    """

    def __init__(
        self,
        function: Callable[P, R],
        queue: str,
        options: HandlerOptions,
        sends: SendingWorker | None,
        check_queue: Callable[[str], object] = check_queue_name,
    ) -> None:
        self.function = function
        self.queue = queue
        self.options = options
        self.place = place_of(function)
        self.name = getattr(function, "__qualname__", type(function).__name__)
        self.in_thread = not _is_async(function)
        self.sends = sends
        self.around: list[list[Middleware]] = []
        self._check_options(check_queue)
        try:
            self.retries = RetryPolicies(options.retry)
        except (TypeError, ValueError) as problem:
            raise self.refuse(f"retry: {problem}") from None
        self.payload, self.takes_job = self._parameters()
        self._returns = self._result_codec()
        self.__doc__ = function.__doc__
        self.__name__ = getattr(function, "__name__", self.name)
        self.__wrapped__ = function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    async def later(self, payload: PayloadT, **options: Unpack[SendOptions]) -> Sent:
        """Send a message to this handler's queue; as `Worker.send`."""
        return await self._sender().send(self.queue, payload, **options)

    def later_blocking(self, payload: PayloadT, **options: Unpack[SendOptions]) -> Sent:
        """Send a message to this handler's queue from a thread; as `Worker.send_blocking`."""
        return self._sender().send_blocking(self.queue, payload, **options)

    @property
    def timeout_seconds(self) -> float | None:
        """After how long a call is cancelled; None for no such bound."""
        return None if self.options.timeout is None else ms_of(self.options.timeout) / 1_000

    @overload
    async def result(
        self: "Handler[PayloadT, P, Coroutine[Any, Any, T]]", sent: Sent | str, *, timeout: Duration = ...
    ) -> T: ...

    @overload
    async def result(self: "Handler[PayloadT, P, T]", sent: Sent | str, *, timeout: Duration = ...) -> T: ...

    async def result(self, sent: Sent | str, *, timeout: Duration = RESULT_SECONDS) -> Any:
        """What the handler returned for a message, once it has ended; waits so long for that at most.

        sent: what `later` returned, or the message's id. Raises JobFailed with the last error for a message that ended
        without success, ResultGone if there is no result of it, TimeoutError, and what the source raises; RuntimeError
        for a handler without `keep_result`, and if the worker is not open. Cancelled, nothing happens to the message.
        """
        (read, waits), seconds = self._results(), duration_ms("timeout", timeout) / 1_000
        return read(await waits.content(self.queue, _id_of(sent), seconds))

    @overload
    def result_blocking(
        self: "Handler[PayloadT, P, Coroutine[Any, Any, T]]", sent: Sent | str, *, timeout: Duration = ...
    ) -> T: ...

    @overload
    def result_blocking(
        self: "Handler[PayloadT, P, T]", sent: Sent | str, *, timeout: Duration = ...
    ) -> T: ...

    def result_blocking(self, sent: Sent | str, *, timeout: Duration = RESULT_SECONDS) -> Any:
        """`result` from a thread, as `Worker.send_blocking`. Raises RuntimeError in an event loop."""
        (read, waits), seconds = self._results(), duration_ms("timeout", timeout) / 1_000
        return read(waits.content_blocking(self.queue, _id_of(sent), seconds))

    def _results(self) -> tuple[Callable[[str], Any], ResultContents]:
        if self._returns is None:
            raise RuntimeError(f'{self.name}: its results are not stored: write @app.on(…, keep_result="1h")')
        return self._returns.read, self._sender().result_waits

    def _sender(self) -> SendingWorker:
        if self.sends is None:
            raise RuntimeError(f"{self.name}: no Worker has included its router")
        return self.sends

    def check_source(self, source: Source) -> None:
        """Raise WorkerSetupError if this source cannot do what the options say."""
        if self._returns is not None and not stores_results(source):
            raise self.refuse("keep_result: this source stores no results")

    def check_table(self, table: object) -> None:
        """Raise WorkerSetupError for results of a queue that is bound to a table. table: None if it is not."""
        if self._returns is not None and table is not None:
            raise self.refuse("keep_result: the queue is bound to a table, which stores no results")

    def refuse(self, problem: str) -> WorkerSetupError:
        """The error that names the handler's place."""
        return WorkerSetupError(f"{self.place}: {self.name}: {problem}")

    def returned_for_each(self, result: object, messages: int) -> list[object]:
        """What a call returned, for each of its messages: the same for all, or the members of the list of a batch."""
        if self.options.batch and isinstance(result, (list, tuple)):
            if len(result) == messages:
                return list(result)
            result = ValueError(f"the handler returned {len(result)} results for {messages} messages")
        return [result] * messages

    def settlement(self, result: object, job: Job) -> Settlement:
        """The settlement of a job whose handler returned or raised `result`."""
        result = plain(result)
        said = None
        if isinstance(result, BaseExceptionGroup):
            said = reason_in_words(result)
            result = deciding(causes_of(result), self.options.dead, self.retries.covers)
        if isinstance(result, Discard):
            return Settlement("discard", reason=storable_reason(result.reason_or("discarded")))
        if isinstance(result, DeadLetter):
            return Settlement(
                "nack", reason=storable_reason(said or result.reason_or("set aside")), final=True
            )
        if isinstance(result, Retry):
            reason = said or result.reason_or("retry")
            if result.delay is not None:
                return self.retries.after_delay(result.delay, result, reason, job)
            return self.retries.after(result, reason, job)
        if isinstance(result, BaseException):
            reason = said or reason_in_words(result)
            if isinstance(result, self.options.dead):
                return Settlement("nack", reason=reason, final=True)
            return self.retries.after(result, reason, job)
        return ACK if self._returns is None else self._with_result(self._returns, result, job)

    def _with_result(self, codec: ResultCodec, result: object, job: Job) -> Settlement:
        """The ack with a result. One that cannot be stored is an error of the handler, which it fails with."""
        try:
            return codec.settlement(result)
        except Exception as error:
            return self.without_result(error, job)

    def without_result(self, error: Exception, job: Job) -> Settlement:
        """The settlement of a job whose result cannot be stored: its attempt has failed with this error."""
        return self.retries.after(error, f"the result cannot be stored: {text_of(error)}", job)

    def unreadable(self, error: Exception, job: Job) -> Settlement:
        """The settlement of a job whose content cannot be read."""
        reason = f"the content does not fit the handler's payload: {text_of(error)}"
        if self.options.on_unreadable == "dead":
            return Settlement("nack", reason=storable_reason(reason), final=True)
        return self.retries.after(UnreadableContent(reason), reason, job)

    def _check_options(self, check_queue: Callable[[str], object]) -> None:
        options = self.options
        try:
            check_queue(self.queue)
            where_of(options.where)
        except CallerError as error:
            raise self.refuse(str(error)) from None
        self._check_count("concurrency", options.concurrency, CONCURRENCY_MAX)
        if options.batch is not None:
            self._check_count("batch", options.batch, BATCH_MAX)
        if options.lease is not None:
            self._check_duration("lease", options.lease, LEASE_MS_MIN, limits.LEASE_MS_MAX)
        if options.timeout is not None:
            self._check_duration("timeout", options.timeout, 1, limits.LEASE_MS_MAX)
        self._check_weight(options.weight)
        self._check_types("dead", options.dead)
        if options.on_unreadable not in get_args(OnUnreadable):
            raise self.refuse(f"on_unreadable: 'dead' or 'retry', not {options.on_unreadable!r}")
        self._check_pool()

    def _result_codec(self) -> ResultCodec | None:
        """How results are written, by the annotation of what the function returns; None if they are not stored."""
        if self.options.keep_result is None:
            return None
        annotation = inspect.signature(self.function).return_annotation
        if annotation is inspect.Signature.empty:
            raise self.refuse(
                "keep_result: the function has no annotation of what it returns: write its type, -> dict"
            )
        returns = self._read_annotation("return", annotation)
        if self.options.batch is not None and typing.get_origin(returns) in (list, Sequence):
            (returns,) = typing.get_args(returns)
        try:
            return ResultCodec(returns, self.options.keep_result)
        except Exception as error:
            raise self.refuse(f"keep_result: {error}") from None

    def _check_pool(self) -> None:
        """A process gets no function, but imports it by the name of its module and its own."""
        if self.options.pool is None:
            return
        if self.options.pool not in get_args(Pool):
            raise self.refuse(f'pool: "process" or None, not {self.options.pool!r}')
        if not self.in_thread:
            raise self.refuse("a handler in a process is a plain `def`")
        if not inspect.isfunction(self.function) or "<" in self.function.__qualname__:
            raise self.refuse("a process imports its handler by name: write it as a `def` of a module")

    def _check_count(self, name: str, value: object, high: int) -> None:
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= high:
            raise self.refuse(f"{name}: a whole number from 1 to {high:,}, not {value!r}")

    def _check_duration(self, name: str, given: Duration, low_ms: int, high_ms: int) -> None:
        try:
            length_ms = duration_ms(name, given)
        except (TypeError, ValueError) as error:
            raise self.refuse(str(error)) from None
        if not low_ms <= length_ms <= high_ms:
            low, high = low_ms / 1_000, high_ms / 1_000
            raise self.refuse(f"{name}: {low:g} to {high:,.0f} seconds, not {given!r}")

    def _check_weight(self, given: object) -> None:
        if not isinstance(given, (int, float)) or isinstance(given, bool) or not 0.001 <= given <= 1_000_000:
            raise self.refuse(f"weight: 0.001 to 1,000,000, not {given!r}")

    def _check_types(self, name: str, types: object) -> None:
        if not isinstance(types, tuple) or not all(
            isinstance(each, type) and issubclass(each, Exception) for each in types
        ):
            found = types[0] if isinstance(types, tuple) and len(types) == 1 else types
            raise self.refuse(f"{name}: an exception type or a tuple of them, not {found!r}")

    def _parameters(self) -> tuple[Payload, bool]:
        """The payload by the annotation of the first parameter, and whether the second one is for the Job."""
        written = written_in(self.function)
        if inspect.isgeneratorfunction(written) or inspect.isasyncgenfunction(written):
            raise self.refuse("a handler has no yield: calling it would do nothing")
        try:
            parameters = list(inspect.signature(self.function).parameters.values())
        except (TypeError, ValueError) as error:
            raise self.refuse(f"it cannot be called: {error}") from None
        positional = [each for each in parameters if each.kind <= each.POSITIONAL_OR_KEYWORD]
        wanted = [each for each in parameters if each.default is each.empty and not _any_number(each)]
        if not positional or wanted != positional[: min(2, len(wanted))]:
            raise self.refuse("a handler takes a payload, and a Job if it wants one")
        first = positional[0]
        if len(wanted) == 2 and self._cannot_be_job(wanted[1]):
            raise self.refuse(
                f"the second parameter gets the Job, and {wanted[1].name!r} is none: several values are one payload, "
                "a dataclass for example"
            )
        annotation = self._annotation(first)
        if self.options.batch is not None:
            inner = typing.get_args(annotation)
            if typing.get_origin(annotation) not in (list, Sequence) or len(inner) != 1:
                raise self.refuse(f"a batch: the parameter {first.name!r} is a list, list[dict] for example")
            annotation = inner[0]
        try:
            payload = Payload(annotation)
        except Exception as error:
            raise self.refuse(f"payloads cannot be read as {annotation!r}: {error}") from None
        return payload, any(map(_is_for_job, positional[1:2]))

    def _cannot_be_job(self, parameter: inspect.Parameter) -> bool:
        """Whether the annotation of a parameter says that it is a value of Python's own types."""
        try:
            annotation = self._read_annotation(parameter.name, parameter.annotation)
        except WorkerSetupError:  # imported for type checkers only
            return False
        kind = typing.get_origin(annotation) or annotation
        is_list_of_batch = kind is list and self.options.batch is not None
        return kind in _VALUES and not is_list_of_batch

    def _annotation(self, parameter: inspect.Parameter) -> Any:
        if parameter.annotation is parameter.empty:
            raise self.refuse(
                f"the parameter {parameter.name!r} has no annotation: write its type, {parameter.name}: dict"
            )
        return self._read_annotation(parameter.name, parameter.annotation)

    def _read_annotation(self, name: str, annotation: Any) -> Any:
        """An annotation, which may be written as a text."""
        if not isinstance(annotation, str):
            return annotation
        try:
            own = getattr(written_in(self.function), "__globals__", {})
            stub = type("Hints", (), {"__annotations__": {name: annotation}})
            return typing.get_type_hints(stub, globalns=own, include_extras=True)[name]
        except Exception as error:
            raise self.refuse(f"the annotation {annotation!r} cannot be read: {error}") from None


class BatchHandler(Handler[PayloadT, P, R]):
    """A handler with `batch`: a message has its own member of the list that a call returns, as type checkers know."""

    if TYPE_CHECKING:

        @overload
        async def result(
            self: "BatchHandler[PayloadT, P, Coroutine[Any, Any, list[T]]]",
            sent: Sent | str,
            *,
            timeout: Duration = ...,
        ) -> T: ...

        @overload
        async def result(
            self: "BatchHandler[PayloadT, P, list[T]]", sent: Sent | str, *, timeout: Duration = ...
        ) -> T: ...

        async def result(self, sent: Sent | str, *, timeout: Duration = ...) -> Any: ...

        @overload
        def result_blocking(
            self: "BatchHandler[PayloadT, P, Coroutine[Any, Any, list[T]]]",
            sent: Sent | str,
            *,
            timeout: Duration = ...,
        ) -> T: ...

        @overload
        def result_blocking(
            self: "BatchHandler[PayloadT, P, list[T]]", sent: Sent | str, *, timeout: Duration = ...
        ) -> T: ...

        def result_blocking(self, sent: Sent | str, *, timeout: Duration = ...) -> Any: ...


def _id_of(sent: Sent | str) -> str:
    return sent if isinstance(sent, str) else sent.id


def place_of(function: Callable[..., Any]) -> str:
    """The file and line of a function."""
    code = getattr(written_in(function), "__code__", None)
    if not isinstance(code, CodeType):
        return "<handler>"
    return f"{code.co_filename}:{code.co_firstlineno}"


def written_in(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function that the author wrote, without wrappers, partials, methods and callable objects around it."""
    function = inspect.unwrap(function)
    if isinstance(function, partial):
        return written_in(function.func)
    own = getattr(type(function), "__call__", None)  # noqa: B004  it is read, not asked for
    return inspect.unwrap(own) if inspect.isfunction(own) else function


def _any_number(parameter: inspect.Parameter) -> bool:
    return parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)


def _is_for_job(parameter: inspect.Parameter) -> bool:
    """Whether a second parameter is for the Job: not if it has a default and another type."""
    if parameter.empty in (parameter.default, parameter.annotation):
        return True
    return re.search(r"\bJob\b", str(parameter.annotation)) is not None


def _is_async(function: Callable[..., Any]) -> bool:
    called = getattr(function, "__call__", None)  # noqa: B004
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)
