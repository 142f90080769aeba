"""`forq relay --once`; that it goes on, and survives kills, is tested with processes (tests/outbox)."""

import sqlite3
from contextlib import closing

import pytest

from forq_trio import outbox


@pytest.fixture
def shop(tmp_path):
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        outbox.create_table(connection)
        connection.commit()
        yield connection


def test_what_is_committed_is_sent_and_what_is_refused_named(connected, client, queue, shop, tmp_path):
    outbox.send(shop, queue, "m")
    shop.execute("""INSERT INTO forq_outbox (queue, message) VALUES ('q-dlq', '{"content": "x"}')""")
    shop.commit()
    done = connected("relay", str(tmp_path / "shop.db"), "--once")
    assert (done.code, done.out) == (0, "1 message sent.\n")
    assert done.err.startswith("Message 2 is set aside: ")
    assert client.receive(queue, wait_ms=0)[0].content == "m"


def test_mistakes_are_one_sentence(connected, tmp_path):
    path = tmp_path / "none.db"
    done = connected("relay", str(path), "--once")
    assert (done.code, done.err) == (1, f"forq: there is no database {path}\n")
    path.write_bytes(b"no database at all" * 99)
    done = connected("relay", str(path), "--once")
    assert (done.code, done.err) == (1, f"forq: {path}: file is not a database\n")
    with closing(sqlite3.connect(tmp_path / "empty.db")) as connection:
        connection.execute("CREATE TABLE t (x)")
    done = connected("relay", str(tmp_path / "empty.db"))
    assert (done.code, done.err.splitlines()[-1][:5]) == (1, "forq:")
