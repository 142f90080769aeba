"""Connects to PostgreSQL without blocking the interpreter for other threads.

libpq's blocking function to connect holds the interpreter lock: if the other machine does not answer, the whole process
stands still for `connect_timeout`. So libpq connects without blocking, and this thread waits for the socket. In that
mode libpq has no time limit, so each address of a URL is tried here for `connect_timeout` seconds. libpq would look up
host names with the lock held, too, so it is given addresses.

The same holds for the connection over which a statement is cancelled, except that before version 17 libpq can only do
that blocking.
"""

import select
import socket
from collections.abc import Callable, Iterator, Mapping
from time import monotonic
from typing import Any

from psycopg import capabilities, pq
from psycopg.conninfo import conninfo_to_dict, make_conninfo

CONNECT_SECONDS = 5
"""The time limit for each host, unless the URL sets another one."""
_LISTS = ("host", "hostaddr", "port")


class NotConnected(Exception):
    """No host of the URL could be connected to"""


def connect(conninfo: str) -> pq.abc.PGconn:
    """A connection to the first host that accepts one. Blocks. Raises NotConnected with the error of the last host."""
    parts = conninfo_to_dict(conninfo)
    seconds = _seconds(str(parts.get("connect_timeout") or 0))
    problem = ""
    for host in _hosts(parts):
        try:
            attempts = _addresses(host)
        except (OSError, UnicodeError) as unknown:
            why = unknown.strerror if isinstance(unknown, OSError) else unknown
            problem = f'could not translate host name "{host["host"]}" to address: {why}'
            continue
        for attempt in attempts:
            connection = pq.PGconn.connect_start(attempt.encode())
            if _connected(connection, connection.connect_poll, seconds):
                return connection
            problem = connection.get_error_message() if connection.status == pq.ConnStatus.BAD else _SILENT
            connection.finish()
    raise NotConnected(problem)


_SILENT = "timeout expired: the server does not answer"


def _seconds(timeout: str) -> int:
    """The time limit. 0 and less, which libpq takes as no limit, give CONNECT_SECONDS. Raises NotConnected."""
    try:
        seconds = int(timeout)
    except ValueError:
        raise NotConnected(f"connect_timeout is a number of seconds, not {timeout!r}") from None
    return seconds if seconds > 0 else CONNECT_SECONDS


def _hosts(parts: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The parameters for each host in turn. Lists of different lengths are left to libpq, which reports the error."""
    lists = {name: str(parts[name]).split(",") for name in _LISTS if parts.get(name)}
    hosts = max(map(len, lists.values()), default=1)
    if any(len(each) not in (1, hosts) for each in lists.values()):
        yield parts
        return
    for number in range(hosts):
        chosen = {name: each[number if len(each) > 1 else 0] for name, each in lists.items()}
        yield {**parts, **chosen}


def _addresses(parts: Mapping[str, Any]) -> list[str]:
    """The connection string for each address of the host. Raises OSError or UnicodeError for a name without any."""
    host = str(parts.get("host") or "")
    if not host or "," in host or host.startswith(("/", "@")) or parts.get("hostaddr"):
        return [make_conninfo("", **parts)]
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return [make_conninfo("", **{**parts, "hostaddr": place[0]}) for *_, place in found]


def cancel(connection: pq.abc.PGconn) -> None:
    """Cancel the statement that runs on a connection, from another thread. Blocks for at most CONNECT_SECONDS."""
    if not capabilities.has_cancel_safe():
        connection.get_cancel().cancel()
        return
    canceller = connection.cancel_conn()
    canceller.start()
    _connected(canceller, canceller.poll, CONNECT_SECONDS)
    canceller.finish()


def _connected(
    connection: pq.abc.PGconn | pq.abc.PGcancelConn, poll_once: Callable[[], int], seconds: float
) -> bool:
    """Whether it is connected (or the statement cancelled) within so many seconds; False if it failed. Blocks."""
    ends_at = monotonic() + seconds
    wanted: int = pq.PollingStatus.WRITING
    while connection.status != pq.ConnStatus.BAD:
        poll = select.poll()
        poll.register(
            connection.socket, select.POLLIN if wanted == pq.PollingStatus.READING else select.POLLOUT
        )
        if not poll.poll(max(0.0, ends_at - monotonic()) * 1_000):
            return False
        wanted = poll_once()
        if wanted == pq.PollingStatus.OK:
            return True
        if wanted == pq.PollingStatus.FAILED:
            return False
    return False
