"""Every scope on every route, as the reference says it below the heading of each: one without it fails a test."""

import re
from pathlib import Path

import pytest
import trio

from forq_trio.http.router import Route
from forq_trio.model.access.types import Scope
from support.forq_api import Api

from .conftest import Tokens, is_forbidden, missing

PAGES = (Path(__file__).parents[3] / "docs" / "reference").glob("http*.md")
DOCS = "".join(path.read_text(encoding="utf-8") for path in sorted(PAGES))
SCOPES = dict(re.findall(r"^### ([A-Z]+ /\S+)\n\nScope: `(\w+)`$", DOCS, re.MULTILINE))
ID = "01890000-0000-7000-8000-000000000000"
UNKNOWN_WORKER = "01890000-0000-7000-8000-000000000001"
BODIES = {
    "receiveMessages": b'{"max": 1}',
    "sendMessage": b'{"content": "m"}',
    "discardMessages": b'{"receipts": [], "reason": "r"}',
    "requeueFinished": b'{"ids": []}',
    "createToken": b"{}",
    "offerMessage": b'{"content": "m"}',
    "saveSchedule": b'{"queue": "q", "content": "m", "every": "1h"}',
    "nextRuns": b'{"every": "1h"}',
    "reportWorker": b"""{"name": "w", "host": "", "version": "", "process": 1, "startedAt": 0,
        "queues": [{"queue": "q", "slots": 1}]}""",
    "listWithdrawn": b'{"queues": ["q"], "after": 0, "waitMs": 0}',
    "retrySetAside": b'{"ids": []}',
    "deleteSetAside": b'{"ids": []}',
    "relayOutbox": b'{"after": 0, "messages": []}',
    "addToBatch": b'{"messages": [{"queue": "q", "message": {"content": "x"}}]}',
    "publish": b'{"app": "a", "version": 1, "stages": [{"queue": "q", "stage": "s", "pages": 1}]}',
}
OF_ALL_QUEUES = (
    {"/api/v1/tokens", "/api/v1/tokens/{name}", "/api/v1/admin/backups"}
    | {f"/api/v1/admin/compaction{end}" for end in ("", "/pause", "/stop")}
    | {f"/api/v1/set-aside{end}" for end in ("", "/retry", "/delete")}
)
OF_NO_QUEUE = (
    {"/api/v1/publications/{app}"}
    | {f"/api/v1/schedules/{{schedule}}{end}" for end in ("", "/pause", "/resume", "/run")}
    | {f"/api/v1/batches/{{batch}}{end}" for end in ("", "/close", "/abandon")}
)
BIND = "PUT /api/v1/queues/{queue}/table"
"""Opens a table of the database to the queue, so it needs a token for all queues."""
SAVE_SCHEDULE = "PUT /api/v1/schedules/{schedule}"
"""Needs `produce`, too: what a token lacks is said of the queue in the body."""
FORGET_WORKER = "DELETE /api/v1/workers/{workerId}"
"""Says nothing of any queue, and nobody made this worker known."""
LISTS = {"/api/v1/queues", "/api/v1/settings", "/api/v1/consumers"}
OTHER_LISTS = {f"GET /api/v1/{topic}" for topic in ("publications", "schedules", "batches", "workers")} | {
    "PUT /api/v1/batches/{batch}"  # one that sends nothing is of no queue
}
LOGS = {"/api/v1/events", "/api/v1/history"}
"""What a token for some queues may read of a queue that it names."""
EVERYWHERE = {f"{path}/range" for path in LOGS} | {
    "/api/v1/schedule-preview",
    "/api/v1/processes",
    "/api/v1/outboxes/{outbox}",
    "/api/v1/outboxes/{outbox}/messages",
}
"""What says nothing of any queue."""


def gated(api: Api) -> list[Route]:
    """The routes that take tokens."""
    return [route for route in api.routes if route.gate is not None and route.gate.scope is not None]


def name_of(route: Route) -> str:
    return f"{route.method} {route.path}"


async def ask(tokens: Tokens, route: Route, *scopes: Scope, queues: str) -> tuple[int, dict]:
    """The answer to a new token, about the queue q (or its dead letters, where it is about those).

    One server is asked for all routes: there is a message to receive, whatever the one before has done to the queue,
    and other schedules and workers are asked for than one of them may have made.
    """
    await tokens.api.send("there is always one to receive")
    await tokens.api.broker.resume("q")
    holder = await tokens.holder(*scopes, queues=queues)
    queue = "q-dlq" if "dead-letters" in route.path else "q"
    path = route.path.format(
        queue=queue,
        messageId=ID,
        redriveId=ID,
        name="nobody",
        consumer="k",
        number=1,
        schedule="s" if route.method == "PUT" else "nobody",
        stage="s",
        page="0",
        app="a",
        outbox="o",
        batch="b" if route.method == "PUT" else "nobody",
        workerId=ID if route.method == "PUT" else UNKNOWN_WORKER,
        key="k",
    )
    with trio.fail_after(120):
        return await holder.ask(route.method, path, BODIES.get(route.operation.name, b"{}"))


async def test_every_route_has_its_scope_in_the_docs(api: Api):
    assert {name_of(route): route.gate.scope.value for route in gated(api)} == SCOPES


async def test_whatever_has_a_gate_takes_a_scope_but_the_metrics(api: Api):
    without = {route.path for route in api.routes if route.gate is not None and route.gate.scope is None}
    assert without == {"/metrics"}


@pytest.mark.parametrize("scope", Scope)
async def test_a_scope_opens_its_routes_and_no_other(api: Api, tokens: Tokens, scope: Scope):
    wrong = []
    for name, needed in SCOPES.items():
        route = next(route for route in gated(api) if name_of(route) == name)
        also = [Scope.PRODUCE] if name == SAVE_SCHEDULE and scope is Scope.SCHEDULE else []
        status, body = await ask(tokens, route, scope, *also, queues="*")
        if scope in (Scope(needed), Scope.ADMIN):
            right = status not in (401, 403, 429)
        else:
            right = status == 403 and body["code"] == "forbidden" and missing(body) == needed
        if not right:
            wrong.append((name, status, body))
    assert wrong == []


async def test_a_glob_that_covers_the_queue_opens_what_is_about_it(api: Api, tokens: Tokens):
    """Which queues a glob covers is tested with the values."""
    wrong = []
    for name in SCOPES:
        route = next(route for route in gated(api) if name_of(route) == name)
        status, _ = await ask(tokens, route, *Scope, queues="q*")
        if (status == 403) is not (route.path in OF_ALL_QUEUES | LOGS or name == BIND):
            wrong.append((name, status))
    assert wrong == []


async def test_a_glob_that_does_not_cover_the_queue_opens_nothing_but_lists(api: Api, tokens: Tokens):
    wrong = []
    for name, needed in SCOPES.items():
        route = next(route for route in gated(api) if name_of(route) == name)
        status, body = await ask(tokens, route, *Scope, queues="Q*")
        listed = route.path in LISTS | EVERYWHERE or name in OTHER_LISTS
        of_no_queue = route.path in OF_NO_QUEUE and name != SAVE_SCHEDULE
        expected = 200 if listed else 404 if of_no_queue else 403
        if name == FORGET_WORKER:
            expected = 204
        if status != expected or (status == 403 and missing(body) != needed):
            wrong.append((name, status, body))
    assert wrong == []


@pytest.mark.parametrize("path", ["q/messages?peek=true", "q/messages/receive"])
async def test_peeking_is_browsing(api: Api, tokens: Tokens, path: str):
    await api.send("m", "m")
    method, body = ("POST", b'{"peek": true}') if path.endswith("receive") else ("GET", b"")
    consumer, reader = await tokens.holder(Scope.CONSUME), await tokens.holder(Scope.BROWSE)
    await is_forbidden(consumer, "browse", method, path, body)
    assert (await reader.ask(method, path, body))[0] == 200
    taken = method, path.partition("?")[0], b"{}" if body else b""
    await is_forbidden(reader, "consume", *taken)
    assert (await consumer.ask(*taken))[0] == 200


async def test_lists_show_what_is_covered(api: Api, tokens: Tokens):
    for queue in ("a1", "a2", "b1"):
        await api.send("m", queue=queue)
        assert (await api.call("PUT", f"{queue}/settings", {"delayMs": 5})).status == 200
        assert (await api.call("PUT", f"{queue}/consumers/k", {})).status == 200
    for queues, shown in [("*", ["a1", "a2", "b1"]), ("a*", ["a1", "a2"]), ("b1", ["b1"]), ("c", [])]:
        holder = await tokens.holder(Scope.BROWSE, queues=queues)
        for path in LISTS:
            status, body = await holder.ask("GET", path)
            entries = body["consumers"] if "consumers" in path else body["queues"]
            assert (status, [entry["queue"] for entry in entries]) == (200, shown)


async def test_the_queue_in_a_path_is_decoded_before_it_is_compared(api: Api, tokens: Tokens):
    holder = await tokens.holder(Scope.PRODUCE, queues="orders")
    assert (await holder.ask("POST", "%6Frders/messages", b'{"content": "m"}'))[0] == 204
    for queue in ("orders%2Fx", "orders%252", "%6Frder%00s", "Orders", "%FF", ""):
        path = f"/api/v1/queues/{queue}/messages"
        assert (await holder.ask("POST", path, b'{"content": "m"}'))[0] == 403
    assert list(api.broker.known.counts()) == ["orders"]


SHORT_CUT = b'{"content": "m", "ttlMs": 1, "deadLetterQueue": "payments"}'


@pytest.mark.parametrize(
    ("method", "path", "body", "scope"),
    [
        ("POST", "orders/messages", SHORT_CUT, Scope.PRODUCE),
        ("POST", "orders/messages/batch", b'{"messages": [{"content": "a"}, %s]}' % SHORT_CUT, Scope.PRODUCE),
        ("PUT", "orders/settings", b'{"deadLetterQueue": "payments"}', Scope.ADMIN),
        (
            "POST",
            "orders-dlq/dead-letters/redrive",
            b'{"ids": ["%s"], "target": "payments"}' % ID.encode(),
            Scope.REDRIVE,
        ),
        ("POST", "orders-dlq/dead-letters/redrives", b'{"filter": {}, "target": "payments"}', Scope.REDRIVE),
        ("POST", f"orders-dlq/dead-letters/{ID}/resubmit", b'{"target": "payments"}', Scope.REDRIVE),
    ],
)
async def test_messages_are_directed_to_covered_queues_only(
    api: Api, tokens: Tokens, method: str, path: str, body: bytes, scope: Scope
):
    confined = await tokens.holder(*Scope, queues="orders*")
    await is_forbidden(confined, scope.value, method, path, body)
    assert list(api.broker.known.counts()) == []
    free = await tokens.holder(scope, queues="[op]*")
    assert (await free.ask(method, path, body))[0] not in (401, 403, 429)


async def test_a_token_of_some_queues_reads_their_history_alone(api: Api, tokens: Tokens):
    holder = await tokens.holder(Scope.BROWSE, queues="a*")
    for query, expected in [("", 403), ("?queue=b", 403), ("?queue=a1", 409)]:  # 409: it is off
        assert (await holder.ask("GET", f"/api/v1/history{query}"))[0] == expected
