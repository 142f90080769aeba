"""Schedules over HTTP: bodies, answers and refusals. When they run is tested with the engines."""

from typing import Any

import trio

from forq_trio.model import limits
from support.forq_api import START_MS, Api, blamed, json_of

AT = "/api/v1/schedules"
HOURLY = {"queue": "q", "content": "m", "every": "1h"}
HOUR_MS = 3_600_000


async def saved(api: Api, name: str = "s", **members: Any) -> dict:
    response = await api.call("PUT", f"{AT}/{name}", {**HOURLY, **members})
    assert response.status == 200, response.body
    return json_of(response)


async def refused(api: Api, method: str, path: str, body: Any = b"") -> dict:
    """Status and error of the answer, without its words."""
    response = await api.call(method, path, body)
    return {"status": response.status, **blamed(json_of(response))}


async def test_a_schedule_is_saved_shown_changed_and_deleted(api: Api):
    made = await saved(api)
    shown = json_of(await api.call("GET", f"{AT}/s"))
    unseen = (
        "content",
        "priority",
        "ttlMs",
        "attributes",
        "group",
        "maxAttempts",
        "deadLetterQueue",
        "lastRun",
    )
    assert made == {name: each for name, each in shown["schedule"].items() if name not in unseen}
    assert shown["schedule"] == {
        **dict.fromkeys(
            ("cron", "daily", "jitter", "start", "end", "ttlMs", "attributes", "group", "maxAttempts")
        ),
        **dict.fromkeys(("deadLetterQueue", "pausedAt", "pausedBy", "madeBy", "lastRun")),
        **HOURLY,
        "timeZone": "UTC",
        "priority": 100,
        "missed": "last",
        "whilePending": "send",
        "paused": False,
        "name": "s",
        "madeAt": START_MS,
        "updatedAt": START_MS,
        "nextRun": START_MS + HOUR_MS,
    }
    assert shown["runs"] == []
    assert [run["at"] for run in shown["nextRuns"]] == [START_MS + hours * HOUR_MS for hours in range(1, 6)]
    changed = await saved(api, cron="30 2 * * *", every=None, timeZone="Europe/Paris", content="n")
    assert (changed["cron"], changed["every"]) == ("30 2 * * *", None)
    shown = json_of(await api.call("GET", f"{AT}/s"))
    assert shown["schedule"]["content"] == "n"
    deleted = await api.call("DELETE", f"{AT}/s")
    assert (deleted.status, deleted.body) == (204, b"")
    for method, path in (("GET", "s"), ("DELETE", "s"), ("POST", "s/pause"), ("POST", "s/run")):
        assert await api.code(method, f"{AT}/{path}") == (404, "not_found.schedule")


async def test_one_that_is_there_is_left_alone_where_only_a_new_one_is_wanted(api: Api):
    await saved(api)
    path = f"{AT}/s?onlyNew=true"
    assert await refused(api, "PUT", path, {**HOURLY, "content": "n"}) == {
        "status": 409,
        "code": "conflict.schedule_exists",
    }
    assert json_of(await api.call("GET", f"{AT}/s"))["schedule"]["content"] == "m"
    assert (await api.call("PUT", f"{AT}/t?onlyNew=true", HOURLY)).status == 200
    assert (await api.call("PUT", f"{AT}/s?onlyNew=false", HOURLY)).status == 200
    wrong = await refused(api, "PUT", f"{AT}/s?onlyNew=1", HOURLY)
    assert wrong == {"status": 400, "code": "bad_request.onlyNew.invalid", "field": "onlyNew"}


async def test_a_pause_is_ended_by_a_resume_and_not_by_a_save_that_says_nothing_of_it(api: Api):
    await saved(api)
    paused = json_of(await api.call("POST", f"{AT}/s/pause"))
    assert (paused["paused"], paused["pausedAt"], paused["nextRun"]) == (True, START_MS, None)
    assert (await saved(api, content="n"))["paused"] is True
    assert json_of(await api.call("POST", f"{AT}/s/resume"))["paused"] is False
    assert (await saved(api, paused=True))["paused"] is True
    assert (await saved(api, paused=False))["paused"] is False


async def test_a_run_by_hand_sends_the_message_and_is_remembered(api: Api):
    await saved(api, attributes={"a": "b"}, priority=7)
    await api.call("POST", f"{AT}/s/pause")
    produced = json_of(await api.call("POST", f"{AT}/s/run"))
    received = await api.receive()
    assert (received["id"], received["content"], received["priority"], received["attributes"]) == (
        produced["id"],
        "m",
        7,
        {"a": "b"},
    )
    (run,) = json_of(await api.call("GET", f"{AT}/s"))["runs"]
    assert run == {
        "nominal": None,
        "result": "by_hand",
        "runs": 1,
        "at": START_MS,
        "lateMs": 0,
        "messageId": produced["id"],
        "sequence": produced["sequence"],
        "reason": None,
    }
    assert json_of(await api.call("GET", f"{AT}/s?runs=0"))["runs"] == []


async def test_schedules_are_listed_by_name_in_pages(api: Api):
    for name in ("c", "b", "a"):
        await saved(api, name)
    page = json_of(await api.call("GET", f"{AT}?limit=2"))
    assert ([each["name"] for each in page["schedules"]], page["next"]) == (["a", "b"], "b")
    page = json_of(await api.call("GET", f"{AT}?after=b"))
    assert ([each["name"] for each in page["schedules"]], page["next"]) == (["c"], None)
    assert json_of(await api.call("GET", f"{AT}?after=zzz")) == {"schedules": [], "next": None}


async def test_a_preview_says_what_a_change_of_the_clocks_does_and_stores_nothing(api: Api):
    api.clock.ms = 1_774_612_800_000  # 2026-03-27T12:00:00Z
    timing = {"daily": ["02:30"], "timeZone": "Europe/Paris"}
    runs = json_of(await api.call("POST", "/api/v1/schedule-preview", timing))["runs"]
    assert [run["local"] for run in runs] == [
        "2026-03-28T02:30:00+01:00",
        "2026-03-29T03:00:00+02:00",
        "2026-03-30T02:30:00+02:00",
        "2026-03-31T02:30:00+02:00",
        "2026-04-01T02:30:00+02:00",
    ]
    assert runs[1]["at"] == 1_774_746_000_000
    assert "02:30" in runs[1]["note"]
    assert ["note" in run for run in runs] == [False, True, False, False, False]
    assert json_of(await api.call("GET", AT)) == {"schedules": [], "next": None}


async def test_a_parameter_out_of_its_range_is_refused(api: Api):
    await saved(api)
    for path, body, code in (
        ("?limit=0", b"", "limit.out_of_range"),
        (f"?limit={limits.SCHEDULES_PAGE_MAX + 1}", b"", "limit.out_of_range"),
        ("?x=1", b"", "query.unknown_parameter"),
        ("?after=%FF", b"", "body.invalid"),
        ("/s?runs=-1", b"", "out_of_range"),
        (f"/s?runs={limits.RUNS_KEPT_MAX + 1}", b"", "out_of_range"),
        ("-preview?count=0", {"every": "1h"}, "out_of_range"),
        (f"-preview?count={limits.NEXT_RUNS_MAX + 1}", {"every": "1h"}, "out_of_range"),
    ):
        at = AT.removesuffix("s") if path.startswith("-") else AT
        status, found = await api.code("POST" if body else "GET", f"{at}{path}", body)
        assert (status, found) == (400, f"bad_request.{code}"), path


async def test_a_parameter_at_its_bounds_is_taken(api: Api):
    await saved(api)
    for path in (
        "?limit=1",
        f"?limit={limits.SCHEDULES_PAGE_MAX}",
        "?after=%00%22%27",
        "/s?runs=0",
        f"/s?runs={limits.RUNS_KEPT_MAX}",
    ):
        assert (await api.call("GET", f"{AT}{path}")).status == 200, path
    for count in (1, limits.NEXT_RUNS_MAX):
        response = await api.call("POST", f"/api/v1/schedule-preview?count={count}", {"every": "1s"})
        assert len(json_of(response)["runs"]) == count


async def test_others_go_on_while_rare_times_are_computed(api: Api):
    passes = 0

    async def count_passes() -> None:
        nonlocal passes
        while True:
            await trio.lowlevel.checkpoint()
            passes += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(count_passes)
        response = await api.call("POST", "/api/v1/schedule-preview?count=100", {"cron": "0 0 29 2 *"})
        nursery.cancel_scope.cancel()
    found = [run["at"] for run in json_of(response)["runs"]]
    assert len(found) == 100
    assert found == sorted(set(found))
    assert passes >= 90


WRONG = [
    ({"every": None}, "schedule.invalid", None),
    ({"cron": "@daily"}, "schedule.invalid", None),
    ({"every": "999ms"}, "every.invalid", "$.every"),
    ({"every": "366d 1ms"}, "every.invalid", "$.every"),
    ({"every": ""}, "every.invalid", "$.every"),
    ({"every": "90"}, "every.invalid", "$.every"),
    ({"every": "-1h"}, "every.invalid", "$.every"),
    ({"every": "\ud800"}, "body.invalid", None),
    ({"every": None, "daily": []}, "daily.invalid", "$.daily"),
    ({"every": None, "daily": ["24:00"]}, "daily.invalid", "$.daily"),
    ({"every": None, "daily": ["8:00"]}, "daily.invalid", "$.daily"),
    ({"every": None, "daily": ["08:00", "08:00:00"]}, "daily.invalid", "$.daily"),
    (
        {"every": None, "daily": [f"00:{n // 60:02}:{n % 60:02}" for n in range(101)]},
        "daily.invalid",
        "$.daily",
    ),
    ({"every": None, "daily": "08:00"}, "body.invalid", "$.daily"),
    ({"timeZone": "Mars/Olympus"}, "timeZone.invalid", "$.timeZone"),
    ({"timeZone": "../../etc/passwd"}, "timeZone.invalid", "$.timeZone"),
    ({"timeZone": ""}, "timeZone.invalid", "$.timeZone"),
    ({"timeZone": "UTC\0"}, "timeZone.invalid", "$.timeZone"),
    ({"timeZone": "x" * 65}, "timeZone.invalid", "$.timeZone"),
    ({"jitter": "24h 1ms"}, "jitter.invalid", "$.jitter"),
    ({"jitter": "soon"}, "jitter.invalid", "$.jitter"),
    ({"start": -1}, "start.invalid", "$.start"),
    ({"start": limits.SCHEDULE_TIME_MS_MAX + 1}, "start.invalid", "$.start"),
    ({"start": 1.5}, "body.invalid", "$.start"),
    ({"end": -1}, "end.invalid", "$.end"),
    ({"end": limits.SCHEDULE_TIME_MS_MAX + 1}, "end.invalid", "$.end"),
    ({"start": 2, "end": 1}, "end.invalid", "$.end"),
    ({"missed": "some"}, "body.invalid", "$.missed"),
    ({"whilePending": "wait"}, "body.invalid", "$.whilePending"),
    ({"paused": 1}, "body.invalid", "$.paused"),
    ({"queue": ""}, "queue.invalid_name", "$.queue"),
    ({"queue": "q-dlq"}, "queue.produce_to_dlq", "queue"),
    ({"queue": None}, "body.invalid", "$.queue"),
    ({"content": "x" * (limits.CONTENT_BYTES_MAX + 1)}, "body.content.exceeds_limit", "$.content"),
    ({"priority": 1_001}, "priority.out_of_range", "$.priority"),
    ({"priority": -1}, "priority.out_of_range", "$.priority"),
    ({"ttlMs": 0}, "ttlMs.out_of_range", "$.ttlMs"),
    ({"maxAttempts": 0}, "maxAttempts.out_of_range", "$.maxAttempts"),
    ({"group": ""}, "body.group.invalid", "$.group"),
    ({"attributes": {"": "x"}}, "body.attributes.invalid", "$.attributes"),
    ({"deadLetterQueue": "a/b"}, "body.deadLetterQueue.invalid", "$.deadLetterQueue"),
    ({"delayMs": 1}, "body.unknown_field", "$.delayMs"),
    ({"processAfter": 1}, "body.unknown_field", "$.processAfter"),
    ({"deduplicationId": "x"}, "body.unknown_field", "$.deduplicationId"),
    ({"name": "s"}, "body.unknown_field", "$.name"),
]


async def test_what_is_wrong_is_named_and_nothing_is_stored(api: Api):
    for members, code, field in WRONG:
        answer = await refused(api, "PUT", f"{AT}/s", _encoded({**HOURLY, **members}))
        expected = {"status": 400, "code": f"bad_request.{code}"} | ({"field": field} if field else {})
        assert answer == expected, str(members)[:200]
    assert json_of(await api.call("GET", AT))["schedules"] == []


def _encoded(body: dict) -> bytes:
    """As JSON that may have half of a surrogate pair."""
    import json

    return json.dumps(body).encode()


async def test_what_is_at_a_bound_is_taken(api: Api):
    for members in (
        {"every": "1s"},
        {"every": "366d"},
        {"every": None, "daily": ["00:00", "23:59:59"]},
        {"every": None, "daily": [f"00:{n // 60:02}:{n % 60:02}" for n in range(100)]},
        {"jitter": "0s"},
        {"jitter": "24h"},
        {"start": 0, "end": 0},
        {"end": limits.SCHEDULE_TIME_MS_MAX},
        {"start": limits.SCHEDULE_TIME_MS_MAX},
        {"content": ""},
        {"content": "x" * limits.CONTENT_BYTES_MAX},
        {"deadLetterQueue": ""},
        {"timeZone": "America/Argentina/ComodRivadavia"},
    ):
        await saved(api, **members)
        shown = json_of(await api.call("GET", f"{AT}/s"))["schedule"]
        assert shown.items() >= members.items(), str(members)[:200]


async def test_an_error_in_a_cron_expression_has_its_place(api: Api):
    for cron, place in (
        ("0 25 * * *", {"field": 2, "from": 2, "to": 4}),
        ("60 * * * *", {"field": 1, "from": 0, "to": 2}),
        ("0 0 1,32 * *", {"field": 3, "from": 6, "to": 8}),
        ("  0 0 * FOO *", {"field": 4, "from": 8, "to": 11}),
        ("* * * *", {"field": 0, "from": 0, "to": 7}),
        ("0 0 30 2 *", {"field": 0, "from": 0, "to": 10}),
        ("@never", {"field": 0, "from": 0, "to": 6}),
        ("", {"field": 0, "from": 0, "to": 0}),
        ("*" * 257, {"field": 0, "from": 0, "to": 257}),
    ):
        for method, path, body in (
            ("PUT", f"{AT}/s", {"queue": "q", "content": "m", "cron": cron}),
            ("POST", "/api/v1/schedule-preview", {"cron": cron}),
        ):
            response = await api.call(method, path, body)
            answer = blamed(json_of(response))
            assert answer["place"].pop("allowed")
            assert (response.status, answer) == (
                400,
                {"code": "bad_request.cron.invalid", "field": "$.cron", "place": place},
            )


async def test_a_name_that_no_schedule_can_have_is_refused(api: Api):
    for method, end in (("PUT", ""), ("GET", ""), ("DELETE", ""), ("POST", "/run")):
        for name in ("%20", "a%2Fb", "%C3%A9", "a%00", "%FF", "x" * 129, "..%2F"):
            answer = await refused(api, method, f"{AT}/{name}{end}", HOURLY if method == "PUT" else b"")
            assert (answer["status"], answer["code"]) == (400, "bad_request.schedule.invalid_name"), name
            assert answer["field"] == "schedule"


async def test_other_names_are_taken(api: Api):
    for name in ("a", "preview", "A.b_c-9", "x" * 128, "..."):
        assert (await saved(api, name))["name"] == name
        assert (await api.call("GET", f"{AT}/{name}")).status == 200


async def test_a_body_that_is_no_schedule_is_refused(api: Api):
    for body in (b"", b"{}", b"[]", b"null", b"x", b'{"every": "1h"', b"\xff", b"[" * 9_999):
        assert await api.code("PUT", f"{AT}/s", body) == (400, "bad_request.body.invalid")
        expected = (400, "bad_request.schedule.invalid" if body == b"{}" else "bad_request.body.invalid")
        assert await api.code("POST", "/api/v1/schedule-preview", body) == expected


async def test_what_takes_nothing_refuses_members(api: Api):
    await saved(api)
    for verb in ("pause", "resume", "run"):
        assert (await api.code("POST", f"{AT}/s/{verb}", {"x": 1}))[1] == "bad_request.body.unknown_field"
        assert (await api.call("POST", f"{AT}/s/{verb}", b"{}")).status == 200
