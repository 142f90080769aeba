"""Builds requests to Forq's API and reads its answers. No I/O in here.

All that a client of pipelines needs; `sends` and `configurations` have the rest, with the types that only other
clients need.
"""

from collections.abc import Callable, Mapping, Sequence
from types import NoneType
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import msgspec
from msgspec.structs import astuple

from forq_trio.client.address import without_credentials
from forq_trio.client.http1 import ClientRequest, HttpAnswer
from forq_trio.client.pages import next_of
from forq_trio.model import json_text
from forq_trio.model.checks import check_is_text, check_texts
from forq_trio.model.consumers.bodies import LeasePage
from forq_trio.model.consumers.types import check_consumer_name
from forq_trio.model.endpoint import PREFIX, Endpoint
from forq_trio.model.error_answers import (
    ANSWER_HEADER,
    FIRST_HEADER,
    FULL,
    LAST_HEADER,
    NEXT_HEADER,
    ErrorView,
)
from forq_trio.model.errors import (
    ForqError,
    ForqProtocolError,
    ForqUnreachable,
    InvalidContent,
    InvalidCron,
    InvalidQueueName,
    TooManyWrongKeys,
    WrongKey,
    error_of,
)
from forq_trio.model.keys.checks import check_key, check_kind
from forq_trio.model.logs.bodies import EventPage, HistoryPage, HistoryPageQuery
from forq_trio.model.logs.endpoints import READ_HISTORY
from forq_trio.model.logs.events import read_events as read_event_lines
from forq_trio.model.member_names import python_name
from forq_trio.model.messages.export import read_exported
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.paths import PATH_PARAMETERS
from forq_trio.model.publishing.bodies import ExportPage, ExportQuery
from forq_trio.model.publishing.endpoints import EXPORT_QUEUE
from forq_trio.model.queries import Query
from forq_trio.model.schedules.errors import CronPlace

AnswerT = TypeVar("AnswerT")
LineT = TypeVar("LineT")

ANSWER_SECONDS = 30.0
PURGE_SECONDS = 600.0  # a purge removes a thousand messages at a time and answers at its end
ACCEPTED = 202  # there is more to do: repeat the request
PUBLISH_SECONDS = 30.0  # so long a publication waits until all its messages are in their queues
CANCEL_SECONDS = 60.0  # a cancelled redrive is answered once it has ended

_PAGE_HEADERS = (NEXT_HEADER, FIRST_HEADER, LAST_HEADER)
NO_QUERY = Query()
NOT_UTF8 = "the request has text that is not UTF-8"
_HEADERS = (("User-Agent", "forq-trio-client"), (ANSWER_HEADER, FULL))
_JSON_TYPE = ("Content-Type", "application/json")
_LINES_TYPE = ("Content-Type", "application/x-ndjson")


def request_of(
    secret: str, method: str, path: str, body: object | None, wait_seconds: float
) -> ClientRequest:
    """A request. secret: empty for none.

    body: JSON is made of it; bytes are lines of JSON already. wait_seconds: how long the server may wait before it
    answers. Raises InvalidContent for text that UTF-8 cannot carry, InvalidJson for numbers that JSON has not.
    """
    headers = (("X-API-Key", secret), *_HEADERS)
    seconds = ANSWER_SECONDS + wait_seconds
    if body is None:
        return ClientRequest(method, path, headers, b"", seconds)
    if isinstance(body, bytes):
        return ClientRequest(method, path, (*headers, _LINES_TYPE), body, seconds)
    try:
        content = json_text.encode(body)
    except UnicodeEncodeError:
        raise InvalidContent(NOT_UTF8) from None
    return ClientRequest(method, path, (*headers, _JSON_TYPE), content, seconds)


def lines_of(messages: Sequence[NewMessage]) -> bytes:
    """Messages as lines of JSON. Raises InvalidContent for text that UTF-8 cannot carry, TypeError for no str."""
    for message in messages:
        check_texts(message)
    try:
        return json_text.encode_lines(messages)
    except UnicodeEncodeError:
        raise InvalidContent(NOT_UTF8) from None


def path_of(endpoint: Endpoint[object], segments: Mapping[str, object], query: Query) -> str:
    """The path of a request, with its query. segments: the values in the path; query: None for one that is left out.

    Raises the error of a value that no path can carry; InvalidQueueName or InvalidContent of one that no query can;
    InvalidJson for NaN and infinities.
    Raises TypeError for a queue that is no str.
    """
    given = query.given()
    queue = segments.get("queue", given.get("queue"))
    if queue is not None or "queue" in segments:
        check_is_text("the name of a queue", queue)
    kind: Any = given.get("kind")
    if kind is not None:
        check_kind(kind)
    path = PREFIX + endpoint.path.format_map({name: _segment(name, each) for name, each in segments.items()})
    json_text.check_numbers({**segments, **given})
    if not given:
        return path
    try:
        return f"{path}?{urlencode(given, doseq=True)}"
    except UnicodeEncodeError:
        raise (InvalidQueueName() if "queue" in given else InvalidContent(NOT_UTF8)) from None


def parts_of(
    endpoint: Endpoint[object], arguments: Mapping[str, object]
) -> tuple[dict[str, object], Query, object | None]:
    """What `path_of` and `request_of` take: the values in the path, the query, and the body."""
    segments = {name: arguments[python_name(name)] for name in endpoint.path_names}
    query: Query = NO_QUERY if endpoint.query is None else _made(endpoint.query, arguments)
    return segments, query, None if endpoint.body is None else _made(endpoint.body, arguments)


def _made(kind: Any, arguments: Mapping[str, object]) -> Any:
    """A value of a type, of those arguments that are its members."""
    return kind(**{name: arguments[name] for name in kind.__struct_fields__})


def export_path(queue: str, after: int, until: int | None) -> str:
    """The path of a page of an export. Raises like `path_of`."""
    return path_of(EXPORT_QUEUE, {"queue": queue}, ExportQuery(after=after, until=until))


def history_path(after: int, until: int | None, limit: int, queue: str | None) -> str:
    """The path of a page of the history. Raises like `path_of`."""
    query = HistoryPageQuery(after=after, until=until, limit=limit, queue=queue)
    return path_of(READ_HISTORY, {}, query)


_ANY_TEXT = ("messageId", "redriveId")


def _segment(name: str, value: object) -> str:
    """The value of a segment as a path has it. Raises the error of the segment; OutOfRange for no consumer's name."""
    if name == "key":
        return _key(value)
    if not isinstance(value, str):
        return str(value)
    if name == "consumer":
        return check_consumer_name(value)
    # Clients and proxies take one dot or two as a directory, even percent-encoded.
    if value in ("", ".", "..") and name not in _ANY_TEXT:
        raise PATH_PARAMETERS[name].error(field=name)
    try:
        return quote(value, safe="")
    except UnicodeEncodeError:
        raise PATH_PARAMETERS[name].error(field=name) from None


def _key(key: Any) -> str:
    check_key(key)
    # A proxy may take dots as a directory all the same: the body of a batch can carry any key.
    return key.replace(".", "%2E") if key in (".", "..") else quote(key, safe="")


def read_lease_page(answer: HttpAnswer) -> LeasePage:
    """The messages of pages of a lease. Raises ForqProtocolError."""
    after = answer.header(NEXT_HEADER)
    try:
        messages = read_exported(answer.content)
        return LeasePage(messages, None if after is None else int(after))
    except (msgspec.MsgspecError, RecursionError, ValueError) as problem:
        raise unreadable(problem) from problem


def read_events(answer: HttpAnswer) -> EventPage:
    """The events of an answer. Raises ForqProtocolError."""
    return EventPage(*_log_page(answer, read_event_lines))


def read_history(answer: HttpAnswer) -> HistoryPage:
    """The finished messages of an answer. Raises ForqProtocolError."""
    return HistoryPage(*_log_page(answer, read_exported))


def _log_page(
    answer: HttpAnswer, read_lines: Callable[[bytes], list[LineT]]
) -> tuple[list[LineT], int, int, int]:
    """The lines of a page of a log, and the numbers in its headers: the next page's `after`, the first and last id."""
    try:
        following, first, last = (int(answer.header(name) or "") for name in _PAGE_HEADERS)
        return read_lines(answer.content), following, first, last
    except (msgspec.MsgspecError, RecursionError, ValueError) as problem:
        raise unreadable(problem) from problem


def read_answer(answer: HttpAnswer, kind: type[AnswerT]) -> AnswerT:
    """The JSON of an answer; None of one that is empty. Raises ForqProtocolError."""
    if kind is NoneType:
        return None  # type: ignore[return-value]  # None is all that NoneType has
    try:
        return msgspec.json.decode(answer.content, type=kind)
    except (msgspec.MsgspecError, RecursionError) as problem:
        raise unreadable(problem) from problem


def read_export(answer: HttpAnswer) -> ExportPage:
    """A page of an export. Raises ForqProtocolError."""
    try:
        return ExportPage(read_exported(answer.content), next_of(answer))
    except (msgspec.MsgspecError, RecursionError) as problem:
        raise unreadable(problem) from problem


def check_readable(answer: HttpAnswer) -> None:
    """Raises ForqProtocolError for an answer in a coding that nobody asked for."""
    coding = answer.header("Content-Encoding")
    if coding not in (None, "identity"):
        raise unreadable(ValueError(f"it is encoded as {coding}"))


def refusal(answer: HttpAnswer, url: str, *, has_secret: bool = True, variable: str = "") -> ForqError:
    """The error for an answer of the server at `url` that is no success.

    has_secret: False if the request had no key that might be wrong. variable: where the program has its key from; "" if
    the program names it.
    """
    try:
        error = msgspec.json.decode(answer.content, type=ErrorView)
    except (msgspec.MsgspecError, RecursionError):
        return _not_of_forq(answer)
    found = error_of(error.code, field=error.field, message=error.message)
    if isinstance(found, InvalidCron) and error.place is not None:
        found.place = CronPlace(*astuple(error.place))
    # A key is often right for another server: these errors name the one that was asked.
    server = f"the server at {without_credentials(url)}"
    if isinstance(found, (WrongKey, TooManyWrongKeys)) and not has_secret:
        # An address that is locked out (429) would get 401 otherwise: to wait for that helps nobody.
        return WrongKey(f"{server} wants a key, and this client was given no secret (FORQ_AUTH_SECRET)")
    if isinstance(found, TooManyWrongKeys):
        seconds = answer.header("Retry-After")
        locked = "locked out" if seconds is None else f"locked out for {seconds} s"
        return TooManyWrongKeys(f"too many wrong keys came from this address, which is {locked} by {server}")
    if isinstance(found, WrongKey):
        source = variable and f"; its client has the key of {variable}"
        return WrongKey(f"{found.message}, says {server}{source}", code=found.code)
    return found


_GATEWAY_STATUSES = (502, 503, 504)
"""What a proxy answers while the server behind it is away, as it is when it starts again."""


def _not_of_forq(answer: HttpAnswer) -> ForqProtocolError | ForqUnreachable:
    """The error for an answer that another server, or one before Forq's, gave."""
    status, place = answer.status, answer.header("Location")
    if status in _GATEWAY_STATUSES:
        return ForqUnreachable(f"a proxy before the server answered HTTP {status}")
    leads = "" if place is None else f", which leads to {place}"
    return ForqProtocolError(
        f"the server, or something before it, answered HTTP {status}{leads}; is this the URL of a Forq server?",
        refused=status < 500,
    )


def unreadable(problem: Exception) -> ForqProtocolError:
    """The error for an answer that nothing can be made of."""
    return ForqProtocolError(
        f"the answer is not one of Forq's, so the URL may be another service's ({problem})"
    )
