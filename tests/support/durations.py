"""A plugin of pytest, and a program: where the time of a run goes.

    FORQ_TEST_DURATIONS=/tmp/durations.jsonl script/test
    PYTHONPATH=tests .venv/bin/python -m support.durations /tmp/durations.jsonl

The first writes a line for each part of each test (setup, call, teardown), the second prints tables: by folder, as
docs/testing.md has it, by fixture, by file, and the slowest tests. Processor time includes this process's children, on
Linux also those that run on: PostgreSQL, Spark, Chromium. To find those takes up to 40 ms, of Spark with its many
threads, so nothing is measured where nobody asks for it, and what was found is used again for as long as a tick.
"""

import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.tiers import processor_seconds as ended_seconds

SLOWEST = 50
FIXTURES = pytest.StashKey[list[tuple[str, float, float]]]()
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
"""What processes that run on have used is counted in these: mostly a hundred."""


class Clock:
    """What this process has used, and all that it has started, ended or not.

    What nobody waited for who is left, as the processes of Chromium when its driver ends, has gone from the system's
    count. It has been used all the same: no part of a test gives time back.
    """

    def __init__(self) -> None:
        self._seconds = 0.0
        self._counted = 0.0
        self._gone = 0.0
        self._read_at = float("-inf")

    def seconds(self) -> float:
        """Read anew once a tick at most."""
        if time.perf_counter() - self._read_at > 1 / TICKS_A_SECOND:
            ticks = sum(map(_running_ticks, _children("self")))
            counted = ended_seconds() + ticks / TICKS_A_SECOND
            self._gone += max(0.0, self._counted - counted)
            self._counted = counted
            self._seconds = counted + self._gone
            self._read_at = time.perf_counter()
        return self._seconds


def _children(process: str) -> list[str]:
    """Their ids; none on a system that does not tell."""
    try:
        return [
            each
            for file in Path("/proc", process, "task").glob("*/children")
            for each in file.read_text().split()
        ]
    except OSError:  # it has ended
        return []


def _running_ticks(process: str) -> int:
    """What a process and its children have used."""
    try:
        fields = Path("/proc", process, "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return sum(map(int, fields[11:15])) + sum(map(_running_ticks, _children(process)))


class Part(NamedTuple):
    """One part of a test. fixtures: those that were set up for it, each with its seconds and processor seconds."""

    test: str
    when: str
    outcome: str
    seconds: float
    processor: float
    fixtures: list[tuple[str, float, float]]


class Measure:
    """Adds to each report what its part has used, and to that of a setup which fixtures it had."""

    def __init__(self) -> None:
        self._clock = Clock()
        self._began = 0.0
        """What was used when the part before ended."""

    def pytest_collection_finish(self) -> None:
        self._began = self._clock.seconds()

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
    ) -> Iterator[None]:
        """A fixture that others use is measured without them: they are set up before."""
        processor, seconds = self._clock.seconds(), time.perf_counter()
        try:
            return (yield)
        finally:
            spent = (fixturedef.argname, time.perf_counter() - seconds, self._clock.seconds() - processor)
            request._pyfuncitem.stash.setdefault(FIXTURES, []).append(spent)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Iterator[pytest.TestReport]:
        report = yield
        ended = self._clock.seconds()
        report.processor = ended - self._began
        report.fixtures = item.stash.get(FIXTURES, []) if report.when == "setup" else []
        self._began = ended
        return report


def pytest_configure(config: pytest.Config) -> None:
    """Opens the file once: a test may be another user for a while."""
    path = os.environ.get("FORQ_TEST_DURATIONS")
    if path is None:
        return
    config.pluginmanager.register(Measure())
    if "PYTEST_XDIST_WORKER" not in os.environ:  # their reports arrive where the run is controlled
        config.pluginmanager.register(Notes(Path(path)))


class Notes:
    """Writes down what the reports of tests say."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8", buffering=1)

    def pytest_runtest_logreport(self, report: Any) -> None:
        processor = getattr(report, "processor", 0.0)  # not there where a worker crashed
        fixtures = getattr(report, "fixtures", [])
        part = Part(report.nodeid, report.when, report.outcome, report.duration, processor, fixtures)
        self._file.write(json.dumps(part) + "\n")

    def pytest_unconfigure(self) -> None:
        self._file.close()


def read(path: Path) -> list[Part]:
    with path.open(encoding="utf-8") as file:
        return [Part(*json.loads(line)) for line in file]


def folder_of(test: str) -> str:
    return "/".join(test.split("::")[0].split("/")[:2])


def file_of(test: str) -> str:
    return test.split("::")[0]


def by(parts: Iterable[Part], key: Callable[[str], str]) -> list[tuple[str, int, float, float, float]]:
    """For each key: tests, seconds, seconds of setup and teardown among them, processor seconds; the longest first."""
    found: dict[str, list[float]] = defaultdict(lambda: [0, 0.0, 0.0, 0.0])
    for part in parts:
        row = found[key(part.test)]
        row[0] += part.when == "call"
        row[1] += part.seconds
        row[2] += part.seconds if part.when != "call" else 0.0
        row[3] += part.processor
    rows = [(name, int(row[0]), *row[1:]) for name, row in found.items()]
    return sorted(rows, key=lambda row: -row[2])  # type: ignore[return-value]


def by_fixture(parts: Iterable[Part]) -> list[tuple[str, int, float, float]]:
    """For each fixture: how often it was set up, seconds, processor seconds; the longest first."""
    found: dict[str, list[float]] = defaultdict(lambda: [0, 0.0, 0.0])
    for part in parts:
        for name, seconds, processor in part.fixtures:
            row = found[name]
            row[0] += 1
            row[1] += seconds
            row[2] += processor
    rows = [(name, int(row[0]), row[1], row[2]) for name, row in found.items()]
    return sorted(rows, key=lambda row: -row[2])


def table(heads: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A table in Markdown."""
    lines = [[*heads], ["---" for _ in heads]]
    lines += [[f"{cell:.1f}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def report(parts: list[Part]) -> str:
    """All tables."""
    heads = ["tests", "seconds", "of these setup and teardown", "processor seconds"]
    total = by(parts, lambda _: "all")
    return "\n\n".join(
        [
            table(["folder", *heads], [*by(parts, folder_of), *total]),
            table(["fixture", "times", "seconds", "processor seconds"], by_fixture(parts)[:SLOWEST]),
            table(["file", *heads], by(parts, file_of)[:SLOWEST]),
            table(["test", *heads], by(parts, str)[:SLOWEST]),
        ]
    )


if __name__ == "__main__":
    print(report(read(Path(sys.argv[1]))))
