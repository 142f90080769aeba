"""What one operation writes: pages and bytes of the write-ahead log, which do not depend on the machine's load.

Each commit of the storage engine appends the pages that it changed to the log, 4 KiB and a small header each. That is
what a commit syncs, and what a checkpoint later moves into the file.
"""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.scenarios.context import Context, Row
from forq_trio.model.commands import Ack, Claim, Command, Extend, Nack, Produce, ProduceMany
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import Delivery, Receipt
from forq_trio.storage.engine import Batch, EngineSettings
from forq_trio.storage.sqlite.engine import SqliteEngine

QUEUE = "bench-writes"
PER_COMMIT = (1, 10, 32)
STORE_BATCH = 100
STARTED_MS = 1_800_000_000_000
PAGE_BYTES = 4_096
FRAME_BYTES = PAGE_BYTES + 24


def writes(context: Context) -> list[Row]:
    """Pages and bytes that a send, receive, ack, nack and extend write to the log, alone and sharing a commit;
    without lifecycle events and with them."""
    settings = context.settings
    message = NewMessage(context.content)
    rows: list[Row] = []
    for events in (False, True):
        with tempfile.TemporaryDirectory(prefix="forq-bench-", dir=context.data_dir) as directory:
            engine = _Engine(str(Path(directory) / "forq.db"), context.durability, events=events)
            try:
                for _ in range(settings.writes_stored // STORE_BATCH):
                    engine.run([ProduceMany(QUEUE, (message,) * STORE_BATCH)])
                for size in PER_COMMIT:
                    measured = _operations(engine, message, size, settings.writes_commits)
                    rows += [{**row, "events": "on" if events else "off"} for row in measured]
            finally:
                engine.close()
    return rows


class _Engine:
    """The storage engine with a clock of its own: a millisecond a batch. It counts the pages of its commits."""

    def __init__(self, path: str, durability: str, *, events: bool) -> None:
        self._engine = SqliteEngine(path, EngineSettings(events=events), durability)
        self._now_ms = STARTED_MS
        self.pages = 0

    def run(self, commands: Sequence[Command[object]]) -> list[object]:
        """Run these commands as one commit; returns their outcomes."""
        log = self._engine.log
        before = log.pages()
        self._now_ms += 1
        outcomes: list[object] = self._engine.execute_batch(Batch(commands, self._now_ms)).outcomes
        self._engine.commit()
        self.pages += log.pages() - before
        return outcomes

    def empty_log(self) -> None:
        self._engine.log.checkpoint(truncate=True)

    def close(self) -> None:
        self._engine.close()


def _operations(engine: _Engine, message: NewMessage, size: int, commits: int) -> list[Row]:
    """A row for each operation, with `size` of them in a commit."""
    held: list[Delivery] = []

    def receipts() -> list[Receipt]:
        taken, held[:size] = held[:size], []
        return [Receipt.parse(delivery.receipt) for delivery in taken]

    def extend() -> list[Command[object]]:
        held[:] = held[size:] + held[:size]
        return [Extend(QUEUE, (Receipt.parse(each.receipt),), 60_000) for each in held[:size]]

    makers: dict[str, Callable[[], list[Command[object]]]] = {
        "send": lambda: [Produce(QUEUE, message)] * size,
        "receive": lambda: [Claim(QUEUE, 1, None)] * size,
        "extend": extend,
        "nack": lambda: [Nack(QUEUE, (receipt,), 0) for receipt in receipts()],
        "receive again": lambda: [Claim(QUEUE, 1, None)] * size,
        "ack": lambda: [Ack(QUEUE, (receipt,)) for receipt in receipts()],
    }
    rows = []
    for name, make in makers.items():
        engine.empty_log()
        engine.pages = 0
        for _ in range(commits):
            for outcome in engine.run(make()):
                if name.startswith("receive"):
                    held += outcome  # type: ignore[arg-type]
        messages = commits * size
        rows.append(
            {
                "operation": name,
                "in_a_commit": size,
                "pages": round(engine.pages / messages, 2),
                "log_bytes": round(engine.pages * FRAME_BYTES / messages),
            }
        )
    return rows
