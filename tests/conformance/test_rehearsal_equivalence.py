"""A rehearsal changes nothing but waits: the same random batches with it and without it, answers and tables compared.

A wrong `changes=` of an operation would have one command act on rows that another one of its batch has changed.
"""

from typing import ClassVar, cast

import pytest

from forq_trio.storage.engine import Engine
from forq_trio.storage.postgres.engine import PostgresEngine
from support.effort import count, many_trials
from support.postgres import empty

from .test_bounded_equivalence import STEP_BOUNDS
from .test_model_equivalence import SETTINGS, EnginesAgree, run_histories


class RehearsedAgrees(EnginesAgree):
    """The model is the same engine with a database that it takes for one beside it: there is nothing to rehearse."""

    url: ClassVar[str]
    url_of_model: ClassVar[str]

    def open_model(self) -> Engine:
        empty(self.url_of_model)
        engine = PostgresEngine(self.url_of_model, SETTINGS, "normal")
        engine.connection.is_distant = False
        return cast("Engine", engine)

    def open_engine(self) -> Engine:
        empty(self.url)
        return cast("Engine", PostgresEngine(self.url, SETTINGS, "normal"))


@pytest.mark.tier2
@many_trials
def test_rehearsed_batches_do_what_others_do(monkeypatch, shared_database, database):
    monkeypatch.setattr(RehearsedAgrees, "url", shared_database, raising=False)
    monkeypatch.setattr(RehearsedAgrees, "url_of_model", database, raising=False)
    run_histories(RehearsedAgrees, count("rehearsed_histories"), monkeypatch, STEP_BOUNDS)
