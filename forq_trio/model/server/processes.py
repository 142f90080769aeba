"""Server processes that share a database: what each reports about itself, and what is known about it."""

import re

from msgspec import Struct

from forq_trio.model.values import Count, EpochMs


class JobRun(Struct, frozen=True, rename="camel"):
    """The latest finished run of a job in a process."""

    job: str  # its name
    at: EpochMs  # when it began
    took_ms: float  # how long it took
    result: str  # in words, or why it failed; at most 80 characters
    failed: bool = False  # it did not do its work


class ProcessFacts(Struct, frozen=True, kw_only=True, rename="camel"):
    """What a process says about itself."""

    id: str  # made at its start
    name: str  # of its host
    process: Count  # its process id on the host
    version: str  # of its program
    started_at: EpochMs  # when it started
    last_batch_at: EpochMs | None = None  # when it last changed something in the database
    connections: Count | None = None  # open to its API; None if it serves none
    waiting: Count = 0  # consumers that wait in it
    running: tuple[str, ...] = ()  # the jobs that run now, by their titles
    # how long its batches waited for those of other processes: the 99th percentile of five minutes, None
    # without any
    gate_wait_ms: float | None = None
    # how old the batches of others were when it took them over: the 99th percentile of five minutes, None
    # without any
    lag_ms: float | None = None
    ran: tuple[JobRun, ...] = ()  # the latest run of each of its jobs


class ProcessReport(ProcessFacts, frozen=True, kw_only=True, rename="camel"):
    """The report of a process about itself, for the others on its database."""

    secret_check: str | None = None  # of its secret, see `secret_checks`; None without one


class HeardProcess(Struct, frozen=True, gc=False):
    """A report as it is in the database."""

    report: ProcessReport
    address: str | None  # where it is connected from; None by a Unix socket
    heard_at: int  # when


class ProcessInfo(ProcessFacts, frozen=True, kw_only=True, rename="camel"):
    """What is known about a process."""

    # its FORQ_AUTH_SECRET is another one than that of the process that answers: keys and logins are good at one of them
    other_secret: bool = False
    address: str | None  # where the database sees it; None on the same machine
    heard_at: EpochMs  # when it last reported
    silent: bool  # nothing was heard for 15 seconds
    here: bool  # it is the process that answers


def is_newer(version: str, than: str) -> bool:
    """Whether one version is newer than another, by their numbers."""
    one, other = ([int(number) for number in re.findall(r"\d+", each)] for each in (version, than))
    return one > other
