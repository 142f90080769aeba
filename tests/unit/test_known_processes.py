"""What is known of server processes: who is silent, which version is newer, and that the longest report fits."""

import msgspec
import pytest

from forq_trio.broker import known_processes
from forq_trio.broker.known_processes import KnownProcesses
from forq_trio.model import limits
from forq_trio.model.access.secret_checks import SecretCheck
from forq_trio.model.server.processes import HeardProcess, JobRun, is_newer
from forq_trio.storage.migrate import load
from forq_trio.telemetry.log import LogEvent
from support.forq_api import SetClock

NOW = 1_700_000_000_000


def known(clock: SetClock) -> KnownProcesses:
    clock.ms = NOW
    return KnownProcesses(clock, lambda: 0)


def test_others_are_silent_as_of_the_last_time_that_the_database_answered():
    clock = SetClock()
    processes = known(clock)
    own = processes.own()
    other = msgspec.structs.replace(own, id="other")
    heard = [
        HeardProcess(own, None, NOW),
        HeardProcess(other, "10.0.0.9", NOW - limits.PROCESS_SILENT_MS + 1),
    ]
    processes.heard(heard)
    clock.ms += limits.PROCESS_GONE_MS
    assert {each.id: each.silent for each in processes.all()} == {own.id: False, "other": False}
    processes.heard([heard[0], msgspec.structs.replace(heard[1], heard_at=NOW - limits.PROCESS_SILENT_MS)])
    assert {each.id: each.silent for each in processes.all()} == {own.id: False, "other": True}
    assert processes.states() == {"running": 1, "silent": 1}


def test_another_secret_is_told_of_once_and_not_shown(monkeypatch):
    told = []
    monkeypatch.setattr(known_processes, "log", lambda event, **fields: told.append((event, fields["name"])))
    processes = known(SetClock())
    processes.secret = SecretCheck("a" * 32)
    own = processes.own()
    checks = {"same": "a", "other": "b", "silent": "b"}
    others = [
        msgspec.structs.replace(own, id=id, name=id, secret_check=SecretCheck(letter * 32).own)
        for id, letter in checks.items()
    ]
    others.append(msgspec.structs.replace(own, id="older", name="older", secret_check=None))
    heard = [HeardProcess(each, None, NOW) for each in (own, *others)]
    heard[3] = msgspec.structs.replace(heard[3], heard_at=NOW - limits.PROCESS_SILENT_MS)
    for _ in range(2):
        processes.heard(heard, processes.compare(heard))
    assert told == [(LogEvent.OTHER_SECRET, "other"), (LogEvent.OTHER_SECRET, "silent")]
    assert {each.id for each in processes.all() if each.other_secret} == {"other", "silent"}
    assert processes.other_secrets == 1  # a silent one may be what a restart has replaced
    assert b"secret" not in msgspec.json.encode(processes.all()).replace(b"otherSecret", b"")


def test_at_each_report_only_some_secrets_are_compared(monkeypatch):
    monkeypatch.setattr(limits, "PROCESS_SECRETS_COMPARED_MAX", 2)
    processes = known(SetClock())
    processes.secret = SecretCheck("a" * 32)
    own = processes.own()
    others = [msgspec.structs.replace(own, id=str(number)) for number in range(3)]
    heard = [HeardProcess(each, None, NOW) for each in (own, *others)]
    assert len(processes.compare(heard)) == 2
    processes.heard(heard, processes.compare(heard))
    assert len(processes.compare(heard)) == 3


def test_the_longest_report_fits_into_the_table():
    processes = known(SetClock())
    processes.secret = SecretCheck("x" * 32)
    processes.running = lambda: ["x" * 1_000] * 1_000
    processes.connections = lambda: limits.CONNECTIONS_MAX
    run = JobRun("x" * limits.PROCESS_JOB_LENGTH_MAX, NOW, 3_600_000.5, "\U0001f4a5\x00" * 1_000, failed=True)
    processes.ran = lambda: [run] * 1_000
    processes.last_batch_at = lambda: NOW
    processes.gate_wait_ms = processes.lag_ms = lambda: 10_000.123
    own = processes.own()
    longest = msgspec.structs.replace(
        own, name="\x01" * limits.PROCESS_NAME_LENGTH_MAX, version="\x01" * limits.PROCESS_VERSION_LENGTH_MAX
    )
    assert len(own.running) == len(own.ran) == limits.PROCESS_JOBS_MAX
    assert len(msgspec.json.encode(longest)) <= limits.PROCESS_STATE_BYTES_MAX
    baseline = load("forq_trio.storage.postgres")[0].sql
    assert f"octet_length(state) <= {limits.PROCESS_STATE_BYTES_MAX}" in baseline


@pytest.mark.parametrize(
    ("version", "than", "newer"),
    [("0.1.1", "0.1.0", True), ("0.10.0", "0.9.9", True), ("1.0", "1.0", False), ("0.9", "0.10", False)],
)
def test_versions_are_compared_by_their_numbers(version, than, newer):
    assert is_newer(version, than) is newer
