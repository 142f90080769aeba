"""A file of the tenth schema: its consumers, and what its apps published, come along."""

from contextlib import closing

import apsw
import msgspec
import pytest

from forq_trio.model.access import SECRET, UNKNOWN, Key
from forq_trio.model.commands import ForgetConsumer, OpenConsumer, Publish, StagePage
from forq_trio.model.errors import StageMissing
from forq_trio.model.publishing import Stage, StagedPart
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
        connection.execute(
            "INSERT INTO publications (number, app, version, published_at, once) VALUES"
            " (3, 'a-* app', 9, 1, 0), (5, 'app', 4, 2, 0), (6, 'b app', 7, 3, 0), (8, 'job', 0, 4, 1)"
        )
        connection.execute(
            "INSERT INTO stages (queue, stage, pages, last_page, messages, bytes, stored_bytes, expires_at)"
            " VALUES ('q', 's', 0, -1, 0, 0, 0, 9000000000000)"
        )
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


def publish(engine: SqliteEngine, key: Key, queue: str, version: int, app: str = "app") -> bool:
    """Whether nothing of the app keeps this version from being published: the stage that it names is not there."""
    outcome = do(engine, Publish(app, version, (Stage(queue, "missing", 1),), key=key))
    return isinstance(outcome, StageMissing)


def test_apps_come_along_with_the_globs_of_their_namespaces(version_10) -> None:
    with opened(version_10) as engine, closing(engine.open_reader()) as reader:
        assert [
            (number, app.app, app.version, app.once, app.queues) for number, app in reader.list_apps(0, 9)
        ] == [
            (3, "app", 9, False, ("a-*",)),
            (5, "app", 4, False, ("*",)),
            (6, "app", 7, False, ("b",)),
            (8, "job", 0, True, ("*",)),
        ]
        assert {app.made_by for _, app in reader.list_apps(0, 9)} == {UNKNOWN}
        assert (engine.snapshot().staging.apps, engine.snapshot().staging.shares) == (4, {})


@pytest.mark.parametrize(
    ("key", "queue", "next_version"),
    [
        (SECRET, "anything", 5),
        (Key("t", "*"), "anything", 5),
        (SECRET, "b", 8),
        (SECRET, "a-1", 10),
        (Key("t", "a-*"), "a-1", 10),
        (Key("t", "b"), "b", 8),
        (Key("t", "c"), "c", 0),
    ],
)
def test_what_an_app_published_before_is_not_published_again(version_10, key, queue, next_version) -> None:
    with opened(version_10) as engine:
        assert publish(engine, key, queue, next_version)
        assert next_version == 0 or not publish(engine, key, queue, next_version - 1)


def test_an_app_that_goes_on_has_its_queues_from_then_on(version_10) -> None:
    with opened(version_10) as engine, closing(engine.open_reader()) as reader:
        part = StagedPart(msgspec.msgpack.encode([]), 0, 0)
        do(engine, StagePage("a-1", "t", 0, (part,), key=SECRET))
        assert do(engine, Publish("app", 10, (Stage("a-1", "t", 1),), key=SECRET)).published
        named = reader.apps_named("app")
        assert [(app.version, app.made_by, app.queues) for app in named] == [
            (7, UNKNOWN, ("b",)),
            (10, "", ("a-1",)),
        ]
