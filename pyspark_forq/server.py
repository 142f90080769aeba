"""Calls of the server from Spark's processes: one client a process; a call is repeated while the server is away.

Every call that the data source makes may be made again: reads have no effects, and leases, stages and publications are
numbered. So a call is repeated after every failure that is the server's, whether or not it was carried out.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Concatenate, ParamSpec, TypeVar

from forq_trio.client.address import without_credentials
from forq_trio.client.sync_pipelines import Pipelines
from forq_trio.client.sync_pool import Pool
from forq_trio.model.errors import (
    ConsumerFenced,
    EventsGone,
    ForqError,
    ForqUnreachable,
    HistoryGone,
    LeaseGone,
    ServiceError,
)
from pyspark_forq.errors import ForqConsumerFenced, ForqDataLoss, ForqDataSourceError
from pyspark_forq.options import Options

ArgumentsP = ParamSpec("ArgumentsP")
ResultT = TypeVar("ResultT")
ClientT = TypeVar("ClientT", bound=Pipelines)

PAUSE_SECONDS_MIN = 0.05
PAUSE_SECONDS_MAX = 2.0

FENCED = ConsumerFenced.code
GONE = (LeaseGone.code, EventsGone.code, HistoryGone.code)

# Spark reuses its workers for further tasks. A client does not survive a fork.
_clients: dict[tuple[int, str, str, str | None, type[Pipelines]], Pipelines] = {}


def ask(
    options: Options,
    method: Callable[Concatenate[Pipelines, ArgumentsP], ResultT],
    *arguments: ArgumentsP.args,
    **more: ArgumentsP.kwargs,
) -> ResultT:
    """Call a method of the client and return its result. The call is repeated for `retry_seconds` after errors of the
    server that may be temporary.
    """
    return ask_as(Pipelines, options, method, *arguments, **more)


def ask_as(
    kind: type[ClientT],
    options: Options,
    method: Callable[Concatenate[ClientT, ArgumentsP], ResultT],
    *arguments: ArgumentsP.args,
    **more: ArgumentsP.kwargs,
) -> ResultT:
    """Like `ask`, with a client of this kind instead of `Pipelines`."""
    client = _client(options, kind)
    deadline: float | None = None
    pause = PAUSE_SECONDS_MIN
    while True:
        try:
            return method(client, *arguments, **more)
        except ServiceError as problem:
            if isinstance(problem, ForqUnreachable) and problem.lasting:
                raise
            now = time.monotonic()
            deadline = deadline or now + options.retry_seconds
            if now + pause > deadline:
                raise
        time.sleep(pause)
        pause = min(2 * pause, PAUSE_SECONDS_MAX)


def _client(options: Options, kind: type[ClientT]) -> ClientT:
    key = (os.getpid(), options.url, options.secret(), options.authorities, kind)
    client = _clients.get(key)
    if not isinstance(client, kind):
        pool = Pool(options.url, options.authorities)
        client = _clients[key] = kind(options.url, options.secret(), retry_seconds=0, transport=pool)
    return client


@contextmanager
def in_our_words(options: Options) -> Iterator[None]:
    """Replace errors of the client in the body by errors of the data source (errors.py), without a chain of causes."""
    try:
        yield
    except ForqUnreachable as problem:
        tried = "" if problem.lasting else f"; tried for {options.retry_seconds} s (option retrySeconds)"
        raise ForqDataSourceError(f"{_trusting(problem.message)}{tried}") from None
    except ForqError as problem:
        kind = {FENCED: ForqConsumerFenced}.get(problem.code, ForqDataSourceError)
        if problem.code in GONE:
            kind = ForqDataLoss
        raise kind(_sentence(problem, options)) from None


def _trusting(sentence: str) -> str:
    return sentence.replace("SSL_CERT_FILE can", "option caFile (or SSL_CERT_FILE) can")


def _sentence(problem: ForqError, options: Options) -> str:
    if problem.code == FENCED:
        return (
            f"another query has opened consumer {options.consumer!r} of queue {options.queue!r} since this one did, or"
            " somebody has released it: a consumer belongs to one query, so this one ends"
        )
    field = "" if problem.field is None else f" ({problem.field})"
    return (
        f"the server at {without_credentials(options.url)} refused: {problem.message}{field} [{problem.code}]"
    )
