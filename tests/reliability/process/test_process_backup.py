"""A server that backs itself up under load: each backup is a whole database of one moment, or there is none."""

import subprocess
import sys
from pathlib import Path

import httpx
import pytest
import trio

from forq_trio.storage.sqlite.files.check import check_file
from forq_trio.storage.sqlite.files.restore import restore_file
from reliability.process.books import LOAD, Books
from reliability.process.load import BROKEN_OFF, Load, make_client
from support.effort import count, many_trials
from support.real_server import SECRET, environment, real_server

pytestmark = [pytest.mark.process, pytest.mark.filterwarnings(BROKEN_OFF)]

BACKUPS = "/api/v1/admin/backups"
FILLER_BYTES = 200_000


async def make_backup(client: httpx.AsyncClient) -> dict:
    """One backup from its beginning to its end."""
    begun = await client.post(BACKUPS)
    assert begun.status_code == 202, begun.text
    while (latest := (await client.get(BACKUPS)).json()["latest"])["state"] == "running":
        assert latest["name"] == begun.json()["name"]
    return latest


@pytest.mark.tier2
@many_trials
def test_backups_under_load_are_whole(tmp_path: Path) -> None:
    """What was answered before one began is in it, or was acknowledged since; it can be restored and served."""
    database, directory, books = tmp_path / "forq.db", tmp_path / "backups", Books()
    rounds = count("stops")

    with real_server(database, FORQ_BACKUP_DIR=str(directory), FORQ_BACKUP_KEEP="2") as server:
        load = Load(server.url, books, lambda sent: sent >= 20)

        async def run() -> str:
            with trio.fail_after(120):
                async with make_client(server.url) as client, trio.open_nursery() as nursery:
                    nursery.start_soon(load.run)
                    await load.until_enough()
                    for _ in range(rounds + 2):
                        begun = books.page()
                        made = await make_backup(client)
                        assert (made["state"], made["error"]) == ("done", None)
                        assert made["pagesDone"] == made["pagesTotal"] > 0
                        books.check_backup(directory / made["name"], begun)
                    files = (await client.get(BACKUPS)).json()["files"]
                    assert len(files) == 2
                    assert files[0]["name"] == made["name"]
                    nursery.cancel_scope.cancel()
            return files[0]["name"]

        latest = trio.run(run)
        assert server.stop() == 0
    restored = tmp_path / "restored.db"
    restore_file(str(directory / latest), str(restored))
    assert check_file(str(restored)).ok
    with real_server(restored) as server:
        page = httpx.get(f"{server.url}/api/v1/queues/{LOAD}", headers={"X-API-Key": SECRET}, verify=False)
        assert page.status_code == 200
        assert server.stop() == 0


def test_sigterm_in_the_middle_leaves_no_file_and_is_quick(tmp_path: Path) -> None:
    database, directory = tmp_path / "forq.db", tmp_path / "backups"
    with real_server(database, FORQ_BACKUP_DIR=str(directory)) as server:

        async def run() -> dict:
            with trio.fail_after(120):
                async with make_client(server.url) as client:
                    messages = [{"content": "x" * FILLER_BYTES}] * 20
                    for _ in range(10):
                        sent = await client.post(
                            f"/api/v1/queues/{LOAD}/messages/batch", json={"messages": messages}
                        )
                        assert sent.status_code == 200
                    assert (await client.post(BACKUPS)).status_code == 202
                    while not (latest := (await client.get(BACKUPS)).json()["latest"])["pagesTotal"]:
                        pass
                    return latest

        latest = trio.run(run)
        assert server.stop() == 0
    files = sorted(path.name for path in directory.iterdir())
    assert files in ([], [latest["name"]])
    if files:  # it was quicker
        assert check_file(str(directory / files[0])).messages == 200
    assert not database.with_name("forq.db-wal").exists()


@pytest.mark.tier2
def test_a_killed_one_leaves_nothing_that_looks_like_a_backup(tmp_path: Path) -> None:
    """And the next one removes what is left."""
    database, directory = tmp_path / "forq.db", tmp_path / "backups"
    directory.mkdir()
    left = directory / "forq-20200101T000000Z.db.abcdefgh.partial"
    left.write_bytes(b"x" * 4_096)
    settings = {"FORQ_BACKUP_DIR": str(directory), "FORQ_BACKUP_EVERY_HOURS": "24"}
    with real_server(database, **settings) as server:

        async def run() -> None:
            with trio.fail_after(120):
                async with make_client(server.url) as client:
                    while not (listed := (await client.get(BACKUPS)).json()["files"]):
                        pass
                    assert len(listed) == 1

        trio.run(run)
        assert not left.exists()
        assert server.stop() == 0


def test_a_backup_directory_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    command = [sys.executable, "-m", "forq_trio.cli", "serve", "--backup-dir", str(tmp_path / "file")]
    ended = subprocess.run(
        command, env=environment(), capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.returncode == 2
    assert "--backup-dir: " in ended.stderr
    assert "is not a directory; allowed: the path of a directory" in ended.stderr
