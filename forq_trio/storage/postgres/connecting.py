"""Connects to PostgreSQL while other threads have the interpreter.

libpq's own function that connects and waits keeps the interpreter to itself: with a machine that does not answer, the
whole process would stand still for `connect_timeout`. So libpq connects without blocking, and this thread waits for the
socket. Then libpq has no time limit of its own, and each address of a URL is tried for `connect_timeout` seconds here.
libpq would also look up names of hosts with the interpreter to itself, so it is given their addresses.

The same is true of the connection over which a statement is cancelled. Only a libpq before 17 has no other way.
"""

import select
import socket
from collections.abc import Callable, Iterator, Mapping
from time import monotonic
from typing import Any

from psycopg import capabilities, pq
from psycopg.conninfo import conninfo_to_dict, make_conninfo

CONNECT_SECONDS = 5
"""For each host, where the URL sets no other time limit."""
_LISTS = ("host", "hostaddr", "port")


class NotConnected(Exception):
    """No host of the URL could be connected to"""


def connect(conninfo: str) -> pq.abc.PGconn:
    """A connection to the first host that takes it. Blocks. Raises NotConnected with what the last host said."""
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
    """The time limit; 0 and less, which mean none to libpq, are the usual one. Raises NotConnected."""
    try:
        seconds = int(timeout)
    except ValueError:
        raise NotConnected(f"connect_timeout is a number of seconds, not {timeout!r}") from None
    return seconds if seconds > 0 else CONNECT_SECONDS


def _hosts(parts: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The same for one host after the other; lists that do not fit each other are left to libpq, which says so."""
    lists = {name: str(parts[name]).split(",") for name in _LISTS if parts.get(name)}
    hosts = max(map(len, lists.values()), default=1)
    if any(len(each) not in (1, hosts) for each in lists.values()):
        yield parts
        return
    for number in range(hosts):
        chosen = {name: each[number if len(each) > 1 else 0] for name, each in lists.items()}
        yield {**parts, **chosen}


def _addresses(parts: Mapping[str, Any]) -> list[str]:
    """The same for each address of its host, if it has a name. Raises OSError or UnicodeError for one without."""
    host = str(parts.get("host") or "")
    if not host or "," in host or host.startswith(("/", "@")) or parts.get("hostaddr"):
        return [make_conninfo("", **parts)]
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return [make_conninfo("", **{**parts, "hostaddr": place[0]}) for *_, place in found]


def cancel(connection: pq.abc.PGconn) -> None:
    """Cancel the statement that runs on a connection, from another thread. Blocks, for CONNECT_SECONDS at the most."""
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
    """Wait until it is connected (or the statement cancelled), has failed, or took so many seconds."""
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
