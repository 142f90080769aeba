"""The state of the server for the admin UI: current facts, and a verdict in one sentence.

Taking the facts costs a few system calls and no query.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from forq_trio.jobs.disk_guard import SpaceFacts
from forq_trio.jobs.runs import JobReport
from forq_trio.model import durations, limits
from forq_trio.model.engine_facts import REFUSAL_WORDS
from forq_trio.model.server.database_state import DatabaseState
from forq_trio.model.server.processes import ProcessInfo
from forq_trio.storage.engine import EngineFacts
from forq_trio.telemetry import words
from forq_trio.telemetry.counters import Counters
from forq_trio.telemetry.histogram import COMMIT_CALLS, DISK_SECONDS

Level = Literal["broken", "attention", "fine"]

SLOW_COMMIT_SECONDS = 0.1
SLOW_COMMITS_MIN = 100
SLOW_COMMITS_MINUTES = 5


class CommitFacts(Struct, frozen=True, kw_only=True):
    """Commits of the last hour. calls: how many shared a commit; seconds: how long a commit waited for the disk.

    The counts are by bucket: values up to each bound, and in the last bucket those above all bounds.
    """

    count: int
    per_second: float  # over the last SLOW_COMMITS_MINUTES
    calls_bounds: tuple[float, ...]
    calls_counts: tuple[int, ...]
    calls_median: float | None
    seconds_bounds: tuple[float, ...]
    seconds_counts: tuple[int, ...]
    seconds_median: float | None
    seconds_p99: float | None
    # of the last SLOW_COMMITS_MINUTES; None where there were fewer than SLOW_COMMITS_MIN
    recent_p99_seconds: float | None
    slowest_seconds: float | None
    slowest_at: int | None  # epoch ms


class SystemFacts(Struct, frozen=True, kw_only=True):
    """The server at the moment `now_ms`; times are epoch ms."""

    version: str
    now_ms: int
    started_at: int
    memory_bytes: int | None  # the memory of the process; None if the system does not tell
    connections: int | None  # that are open to the API; None if it is not served
    inbox_calls: int  # calls that wait to be taken into a commit
    engine: EngineFacts
    commits: CommitFacts
    sends_refused: bool
    files_problem: str | None  # None, or which file of the database is lost
    # a long read keeps the log from being emptied; not reported while a backup runs, which is one
    log_held: bool
    space: SpaceFacts | None = None  # what the disk guard knows; None without one
    processes: Sequence[ProcessInfo] = ()  # those that share the database; none where it is not shared
    database: DatabaseState | None = None  # what was last seen of its server; None without one
    set_aside: int = 0  # messages of forq.send, as of the last refresh of the gauges
    # how long batches of the last hour waited for others', by bucket of DISK_SECONDS
    gate_counts: tuple[int, ...] = ()


def commit_facts(counters: Counters, now_ms: int, started_at: int) -> CommitFacts:
    hour, calls = counters.commits.seconds.hour, counters.commits.calls.hour
    seconds = hour.counts(now_ms)
    recent = sum(hour.counts(now_ms, SLOW_COMMITS_MINUTES))
    into_minute_ms = now_ms % 60_000
    span_ms = (SLOW_COMMITS_MINUTES - 1) * 60_000 + into_minute_ms
    lived_ms = max(1_000, min(span_ms, now_ms - started_at))
    slowest = hour.greatest(now_ms)
    return CommitFacts(
        count=sum(seconds),
        per_second=recent * 1_000 / lived_ms,
        calls_bounds=COMMIT_CALLS,
        calls_counts=tuple(calls.counts(now_ms)),
        calls_median=calls.quantile(now_ms, 0.5),
        seconds_bounds=DISK_SECONDS,
        seconds_counts=tuple(seconds),
        seconds_median=hour.quantile(now_ms, 0.5),
        seconds_p99=hour.quantile(now_ms, 0.99),
        recent_p99_seconds=hour.quantile(now_ms, 0.99, SLOW_COMMITS_MINUTES)
        if recent >= SLOW_COMMITS_MIN
        else None,
        slowest_seconds=None if slowest is None else slowest[0],
        slowest_at=None if slowest is None else slowest[1],
    )


def memory_bytes(statm: Path = Path("/proc/self/statm")) -> int | None:
    """The memory of this process (RSS); None if the system does not tell."""
    try:
        return int(statm.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None


def system_verdict(facts: SystemFacts, reports: Sequence[JobReport]) -> tuple[Level, str]:
    """The verdict on the server, in one sentence: the first of the conditions below that is true."""
    if facts.files_problem is not None:
        return "broken", REFUSAL_WORDS["storage_lost"]
    if facts.sends_refused:
        return "broken", REFUSAL_WORDS["storage_full"]
    if silent := [each for each in facts.processes if each.silent]:
        lost = any(facts.now_ms - each.heard_at >= limits.PROCESS_LOST_MS for each in silent)
        do = "does" if len(silent) == 1 else "do"
        sentence = f"{len(silent)} of {len(facts.processes)} processes {do} not answer"
        return "broken" if lost else "attention", sentence
    if others := sum(each.other_secret for each in facts.processes):
        have = "has" if others == 1 else "have"
        return "attention", f"{others} of {len(facts.processes)} processes {have} another FORQ_AUTH_SECRET"
    if facts.set_aside:
        return "attention", f"{words.counted(facts.set_aside, 'message')} of forq.send set aside"
    failed = {report.name: report for report in reports if report.failed}
    if "backup" in failed:
        return "attention", f"The last backup failed{_ago(failed['backup'], facts.now_ms)}"
    if "checkpoint" in failed and facts.engine.log_bytes > facts.engine.log_bytes_max:
        return "attention", f"The log grows, checkpoints fail: {words.size(facts.engine.log_bytes)}"
    if facts.log_held:
        return "attention", "The log cannot be emptied: a read holds it"
    if facts.database is not None and (snapshot := facts.database.old_snapshot) is not None:
        age = durations.in_words(snapshot.held_ms)
        return "attention", f"A snapshot is {age} old, vacuum cannot work"
    p99 = facts.commits.recent_p99_seconds
    if p99 is not None and p99 > SLOW_COMMIT_SECONDS:
        return "attention", f"Writes wait for the disk: p99 {durations.in_words(round(p99 * 1_000))}"
    for report in failed.values():
        return "attention", f"A job failed: {report.title}{_ago(report, facts.now_ms)}"
    return "fine", "All is well"


def _ago(report: JobReport, now_ms: int) -> str:
    if report.last_run_at is None:
        return ""
    return f", {durations.in_words(max(0, now_ms - report.last_run_at))} ago"
