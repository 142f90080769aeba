"""Sessions of the admin UI: over a restart, as hashes only, until they end; their last use is saved now and then."""

from pathlib import Path

import pytest

from forq_trio.model import limits
from forq_trio.model.access.types import Scope, digest
from forq_trio.model.commands import NoteSessionUse
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.open import open_engine
from forq_trio.system import open_broker, open_system
from support.actors import ObservedEngine, TrioClock, elapse, on_the_loop
from support.forq_api import SetClock

MINUTE = limits.TOKEN_USE_SAVE_SECONDS
BROWSER = ("192.0.2.7", "Firefox")


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'forq.db'}"


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
async def broker(url: str, clock: SetClock):
    async with open_broker(url, clock=clock, disk_reserve_mb=8) as broker:
        yield broker


def all_bytes(folder: Path) -> bytes:
    """The database and its log."""
    return b"".join(path.read_bytes() for path in folder.iterdir())


async def test_a_session_is_found_by_its_id_only(broker) -> None:
    session_id = await broker.sessions.open(None, "digest of the secret", *BROWSER)
    session = broker.sessions.use(session_id)
    assert session.digest == digest(session_id)
    assert (session.key_name, session.key_digest) == (None, "digest of the secret")
    assert (session.client, session.agent) == BROWSER
    assert session.expires_at - session.created_at == limits.SESSION_LIFE_MS == 7 * 86_400_000
    for other in (session.digest, session_id + "x", "", "\u00e9"):
        assert broker.sessions.use(other) is None


async def test_it_ends_a_week_after_the_login_however_often_it_is_used(broker, clock) -> None:
    session_id = await broker.sessions.open(None, "secret", *BROWSER)
    for _ in range(7):
        clock.ms += limits.DAY_MS - 1
        assert broker.sessions.use(session_id) is not None
    clock.ms += 7
    assert broker.sessions.use(session_id) is None
    assert broker.sessions.all() == []


async def test_it_can_be_ended_and_so_can_all(broker) -> None:
    ids = [await broker.sessions.open(None, "secret", *BROWSER) for _ in range(3)]
    assert await broker.sessions.end(digest(ids[0])) is True
    assert await broker.sessions.end(digest(ids[0])) is False
    assert [broker.sessions.use(each) is None for each in ids] == [True, False, False]
    assert await broker.sessions.end_all() == 2
    assert broker.sessions.all() == []


async def test_it_ends_with_its_token_also_if_the_name_is_used_again(broker, clock) -> None:
    expiring = await broker.create_token("expiring", [Scope.BROWSE], expires_at=clock.ms + 10_000)
    revoked = await broker.create_token("revoked", [Scope.ADMIN])
    ids = [
        await broker.sessions.open(each.name, digest(each.token), *BROWSER) for each in (expiring, revoked)
    ]
    assert [broker.sessions.use(each).key_name for each in ids] == ["expiring", "revoked"]
    clock.ms += 10_000
    assert broker.sessions.use(ids[0]) is None
    await broker.revoke_token("revoked")
    assert broker.sessions.use(ids[1]) is None
    await broker.create_token("revoked", [Scope.ADMIN])
    assert broker.sessions.use(ids[1]) is None
    assert broker.sessions.all() == []


async def test_what_a_browser_says_is_cut(broker) -> None:
    session_id = await broker.sessions.open(None, "secret", "c" * 500, "\ud800" * 500)
    session = broker.sessions.use(session_id)
    assert session.client == "c" * limits.SESSION_CLIENT_LENGTH_MAX
    assert session.agent == "?" * limits.SESSION_AGENT_LENGTH_MAX


async def test_beyond_the_bound_the_one_that_was_used_longest_ago_ends(broker, clock, monkeypatch) -> None:
    """Also where its use is not saved yet."""
    monkeypatch.setattr(limits, "SESSIONS_MAX", 2)
    first = await broker.sessions.open(None, "secret", *BROWSER)
    clock.ms += 1
    second = await broker.sessions.open(None, "secret", *BROWSER)
    clock.ms += 1
    broker.sessions.use(first)
    third = await broker.sessions.open(None, "secret", *BROWSER)
    assert [broker.sessions.use(each) is None for each in (first, second, third)] == [False, True, False]


async def test_sessions_outlive_a_restart_and_so_does_their_last_use(
    url: str, tmp_path: Path, autojump_clock
) -> None:
    clock = TrioClock()
    async with open_broker(url, clock=clock, disk_reserve_mb=8) as broker:
        session_id = await broker.sessions.open(None, "secret", *BROWSER)
        ended = await broker.sessions.open(None, "secret", *BROWSER)
        await broker.sessions.end(digest(ended))
        await elapse(1)
        used_at = clock.now_ms()
        assert broker.sessions.use(session_id) is not None
        before = broker.sessions.all()
        assert before[0].last_used_at == used_at >= before[0].created_at + 1_000
    content = all_bytes(tmp_path)
    assert digest(session_id).encode() in content
    assert session_id.encode() not in content
    async with open_broker(url, clock=TrioClock(), disk_reserve_mb=8) as broker:
        assert broker.sessions.all() == before
        assert broker.sessions.use(session_id) == before[0]
        assert broker.sessions.use(ended) is None


async def test_uses_are_saved_once_a_minute_and_only_where_there_were_any(url: str, autojump_clock) -> None:
    engine = ObservedEngine(open_engine(url, EngineSettings(), "normal"))

    def saves() -> list[NoteSessionUse]:
        return [each for batch in engine.batches for each in batch.commands if type(each) is NoteSessionUse]

    async with open_system(engine, TrioClock(), policy=on_the_loop()) as system:
        broker = system.broker
        session_id = await broker.sessions.open(None, "secret", *BROWSER)
        await elapse(2.5 * MINUTE)
        assert saves() == []
        for _ in range(5):
            assert broker.sessions.use(session_id) is not None
            await elapse(1)
        last_used_at = TrioClock().now_ms() - 1_000
        await elapse(MINUTE)
        assert saves() == [NoteSessionUse({digest(session_id): last_used_at})]
        await elapse(3 * MINUTE)
        assert len(saves()) == 1
        broker.sessions.use(session_id)
        await broker.sessions.end_all()
        await elapse(2 * MINUTE)
        assert len(saves()) == 1
