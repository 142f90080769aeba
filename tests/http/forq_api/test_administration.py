"""Settings, pause, purge and removal of queues over HTTP: bodies, answers, refusals."""

from typing import Any

import msgspec
import pytest

from forq_trio.model import limits
from forq_trio.model.queues.setting_values import Defaults
from forq_trio.model.queues.settings import SETTINGS, QueueRules, QueueSettings, SettingsChange, rules_of
from support import settings
from support.forq_api import Api, blamed, json_of

DEFAULTS = msgspec.json.decode(msgspec.json.encode(rules_of("q", None, Defaults())))
EVERYTHING = msgspec.to_builtins(QueueSettings(**settings.EVERYTHING))
EVERYTHING.pop("paused", None)


async def put(api: Api, change: Any, queue: str = "q") -> dict[str, Any]:
    response = await api.call("PUT", f"{queue}/settings", change)
    assert response.status == 200, response.body
    return json_of(response)


async def shown(api: Api, queue: str = "q") -> dict[str, Any]:
    return json_of(await api.call("GET", f"{queue}/settings"))


async def refusal(api: Api, change: Any) -> dict[str, str]:
    """The answer to a change that is refused and changes nothing."""
    before = await shown(api)
    response = await api.call("PUT", "q/settings", change)
    assert response.status == 400
    assert await shown(api) == before
    return json_of(response)


def test_everything_that_can_be_set_is_tested():
    assert EVERYTHING.keys() == set(SettingsChange.__struct_encode_fields__)
    assert DEFAULTS.keys() == set(QueueRules.__struct_encode_fields__)


async def test_a_queue_without_settings_has_the_defaults(api: Api):
    await api.send("m")
    await api.send("m", queue="q_lifo")
    assert await shown(api) == {"settings": {}, "effective": DEFAULTS}
    of_a_dlq = {"ttlMs": 168 * limits.HOUR_MS, "deadLetterQueue": ""}
    assert (await shown(api, "q-dlq"))["effective"] == {**DEFAULTS, **of_a_dlq}
    assert (await shown(api, "q_lifo"))["effective"]["order"] == "lifo"


async def test_everything_at_once(api: Api):
    answer = {"settings": EVERYTHING, "effective": {**EVERYTHING, "paused": False}}
    assert await put(api, EVERYTHING) == answer
    assert await shown(api) == answer
    assert api.broker.known.counts() == {}


async def test_a_change_is_answered_with_what_holds_then(api: Api):
    assert await put(api, {"leaseMs": 7}) == {
        "settings": {"leaseMs": 7},
        "effective": {**DEFAULTS, "leaseMs": 7},
    }
    answer = await put(api, {"leaseMs": None, "order": "lifo"})
    assert answer == {"settings": {"order": "lifo"}, "effective": {**DEFAULTS, "order": "lifo"}}
    assert await put(api, {}) == answer


async def test_a_formula_as_back_off(api: Api):
    formula = {"initialMs": 100, "factor": 1.5, "maxMs": 5_000, "jitter": 0.25}
    assert (await put(api, {"backOff": formula}))["effective"]["backOff"] == formula
    filled = {"initialMs": 9, "factor": 2.0, "maxMs": limits.HOUR_MS, "jitter": 0.0}
    assert (await put(api, {"backOff": {"initialMs": 9}}))["effective"]["backOff"] == filled


async def test_settings_are_forgotten(api: Api):
    await put(api, EVERYTHING)
    await api.call("POST", "q/pause")
    assert (await api.call("DELETE", "q/settings")).status == 204
    assert await shown(api) == {"settings": {"paused": True}, "effective": {**DEFAULTS, "paused": True}}


async def test_the_list_of_queues_with_settings(api: Api):
    assert json_of(await api.call("GET", "/api/v1/settings")) == {"queues": [], "next": None}
    await api.send("m", queue="plain")
    await put(api, {"leaseMs": 7}, "b")
    await api.send("m", queue="a")
    await api.call("POST", "a/pause")
    queues = json_of(await api.call("GET", "/api/v1/settings"))["queues"]
    assert queues == [{"queue": name, **await shown(api, name)} for name in ("a", "b")]
    assert [queue["settings"] for queue in queues] == [{"paused": True}, {"leaseMs": 7}]
    first = json_of(await api.call("GET", "/api/v1/settings?limit=1"))
    assert first == {"queues": queues[:1], "next": "a"}
    assert json_of(await api.call("GET", "/api/v1/settings?after=a")) == {"queues": queues[1:], "next": None}


RANGES = [(each.json_name, each.low, each.high) for each in SETTINGS.values() if each.high]


@pytest.mark.parametrize(("member", "low", "high"), RANGES)
async def test_ranges(api: Api, member: str, low: int, high: int):
    for value in (low, low + 1, high - 1, high):
        assert (await put(api, {member: value}))["effective"][member] == value
    for value in (low - 1, high + 1, -(2**63), 2**64):
        answer = await refusal(api, b'{"%b":%d}' % (member.encode(), value))
        said = f"{member}: it must be between {low} and {high}, not {value}"
        assert answer == {"code": f"bad_request.settings.{member}", "field": f"$.{member}", "message": said}
    for text in (b'"1"', b"1.5", b"1.0", b"1e1", b"true", b"[1]", b"{}"):
        body = b'{"%b":%b}' % (member.encode(), text)
        answer = blamed(await refusal(api, body))
        assert answer == {"code": "bad_request.body.invalid", "field": f"$.{member}"}


LONGEST = limits.NACK_DELAY_MS_MAX


async def test_back_offs(api: Api):
    for back_off in (
        [0],
        [LONGEST] * limits.BACKOFF_STEPS_MAX,
        {"initialMs": 1, "factor": 1, "maxMs": 1, "jitter": 0},
        {"initialMs": LONGEST, "factor": limits.BACKOFF_FACTOR_MAX, "maxMs": LONGEST, "jitter": 1},
    ):
        assert (await put(api, {"backOff": back_off}))["settings"]["backOff"] == back_off


async def test_back_offs_out_of_range(api: Api):
    for back_off, what in (
        ([], "its length"),
        ([1] * (limits.BACKOFF_STEPS_MAX + 1), "its length"),
        ([1, -1], "each delay"),
        ([LONGEST + 1], "each delay"),
        ({"initialMs": 0}, "initialMs"),
        ({"initialMs": LONGEST + 1}, "initialMs"),
        ({"initialMs": 1, "factor": 0.999}, "factor"),
        ({"initialMs": 1, "factor": limits.BACKOFF_FACTOR_MAX + 0.1}, "factor"),
        ({"initialMs": 2, "maxMs": 1}, "maxMs"),
        ({"initialMs": 1, "maxMs": LONGEST + 1}, "maxMs"),
        ({"initialMs": 1, "jitter": -0.1}, "jitter"),
        ({"initialMs": 1, "jitter": 1.1}, "jitter"),
    ):
        answer = await refusal(api, {"backOff": back_off})
        assert (answer["code"], answer["field"]) == ("bad_request.settings.backOff", "$.backOff")
        assert answer["message"].startswith(f"backOff: {what} must be between "), back_off


async def test_rates_out_of_range(api: Api):
    for rate, what in (
        ({"count": 0, "periodMs": 1}, "count"),
        ({"count": limits.RATE_COUNT_MAX + 1, "periodMs": 1}, "count"),
        ({"count": 1, "periodMs": 0}, "periodMs"),
        ({"count": 1, "periodMs": limits.RATE_PERIOD_MS_MAX + 1}, "periodMs"),
    ):
        answer = await refusal(api, {"rate": rate})
        assert (answer["code"], answer["field"]) == ("bad_request.settings.rate", "$.rate")
        assert answer["message"].startswith(f"rate: {what} must be between "), rate


async def test_changes_that_are_none(api: Api):
    for change in (
        {"backOff": 1},
        {"rate": {"count": 1}},
        {"rate": {"count": 1, "periodMs": 1, "per": "message"}},
        {"backOff": "exponential"},
        {"backOff": ["1"]},
        {"backOff": [1.5]},
        {"backOff": [True]},
        {"backOff": {}},
        {"backOff": {"initialMs": 1.5}},
        {"backOff": {"initialMs": None}},
        {"backOff": {"initialMs": 1, "factor": "2"}},
        {"overflow": "drop"},
        {"overflow": "REJECT"},
        {"overflow": 1},
        {"order": "shuffle"},
        {"order": ["fifo"]},
        {"deadLetterQueue": 1},
        [],
        None,
        "lifo",
    ):
        answer = blamed(await refusal(api, msgspec.json.encode(change)))
        assert answer["code"] == "bad_request.body.invalid", change
        assert answer.get("field", "$").startswith("$")


async def test_settings_that_are_unknown(api: Api):
    for change, field in (
        ({"lease": 1}, "lease"),
        ({"lease_ms": 1}, "lease_ms"),
        ({"leaseMs": 1, "paused": True}, "paused"),
        ({"backOff": {"initialMs": 1, "first": 1}}, "backOff.first"),
    ):
        answer = blamed(await refusal(api, change))
        assert answer == {"code": "bad_request.body.unknown_field", "field": f"$.{field}"}


async def test_targets_of_dead_letters(api: Api):
    for target in ("", "other", "other-dlq", "x" * 64):
        assert (await put(api, {"deadLetterQueue": target}))["effective"]["deadLetterQueue"] == target
    for target in ("q", " ", "a/b", "x" * 65):
        answer = await refusal(api, {"deadLetterQueue": target})
        assert (answer["code"], answer["field"]) == (
            "bad_request.settings.deadLetterQueue",
            "$.deadLetterQueue",
        )


async def test_a_pause_and_a_resume_are_shown_and_repeated_without_harm(api: Api):
    await api.send("1")
    for action, paused in (("pause", True), ("resume", False)):
        for _ in range(2):
            response = await api.call("POST", f"q/{action}")
            assert (response.status, response.body) == (204, b"")
        assert json_of(await api.call("GET", "q"))["paused"] is paused
    assert await shown(api) == {"settings": {}, "effective": DEFAULTS}


async def test_what_takes_no_body_refuses_one_that_asks_for_more(api: Api):
    """Somebody who says how old, or for how long, does not mean everything, or for ever."""
    await api.broker.produce("q", "m")
    for action in ("pause", "resume", "purge"):
        for body in (b'{"olderThanMs": 3600000}', b"[]", b"now"):
            status, _ = await api.code("POST", f"/api/v1/queues/q/{action}", body)
            assert status == 400
        assert api.broker.known.counts_of("q").ready == 1
        assert (await api.call("POST", f"/api/v1/queues/q/{action}", b"{}")).status in (200, 204)


async def test_purging_and_removing_a_queue(api: Api):
    await api.send("1", "2")
    assert await api.code("DELETE", "q") == (409, "conflict.queue_not_empty")
    assert json_of(await api.call("POST", "q/purge")) == {"purged": 2}
    assert json_of(await api.call("POST", "q/purge")) == {"purged": 0}
    assert (await api.call("DELETE", "q")).status == 204
    assert await api.code("DELETE", "q") == (404, "not_found.queue")


async def test_queue_names_are_checked(api: Api):
    paths = [
        ("GET", "/settings"),
        ("PUT", "/settings"),
        ("DELETE", "/settings"),
        ("POST", "/pause"),
        ("POST", "/resume"),
        ("POST", "/purge"),
        ("DELETE", ""),
    ]
    for method, path in paths:
        assert await api.code(method, f"a%20b{path}", b"{}") == (400, "bad_request.queue.invalid_name")
    await api.send("m")
    api.writer.stop()
    for method, path in paths:
        if method != "GET":
            assert await api.code(method, f"q{path}", b"{}") == (503, "forq.stopping"), path
