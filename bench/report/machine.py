"""Describes the machine of a measurement, without which the figures mean nothing."""

import datetime
import os
import platform
import sqlite3
import statistics
import subprocess
import tempfile
import time
from importlib import metadata
from pathlib import Path
from time import perf_counter_ns
from typing import Any

PACKAGES = (
    "forq-trio", "trio", "httptools", "apsw", "msgspec", "hpack", "persist-queue", "litequeue", "huey",
)  # fmt: skip
PROBE_BYTES = 4_096
BUSY_SAMPLE_SECONDS = 0.5
BUSY_PERCENT_QUIET = 10.0
MEMORY_FILESYSTEMS = frozenset({"tmpfs", "ramfs", "devtmpfs"})


def describe(data_dir: Path, fsync_probes: int) -> dict[str, Any]:
    """Commit, time, machine, file system, fsync speed and versions."""
    return {
        "commit": _git_commit(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": {
            "cpu": _cpu_model(),
            "cores": len(os.sched_getaffinity(0)),
            "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
            "kernel": platform.release(),
            "busy_percent_before": busy_percent(),
        },
        "storage": {"filesystem": filesystem(data_dir), **probe_fsync(data_dir, fsync_probes)},
        "versions": {
            "python": platform.python_version(),
            "sqlite (apsw)": _apsw_sqlite(),
            "sqlite (stdlib)": sqlite3.sqlite_version,
            **{name: version for name in PACKAGES if (version := _version(name))},
        },
    }


def busy_percent(seconds: float = BUSY_SAMPLE_SECONDS) -> float:
    """How busy all cores are with other work before the run, which makes every figure worse."""
    busy_before, all_before = _processor_ticks()
    time.sleep(seconds)
    busy_after, all_after = _processor_ticks()
    return round(100 * (busy_after - busy_before) / max(all_after - all_before, 1), 1)


def _processor_ticks() -> tuple[int, int]:
    """Busy ticks of all cores since boot, and all ticks: user nice system idle iowait irq softirq steal."""
    ticks = [int(part) for part in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)


def filesystem(path: Path) -> str:
    """Type of the file system that holds `path`, e.g. ext4, by the longest mount point above it."""
    resolved = path.resolve()
    best, kind = -1, "unknown"
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        mount_point = Path(before.split()[4].replace("\\040", " "))
        if resolved.is_relative_to(mount_point) and len(mount_point.parts) >= best:
            best, kind = len(mount_point.parts), after.split()[0]
    return kind


def probe_fsync(data_dir: Path, probes: int) -> dict[str, float]:
    """Median and p99 of writing 4 KiB at the end of a file and fdatasync-ing it, in milliseconds."""
    taken_ns = []
    with tempfile.TemporaryFile(dir=data_dir, buffering=0) as file:
        for _ in range(probes):
            started_ns = perf_counter_ns()
            file.write(bytes(PROBE_BYTES))
            os.fdatasync(file.fileno())
            taken_ns.append(perf_counter_ns() - started_ns)
    taken_ns.sort()
    return {
        "fdatasync_p50_ms": round(statistics.median(taken_ns) / 1e6, 3),
        "fdatasync_p99_ms": round(taken_ns[min(len(taken_ns) * 99 // 100, len(taken_ns) - 1)] / 1e6, 3),
        "fdatasync_probes": probes,
    }


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _git_commit() -> str:
    """The checked-out commit, with + when a package differs from it; "unknown" outside a checkout."""
    root = Path(__file__).parents[2]
    try:
        commit = subprocess.run(
            ["git", "rev-parse", "--short=12", "HEAD"], cwd=root, capture_output=True, text=True, check=True
        ).stdout.strip()
        packages = ("forq_trio", "pyspark_forq")
        dirty = subprocess.run(["git", "diff", "--quiet", "HEAD", "--", *packages], cwd=root).returncode
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return commit + ("+" if dirty else "")


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _apsw_sqlite() -> str:
    try:
        import apsw
    except ImportError:
        return "not installed"
    return str(apsw.sqlite_lib_version())
