"""The one sentence about the whole server: which cause comes first, and where each begins."""

from pathlib import Path

import msgspec
import pytest

from forq_trio.jobs.facts import (
    SLOW_COMMITS_MIN,
    CommitFacts,
    SystemFacts,
    commit_facts,
    memory_bytes,
    system_verdict,
)
from forq_trio.jobs.runs import JobReport
from forq_trio.model import limits
from forq_trio.model.server.database_state import DatabaseReading, DatabaseState, HeldSnapshot, SnapshotKeeper
from forq_trio.model.server.processes import ProcessInfo
from forq_trio.storage.engine import EngineFacts
from forq_trio.telemetry.counters import Counters

HOUR = 3_600_000
NOW = 1_700_000_000_000


def commits(p99: float | None) -> CommitFacts:
    facts = commit_facts(Counters(), NOW, NOW - HOUR)
    return msgspec.structs.replace(facts, recent_p99_seconds=p99)


FINE = SystemFacts(
    version="1.2.3",
    now_ms=NOW,
    started_at=NOW - HOUR,
    memory_bytes=None,
    connections=None,
    inbox_calls=0,
    engine=EngineFacts(name="SQLite", version="3", durability="full"),
    commits=commits(None),
    sends_refused=False,
    files_problem=None,
    log_held=False,
)


def job(name: str, title: str, *, failed: bool, ago_ms: int = 9 * HOUR) -> JobReport:
    return JobReport(name=name, title=title, last_run_at=NOW - ago_ms, result="no space", failed=failed)


def process(heard_ms_ago: int) -> ProcessInfo:
    return ProcessInfo(
        id=str(heard_ms_ago),
        name="forq-d",
        process=7,
        version="1.0",
        started_at=NOW - HOUR,
        address=None,
        heard_at=NOW - heard_ms_ago,
        silent=heard_ms_ago >= limits.PROCESS_SILENT_MS,
        here=False,
    )


def test_servers_with_different_secrets_are_noticed() -> None:
    other = msgspec.structs.replace(process(1_000), other_secret=True)
    facts = msgspec.structs.replace(FINE, processes=(process(0), other))
    sentence = "1 of 2 processes has another FORQ_AUTH_SECRET"
    assert system_verdict(facts, []) == ("attention", sentence)


def held(held_ms: int) -> DatabaseState:
    """What was seen of a database in which a snapshot is held for so long."""
    dump = SnapshotKeeper("session", "pg_dump", 4711, "active", "7", 0)
    return DatabaseState(DatabaseReading(1, 1, 100, 0, 0, None, 0, (dump,)), HeldSnapshot(dump, held_ms))


BACKUP = job("backup", "Backup", failed=True)
SWEEP = job("sweep.expired", "Expire messages", failed=True, ago_ms=31_000)
CHECKPOINT = job("checkpoint", "Checkpoint", failed=True, ago_ms=1_000)
OTHER = process(4_000)
SILENT = process(15_000)
LOST = process(30_000)
LONG_LOG = msgspec.structs.replace(FINE.engine, log_bytes=308 << 20, log_bytes_max=64 << 20)
CAUSES = [
    (
        {"files_problem": "/q.db was removed or moved"},
        [],
        "broken",
        "A file of the database is missing, sends are refused",
    ),
    ({"sends_refused": True}, [], "broken", "The disk is full, sends are refused"),
    ({"processes": (OTHER, LOST)}, [], "broken", "1 of 2 processes does not answer"),
    ({"processes": (OTHER, SILENT, SILENT)}, [], "attention", "2 of 3 processes do not answer"),
    ({"set_aside": 1}, [], "attention", "1 message of forq.send set aside"),
    ({}, [BACKUP], "attention", "The last backup failed, 9 h ago"),
    ({"engine": LONG_LOG}, [CHECKPOINT], "attention", "The log grows, checkpoints fail: 308 MiB"),
    ({"log_held": True}, [], "attention", "The log cannot be emptied: a read holds it"),
    ({"database": held(252_000)}, [], "attention", "A snapshot is 4 min 12 s old, vacuum cannot work"),
    ({"commits": commits(0.12)}, [], "attention", "Writes wait for the disk: p99 120 ms"),
    ({}, [SWEEP], "attention", "A job failed: Expire messages, 31 s ago"),
    ({}, [], "fine", "All is well"),
]


@pytest.mark.parametrize("first", range(len(CAUSES)))
def test_the_first_cause_that_is_true_is_told(first: int) -> None:
    """With this one, all that come after it are true as well."""
    facts = FINE
    reports: list[JobReport] = []
    for changes, failed, _, _ in reversed(CAUSES[first:]):
        facts = msgspec.structs.replace(facts, **changes)
        reports += failed
    _, _, level, sentence = CAUSES[first]
    assert system_verdict(facts, reports) == (level, sentence)


def test_what_is_close_to_a_cause_is_none() -> None:
    facts = msgspec.structs.replace(FINE, commits=commits(0.1), database=held(limits.SNAPSHOT_HELD_MS - 1))
    reports = [job("backup", "Backup", failed=False), job("checkpoint", "Checkpoint", failed=False)]
    assert system_verdict(facts, reports) == ("fine", "All is well")


def test_a_few_slow_commits_are_no_slow_disk() -> None:
    counters = Counters()
    for _ in range(SLOW_COMMITS_MIN - 1):
        counters.commits.record(4, 0.3, NOW)
    facts = commit_facts(counters, NOW, NOW - HOUR)
    assert facts.recent_p99_seconds is None
    counters.commits.record(4, 0.4, NOW + 1)
    facts = commit_facts(counters, NOW + 1, NOW - HOUR)
    assert facts.recent_p99_seconds == 0.4  # spread within its bucket it would be more than the slowest
    assert (facts.slowest_seconds, facts.slowest_at, facts.count) == (0.4, NOW + 1, SLOW_COMMITS_MIN)
    assert facts.calls_median == 3.0
    later = commit_facts(counters, NOW + 6 * 60_000, NOW - HOUR)
    assert (later.recent_p99_seconds, later.count, later.per_second) == (None, SLOW_COMMITS_MIN, 0)


def test_commits_a_second_are_of_the_time_since_the_start_when_that_is_short() -> None:
    counters = Counters()
    for second in range(10):
        counters.commits.record(1, 0.001, NOW + second * 1_000)
    assert commit_facts(counters, NOW + 10_000, NOW).per_second == 1.0


def test_memory_is_told_where_the_system_does(tmp_path: Path) -> None:
    assert memory_bytes(tmp_path / "statm") is None
    (tmp_path / "statm").write_text("")
    assert memory_bytes(tmp_path / "statm") is None
    (tmp_path / "statm").write_text("9000 2500 700 1 0 300 0\n")
    assert memory_bytes(tmp_path / "statm") == 2_500 * 4_096
