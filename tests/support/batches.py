"""Driving an engine by hand, without actors."""

from collections.abc import Mapping, Sequence
from typing import Any

from forq_trio.model.commands import Claim, Command
from forq_trio.storage.engine import Batch, BatchResult, Engine
from support.actors import T0


def run(
    engine: Engine,
    *commands: Command[Any],
    now_ms: int = T0,
    parked: Mapping[str, Sequence[Claim]] | None = None,
) -> BatchResult:
    """Execute one batch and commit it."""
    result = engine.execute_batch(Batch(commands, now_ms, parked or {}))
    engine.commit()
    return result


def do(engine: Engine, command: Command[Any], now_ms: int = T0) -> Any:
    """The outcome of a command in a batch of its own."""
    return run(engine, command, now_ms=now_ms).outcomes[0]
