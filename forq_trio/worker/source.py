"""The methods of a broker and a client that a worker uses; both have them in the same form."""

import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Protocol, TypeVar, Unpack

import anyio

from forq_trio.client.environment import FromEnvironment, server_url
from forq_trio.model.consumers.consuming import Consuming
from forq_trio.model.errors import ForqError, ServiceError, Stopping, TooManyWrongKeys
from forq_trio.model.extras import needing
from forq_trio.model.keys.types import Mode, Offered, OfferOptions
from forq_trio.model.messages.new_message import MessageOptions
from forq_trio.model.messages.types import Produced
from forq_trio.model.queues.bodies import QueueConfiguration

if TYPE_CHECKING:
    from forq_trio.broker.broker import Broker
    from forq_trio.client.aio import AsyncForqClient

logger = logging.getLogger("forq_trio.worker")

R = TypeVar("R")

RETRY_SECONDS = 0.5
"""How long the client of a worker repeats a call, before the worker says that the server is away."""
PAUSE_SECONDS_MIN = 0.1
PAUSE_SECONDS_MAX = 5.0
ANSWER_SECONDS_MAX = 30.0
"""How long a worker with `stop_when_empty` tries again if its source does not answer."""


class Source(Consuming, Protocol):
    """A `Broker` or an `AsyncForqClient`, which document the methods."""

    async def produce(self, queue: str, content: str, **options: Unpack[MessageOptions]) -> Produced: ...

    async def offer(
        self,
        queue: str,
        key: str,
        content: str,
        *,
        kind: str = ...,
        mode: Mode = ...,
        max_wait_ms: int | None = ...,
        **options: Unpack[OfferOptions],
    ) -> Offered: ...

    async def settings(self, queue: str) -> QueueConfiguration: ...


if TYPE_CHECKING:

    def _both(broker: Broker, client: AsyncForqClient) -> tuple[Source, Source]:
        """Never called: it makes the type checker verify that both have these methods."""
        return broker, client


def passes(error: ForqError) -> bool:
    """Whether an error is temporary, so that the same call may succeed later."""
    return isinstance(error, (ServiceError, TooManyWrongKeys)) or error.code.startswith("forq.")


def ends_all(error: ForqError, source: Source) -> bool:
    """Whether a source will never answer again: a broker that has stopped. A server comes back."""
    return isinstance(error, Stopping) and not hasattr(source, "aclose")


def gives_up_at(*, stop_when_empty: bool) -> float:
    """When a worker that asks now gives up: never, unless it ends when its queues are empty; by the loop's clock."""
    return anyio.current_time() + ANSWER_SECONDS_MAX if stop_when_empty else math.inf


async def patiently(
    source: Source,
    call: Callable[[], Awaitable[R]],
    problem: str,
    *,
    until: Callable[[], float] = lambda: math.inf,
) -> R:
    """The answer of a call, which is repeated with growing pauses while the source does not answer.

    The log says so once, and again if the reason changes, and when there is an answer. Raises an error that is not
    temporary, and any error once the next try would be later than `until`, on the event loop's clock.
    """
    pause = PAUSE_SECONDS_MIN
    failed_at = math.inf
    told = None
    while True:
        try:
            answer = await call()
        except ForqError as error:
            if ends_all(error, source) or not passes(error) or anyio.current_time() + pause >= until():
                raise
            failed_at = min(failed_at, anyio.current_time())
            if str(error) != told:
                told = str(error)
                logger.warning("%s, trying again: %s", problem, told)
        else:
            if told is not None:
                logger.warning("%s for %.1f s; now it works", problem, anyio.current_time() - failed_at)
            return answer
        await anyio.sleep(pause)
        pause = min(2 * pause, PAUSE_SECONDS_MAX)


def connection(
    given: str | None, secret: str | None
) -> tuple[str, str | FromEnvironment, str | FromEnvironment]:
    """Where a source is, and the URL and the secret as a client takes them. given, secret: see `Worker`."""
    place = server_url() if given is None else given
    return (
        place,
        FromEnvironment.URL if given is None else place,
        FromEnvironment.SECRET if secret is None else secret,
    )


def is_server(place: str) -> bool:
    """Whether a URL is that of a server."""
    return place.startswith(("http://", "https://"))


def is_database(place: str) -> bool:
    """Whether a URL is that of a database, whose queue is in this process."""
    return place.startswith(("sqlite:", "memory:", "postgresql:", "postgres:"))


def unknown_kind(place: str) -> ValueError:
    """The error for any other URL."""
    kind = place.partition(":")[0]  # without what may be a password
    return ValueError(
        f"a worker's source is a URL with http, https, sqlite, memory or postgresql: not {kind!r}"
    )


@asynccontextmanager
async def open_source(
    given: "str | Source | None", secret: str | None
) -> AsyncIterator[tuple[Source, Source]]:
    """The source of a worker: opened by its URL and closed at the end, or one that the caller opened.

    Twice: as the worker asks it, which repeats its calls itself and says so, and as handlers send to it.

    given, secret: see `Worker`. Raises ValueError for a URL of an unknown kind, InvalidSecret, and what `open_broker`
    raises.
    """
    if given is not None and not isinstance(given, str):
        yield given, given
        return
    place, url, key = connection(given, secret)
    if is_server(place):
        from forq_trio.client.aio import AsyncForqClient
        from forq_trio.client.aio_pool import AsyncPool

        pool = AsyncPool(place)
        asking = AsyncForqClient(url, key, retry_seconds=RETRY_SECONDS, transport=pool)
        async with AsyncForqClient(url, key, transport=pool) as sending:
            yield asking, sending
    elif is_database(place):
        with needing("embed", "a worker on a database"):
            from forq_trio.system import open_broker
        async with open_broker(place) as broker:
            yield broker, broker
    else:
        raise unknown_kind(place)
