"""How tokens are kept: over a restart, as hashes only, their last use now and then and never for its own sake."""

from pathlib import Path

import pytest
import trio

from forq_trio.broker.broker import Broker
from forq_trio.jobs.compaction import Compaction
from forq_trio.model import limits
from forq_trio.model.access.types import Scope, digest
from forq_trio.model.commands import Command, NoteTokenUse
from forq_trio.readers.pool import ReaderPool
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.open import open_engine
from forq_trio.system import open_broker, open_system
from oracle.engine import MemoryEngine
from support.actors import (
    T0,
    ObservedEngine,
    SlowCommit,
    TrioClock,
    elapse,
    in_a_thread,
    on_the_loop,
    running_writer,
)

MINUTE = limits.TOKEN_USE_SAVE_SECONDS


@pytest.fixture
def engine(tmp_path) -> ObservedEngine:
    url = f"sqlite:///{tmp_path / 'forq.db'}"
    return ObservedEngine(open_engine(url, EngineSettings(), "normal"))


def all_bytes(folder: Path) -> bytes:
    """The database and its log."""
    return b"".join(path.read_bytes() for path in folder.iterdir())


def saves(engine: ObservedEngine) -> list[Command]:
    return [
        command for batch in engine.batches for command in batch.commands if type(command) is NoteTokenUse
    ]


async def test_tokens_outlive_a_restart_and_so_does_their_last_use(tmp_path: Path, autojump_clock):
    url = f"sqlite:///{tmp_path / 'forq.db'}"
    clock = TrioClock()
    async with open_broker(url, clock=clock, disk_reserve_mb=8) as broker:
        used = (
            await broker.create_token("used", [Scope.PRODUCE, Scope.BROWSE], "a*", expires_at=T0 + 10**9)
        ).token
        revoked = (await broker.create_token("revoked", [Scope.ADMIN])).token
        unused = (await broker.create_token("unused", [Scope.CONSUME])).token
        await broker.revoke_token("revoked")
        await elapse(1)
        used_at = clock.now_ms()
        assert broker.keys.use(used) is not None
        before = await broker.tokens()
        assert [token.last_used_at for token in before] == [None, used_at]
        assert used_at >= before[1].created_at + 1_000
    async with open_broker(url, clock=TrioClock(), disk_reserve_mb=8) as broker:
        assert await broker.tokens() == before
        assert broker.keys.use(revoked) is None
        assert broker.keys.use(unused).name == before[0].name
        assert broker.keys.use(used).name == before[1].name


async def test_the_files_do_not_hold_the_text(tmp_path: Path):
    """Nor any part of it that would shorten the search for the rest."""
    async with open_broker(f"sqlite:///{tmp_path / 'forq.db'}", disk_reserve_mb=8) as broker:
        text = (await broker.create_token("a", [Scope.CONSUME])).token
        assert broker.keys.use(text) is not None
        while_open = all_bytes(tmp_path)
    for content in (while_open, all_bytes(tmp_path)):
        assert digest(text).encode() in content
        random_part = text.removeprefix("forq_").encode()
        assert not any(random_part[start : start + 8] in content for start in range(len(random_part) - 7))


async def test_uses_are_saved_once_a_minute_and_only_where_there_were_any(engine, autojump_clock):
    async with open_system(engine, TrioClock(), policy=on_the_loop()) as system:
        broker = system.broker
        text = (await broker.create_token("a", [Scope.CONSUME])).token
        other = (await broker.create_token("b", [Scope.CONSUME])).token
        await elapse(2.5 * MINUTE)
        assert saves(engine) == []
        for _ in range(5):
            assert broker.keys.use(text) is not None
            await elapse(1)
        last_used_at = TrioClock().now_ms() - 1_000
        await elapse(MINUTE)
        assert saves(engine) == [NoteTokenUse({"a": last_used_at})]
        assert system.writer.snapshot().tokens["a"].last_used_at == last_used_at
        await elapse(3 * MINUTE)
        assert len(saves(engine)) == 1
        broker.keys.use(other)
        await elapse(MINUTE)
        assert list(saves(engine)[1].used) == ["b"]
        assert [token.last_used_at is None for token in await broker.tokens()] == [False, False]


async def test_a_use_while_others_are_saved_is_not_lost(engine, autojump_clock):
    async with open_system(engine, TrioClock(), policy=on_the_loop()) as system:
        broker = system.broker
        text = (await broker.create_token("a", [Scope.CONSUME])).token
        broker.keys.use(text)
        await elapse(0.5)
        engine.before_commit = lambda: broker.keys.use(text)
        await broker.keys.uses.save()
        engine.before_commit = lambda: None
        assert len(saves(engine)) == 1
        await broker.keys.uses.save()
        assert system.writer.snapshot().tokens["a"].last_used_at == T0 + round(trio.current_time() * 1_000)


async def test_what_the_database_refuses_is_saved_later(engine, autojump_clock, monkeypatch):
    execute = engine.execute_batch

    def refuse_the_first_save(batch):
        """And no batch of a job that comes at the same moment."""
        engine.refusals = int(not saves(engine) and any(type(one) is NoteTokenUse for one in batch.commands))
        return execute(batch)

    monkeypatch.setattr(engine, "execute_batch", refuse_the_first_save)
    async with open_system(engine, TrioClock(), policy=on_the_loop()) as system:
        text = (await system.broker.create_token("a", [Scope.CONSUME])).token
        system.broker.keys.use(text)
        used_at = TrioClock().now_ms()
        await elapse(2 * MINUTE)
        assert len(saves(engine)) == 2
        assert system.writer.snapshot().tokens["a"].last_used_at == used_at


async def test_the_use_of_a_revoked_token_is_forgotten(engine, autojump_clock):
    async with open_system(engine, TrioClock(), policy=on_the_loop()) as system:
        broker = system.broker
        broker.keys.use((await broker.create_token("a", [Scope.CONSUME])).token)
        await broker.revoke_token("a")
        await broker.create_token("a", [Scope.CONSUME])
        await elapse(2 * MINUTE)
        assert saves(engine) == []
        assert [token.last_used_at for token in await broker.tokens()] == [None]


async def test_revoking_holds_also_for_one_who_left_before_it_was_done():
    """Cancelled after the writer took it, a command is carried out, and the token has to be worthless then."""
    engine = ObservedEngine(MemoryEngine(EngineSettings()))
    async with running_writer(engine, policy=in_a_thread()) as writer:
        clock = TrioClock()
        readers = ReaderPool(engine.open_reader, size=1)
        broker = Broker(writer, readers, clock, Compaction(writer, clock, engine.facts))
        text = (await broker.create_token("a", [Scope.CONSUME])).token
        assert broker.keys.use(text) is not None
        commit = SlowCommit(engine)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(broker.revoke_token, "a")
            await commit.reached()
            nursery.cancel_scope.cancel()
        assert broker.keys.use(text) is not None
        commit.go_on()
        await broker.healthcheck()
        assert broker.keys.use(text) is None
