"""Engines on one empty PostgreSQL database."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest

from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.postgres.engine import PostgresEngine

DEFAULTS = EngineSettings()


@pytest.fixture
def open_one(empty_tables) -> Iterator[Callable[..., PostgresEngine]]:
    """Opens one more engine, as another process would."""
    with ExitStack() as engines:
        yield lambda durability="normal", settings=DEFAULTS: engines.enter_context(
            closing(PostgresEngine(empty_tables, settings, durability))
        )
