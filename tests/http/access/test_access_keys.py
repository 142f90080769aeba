"""What is a right key and for how long: both headers, expiry, revocation, the throttle (F8), last use."""

import pytest

from forq_trio.model import limits
from forq_trio.model.access.types import CALLER, Scope, digest
from forq_trio.model.commands import SaveToken
from support.access import access_token
from support.forq_api import SECRET, START_MS, Api, blamed, json_of, make_request

from .conftest import Holder, Tokens

LIST = "GET", "/api/v1/queues"


async def answer(api: Api, **headers: str) -> tuple[int, str]:
    """Status and code for a request with these headers, whose names are written with underscores."""
    raw = {name.replace("_", "-").encode(): value.encode("latin-1") for name, value in headers.items()}
    response = await api.handler(make_request(*LIST, headers=raw))
    return response.status, json_of(response).get("code", "")


async def is_refused(holder: Holder, status: int, code: str, *request: str) -> None:
    answered, error = await holder.ask(*request)
    assert (answered, blamed(error)) == (status, {"code": code})


OK = (200, "")
WRONG = (401, "unauthorized")


async def test_a_token_comes_in_either_header_as_does_the_secret(api: Api, tokens: Tokens):
    for key in ((await tokens.holder(Scope.BROWSE)).key, SECRET):
        assert await answer(api, x_api_key=key) == OK
        for scheme in ("Bearer", "bearer", "BEARER"):
            assert await answer(api, authorization=f"{scheme} {key}") == OK
        assert await answer(api, authorization=f"Bearer  {key} ") == OK
        for value in (
            key,
            f"Basic {key}",
            f"Bearer{key}",
            "Bearer",
            "",
            f"Bearer {key} {key}",
            f"Bearer {key}x",
        ):
            api.seconds.value += limits.AUTH_WINDOW_SECONDS
            assert await answer(api, authorization=value) == WRONG


async def test_where_both_are_given_the_api_key_counts(api: Api, tokens: Tokens):
    key = (await tokens.holder(Scope.BROWSE)).key
    assert await answer(api, x_api_key=key, authorization="Bearer wrong") == OK
    assert await answer(api, x_api_key="wrong", authorization=f"Bearer {key}") == WRONG
    assert await answer(api, x_api_key="", authorization=f"Bearer {key}") == WRONG


async def test_what_only_looks_like_a_token_is_a_wrong_key(api: Api, tokens: Tokens):
    key = (await tokens.holder(Scope.BROWSE)).key
    (stored,) = await api.broker.tokens()
    for wrong in (key[:-1], key + "x", key.upper(), digest(key), stored.name, "forq_", "\xff" * 48):
        api.seconds.value += limits.AUTH_WINDOW_SECONDS
        assert await answer(api, x_api_key=wrong) == WRONG


async def test_the_metrics_take_no_tokens(api: Api, tokens: Tokens):
    holder = await tokens.holder(Scope.ADMIN)
    await is_refused(holder, 401, "unauthorized", "GET", "/metrics")


async def test_a_token_expires_at_the_very_millisecond(api: Api, tokens: Tokens):
    holder = await tokens.holder(Scope.BROWSE, expires_at=START_MS + 1_000)
    api.clock.ms = START_MS + 999
    assert (await holder.ask(*LIST))[0] == 200
    api.clock.ms = START_MS + 1_000
    await is_refused(holder, 401, "unauthorized", *LIST)
    api.clock.ms = START_MS + 999
    assert (await holder.ask(*LIST))[0] == 200


async def test_revoking_holds_from_the_next_request_on(api: Api, tokens: Tokens):
    one, other = await tokens.holder(Scope.BROWSE), await tokens.holder(Scope.BROWSE)
    assert (await one.ask(*LIST))[0] == 200
    await api.broker.revoke_token("t1")
    await is_refused(one, 401, "unauthorized", *LIST)
    assert (await other.ask(*LIST))[0] == 200


async def test_a_new_token_of_an_old_name_is_another_one(api: Api):
    old = Holder(api, (await api.broker.create_token("a", [Scope.BROWSE])).token)
    assert (await old.ask(*LIST))[0] == 200
    await api.broker.revoke_token("a")
    new = Holder(api, (await api.broker.create_token("a", [Scope.BROWSE])).token)
    assert [token.last_used_at for token in await api.broker.tokens()] == [None]
    assert (await old.ask(*LIST))[0] == 401
    assert (await new.ask(*LIST))[0] == 200


async def test_tokens_that_others_save_are_known_at_once(api: Api):
    token = access_token("a", digest("text"), (Scope.BROWSE,), "*", START_MS)
    assert await answer(api, x_api_key="text") == WRONG
    await api.writer.execute(SaveToken(token))
    assert await answer(api, x_api_key="text") == OK


@pytest.mark.parametrize("kind", ["unknown", "expired", "revoked"])
async def test_f8_every_wrong_token_counts_and_a_right_one_always_passes(api: Api, tokens: Tokens, kind: str):
    right = await tokens.holder(Scope.BROWSE)
    wrong = await tokens.holder(Scope.BROWSE, expires_at=START_MS + 1)
    if kind == "unknown":
        wrong = Holder(api, "forq_" + "x" * 43)
    elif kind == "expired":
        api.clock.ms += 1
    else:
        await api.broker.revoke_token("t2")
    for _ in range(limits.AUTH_FAILURES_MAX):
        await is_refused(wrong, 401, "unauthorized", *LIST)
    await is_refused(wrong, 429, "too_many_requests", *LIST)
    assert (await right.ask(*LIST))[0] == 200
    await is_refused(wrong, 401, "unauthorized", *LIST)


async def test_f8_what_is_forbidden_is_no_failure(api: Api, tokens: Tokens):
    holder = await tokens.holder(Scope.PRODUCE)
    for _ in range(2 * limits.AUTH_FAILURES_MAX):
        assert (await holder.ask(*LIST))[0] == 403
    assert len(api.throttle) == 0


async def test_the_last_use_is_shown_at_once(api: Api, tokens: Tokens):
    holder, forbidden = await tokens.holder(Scope.BROWSE), await tokens.holder(Scope.CONSUME)
    await tokens.holder(Scope.BROWSE)
    api.clock.ms += 5
    await holder.ask(*LIST)
    api.clock.ms += 5
    await holder.ask(*LIST)
    assert (await forbidden.ask(*LIST))[0] == 403
    assert [token.last_used_at for token in await api.broker.tokens()] == [START_MS + 10, START_MS + 10, None]


async def test_a_wrong_key_is_no_use(api: Api, tokens: Tokens):
    holder = await tokens.holder(Scope.BROWSE, expires_at=START_MS + 1)
    api.clock.ms += 1
    await holder.ask(*LIST)
    assert [token.last_used_at for token in await api.broker.tokens()] == [None]


async def test_the_last_use_never_goes_back(api: Api, tokens: Tokens):
    holder = await tokens.holder(Scope.BROWSE)
    api.clock.ms += 10
    await holder.ask(*LIST)
    await api.broker.keys.uses.save()
    api.clock.ms -= 5
    await holder.ask(*LIST)
    assert [token.last_used_at for token in await api.broker.tokens()] == [START_MS + 10]
    await api.broker.keys.uses.save()
    assert [token.last_used_at for token in await api.broker.tokens()] == [START_MS + 10]


async def test_a_request_counts_for_its_token_and_with_the_secret_for_its_address(
    api: Api, tokens: Tokens, monkeypatch: pytest.MonkeyPatch
):
    """`CALLER` is who shares what is bounded for all."""
    callers: list[str] = []
    names = api.broker.known.queue_names
    monkeypatch.setattr(
        type(api.broker.known), "queue_names", lambda _: callers.append(CALLER.get()) or names()
    )
    token = await tokens.holder(Scope.BROWSE)
    for holder in (token, Holder(api, SECRET, "192.0.2.7"), Holder(api, SECRET, "192.0.2.8")):
        assert (await holder.ask(*LIST))[0] == 200
    await answer(api, authorization=f"Bearer {SECRET}")
    assert list(dict.fromkeys(callers)) == ["token t1", "192.0.2.7", "192.0.2.8", "192.0.2.1"]
