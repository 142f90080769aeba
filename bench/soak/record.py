"""One record for each second of a soak: requests, errors and latencies here, memory, files and queues from `watch`."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from bench.load.generator import Series
from bench.load.histogram import Histogram

Columns = dict[str, list[float | None]]
"""A value for each second, by the name of its series; None where there was nothing to measure."""

MS = 1e6


class Meters:
    """The counts of the clients within a second.

    `timed` makes a series whose requests are answered at once; all these share one histogram. Long polls are only
    counted, because their latency says how long no message came.
    """

    def __init__(self) -> None:
        self._timed: list[Series] = []
        self._other: list[Series] = []
        self.waits = self._counted("wait")
        self.yardstick = Series("yardstick")
        self.handoff = Series("handoff")
        self.errors: Counter[str] = Counter()
        self.requests = 0
        self._start_over()

    def timed(self, name: str) -> Series:
        """A series of requests that do not wait for a message."""
        series = Series(name)
        series.latency = self._latency
        self._timed.append(series)
        return series

    def _counted(self, name: str) -> Series:
        series = Series(name)
        self._other.append(series)
        return series

    def _start_over(self) -> None:
        self._latency = Histogram()
        for series in self._timed:
            series.latency = self._latency
        for series in (*self._other, self.yardstick, self.handoff):
            series.latency = Histogram()

    def take(self, seconds: float) -> dict[str, float | None]:
        """What was counted since the last call, as one record."""
        errors = 0
        for series in (*self._timed, *self._other, self.yardstick):
            for status, count in series.errors.items():
                self.errors[f"{series.name} {status}"] += count
                errors += count
            series.errors.clear()
        answered = self._latency.count + self.waits.latency.count
        self.requests += answered
        record = {
            "requests_per_second": round(answered / seconds, 1),
            "errors": errors,
            "p50_ms": _percentile_ms(self._latency, 50),
            "p99_ms": _percentile_ms(self._latency, 99),
            "handoff_p50_ms": _percentile_ms(self.handoff.latency, 50),
            "yardstick_p50_ms": _percentile_ms(self.yardstick.latency, 50),
        }
        self._start_over()
        return record


def _percentile_ms(latency: Histogram, percent: float) -> float | None:
    return round(latency.percentile_ns(percent) / MS, 3) if latency.count else None


def save(results: dict[str, Any], path: Path) -> None:
    """Write at once or not at all; each series on a line of its own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = ",\n".join(
        f"  {json.dumps(name)}: {json.dumps(values)}" for name, values in results["columns"].items()
    )
    rest = json.dumps({name: value for name, value in results.items() if name != "columns"}, indent=1)
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text(rest.removesuffix("\n}") + ',\n "columns": {\n' + columns + "\n }\n}\n")
    temporary.replace(path)


def load(path: Path) -> dict[str, Any]:
    """Read what `save` wrote. Raises OSError, or ValueError for a file that is none."""
    results = json.loads(path.read_text())
    if not isinstance(results, dict) or not {"about", "columns"} <= results.keys():
        raise ValueError(f"{path} is not the record of a soak")
    return results
