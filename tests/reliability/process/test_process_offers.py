"""Killed while messages with keys are offered and acknowledged: no answered offer is lost, no key is there twice."""

import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import apsw
import msgspec
import pytest

from forq_trio.storage.sqlite.files.check import check_file
from reliability.process import offering
from reliability.process.offering import Step
from support.effort import count, many_trials
from support.processes import WAIT_SECONDS_MAX, killed_after

pytestmark = pytest.mark.process

ROUNDS = count("offer_kills")
VERSIONS_A_ROUND = 1_000_000

_CONTENTS = """
SELECT queue, own_key, content FROM messages JOIN message_keys ON message = seq
UNION ALL
SELECT queue, own_key, CAST(waiting AS TEXT) ->> '$.offering.content'
FROM messages JOIN message_keys ON message = seq WHERE waiting IS NOT NULL
"""


class Books:
    """What a process said that it did: the latest version of each key, by step. acking: those without an answer."""

    def __init__(self) -> None:
        self.latest: defaultdict[str, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
        self.acking: set[tuple[str, int]] = set()

    def note(self, lines: Iterable[str]) -> None:
        for line in lines:
            step = msgspec.json.decode(line, type=Step)
            latest = self.latest[step.what]
            latest[step.key] = max(latest[step.key], step.version)
            if step.what == "acking":
                self.acking.add((step.key, step.version))
            elif step.what in ("acked", "refused"):
                self.acking.remove((step.key, step.version))

    def check(self, path: Path) -> None:
        """Hold the file against what was said."""
        report = check_file(str(path))
        assert report.problems == []
        pending, dead = _versions(path, offering.QUEUE), _versions(path, f"{offering.QUEUE}-dlq")
        for key in self.latest["offering"].keys() | pending.keys() | dead.keys():
            asked, stored, acked = (self.latest[what][key] for what in ("offering", "stored", "acked"))
            versions = pending.get(key, []) + dead.get(key, [])
            assert max(versions, default=0) <= asked, f"{key} has {versions}, and {asked} was the last offer"
            versions += [acked] + [version for name, version in self.acking if name == key]
            assert max(versions) >= stored, f"{key} has lost {stored}"
            assert min(pending.get(key, []), default=asked + 1) > acked, f"{key}: {acked} is back"


def _versions(path: Path, queue: str) -> dict[str, list[int]]:
    """The versions of each key in a queue: of its messages, and of what waits behind one."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    versions: dict[str, list[int]] = {}
    try:
        for name, key, content in connection.execute(_CONTENTS):
            own_key, version = content.split()
            assert own_key == key
            if name == queue:
                versions.setdefault(key, []).append(int(version))
    finally:
        connection.close()
    return versions


def offer_until(path: Path, books: Books, seed: int, version: int, steps: int) -> None:
    """Let a process offer, and kill it after so many steps."""
    command = [sys.executable, "-m", offering.__name__, str(path), str(seed), str(version)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        with killed_after(process, WAIT_SECONDS_MAX):
            for _ in range(steps):
                books.note([process.stdout.readline()])
            process.kill()
            books.note(process.stdout)
    assert process.returncode == -9


@many_trials
def test_killed_while_offers_are_stored_no_key_loses_its_latest(tmp_path, rng):
    path = tmp_path / "forq.db"
    books = Books()
    for number in range(ROUNDS):
        # The first round is long enough for everything to happen once.
        steps = rng.randrange(50, 3_000) if number else 3_000
        offer_until(path, books, rng.randrange(2**32), number * VERSIONS_A_ROUND, steps)
        books.check(path)
    assert books.latest.keys() == {"offering", "stored", "acking", "acked", "refused"}
