"""POST and GET /api/v1/admin/backups over the real engine."""

from pathlib import Path

import trio

from forq_trio.jobs.backup_copy import BackupSettings
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.sqlite.engine import SqliteEngine
from forq_trio.storage.sqlite.files.check import verify_backup
from support.actors import until
from support.forq_api import START_MS, Api, json_of, open_api

PATH = "/api/v1/admin/backups"
NAME = "forq-20231114T221320Z.db"


async def test_a_backup_is_begun_and_shown(tmp_path: Path) -> None:
    engine = SqliteEngine(str(tmp_path / "forq.db"), EngineSettings(), "normal")
    directory = tmp_path / "backups"
    async with open_api(engine, BackupSettings(directory)) as api:
        await api.send("m")
        await until(lambda: api.backups._serving)
        token = await api.broker.create_token("ops", ["admin"])
        response = await api.call("POST", PATH, headers={b"x-api-key": token.token.encode()})
        begun = json_of(response)
        assert response.status == 202
        assert (begun["name"], begun["state"], begun["startedBy"]) == (NAME, "running", "ops")
        assert await api.code("POST", PATH) == (409, "conflict.backup_running")
        with trio.fail_after(60):
            await until(lambda: api.backups._latest.state != "running")
        shown = json_of(await api.call("GET", PATH))
        latest = shown.pop("latest")
        assert (latest["state"], latest["error"], latest["finishedAt"]) == ("done", None, START_MS)
        assert shown == {
            "directory": str(directory),
            "keep": 7,
            "nextAt": None,
            "files": [{"name": NAME, "bytes": latest["bytes"], "madeAt": START_MS}],
        }
    assert verify_backup(str(directory / NAME)).messages == 1


async def test_a_server_that_keeps_nothing_says_so(api: Api) -> None:
    for method in ("POST", "GET"):
        assert await api.code(method, PATH) == (409, "conflict.in_memory")


async def test_a_member_that_is_not_known_is_refused(api: Api) -> None:
    assert await api.code("POST", PATH, {"keep": 3}) == (400, "bad_request.body.unknown_field")
