"""/api/v1/admin/compaction over the real engine."""

from pathlib import Path

import trio

from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.sqlite.engine import SqliteEngine
from support.actors import until
from support.forq_api import Api, json_of, open_api

PATH = "/api/v1/admin/compaction"


async def test_it_is_started_shown_and_stopped(tmp_path: Path) -> None:
    engine = SqliteEngine(str(tmp_path / "forq.db"), EngineSettings(), "normal")
    async with open_api(engine) as api:
        await api.send("m" * 200_000)
        await api.broker.purge("q")
        engine.log.checkpoint(truncate=True)
        await until(lambda: api.compaction._serving)
        shown = json_of(await api.call("GET", PATH))
        assert (shown["state"], shown["possible"], shown["startedAt"]) == ("idle", True, None)
        assert shown["freeBytes"] > 190_000
        token = await api.broker.create_token("ops", ["admin"])
        started = json_of(await api.call("POST", PATH, headers={b"x-api-key": token.token.encode()}))
        assert (started["state"], started["startedBy"]) == ("running", "ops")
        assert started["goalBytes"] == shown["freeBytes"]
        with trio.fail_after(60):
            await until(lambda: api.compaction.state().state == "done")
        ended = json_of(await api.call("POST", f"{PATH}/pause"))
        assert ended == json_of(await api.call("POST", f"{PATH}/stop"))
        assert ended["state"] == "done"
        assert ended["givenBackBytes"] >= shown["freeBytes"]


async def test_an_engine_without_pages_says_so(api: Api) -> None:
    assert await api.code("POST", PATH) == (409, "conflict.not_compactable")
    assert json_of(await api.call("GET", PATH))["possible"] is False


async def test_a_member_that_is_not_known_is_refused(api: Api) -> None:
    for end in ("", "/pause", "/stop"):
        assert await api.code("POST", PATH + end, {"x": 3}) == (400, "bad_request.body.unknown_field")
