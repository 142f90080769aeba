"""The file watch with a real writer and real files: only lasting commands are refused while a file is lost."""

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest
import trio

from forq_trio.jobs.checkpointer import Checkpointer
from forq_trio.jobs.file_watch import FileWatch
from forq_trio.jobs.housekeeping import Housekeeping
from forq_trio.model import limits
from forq_trio.model.commands import (
    Configure,
    Delete,
    EndSessions,
    ForgetRedrive,
    OpenConsumer,
    Ping,
    Purge,
    Redrive,
    RevokeToken,
)
from forq_trio.model.errors import StorageLost
from forq_trio.model.queues.settings import SettingsChange
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.sqlite.engine import SqliteEngine
from forq_trio.telemetry.counters import Counters
from forq_trio.writer_actor import WriterActor
from support.actors import elapse, running_writer, until
from support.words import Pending, ack, claim, send


@pytest.fixture
def file(tmp_path) -> Path:
    (tmp_path / "data").mkdir()
    return tmp_path / "data" / "forq.db"


@pytest.fixture
async def writer(file, autojump_clock) -> AsyncIterator[WriterActor]:
    """A writer whose files are watched."""
    house = Housekeeping()
    engine = SqliteEngine(str(file), EngineSettings())
    async with running_writer(engine, listener=house) as writer, trio.open_nursery() as nursery:
        house.checkpointer = Checkpointer(engine.log, writer, Counters())
        nursery.start_soon(house.checkpointer.run)
        nursery.start_soon(FileWatch(engine.log.files_problem, writer, house.checkpointer).run)
        yield writer
        nursery.cancel_scope.cancel()


async def look() -> None:
    await elapse(limits.FILES_LOOK_SECONDS * 1.5)


def events(caplog) -> list[str]:
    return [record.getMessage().split("'")[1] for record in caplog.records]


async def test_what_has_to_last_is_refused_until_the_very_file_is_back(
    writer, file, caplog, autojump_clock
) -> None:
    caplog.set_level("INFO")
    await writer.execute(send("one"))
    await writer.execute(send("two"))
    (held,) = await writer.execute(claim())
    aside = file.rename(file.with_name("aside.db"))
    await look()
    for command in (
        send("lost"),
        Configure("q", SettingsChange(max_messages=5)),
        Redrive("q-dlq", (), None),
        Delete("q-dlq", ()),
        Purge("q"),
        RevokeToken("name"),
        EndSessions(None),
        ForgetRedrive("id"),
        OpenConsumer("q", "k"),
        Ping(),
    ):
        with pytest.raises(StorageLost):
            await writer.execute(command)
    assert await writer.execute(ack(held)) == (True,)
    (held,) = await writer.execute(claim())
    assert held.content == "two"
    await look()
    shutil.copy(aside, file)
    await look()
    await look()
    with pytest.raises(StorageLost):
        await writer.execute(send("lost"))
    assert events(caplog) == ["files.lost", "files.lost"]
    assert "was removed or moved" in caplog.text
    assert "was replaced by another file" in caplog.text
    aside.replace(file)
    await look()
    assert (await writer.execute(send("three"))).sequence > 0
    await writer.execute(Ping())
    assert events(caplog) == ["files.lost", "files.lost", "files.back"]


async def test_receivers_that_wait_are_served_when_the_file_is_back(writer, file, autojump_clock) -> None:
    async with trio.open_nursery() as nursery:
        receiver = Pending(nursery, writer, claim(10**9))  # the clock jumps on while a thread works
        aside = file.rename(file.with_name("aside.db"))
        await look()
        aside.rename(file)
        await look()
        await writer.execute(send("x"))
        assert [delivery.content for delivery in await receiver.finished()] == ["x"]


async def test_what_a_lost_log_holds_is_moved_into_the_file_at_once(
    writer, file, tmp_path, autojump_clock
) -> None:
    """A kill would take it, and the next process would find the file without it."""
    await writer.execute(send("answered"))
    os.unlink(f"{file}-wal")

    def stored() -> int:
        copy = shutil.copy(file, tmp_path / "copy.db")
        with closing(apsw.Connection(str(copy))) as connection:
            try:
                if not connection.table_exists("main", "messages"):
                    return 0
                return int(connection.execute("SELECT count(*) FROM messages").get)
            except apsw.CorruptError:  # copied while the log was being moved into it
                return 0

    assert stored() == 0
    await look()
    with trio.fail_after(120):
        await until(lambda: stored() == 1)
