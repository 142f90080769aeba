"""What several endpoints need while they read a request: ranges, numbers in the query, the long poll."""

from urllib.parse import parse_qs

from forq_trio.broker import Broker
from forq_trio.errors import ForqError
from forq_trio.http.codes import refused
from forq_trio.http.message import Request
from forq_trio.model import Delivery


def check_range(value: int, low: int, high: int, code: str) -> None:
    """Raise Refused with `code` unless low <= value <= high."""
    if not low <= value <= high:
        raise refused(code)


def query_number(query: str, name: str, default: int, low: int, high: int, code: str) -> int:
    """The number `name` of a query string, the last one if it is repeated; `default` if it is not there.

    Raises Refused with `code` when it is not plain digits, or outside low to high.
    """
    if not query:
        return default
    values = parse_qs(query, keep_blank_values=True).get(name)
    if values is None:
        return default
    text = values[-1]
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(high))):
        raise refused(code)
    check_range(int(text), low, high, code)
    return int(text)


async def wait_for_messages(
    broker: Broker, request: Request, queue: str, *, max_messages: int, wait_ms: int, lease_ms: int
) -> tuple[Delivery, ...]:
    """Lease messages, waiting for the first; the client's going away cancels the wait.

    Watching the client costs something, so callers first claim what is there without it. Raises like
    `Broker.receive`. Cancelled, also by the client: what was leased meanwhile is given back, the attempt
    uncounted.
    """
    found: tuple[Delivery, ...] = ()
    failure: ForqError | None = None
    try:
        async with request.cancelled_on_disconnect():
            try:
                found = await broker.receive(
                    queue, max_messages=max_messages, wait_ms=wait_ms, lease_ms=lease_ms
                )
            except ForqError as error:  # kept out of the context manager, which may wrap it in a group
                failure = error
    except BaseException:
        if found:
            broker.undeliver(queue, found)
        raise
    if failure is not None:
        raise failure
    return found
