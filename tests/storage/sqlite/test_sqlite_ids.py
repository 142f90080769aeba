"""Ids end with the sequence number, and are found by it; all others are found by an index that has only them."""

import uuid
from contextlib import closing

import apsw
import pytest

from forq_trio.model.commands import AckById, Cancel
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.relational.ids import MessageIds
from forq_trio.storage.sqlite.engine import SqliteEngine
from support.actors import T0
from support.batches import do
from support.unreleased import make_unreleased_file
from support.words import claim, send

IN_INDEX = "SELECT id FROM messages INDEXED BY messages_id WHERE CAST(substr(id, 25) AS INTEGER) IS DISTINCT FROM seq"
OTHERS = (
    "0192aabb-ccdd-7e1b-83c0-5d1f3a9c0b7e",
    "0192aabb-ccdd-7e1b-83c0-000000000009",  # ends with another number
    "0192aabb-ccdd-7e1b-83c0-1abcdefabcde",  # a number and letters
    "any text",
    "é" * 30,
)


def open_engine(path: str) -> closing[SqliteEngine]:
    return closing(SqliteEngine(path, EngineSettings(), "normal"))


def give_id(path: str, sequence: int, message_id: str) -> None:
    """As a version before, or Forq, made them."""
    with closing(apsw.Connection(path)) as connection:
        connection.execute("UPDATE messages SET id = ? WHERE seq = ?", (message_id, sequence))


def in_index(path: str) -> list[str]:
    with closing(apsw.Connection(path)) as connection:
        return [message_id for (message_id,) in connection.execute(IN_INDEX)]


def test_f2_an_id_ends_with_the_sequence_number_and_is_in_no_index(tmp_path) -> None:
    path = str(tmp_path / "forq.db")
    with open_engine(path) as engine, closing(engine.open_reader()) as reader:
        produced = [do(engine, send(str(number))) for number in range(3)]
        assert [int(each.id[-12:]) for each in produced] == [each.sequence for each in produced] == [1, 2, 3]
        assert in_index(path) == []
        assert [reader.message("q", each.id).content for each in produced] == ["0", "1", "2"]
        assert reader.message("other", produced[0].id) is None


@pytest.mark.parametrize("message_id", OTHERS)
def test_any_other_id_is_found_too(tmp_path, message_id) -> None:
    path = str(tmp_path / "forq.db")
    with open_engine(path) as engine:
        do(engine, send("x"))
        do(engine, send("y"))
    give_id(path, 1, message_id)
    with open_engine(path) as engine, closing(engine.open_reader()) as reader:
        assert reader.message("q", message_id).content == "x"
        do(engine, claim())
        assert do(engine, AckById("q", message_id)) is True
        assert reader.message("q", message_id) is None


def test_no_two_have_the_same(tmp_path) -> None:
    path = str(tmp_path / "forq.db")
    with open_engine(path) as engine:
        for content in "xy":
            do(engine, send(content))
    give_id(path, 1, OTHERS[0])
    with pytest.raises(apsw.ConstraintError, match="UNIQUE"):
        give_id(path, 2, OTHERS[0])


def test_the_ids_of_an_earlier_version_are_found_after_the_migration(tmp_path) -> None:
    path = str(tmp_path / "forq.db")
    make_unreleased_file(path)
    with open_engine(path) as engine:
        do(engine, send("x"))
    ids = [str(uuid.uuid4()), "0192aabb-ccdd-7e1b-83c0-000000000001"]
    for message_id in ids:
        give_id(path, 1, message_id)
        with closing(apsw.Connection(path)) as connection:  # as it was, with an index of all ids
            connection.execute("DROP INDEX messages_id; CREATE UNIQUE INDEX messages_id ON messages (id)")
            connection.execute(
                "ALTER TABLE history DROP COLUMN result; ALTER TABLE history DROP COLUMN kept_until"
            )
            for table in ("message_batches", "message_batch_sends", "batch_members"):
                connection.execute(f"DROP TABLE {table}")
            connection.execute("DELETE FROM migrations WHERE version > 23")
            connection.pragma("user_version", 23)
        with open_engine(path) as engine, closing(engine.open_reader()) as reader:
            assert reader.message("q", message_id).content == "x"
    with open_engine(path) as engine:
        assert do(engine, Cancel("q", ids[1])) is None


def test_f2_ids_keep_their_form_and_order_in_a_long_millisecond_and_when_the_clock_is_set_back() -> None:
    ids, seq = MessageIds(), 10**12 - 20_000
    previous = ""
    for now_ms in (T0, T0, T0 + 1, T0 - 5_000, T0 + 2):
        ids.at(now_ms)
        for _ in range(2_000):
            seq += 1
            made = ids.next(seq)
            assert made > previous
            previous = made
        assert (uuid.UUID(made).version, uuid.UUID(made).variant) == (7, uuid.RFC_4122)


def test_a_sequence_number_of_more_than_twelve_digits_has_an_id_that_is_in_the_index(tmp_path) -> None:
    path = str(tmp_path / "forq.db")
    with open_engine(path) as engine:
        do(engine, send("x"))
    with closing(apsw.Connection(path)) as connection:
        connection.execute("UPDATE forgotten_sequence SET last_seq = 1000000000000")
    with open_engine(path) as engine, closing(engine.open_reader()) as reader:
        produced = do(engine, send("late"))
        assert produced.sequence == 1_000_000_000_001
        assert uuid.UUID(produced.id).version == 7
        assert reader.message("q", produced.id).content == "late"
        assert in_index(path) == [produced.id]
