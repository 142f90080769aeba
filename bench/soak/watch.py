"""Observes the server from outside: its process in /proc, its files on the disk, its queues in the API's list."""

import os
from pathlib import Path

import msgspec
from msgspec import Struct

from bench.scenarios.idle import usage

MIB = 2**20
STATES = ("ready", "delayed", "processing", "held", "failed")


class Watch:
    """One server process and its database file."""

    def __init__(self, pid: int, database: Path) -> None:
        self._pid = pid
        self._database = database
        self._cpu_seconds = usage(pid).cpu_seconds

    def look(self, seconds: float) -> dict[str, float | None]:
        """The current figures. seconds: since the last call. Raises OSError when the process has ended."""
        now = usage(self._pid)
        cpu_seconds, self._cpu_seconds = now.cpu_seconds - self._cpu_seconds, now.cpu_seconds
        return {
            "rss_mib": round(now.resident_mib, 3),
            "cpu_percent": round(100 * cpu_seconds / seconds, 1),
            "file_descriptors": len(os.listdir(f"/proc/{self._pid}/fd")),
            "log_mib": self._size_mib("-wal"),
            "database_mib": self._size_mib(""),
        }

    def _size_mib(self, suffix: str) -> float:
        return round(os.stat(f"{self._database}{suffix}").st_size / MIB, 3)


class _Queue(Struct):
    """A queue of GET /api/v1/queues."""

    queue: str
    is_dlq: bool = msgspec.field(name="isDlq")
    ready: int
    delayed: int
    processing: int
    held: int
    failed: int
    waiting: int


class _Queues(Struct):
    queues: list[_Queue]


class Depths:
    """How many messages are stored, as the server's latest list of its queues says."""

    def __init__(self) -> None:
        self._decode = msgspec.json.Decoder(_Queues).decode
        self._latest: dict[str, float | None] = dict.fromkeys(("stored", *STATES, "dead", "waiting"))

    def note(self, body: bytes) -> None:
        """Take over the answer to GET /api/v1/queues."""
        queues = self._decode(body).queues
        by_state = {state: sum(getattr(each, state) for each in queues) for state in STATES}
        dead = [each for each in queues if each.is_dlq]
        self._latest = {
            "stored": sum(by_state.values()),
            **by_state,
            "dead": sum(getattr(each, state) for each in dead for state in STATES),
            "waiting": sum(each.waiting for each in queues),
        }

    def latest(self) -> dict[str, float | None]:
        """The numbers of the latest list; None before the first."""
        return dict(self._latest)
