"""The context of every scenario: how much to do, on which server, and how to report progress."""

import itertools
import secrets
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from bench.load.generator import Conversation, Load, Series
from bench.scenarios.settings import Settings
from bench.targets.servers import Server, ServerError, forq_server

# The JSON around the content: {"content":""}
ENVELOPE_BYTES = 14

Row = dict[str, Any]


@dataclass
class Context:
    """One run. remote: a running server to measure; None starts ours anew for each scenario."""

    settings: Settings
    data_dir: Path
    durability: Literal["full", "normal"] = "full"
    remote: Server | None = None
    say: Callable[[str], None] = print
    _names: Iterator[int] = field(default_factory=itertools.count)
    _token: str = field(default_factory=lambda: secrets.token_hex(3))

    @contextmanager
    def server(self) -> Iterator[Server]:
        """The server under test, checked to accept a message. Raises ServerError."""
        if self.remote is not None:
            self._check(self.remote)
            yield self.remote
            return
        with forq_server(self.data_dir, self.durability) as server:
            self._check(server)
            yield server

    def queue(self, scenario: str) -> str:
        """A queue name that nobody has used, even if the server has been measured before."""
        return f"bench-{scenario}-{self._token}-{next(self._names)}"

    @property
    def content(self) -> str:
        """The content of a message whose request body is exactly `body_bytes` long."""
        return "x" * (self.settings.body_bytes - ENVELOPE_BYTES)

    def _check(self, server: Server) -> None:
        response = server.api.exchange(server.api.send(self.queue("check"), self.content))
        if response.status not in (200, 201, 204):
            raise ServerError(
                f"{server.api.url} refuses a message: {response.status} {response.body[:200]!r}"
            )


def drive(
    context: Context, server: Server, conversations: Iterable[Conversation], *, warm_up: bool = True
) -> float:
    """Carry on the conversations for the standard time; return the seconds measured, without the warm-up."""
    settings = context.settings
    with Load(server.api.address) as load:
        load.add_all(conversations)
        return load.run(
            settings.seconds,
            warm_up_seconds=settings.warm_up_seconds if warm_up else 0.0,
            answers_max=settings.answers_max,
        )


def merged(name: str, series: Sequence[Series]) -> Series:
    """The sum of several series."""
    total = Series(name)
    for one in series:
        total.latency.add(one.latency)
        total.errors.update(one.errors)
    return total


def figures(series: Series, seconds: float) -> Row:
    """Rate of good answers, their latencies in milliseconds, and errors by status."""
    summary = series.latency.summary()
    return {"per_second": round(summary.pop("count") / seconds, 1), **summary, "errors": dict(series.errors)}


def spread(values: Sequence[float]) -> Row:
    """Median of rounds, with the least and the greatest value, which show how much the machine varied."""
    return {
        "median": round(statistics.median(values), 4),
        "min": round(min(values), 4),
        "max": round(max(values), 4),
    }
