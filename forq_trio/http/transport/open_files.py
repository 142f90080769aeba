"""Raises the limit of open files: every connection is one, and the usual limit is low, often 1,024.

Beyond the limit a connection would be neither served nor refused, and the database's own files could not be opened. So
the limit is raised as far as is allowed, and its use is planned before anybody connects:

- OPEN_FILES_BESIDE_MAX are for all other files; no connection takes one of them.
- Of the rest the admin UI's port gets a quarter, and no more than it needs; the API's port gets all others.
- Each port refuses, or replaces, the connections beyond its own number.
"""

import resource
from typing import NamedTuple

from forq_trio.model import limits

_WANTED = limits.CONNECTIONS_MAX + limits.UI_CONNECTIONS_MAX + limits.OPEN_FILES_BESIDE_MAX
_UI_SHARE = 4
"""If not all connections fit, the admin UI gets a quarter of them."""


class ConnectionsMax(NamedTuple):
    """How many connections each port may have."""

    api: int
    ui: int


def allow_connections(*, with_ui: bool) -> ConnectionsMax:
    """Raise the process's limit of open files, and return how many connections fit into it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = files_to_have(soft, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    return connections_that_fit(files, with_ui=with_ui)


def files_to_have(soft: int, hard: int) -> int:
    """The limit to set: enough, or as much as is allowed; never less than `soft`. RLIM_INFINITY is no limit."""
    if soft == resource.RLIM_INFINITY or soft >= _WANTED:
        return soft
    return _WANTED if hard == resource.RLIM_INFINITY else min(hard, _WANTED)


def connections_that_fit(files: int, *, with_ui: bool) -> ConnectionsMax:
    """How many connections fit beside all other files; at least one of each port that is served."""
    left = (_WANTED if files == resource.RLIM_INFINITY else files) - limits.OPEN_FILES_BESIDE_MAX
    ui = max(1, min(limits.UI_CONNECTIONS_MAX, left // _UI_SHARE)) if with_ui else 0
    return ConnectionsMax(api=max(1, min(limits.CONNECTIONS_MAX, left - ui)), ui=ui)
