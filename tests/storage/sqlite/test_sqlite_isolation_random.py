"""A batch that has to run again, command by command, does what it would have done without the bad command.

The conformance suite's random histories once more: every batch of SQLite also has a send that cannot be stored.
"""

from typing import Any

from msgspec.structs import replace

from conformance.test_model_equivalence import EnginesAgree, run_histories
from forq_trio.model.commands import ProduceMany
from forq_trio.model.errors import CommandRefused, QueueBound
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.storage.engine import Batch, BatchResult
from forq_trio.storage.sqlite.engine import SqliteEngine
from support.effort import count, many_trials

BAD = ProduceMany("a", (NewMessage("first of two", group="g", priority=7), NewMessage("\ud800")))


class Disturbed:
    """A SQLite engine that is asked for one bad thing more in every batch, and says nothing of it."""

    def __init__(self, engine: SqliteEngine) -> None:
        self._engine = engine

    def execute_batch(self, batch: Batch) -> BatchResult:
        result = self._engine.execute_batch(replace(batch, commands=[BAD, *batch.commands]))
        # A history may bind its queue to a table.
        assert isinstance(result.outcomes.pop(0), (CommandRefused, QueueBound))
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)


class DisturbedEnginesAgree(EnginesAgree):
    def __init__(self) -> None:
        super().__init__()
        self.sqlite.engine = Disturbed(self.sqlite.engine)


@many_trials
def test_a_bad_command_changes_nothing_for_its_neighbours(monkeypatch) -> None:
    run_histories(DisturbedEnginesAgree, count("disturbed_histories"), monkeypatch)
