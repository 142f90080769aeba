"""The workbench over HTTP: what goes in, what comes out, and what is refused how."""

import re
import uuid
from collections.abc import AsyncIterator

import pytest
import trio

from forq_trio.model.access.types import Scope
from forq_trio.model.limits import MOVE_BATCH_MAX, REDRIVES_RUNNING_A_KEY_MAX, SEARCH_AGE_MS_MAX
from support.actors import until
from support.forq_api import Api, blamed, json_of, open_api

UNKNOWN = str(uuid.UUID(int=7))
DEAD = "q-dlq/dead-letters"
TASK_MEMBERS = {
    "id",
    "queue",
    "action",
    "state",
    "dryRun",
    "filter",
    "target",
    "ratePerSecond",
    "searched",
    "total",
    "matched",
    "skipped",
    "moved",
    "startedAt",
    "startedBy",
    "pausedAt",
    "finishedAt",
    "error",
}


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    async with open_api() as api, trio.open_nursery() as nursery:
        await nursery.start(api.broker.redrive_tasks.run)
        yield api
        nursery.cancel_scope.cancel()


async def fail(api: Api, *contents: str, **members) -> list[str]:
    """Dead letters of these contents; their ids."""
    broker = api.broker
    ids = []
    for content in contents:
        ids.append((await broker.produce("q", content, max_attempts=1, **members)).id)
        (delivery,) = await broker.receive("q", wait_ms=0)
        await broker.nack("q", [delivery.receipt], reason="no stock")
    return ids


async def get(api: Api, path: str):
    response = await api.call("GET", path)
    assert response.status == 200
    return json_of(response)


async def post(api: Api, path: str, body, status: int = 200):
    response = await api.call("POST", path, body)
    assert response.status == status, response.body
    return json_of(response)


async def found(api: Api, query: str) -> list[str]:
    return [message["id"] for message in (await get(api, f"{DEAD}?{query}"))["messages"]]


async def test_a_page_says_what_is_known_of_each_and_how_far_it_came(api: Api) -> None:
    ids = await fail(api, "a", "b", "c", attributes={"tenant": "x"})
    page = await get(api, f"{DEAD}?limit=2")
    assert [message["id"] for message in page["messages"]] == [ids[2], ids[1]]
    assert (page["searched"], page["total"]) == (2, 3)
    message = page["messages"][0]
    assert (message["content"], message["attributes"]) == ("c", {"tenant": "x"})
    assert (message["sourceQueue"], message["sourceAttempts"]) == ("q", 1)
    assert (message["failureReason"], message["deadLetteredAt"]) == ("max_attempts_reached", api.clock.ms)
    assert message["failures"] == [{"attempt": 1, "at": api.clock.ms, "reason": "no stock"}]
    assert message["lastError"] == "no stock"
    rest = await get(api, f"{DEAD}?before={page['nextBefore']}")
    assert [message["id"] for message in rest["messages"]] == [ids[0]]
    assert rest["nextBefore"] is None
    assert await get(api, f"{DEAD}/{ids[0]}") == rest["messages"][0]


async def test_each_part_of_the_filter(api: Api) -> None:
    (old,) = await fail(api, "100% sofa", attributes={"a": "1:2", "b": ""})
    api.clock.ms += 10_000
    (new,) = await fail(api, "chair", attributes={"a": "1:2"})
    assert await found(api, "reason=max_attempts_reached") == [new, old]
    assert await found(api, "reason=message_expired") == []
    assert await found(api, "minAgeMs=10000") == [old]
    assert await found(api, "maxAgeMs=9999") == [new]
    assert await found(api, "attribute=a:1:2") == [new, old]
    assert await found(api, "attribute=a:1:2&attribute=b:") == [old]
    assert await found(api, "text=100%25%20so") == [old]
    assert await found(api, "text=chair&minAgeMs=10000") == []
    assert await found(api, "text=") == [new, old]
    assert await found(api, "error=no%20stock") == [new, old]
    assert await found(api, "error=no") == []
    assert await found(api, "error=") == []


REFUSED_QUERIES = (
    ("minAgeMs=-1", "bad_request.out_of_range"),
    ("minAgeMs=x", "bad_request.out_of_range"),
    (f"maxAgeMs={SEARCH_AGE_MS_MAX + 1}", "bad_request.out_of_range"),
    ("before=0", "bad_request.out_of_range"),
    (f"before={2**63}", "bad_request.out_of_range"),
    ("limit=0", "bad_request.limit.out_of_range"),
    ("limit=101", "bad_request.limit.out_of_range"),
    ("attribute=a", "bad_request.attribute.invalid"),
    ("attribute=:x", "bad_request.body.attributes.invalid"),
    ("text=" + "t" * 1_025, "bad_request.out_of_range"),
    ("error=" + "e" * 1_025, "bad_request.out_of_range"),
)


async def test_queries_that_are_refused(api: Api) -> None:
    for query, code in REFUSED_QUERIES:
        assert await api.code("GET", f"{DEAD}?{query}") == (400, code), query


async def test_queries_at_the_ends_of_their_ranges(api: Api) -> None:
    await api.send("m")
    for query in (
        f"minAgeMs={SEARCH_AGE_MS_MAX}",
        "maxAgeMs=0",
        f"before={2**63 - 1}",
        "limit=1",
        "limit=100",
    ):
        assert await found(api, query) == []


async def test_a_misspelt_parameter_is_refused_by_its_name(api: Api) -> None:
    response = await api.call("GET", f"{DEAD}?reasn=x")
    assert response.status == 400
    assert json_of(response) == {
        "code": "bad_request.query.unknown_parameter",
        "field": "reasn",
        "message": "there is no parameter 'reasn' here; did you mean reason?",
    }


async def test_a_body_with_an_unknown_member_is_refused_by_its_name(api: Api) -> None:
    (message_id,) = await fail(api, "x")
    for path, body, field in [
        ("redrive", {"ids": [message_id], "targt": "r"}, "targt"),
        ("delete", {"ids": [message_id], "really": True}, "really"),
        (f"{message_id}/resubmit", {"contents": "x"}, "contents"),
        ("redrives", {"filter": {"txt": "x"}}, "filter.txt"),
        ("redrives", {"filter": {}, "dry_run": True}, "dry_run"),
    ]:
        response = await api.call("POST", f"{DEAD}/{path}", body)
        assert response.status == 400
        answer = blamed(json_of(response))
        assert answer == {"code": "bad_request.body.unknown_field", "field": f"$.{field}"}
    assert await found(api, "") == [message_id]


OTHER_FORMS: tuple[tuple[str, object], ...] = (
    ("redrive", {}),
    ("redrive", {"ids": "x"}),
    ("redrive", {"ids": [], "target": 1}),
    ("delete", []),
    (f"{UNKNOWN}/resubmit", {"content": 1}),
    (f"{UNKNOWN}/resubmit", {"attributes": {"a": 1}}),
    (f"{UNKNOWN}/resubmit", {"remove": "yes"}),
    ("redrives", {}),
    ("redrives", {"filter": None}),
    ("redrives", {"filter": {"minAgeMs": "1"}}),
    ("redrives", {"filter": {}, "ratePerSecond": 1.5}),
    ("redrives", b"{"),
)


async def test_bodies_of_another_form(api: Api) -> None:
    for path, body in OTHER_FORMS:
        answer = await api.code("POST", f"{DEAD}/{path}", body)
        assert answer == (400, "bad_request.body.invalid"), (path, body)


async def test_selected_ones_are_moved_each_with_its_result(api: Api) -> None:
    first, second, third = await fail(api, "a", "b", "c")
    wanted = [third.upper(), "nonsense", UNKNOWN, first, first]
    answer = await post(api, f"{DEAD}/redrive", {"ids": wanted})
    assert answer["results"] == [
        {"id": third.upper(), "ok": True},
        {
            "id": "nonsense",
            "ok": False,
            "code": "bad_request.messageId.invalid",
            "message": "the message id is not a UUID",
        },
        {
            "id": UNKNOWN,
            "ok": False,
            "code": "not_found.message",
            "message": "it is not there, is processing, or has no queue to go to",
        },
        {"id": first, "ok": True},
        {"id": first, "ok": True},
    ]
    assert await found(api, "") == [second]
    assert await post(api, f"{DEAD}/redrive", {"ids": []}) == {"results": []}
    assert (await post(api, f"{DEAD}/redrive", {"ids": [second], "target": "r"}))["results"][0]["ok"]
    assert (await api.broker.message("r", second)).content == "b"


async def test_selected_ones_are_deleted(api: Api) -> None:
    first, second = await fail(api, "a", "b")
    answer = await post(api, f"{DEAD}/delete", {"ids": [first]})
    assert answer["results"] == [{"id": first, "ok": True}]
    assert await found(api, "") == [second]


@pytest.mark.parametrize("path", ["redrive", "delete"])
async def test_at_most_a_thousand_ids(api: Api, path: str) -> None:
    ids = [UNKNOWN] * (MOVE_BATCH_MAX + 1)
    assert await api.code("POST", f"{DEAD}/{path}", {"ids": ids}) == (400, "bad_request.ids.out_of_range")
    assert len((await post(api, f"{DEAD}/{path}", {"ids": ids[1:]}))["results"]) == MOVE_BATCH_MAX


async def test_an_edited_copy(api: Api) -> None:
    (message_id,) = await fail(api, "typo", attributes={"a": "1"})
    body = {"content": "fixed", "attributes": {"b": "2"}, "target": "r", "remove": True}
    copy = await post(api, f"{DEAD}/{message_id}/resubmit", body)
    message = await get(api, f"r/messages/{copy['id']}")
    assert (message["content"], message["attributes"], message["sequence"]) == (
        "fixed",
        {"b": "2"},
        copy["sequence"],
    )
    assert await found(api, "") == []
    gone = await api.code("POST", f"{DEAD}/{message_id}/resubmit", {})
    assert gone == (404, "not_found.message")


async def test_copies_that_are_refused(api: Api) -> None:
    (message_id,) = await fail(api, "x")
    path = f"{DEAD}/{message_id}/resubmit"
    too_long = {"content": "x" * (256 * 1024 + 1)}
    assert await api.code("POST", path, too_long) == (400, "bad_request.body.content.exceeds_limit")
    assert await api.code("POST", path, {"target": "no queue"}) == (400, "bad_request.queue.invalid_name")
    no_key = {"attributes": {"": "x"}}
    assert await api.code("POST", path, no_key) == (400, "bad_request.body.attributes.invalid")
    nonsense = await api.code("POST", f"{DEAD}/nonsense/resubmit", {})
    assert nonsense == (400, "bad_request.messageId.invalid")
    assert await found(api, "") == [message_id]


async def test_all_that_match_from_the_start_to_the_end_of_the_task(api: Api) -> None:
    ids = await fail(api, "red 1", "blue", "red 2")
    started = await post(api, f"{DEAD}/redrives", {"filter": {"text": "red", "minAgeMs": 0}}, 202)
    assert set(started) == TASK_MEMBERS - {"filter", "searched", "matched", "skipped", "moved", "error"}
    assert (started["state"], started["total"], started["dryRun"]) == ("running", 3, False)
    shown = await get(api, f"{DEAD}/redrives/{started['id']}")
    assert set(shown) == TASK_MEMBERS
    assert shown["filter"] == {
        "reason": None,
        "since": None,
        "until": api.clock.ms,
        "attributes": {},
        "text": "red",
        "error": None,
        "aboveSequence": None,
        "errorLike": None,
    }
    await api.broker.redrive_tasks.wait(started["id"])
    ended = await get(api, f"{DEAD}/redrives/{started['id']}")
    assert (ended["state"], ended["moved"], ended["matched"], ended["searched"]) == ("done", 2, 2, 3)
    assert ended["finishedAt"] == api.clock.ms
    assert await get(api, f"{DEAD}/redrives") == {"redrives": [ended]}
    assert await found(api, "") == [ids[1]]


async def test_a_dry_run(api: Api) -> None:
    ids = await fail(api, "a", "b")
    started = await post(api, f"{DEAD}/redrives", {"filter": {}, "dryRun": True}, 202)
    await api.broker.redrive_tasks.wait(started["id"])
    ended = await get(api, f"{DEAD}/redrives/{started['id']}")
    assert (ended["state"], ended["dryRun"], ended["matched"], ended["moved"]) == ("done", True, 2, 0)
    assert await found(api, "") == ids[::-1]


async def test_cancelled_it_moves_no_more(api: Api) -> None:
    await fail(api, "a", "b", "c")
    body = {"filter": {}, "ratePerSecond": 1, "target": "r"}
    started = await post(api, f"{DEAD}/redrives", body, 202)
    assert (started["ratePerSecond"], started["target"]) == (1, "r")
    await until(lambda: api.broker.redrive_tasks.get(started["id"]).moved == 1)
    ended = await post(api, f"{DEAD}/redrives/{started['id']}/cancel", b"")
    assert ended["state"] == "cancelled"
    assert (await get(api, f"{DEAD}/redrives/{started['id']}"))["moved"] == 1
    assert len(await found(api, "")) == 2
    assert await post(api, f"{DEAD}/redrives/{started['id']}/cancel", b"") == ended


async def test_a_deletion_by_a_token_is_paused_resumed_and_dismissed(api: Api) -> None:
    await fail(api, "a", "b", "c")
    token = (await api.broker.create_token("ann", (Scope.REDRIVE,), "*")).token
    body = {"filter": {}, "ratePerSecond": 1, "action": "delete"}
    headers = {b"x-api-key": token.encode()}
    started = json_of(await api.call("POST", f"{DEAD}/redrives", body, headers))
    assert (started["action"], started["startedBy"], started["pausedAt"]) == ("delete", "ann", None)
    path = f"{DEAD}/redrives/{started['id']}"
    await until(lambda: api.broker.redrive_tasks.get(started["id"]).moved == 1)
    assert await api.code("DELETE", path) == (409, "conflict.redrive_state")
    paused = await post(api, f"{path}/pause", b"")
    assert (paused["state"], paused["pausedAt"]) == ("paused", api.clock.ms)
    assert (await get(api, path))["moved"] == 1
    assert len(await found(api, "")) == 2
    assert (await post(api, f"{path}/resume", b""))["state"] == "running"
    await post(api, f"{path}/cancel", b"")
    assert await api.code("POST", f"{path}/resume") == (409, "conflict.redrive_state")
    assert await api.code("POST", f"{path}/pause") == (409, "conflict.redrive_state")
    assert (await api.call("DELETE", path)).status == 204
    assert await api.code("GET", path) == (404, "not_found.redrive")


async def test_what_is_deleted_goes_nowhere(api: Api) -> None:
    body = {"filter": {}, "target": "r", "action": "delete"}
    assert await api.code("POST", f"{DEAD}/redrives", body) == (400, "bad_request.body.invalid")


async def test_tasks_of_another_queue_are_not_found(api: Api) -> None:
    await api.send("m")
    started = await post(api, f"{DEAD}/redrives", {"filter": {}}, 202)
    path = f"other-dlq/dead-letters/redrives/{started['id']}"
    assert await api.code("GET", path) == (404, "not_found.redrive")
    assert await api.code("POST", f"{path}/cancel") == (404, "not_found.redrive")
    assert await api.code("GET", f"{DEAD}/redrives/nonsense") == (404, "not_found.redrive")
    assert await get(api, "other-dlq/dead-letters/redrives") == {"redrives": []}


async def test_too_many_at_once(api: Api) -> None:
    await fail(api, *map(str, range(2 * REDRIVES_RUNNING_A_KEY_MAX)))
    body = {"filter": {}, "ratePerSecond": 1}
    for _ in range(REDRIVES_RUNNING_A_KEY_MAX):
        await post(api, f"{DEAD}/redrives", body, 202)
    response = await api.call("POST", f"{DEAD}/redrives", body)
    assert (response.status, json_of(response)["code"]) == (503, "forq.too_many_redrives")
    assert dict(response.headers)[b"retry-after"] == b"1"


REFUSED_REDRIVES = (
    ({"filter": {}, "ratePerSecond": 0}, "bad_request.out_of_range"),
    ({"filter": {}, "ratePerSecond": 10_001}, "bad_request.out_of_range"),
    ({"filter": {"minAgeMs": -1}}, "bad_request.out_of_range"),
    ({"filter": {"reason": "r" * 1_025}}, "bad_request.out_of_range"),
    ({"filter": {"attributes": {"": "x"}}}, "bad_request.body.attributes.invalid"),
    ({"filter": {}, "target": "no queue"}, "bad_request.queue.invalid_name"),
)


async def test_redrives_that_are_refused(api: Api) -> None:
    for body, code in REFUSED_REDRIVES:
        assert await api.code("POST", f"{DEAD}/redrives", body) == (400, code), body
    assert api.broker.redrive_tasks.all() == []


ROUTES: tuple[tuple[str, str, object], ...] = (
    ("GET", "", b""),
    ("GET", f"/{UNKNOWN}", b""),
    ("POST", "/redrive", {"ids": [UNKNOWN]}),
    ("POST", "/delete", {"ids": [UNKNOWN]}),
    ("POST", f"/{UNKNOWN}/resubmit", {}),
    ("POST", "/redrives", {"filter": {}}),
    ("GET", "/redrives", b""),
)


async def test_f15_queues_that_take_no_dead_letters(api: Api) -> None:
    for method, path, body in ROUTES:
        answer = await api.code(method, f"q/dead-letters{path}", body)
        assert answer == (400, "bad_request.dlq_only_operation"), path
    await api.broker.configure("p", dead_letter_queue="q")
    for method, path, body in ROUTES:
        response = await api.call(method, f"q/dead-letters{path}", body)
        assert response.status in (200, 202, 404), path


async def test_a_token_needs_the_scope_and_the_target(api: Api) -> None:
    (message_id,) = await fail(api, "x")
    redriver = (await api.broker.create_token("redriver", (Scope.REDRIVE,), "q*")).token
    browser = (await api.broker.create_token("browser", (Scope.BROWSE,), "q*")).token

    async def answer(token: str, method: str, path: str, body=b"") -> tuple[int, str | None]:
        """The status, and the scope that is missing."""
        headers = {b"x-api-key": token.encode()}
        response = await api.call(method, f"{DEAD}{path}", body, headers)
        missing = re.search("the scope ([a-z]+)", json_of(response).get("message", ""))
        return response.status, missing and missing[1]

    for path, body in [
        ("/redrive", {"ids": [message_id]}),
        ("/redrives", {"filter": {}}),
        (f"/{message_id}/resubmit", {}),
    ]:
        assert await answer(browser, "POST", path, body) == (403, "redrive")
        assert await answer(redriver, "POST", path, body | {"target": "r"}) == (403, "redrive")
    assert await answer(browser, "POST", "/delete", {"ids": [message_id]}) == (403, "redrive")
    assert await answer(redriver, "GET", "") == (403, "browse")
    assert await answer(browser, "GET", "") == (200, None)
    assert await found(api, "") == [message_id]
    assert await answer(redriver, "POST", "/redrive", {"ids": [message_id], "target": "q2"}) == (200, None)
