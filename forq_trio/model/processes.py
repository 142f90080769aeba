"""Server processes that share a database: what one says of itself, and what is known of it."""

import re

from msgspec import Struct

from forq_trio.model.values import Count, EpochMs


class JobRun(Struct, frozen=True, rename="camel"):
    """The latest run of a job at a process that has ended.

    job: its name. at: when it began. result: in words, or why it failed; cut off after PROCESS_RESULT_LENGTH_MAX.
    """

    job: str
    at: EpochMs
    took_ms: float
    result: str
    failed: bool = False


class ProcessReport(Struct, frozen=True, kw_only=True, rename="camel"):
    """What a process says of itself.

    id: made at its start. name: of its host; process: its number there. lastBatchAt: when it last changed something in
    the database. connections: open to its API; None where it serves none. waiting: consumers that wait at it. running:
    the jobs that run now, by their titles. gateWaitMs: how long its batches waited until no other process ran one;
    lagMs: how old the batches of others were when it learned of them: each the 99th percentile of five minutes, None
    without any. ran: its jobs that have run.
    """

    id: str
    name: str
    process: Count
    version: str
    started_at: EpochMs
    last_batch_at: EpochMs | None = None
    connections: Count | None = None
    waiting: Count = 0
    running: tuple[str, ...] = ()
    gate_wait_ms: float | None = None
    lag_ms: float | None = None
    ran: tuple[JobRun, ...] = ()


class HeardProcess(Struct, frozen=True, gc=False):
    """A report as the database has it. address: where it is connected from; None by a Unix socket. heard_at: when."""

    report: ProcessReport
    address: str | None
    heard_at: int


class ProcessInfo(ProcessReport, frozen=True, kw_only=True, rename="camel"):
    """What is known of a process.

    address: where the database sees it; None on the same machine. heardAt: when it last reported. silent: nothing was
    heard for PROCESS_SILENT_MS. here: it is the one that answers.
    """

    address: str | None
    heard_at: EpochMs
    silent: bool
    here: bool


def is_newer(version: str, than: str) -> bool:
    """Whether one version is newer than another, by their numbers."""
    one, other = ([int(number) for number in re.findall(r"\d+", each)] for each in (version, than))
    return one > other
