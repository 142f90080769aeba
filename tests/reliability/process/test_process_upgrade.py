"""Servers of two versions on one PostgreSQL database, under load: they are upgraded one after the other.

The older version is the package; the newer one is a copy of it with one more migration, and what belongs to that.
"""

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import psycopg
import pytest
import trio

import forq_trio
from reliability.process.load import BROKEN_OFF
from reliability.process.several import SERVERS, Load, Servers, load_on
from support.processes import WAIT_SECONDS_MAX

pytestmark = [pytest.mark.process, pytest.mark.filterwarnings(BROKEN_OFF), pytest.mark.tier2]

EXPANDS = """
DO $$ DECLARE name text; BEGIN
    FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'forq' AND tablename <> 'migrations'
    LOOP EXECUTE format('ALTER TABLE forq.%I ADD COLUMN later text NOT NULL DEFAULT ''x''', name); END LOOP;
END $$;
CREATE INDEX messages_later ON messages (later);
"""
FENCES = "ALTER TABLE batches_2 RENAME TO batches_3;"


def changed(file: Path, pattern: str, replacement: str) -> None:
    text, changes = re.subn(pattern, replacement, file.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert changes
    file.write_text(text, encoding="utf-8")


@pytest.fixture
def newer(tmp_path) -> Callable[[str], dict[str, str]]:
    """Makes a newer version with this migration; returns the environment in which a server is of that version."""

    def make(script: str) -> dict[str, str]:
        package = tmp_path / "forq_trio"
        shutil.copytree(
            Path(forq_trio.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__")
        )
        postgres = package / "storage/postgres"
        number = max(int(file.name[:4]) for file in (postgres / "migrations").glob("*.sql")) + 1
        (postgres / f"migrations/{number:04}_later.sql").write_text(script, encoding="utf-8")
        changed(postgres / "shipped.py", r"^(    return _encode\(\(tx)", r"    changes['later'] = 1\n\1")
        if script == FENCES:
            for name in ("sql/connection.sql", "sql/move.sql"):
                changed(postgres / name, r"\b(FROM|INTO) batches_2\b", r"\1 batches_3")
        return {"PYTHONPATH": str(tmp_path), "PYTHONSAFEPATH": "1"}

    return make


@pytest.fixture
def servers(database) -> Iterator[Servers]:
    servers = Servers(database)
    yield servers
    servers.close()


async def upgrade(servers: Servers, load: Load, place: int, environment: dict[str, str]) -> None:
    await load.goes_on(100)
    servers.disturbed[place] += 1
    await servers.upgrade(place, **environment)
    await load.goes_on(10)
    servers.disturbed[place] += 1
    await load.goes_on(50)


async def health(servers: Servers, place: int) -> httpx.Response:
    async with httpx.AsyncClient(timeout=WAIT_SECONDS_MAX, verify=False) as client:
        return await client.get(f"{servers.running[place].url}/healthcheck")


async def test_older_servers_go_on_beside_newer_ones(servers, newer, database, rng):
    later = newer(EXPANDS)
    with trio.fail_after(200):
        async with load_on(servers, rng) as load:
            for place in range(SERVERS):
                await upgrade(servers, load, place, later)
                assert {(await health(servers, each)).status_code for each in range(SERVERS)} == {204}
            await servers.kill(0)
            await load.goes_on(50)
    assert load.history.seen["acked"] > 300
    assert load.statuses.keys() <= {0, 200, 503}
    with psycopg.connect(database) as connection:
        assert connection.execute("SELECT DISTINCT later FROM forq.batches_2").fetchall() == [("x",)]


async def test_older_servers_that_must_not_write_say_so_and_change_nothing(servers, newer, database, rng):
    later = newer(FENCES)
    with trio.fail_after(200):
        async with load_on(servers, rng) as load:
            await upgrade(servers, load, 0, later)
            for place in range(1, SERVERS):
                servers.disturbed[place] += 1
                answer = await health(servers, place)
                assert answer.status_code == 503
                assert "a newer version of forq-trio has brought the database to version" in answer.text
            with psycopg.connect(database) as connection:
                ((before,),) = connection.execute("SELECT max(version) FROM forq.batches_3").fetchall()
            await load.goes_on(50)
            with psycopg.connect(database) as connection:
                makers = connection.execute(
                    "SELECT count(DISTINCT split_part(made_by, '-', 1)) FROM forq.batches_3 WHERE version > %s",
                    [before],
                ).fetchall()
            assert makers == [(1,)]
            for place in range(1, SERVERS):
                await servers.upgrade(place, **later)
                await load.goes_on(50)
                servers.disturbed[place] += 1
            assert {(await health(servers, each)).status_code for each in range(SERVERS)} == {204}
    assert load.history.seen["acked"] > 300
