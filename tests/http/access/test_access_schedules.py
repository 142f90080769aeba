"""Schedules: the scope `schedule`, and the right to send, for the queue that a schedule sends to."""

import pytest

from forq_trio.model import limits
from forq_trio.model.access.types import Scope
from support.forq_api import SECRET, Api

from .conftest import Holder, Tokens, is_forbidden

AT = "/api/v1/schedules"
ALL = (Scope.SCHEDULE, Scope.PRODUCE, Scope.BROWSE)


def body(queue: str, more: str = "") -> bytes:
    return f'{{"queue": "{queue}", "content": "m", "every": "1h"{more}}}'.encode()


@pytest.fixture
async def owner(api: Api) -> Holder:
    """The holder of the secret, who has made schedules of a1 and b1."""
    owner = Holder(api, SECRET)
    for queue in ("a1", "b1"):
        assert (await owner.ask("PUT", f"{AT}/of-{queue}", body(queue)))[0] == 200
    return owner


async def test_a_glob_that_covers_the_queue_suffices(api: Api, tokens: Tokens, owner: Holder):
    holder = await tokens.holder(*ALL, queues="a*")
    for request in (
        ("PUT", f"{AT}/of-a1", body("a1")),
        ("POST", f"{AT}/of-a1/pause"),
        ("POST", f"{AT}/of-a1/resume"),
        ("POST", f"{AT}/of-a1/run"),
        ("GET", f"{AT}/of-a1"),
        ("DELETE", f"{AT}/of-a1"),
    ):
        assert (await holder.ask(*request))[0] < 300


async def test_a_schedule_of_a_queue_that_is_not_covered_is_refused(api: Api, tokens: Tokens, owner: Holder):
    holder = await tokens.holder(*ALL, queues="b*")
    await is_forbidden(holder, "schedule", "PUT", f"{AT}/new", body("a1"))
    await is_forbidden(holder, "schedule", "PUT", f"{AT}/of-a1", body("a1"))
    for verb in ("pause", "resume", "run"):
        await is_forbidden(holder, "schedule", "POST", f"{AT}/of-a1/{verb}")
    await is_forbidden(holder, "schedule", "DELETE", f"{AT}/of-a1")
    await is_forbidden(holder, "browse", "GET", f"{AT}/of-a1")
    status, shown = await owner.ask("GET", f"{AT}/of-a1")
    assert (status, shown["runs"], shown["schedule"]["paused"]) == (200, [], False)


async def test_a_schedule_is_not_taken_to_another_queue_without_the_right_for_both(
    api: Api, tokens: Tokens, owner: Holder
):
    holder = await tokens.holder(*ALL, queues="a*")
    await is_forbidden(holder, "schedule", "PUT", f"{AT}/of-b1", body("a1"))
    await is_forbidden(holder, "schedule", "PUT", f"{AT}/of-a1", body("b1"))
    both = await tokens.holder(*ALL, queues="[ab]*")
    assert (await both.ask("PUT", f"{AT}/of-b1", body("a1")))[0] == 200


@pytest.mark.parametrize(
    ("scopes", "missing"),
    [((Scope.SCHEDULE, Scope.BROWSE), "produce"), ((Scope.PRODUCE, Scope.BROWSE), "schedule")],
)
async def test_a_refusal_says_which_of_both_is_missing(
    api: Api, tokens: Tokens, owner: Holder, scopes: tuple[Scope, ...], missing: str
):
    holder = await tokens.holder(*scopes)
    await is_forbidden(holder, missing, "PUT", f"{AT}/of-a1", body("a1"))
    for verb in ("resume", "run"):
        await is_forbidden(holder, missing, "POST", f"{AT}/of-a1/{verb}")


async def test_what_lets_a_schedule_send_takes_its_dead_letter_queue_too(
    api: Api, tokens: Tokens, owner: Holder
):
    await owner.ask("PUT", f"{AT}/of-a1", body("a1", ', "deadLetterQueue": "b1"'))
    holder = await tokens.holder(*ALL, queues="a*")
    for verb in ("resume", "run"):
        await is_forbidden(holder, "produce", "POST", f"{AT}/of-a1/{verb}")


async def test_a_pause_and_a_deletion_send_nothing_and_take_one_scope(
    api: Api, tokens: Tokens, owner: Holder
):
    holder = await tokens.holder(Scope.SCHEDULE, queues="a*")
    status, paused = await holder.ask("POST", f"{AT}/of-a1/pause")
    assert (status, paused["madeBy"], paused["pausedBy"]) == (200, None, "t1")
    assert (await holder.ask("DELETE", f"{AT}/of-a1"))[0] == 204


async def test_reading_a_schedule_is_browsing(api: Api, tokens: Tokens, owner: Holder):
    holder = await tokens.holder(Scope.SCHEDULE, Scope.PRODUCE)
    await is_forbidden(holder, "browse", "GET", f"{AT}/of-a1")
    await is_forbidden(holder, "browse", "GET", AT)


async def test_the_list_has_what_the_token_may_see(api: Api, tokens: Tokens, owner: Holder):
    for queues, shown in (("*", ["of-a1", "of-b1"]), ("a*", ["of-a1"]), ("c", [])):
        holder = await tokens.holder(Scope.BROWSE, queues=queues)
        found, after = [], ""
        while after is not None:
            status, page = await holder.ask("GET", f"{AT}?limit=1&after={after}")
            assert status == 200
            found += [each["name"] for each in page["schedules"]]
            after = page["next"]
        assert found == shown


async def test_dead_letters_go_to_covered_queues_only(api: Api, tokens: Tokens):
    holder = await tokens.holder(*ALL, queues="a*")
    target = ', "deadLetterQueue": "payments"'
    await is_forbidden(holder, "produce", "PUT", f"{AT}/s", body("a1", target))
    assert (await holder.ask("PUT", f"{AT}/s", body("a1", ', "deadLetterQueue": "a2"')))[0] == 200


async def test_a_token_makes_its_share_of_schedules_and_no_more(api: Api, tokens: Tokens, monkeypatch):
    monkeypatch.setattr(limits, "SCHEDULES_A_TOKEN_MAX", 2)
    narrow, other = await tokens.holder(*ALL), await tokens.holder(*ALL)
    for name in ("x1", "x2", "x1"):
        status, made = await narrow.ask("PUT", f"{AT}/{name}", body("q"))
        assert (status, made["madeBy"]) == (200, "t1")
    status, answer = await narrow.ask("PUT", f"{AT}/x3", body("q"))
    assert (status, answer["code"]) == (409, "conflict.too_many_schedules")
    for holder, name in ((other, "y1"), (Holder(api, SECRET), "y2")):
        assert (await holder.ask("PUT", f"{AT}/{name}", body("q")))[0] == 200
    assert (await narrow.ask("DELETE", f"{AT}/x1"))[0] == 204
    assert (await narrow.ask("PUT", f"{AT}/x3", body("q")))[0] == 200


@pytest.mark.parametrize("end", ["revoked", "narrowed"])
async def test_a_schedule_goes_on_without_its_token_which_can_do_nothing_more(
    api: Api, tokens: Tokens, end: str
):
    holder = await tokens.holder(*ALL, queues="a*")
    assert (await holder.ask("PUT", f"{AT}/s", body("a1")))[0] == 200
    await api.broker.revoke_token("t1")
    if end == "narrowed":  # a token cannot be changed: one of the same name takes its place
        made = await api.broker.create_token("t1", ALL, "b*")
        holder = Holder(api, made.token)
        await is_forbidden(holder, "schedule", "POST", f"{AT}/s/run")
    else:
        assert (await holder.ask("POST", f"{AT}/s/run"))[0] == 401
    api.clock.ms += 3_600_000
    await api.send("wakes the writer", queue="other")
    _, shown = await Holder(api, SECRET).ask("GET", f"{AT}/s")
    assert [run["result"] for run in shown["runs"]] == ["sent"]
    assert shown["schedule"]["madeBy"] == "t1"
