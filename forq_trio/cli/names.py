"""Names that a shell completes from the server: those of queues here, others where their commands are.

It asks the server that the command would ask, with the secret in FORQ_AUTH_SECRET. Whoever presses Tab waits for a
moment at most, and sees no error: where there is no server, secret or permission, nothing is offered.
"""

import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING

import click
from click.types import StringParamType

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from forq_trio.client.sync import ForqClient

ANSWER_SECONDS_MAX = 0.6
_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]*")
"""The names that are offered: what a shell would expand or run stays out, whatever the server says."""
_READ_MAX = 10_000

Read = Callable[["ForqClient", click.Context], Iterable[str]]


class ServerName(StringParamType):
    """The type of an argument or option that is such a name. read: the names; it may raise."""

    def __init__(self, read: Read) -> None:
        self._read = read

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> "list[CompletionItem]":
        """Those that begin with `incomplete`."""
        from click.shell_completion import CompletionItem

        from forq_trio.cli.at_most import run_at_most
        from forq_trio.cli.connection import connect
        from forq_trio.client import sync  # noqa: F401  not in the time that the server has

        found: list[str] = []

        def look() -> None:
            with suppress(Exception), connect(ctx.params["url"], retry_seconds=0.0) as client:
                found.extend(islice(self._read(client, ctx), _READ_MAX))

        run_at_most(ANSWER_SECONDS_MAX, look)
        return [
            CompletionItem(name)
            for name in tuple(found)
            if name.startswith(incomplete) and _SAFE.fullmatch(name)
        ]


QUEUE = ServerName(lambda client, _: (each.queue for each in client.queues()))
