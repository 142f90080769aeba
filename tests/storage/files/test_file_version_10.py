"""A file with consumers of the tenth schema: their leases and numbers come along."""

from contextlib import closing

import apsw
import pytest

from forq_trio.model.commands import ForgetConsumer, OpenConsumer
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.sqlite.engine import SqliteEngine
from forq_trio.storage.sqlite.files import migrations
from support.batches import do
from support.old_files import make_version_1

CONSUMER = (
    '{"queue":"q","name":"k","generation":3,"idle_ms":86400000,"leased":7,"acknowledged":7,"released_before":0,'
    '"open":null,"complete":false,"settling":null,"settled_pages":0,'
    '"kept":[{"number":7,"messages":1,"bytes":9,"pages":1}],"dropping":[],"opened_at":1,"used_at":2}'
)


@pytest.fixture
def version_10(path) -> str:
    make_version_1(path)
    with closing(apsw.Connection(path)) as connection:
        with migrations.immediate(connection):
            migrations.apply(connection, migrations.KNOWN[1:10])
        connection.execute("INSERT INTO consumers VALUES ('q', 'k', ?)", (CONSUMER,))
        connection.execute("UPDATE consumers_forgotten SET generation = 5")
    return path


def opened(path: str) -> closing[SqliteEngine]:
    return closing(SqliteEngine(path, EngineSettings(), "normal"))


def test_the_numbers_of_a_consumer_go_on_also_when_it_is_forgotten(version_10) -> None:
    with opened(version_10) as engine:
        assert engine.snapshot().consumers["q/k"].kept[0].made_at == 0
        while do(engine, ForgetConsumer("q", "k")) is not None:
            pass
    with opened(version_10) as engine:
        anew = do(engine, OpenConsumer("q", "k"))
        assert (anew.generation, anew.leased, anew.acknowledged) == (6, 7, 7)
        assert do(engine, OpenConsumer("q", "other")).leased == 0
