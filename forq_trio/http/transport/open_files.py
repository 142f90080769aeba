"""Raises the limit of open files: every connection is one, and the usual limit is low, often 1,024.

Beyond the limit a connection would neither be served nor refused, and the database's own files could not be opened. So
the limit is raised as far as is allowed, and connections that do not fit are refused.
"""

import resource

from forq_trio.model import limits

_WANTED = limits.CONNECTIONS_MAX + limits.OPEN_FILES_BESIDE_MAX


def allow_connections() -> int:
    """Raise the process's limit of open files, and return how many connections fit into it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = files_to_have(soft, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    return connections_that_fit(files)


def files_to_have(soft: int, hard: int) -> int:
    """The limit to set: enough, or as much as is allowed; never less than `soft`. RLIM_INFINITY is no limit."""
    if soft == resource.RLIM_INFINITY or soft >= _WANTED:
        return soft
    return _WANTED if hard == resource.RLIM_INFINITY else min(hard, _WANTED)


def connections_that_fit(files: int) -> int:
    """How many connections fit beside all other files; at least one."""
    if files == resource.RLIM_INFINITY:
        return limits.CONNECTIONS_MAX
    return max(1, min(limits.CONNECTIONS_MAX, files - limits.OPEN_FILES_BESIDE_MAX))
