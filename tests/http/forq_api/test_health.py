"""The health check: contract F10."""

import trio
import trio.testing

from support.forq_api import SECRET, Api, json_of, make_request


async def check(api: Api, query: str = "") -> tuple[int, str]:
    """Status and error code ("" without a body)."""
    response = await api.handler(make_request("GET", f"/healthcheck{query}", headers={}))
    return response.status, json_of(response)["code"] if response.body else ""


async def test_f10_healthy(api: Api):
    assert await check(api) == (204, "")
    assert await check(api, "?other=verbose") == (204, "")


async def test_f10_it_is_a_real_operation(api: Api):
    """While no batch runs, the answer does not come."""
    async with trio.open_nursery() as nursery:
        answers: list[tuple[int, str]] = []

        async def ask() -> None:
            answers.append(await check(api))

        async with api.writer.paused():
            nursery.start_soon(ask)
            await trio.testing.wait_all_tasks_blocked()
            assert answers == []
    assert answers == [(204, "")]


async def test_f10_a_database_that_does_not_answer(api: Api, mock_clock: trio.testing.MockClock):
    async with trio.open_nursery() as nursery, api.writer.paused():
        answers: list[tuple[int, str]] = []

        async def ask() -> None:
            answers.append(await check(api))

        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        mock_clock.jump(4)  # a checker that waits for five seconds hears it
        await trio.testing.wait_all_tasks_blocked()
        assert answers == [(503, "forq.unhealthy")]


async def test_f10_a_stopped_server(api: Api):
    api.writer.stop()
    for query in ("", "?verbose"):
        assert await check(api, query) == (503, "forq.unhealthy")


async def test_f10_a_full_disk_is_no_reason_to_take_the_server_away_but_told(api: Api):
    """Receives and acks go on, and they are what frees space."""
    await api.send("a")
    api.writer.storage.sends_refused = True
    assert await check(api) == (204, "")
    for cause, change in (("storage_full", False), ("storage_lost", True)):
        api.writer.storage.files_problem = "gone" if change else None
        if not change:
            verbose = await api.handler(make_request("GET", "/healthcheck?verbose", headers={}))
            assert json_of(verbose)["sendsRefused"] == cause
        for path in ("/api/v1/queues/q", "/api/v1/queues/q/health"):
            assert json_of(await api.call("GET", path))["sendsRefused"] == cause
    api.writer.storage.files_problem, api.writer.storage.sends_refused = None, False
    assert json_of(await api.call("GET", "/api/v1/queues/q/health"))["sendsRefused"] is None


async def test_f10_verbose(api: Api):
    api.seconds.value += 12.9
    for query in ("?verbose", "?verbose=1", "?verbose=", "?other=1&verbose"):
        response = await api.handler(make_request("GET", f"/healthcheck{query}", headers={}))
        assert json_of(response) == {
            "status": "ok",
            "version": "1.2.3",
            "engine": "memory",
            "durability": "none",
            "uptimeSeconds": 12,
            "sendsRefused": None,
            "replica": None,
            "snapshotHeldSeconds": None,
            "otherSecrets": 0,
        }
        assert SECRET.encode() not in response.body


async def test_alive_while_the_database_does_not_answer(api: Api):
    """A restart would help neither a database that hangs, nor a full disk, nor a lost file."""
    async with api.writer.paused():
        assert (await api.handler(make_request("GET", "/livez", headers={}))).status == 204
    api.writer.storage.sends_refused = True
    api.writer.storage.files_problem = "gone"
    assert await check(api) == (503, "forq.unhealthy")
    unhealthy = await api.handler(make_request("GET", "/healthcheck?verbose", headers={}))
    assert json_of(unhealthy)["message"] == "a file of the database is missing, sends are refused"
    assert (await api.handler(make_request("GET", "/livez", headers={}))).status == 204
    api.writer.storage.files_problem, api.writer.storage.sends_refused = None, False
    api.writer.stop()
    assert await check(api) == (503, "forq.unhealthy")
    assert (await api.handler(make_request("GET", "/livez", headers={}))).status == 204
