"""Pages of NDJSON as they come from the server, for programs that parse the lines themselves (with Arrow, say)."""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, Protocol, TypeVar

from forq_trio.client.http1 import HttpAnswer
from forq_trio.model.error_answers import NEXT_HEADER


class Page(NamedTuple):
    """lines: NDJSON. next: where the next page begins (as `after`, or as `page`); None at the end, or where the answer
    does not say. headers: of the answer, names in lower case.
    """

    lines: bytes
    next: int | None
    headers: Mapping[str, str]


class HasNext(Protocol):
    """A page that says where the next one begins, if there is one."""

    @property
    def next(self) -> int | None: ...


PageT = TypeVar("PageT", bound=HasNext)


class Client(Protocol):
    """A blocking client."""

    def _request(
        self, method: str, path: str, body: object | None = None, wait_seconds: float = 0.0
    ) -> HttpAnswer: ...


def get_page(client: Client, path: str, wait_seconds: float = 0.0) -> Page:
    """One page of NDJSON. client: a `ForqClient`; path: as in /api/v1/queues/orders/export?after=0.

    wait_seconds: how long the server may wait before it answers. Raises what the client's methods raise.
    """
    answer = client._request("GET", path, None, wait_seconds)
    return Page(answer.content, next_of(answer), answer.headers)


def log_pages(read: Callable[[int], PageT], after: int, until: int | None) -> Iterator[PageT]:
    """The pages of a log behind the id `after`, each with what is behind the one before; until: None for no end.

    read: makes a page of what is behind an id. Ends early where a page leads no further.
    """
    while until is None or after < until:
        page = read(after)
        yield page
        if page.next is None or (until is not None and page.next <= after):
            return
        after = page.next


def next_of(answer: HttpAnswer) -> int | None:
    """The X-Forq-Next of an answer; None without one."""
    text = answer.header(NEXT_HEADER) or ""
    return int(text) if text.isascii() and text.isdigit() else None
