"""The answers about schedules that have everything in them are as the OpenAPI document says."""

from typing import Any

import schemathesis

from support.forq_api import SECRET, Api

from .test_schemathesis import CHECKS_USED, OPERATIONS, exchange

WHOLE = {
    "queue": "q",
    "content": "m",
    "cron": "30 2 * * *",
    "timeZone": "Europe/Paris",
    "jitter": "5 min",
    "start": 1_774_600_000_000,
    "end": 1_900_000_000_000,
    "missed": "all",
    "whilePending": "skip",
    "priority": 5,
    "ttlMs": 1,
    "attributes": {"a": "b"},
    "group": "g",
    "maxAttempts": 3,
    "deadLetterQueue": "",
}


async def ask(api: Api, name: str, status: int = 200, body: Any = None, **query: Any) -> Any:
    """The JSON of an answer, which is checked against the document."""
    operation = OPERATIONS[name]
    segments = {each.name: "s" for each in operation.path_parameters}
    more = {} if body is None else {"body": body, "media_type": "application/json"}
    case: schemathesis.Case = operation.Case(path_parameters=segments, query=query, **more)
    response = await exchange(api, case, SECRET)
    assert response.status_code == status, response.text
    case.validate_response(response, checks=CHECKS_USED)
    return response.json() if response.content else None


async def test_each_answer_is_as_the_document_says(api: Api):
    api.clock.ms = 1_774_612_800_000  # two days before the clocks go forward in Paris
    await ask(api, "saveSchedule", body=WHOLE)
    await ask(api, "saveSchedule", 409, body=WHOLE, onlyNew="true")
    await ask(api, "runSchedule")
    api.clock.ms += 40 * 60_000
    assert (await ask(api, "pauseSchedule"))["pausedAt"] == api.clock.ms
    assert (await ask(api, "resumeSchedule"))["pausedAt"] is None
    details = await ask(api, "showSchedule", runs=5)
    assert details["schedule"]["lastRun"]["result"] == "by_hand"
    assert "02:30 does not exist" in details["nextRuns"][1]["note"]
    assert len((await ask(api, "listSchedules", limit=1))["schedules"]) == 1
    wrong = await ask(api, "nextRuns", 400, body={"cron": "0 0 32 * *"})
    assert wrong["place"]["field"] == 3
    assert len((await ask(api, "nextRuns", body={"every": "1h"}, count=3))["runs"]) == 3
    await ask(api, "deleteSchedule", 204)
    await ask(api, "showSchedule", 404)


async def test_a_full_queue_refuses_a_run_by_hand(api: Api):
    assert (await api.call("PUT", "q/settings", {"maxMessages": 1})).status == 200
    await ask(api, "saveSchedule", body=WHOLE)
    await ask(api, "runSchedule")
    assert await api.code("POST", "/api/v1/schedules/s/run") == (503, "forq.queue_full")
