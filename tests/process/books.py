"""What clients of a real server were promised, and how the file is held against it."""

import shutil
from collections import Counter
from pathlib import Path

import apsw


class Books:
    """answered: contents whose send was answered with success. acked, maybe_acked: as confirmed, or as asked for."""

    def __init__(self) -> None:
        self.answered: set[str] = set()
        self.acked: set[str] = set()
        self.maybe_acked: set[str] = set()
        self.asked = 0

    def next_content(self) -> str:
        self.asked += 1
        return f"message {self.asked} äöü😀"

    def received(self, content: str) -> None:
        assert content not in self.acked, f"{content} was acknowledged and came again"

    def check(self, database: Path, scratch: Path) -> int:
        """Compare with a copy of the file as the process left it, log included; returns how many are stored."""
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        for path in database.parent.glob(database.name + "*"):
            shutil.copy(path, scratch)
        connection = apsw.Connection(str(scratch / database.name))
        try:
            assert connection.pragma("integrity_check") == "ok"
            stored = Counter(content for (content,) in connection.execute("SELECT content FROM messages"))
            total = connection.execute(
                "SELECT coalesce(sum(ready + processing + failed + delayed), 0) FROM queue_counts"
            ).get
        finally:
            connection.close()
        lost = self.answered - self.acked - self.maybe_acked - set(stored)
        assert lost == set(), f"{len(lost)} answered sends are gone: {sorted(lost)[:3]}"
        assert not self.acked & set(stored), "acknowledged messages are back"
        assert all(count == 1 for count in stored.values()), "a message is stored twice"
        assert total == sum(stored.values()), "the counts are not those of the table"
        return sum(stored.values())
