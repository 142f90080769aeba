"""Server processes that share a database: what one says of itself, and what is known of it."""

import re

from msgspec import Struct

from forq_trio.model.values import Count, EpochMs


class JobRun(Struct, frozen=True, rename="camel"):
    """The latest run of a job at a process that has ended."""

    job: str  # its name
    at: EpochMs  # when it began
    took_ms: float
    result: str  # in words, or why it failed; cut off after PROCESS_RESULT_LENGTH_MAX
    failed: bool = False


class ProcessReport(Struct, frozen=True, kw_only=True, rename="camel"):
    """What a process says of itself."""

    id: str  # made at its start
    name: str  # of its host
    process: Count  # its number there
    version: str
    started_at: EpochMs
    last_batch_at: EpochMs | None = None  # when it last changed something in the database
    connections: Count | None = None  # open to its API; None where it serves none
    waiting: Count = 0  # consumers that wait at it
    running: tuple[str, ...] = ()  # the jobs that run now, by their titles
    gate_wait_ms: float | None = None  # how long its batches waited until no other process ran one
    # how old the batches of others were when it learned of them: each the 99th percentile of five minutes,
    # None without any
    lag_ms: float | None = None
    ran: tuple[JobRun, ...] = ()  # its jobs that have run


class HeardProcess(Struct, frozen=True, gc=False):
    """A report as the database has it."""

    report: ProcessReport
    address: str | None  # where it is connected from; None by a Unix socket
    heard_at: int  # when


class ProcessInfo(ProcessReport, frozen=True, kw_only=True, rename="camel"):
    """What is known of a process."""

    address: str | None  # where the database sees it; None on the same machine
    heard_at: EpochMs  # when it last reported
    silent: bool  # nothing was heard for PROCESS_SILENT_MS
    here: bool  # it is the one that answers


def is_newer(version: str, than: str) -> bool:
    """Whether one version is newer than another, by their numbers."""
    one, other = ([int(number) for number in re.findall(r"\d+", each)] for each in (version, than))
    return one > other
