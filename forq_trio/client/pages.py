"""Pages of NDJSON as they come from the server, for programs that parse the lines themselves (with Arrow, say)."""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from forq_trio.client.http1 import Answer
from forq_trio.wire.errors import NEXT_HEADER


class Page(NamedTuple):
    """lines: NDJSON. next: where the next page begins (as `after`, or as `page`); None at the end, or where the answer
    does not say. headers: of the answer, names in lower case.
    """

    lines: bytes
    next: int | None
    headers: Mapping[str, str]


class Client(Protocol):
    """A blocking client."""

    def _request(
        self, method: str, path: str, body: object | None = None, wait_seconds: float = 0.0
    ) -> Answer: ...


def get_page(client: Client, path: str, wait_seconds: float = 0.0) -> Page:
    """One page of NDJSON. client: a `ForqClient`; path: as in /api/v1/queues/orders/export?after=0.

    wait_seconds: how long the server may wait before it answers. Raises what the client's methods raise.
    """
    answer = client._request("GET", path, None, wait_seconds)
    return Page(answer.content, next_of(answer), answer.headers)


def next_of(answer: Answer) -> int | None:
    """The X-Forq-Next of an answer; None without one."""
    text = answer.header(NEXT_HEADER) or ""
    return int(text) if text.isascii() and text.isdigit() else None
