"""Making, listing and revoking tokens over HTTP: what is told, what never is, and bad input."""

from typing import Any

import msgspec
import pytest

from forq_trio.model import limits
from forq_trio.model.access.types import Scope, digest
from forq_trio.model.errors import TokenExists, TooManyTokens
from support.forq_api import START_MS, Api, blamed, json_of

from .conftest import Holder, Tokens, is_forbidden

TOKENS = "/api/v1/tokens"
DAY_MS = limits.DAY_MS


async def create(api: Api, **members: Any) -> tuple[int, dict]:
    response = await api.call("POST", TOKENS, members)
    return response.status, json_of(response)


async def listed(api: Api) -> list[dict]:
    response = await api.call("GET", TOKENS)
    assert response.status == 200
    return json_of(response)["tokens"]


async def test_a_token_is_told_once_and_works(api: Api):
    response = await api.call(
        "POST",
        TOKENS,
        {"name": "a", "scopes": ["consume", "produce"], "queues": "q*", "expiresAt": START_MS + 1},
    )
    assert response.status == 201
    assert response.headers == ((b"cache-control", b"no-store"),)
    made = json_of(response)
    assert made.keys() == {"name", "token", "accessKeyId", "secretAccessKey"}
    holder = Holder(api, made["token"])
    assert (await holder.ask("POST", "q1/messages", b'{"content": "m"}'))[0] == 204
    assert (await holder.ask("GET", "q1/messages"))[1]["content"] == "m"
    assert await listed(api) == [
        {
            "name": "a",
            "scopes": ["produce", "consume"],
            "queues": "q*",
            "createdAt": START_MS,
            "expiresAt": START_MS + 1,
            "lastUsedAt": START_MS,
            "expired": False,
        }
    ]


async def test_by_default_a_token_is_for_all_queues_and_for_ever(api: Api):
    assert (await create(api, name="a", scopes=["browse"]))[0] == 201
    (token,) = await listed(api)
    assert (token["queues"], token["expiresAt"], token["lastUsedAt"]) == ("*", None, None)


async def test_they_are_listed_by_name_also_those_that_expired(api: Api):
    for name in ("b", "a", "C"):
        assert (await create(api, name=name, scopes=["browse"], expiresAt=START_MS + 10))[0] == 201
    api.clock.ms += 10
    assert [(token["name"], token["expired"]) for token in await listed(api)] == [
        ("C", True),
        ("a", True),
        ("b", True),
    ]


async def test_neither_text_nor_hash_is_ever_listed(api: Api):
    _, made = await create(api, name="a", scopes=["browse"])
    body = (await api.call("GET", TOKENS)).body.decode()
    assert made["token"] not in body
    assert digest(made["token"]) not in body


async def test_a_scope_given_twice_counts_once(api: Api):
    assert (await create(api, name="a", scopes=["consume", "browse", "consume"]))[0] == 201
    assert (await listed(api))[0]["scopes"] == ["consume", "browse"]


async def test_revoked_is_gone_and_its_name_free(api: Api):
    await create(api, name="a", scopes=["browse"])
    assert (await api.call("DELETE", f"{TOKENS}/a")).status == 204
    assert await listed(api) == []
    assert await api.code("DELETE", f"{TOKENS}/a") == (404, "not_found.token")
    assert (await create(api, name="a", scopes=["browse"]))[0] == 201


async def test_revoking_what_is_not_there(api: Api):
    for name in ("nobody", "%FF", "%2E%2E", "a%2Fb", "x" * 65, ""):
        assert await api.code("DELETE", f"{TOKENS}/{name}") == (404, "not_found.token")


async def test_a_name_is_taken_once(api: Api):
    _, first = await create(api, name="a", scopes=["browse"])
    status, answer = await create(api, name="a", scopes=["admin"])
    assert (status, blamed(answer)) == (409, {"code": "conflict.token_exists"})
    assert (await Holder(api, first["token"]).ask("GET", "/api/v1/queues"))[0] == 200
    assert len(await listed(api)) == 1


async def test_there_are_so_many_tokens_and_no_more(api: Api, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "TOKENS_MAX", 2)
    for number in range(limits.TOKENS_MAX):
        await api.broker.create_token(f"t{number}", [Scope.BROWSE])
    with pytest.raises(TooManyTokens):
        await api.broker.create_token("one-more", [Scope.BROWSE])
    status, answer = await create(api, name="one-more", scopes=["browse"])
    assert (status, blamed(answer)) == (409, {"code": "conflict.too_many_tokens"})
    await api.broker.revoke_token("t0")
    await api.broker.create_token("one-more", [Scope.BROWSE])
    with pytest.raises((TokenExists, TooManyTokens)):
        await api.broker.create_token("one-more", [Scope.BROWSE])


GOOD = {"name": "a", "scopes": ["browse"]}
LIFE_MS = limits.TOKEN_LIFE_DAYS_MAX * DAY_MS


async def test_bad_tokens(api: Api):
    for members, code in (
        ({"scopes": ["browse"]}, "bad_request.body.invalid"),
        ({"name": "a"}, "bad_request.body.invalid"),
        (GOOD | {"name": 1}, "bad_request.body.invalid"),
        (GOOD | {"scopes": "browse"}, "bad_request.body.invalid"),
        (GOOD | {"scopes": ["everything"]}, "bad_request.body.invalid"),
        (GOOD | {"queues": None}, "bad_request.body.invalid"),
        (GOOD | {"expiresAt": "tomorrow"}, "bad_request.body.invalid"),
        (GOOD | {"expiresAt": 1.5}, "bad_request.body.invalid"),
        (GOOD | {"name": ""}, "bad_request.token.name"),
        (GOOD | {"name": "a b"}, "bad_request.token.name"),
        (GOOD | {"name": "x" * 65}, "bad_request.token.name"),
        (GOOD | {"scopes": []}, "bad_request.token.scopes"),
        (GOOD | {"queues": ""}, "bad_request.token.queues"),
        (GOOD | {"queues": "a,b"}, "bad_request.token.queues"),
        (GOOD | {"queues": "*" * 257}, "bad_request.token.queues"),
        (GOOD | {"expiresAt": START_MS}, "bad_request.token.expiresAt"),
        (GOOD | {"expiresAt": 0}, "bad_request.token.expiresAt"),
        (GOOD | {"expiresAt": START_MS + LIFE_MS + 1}, "bad_request.token.expiresAt"),
    ):
        status, body = await create(api, **members)
        assert (status, blamed(body)["code"]) == (400, code), members
    assert await listed(api) == []


async def test_an_unknown_member_is_refused_by_name(api: Api):
    status, answer = await create(api, **GOOD, scope="browse")
    assert (status, answer) == (
        400,
        {
            "code": "bad_request.body.unknown_field",
            "field": "$.scope",
            "message": "there is no member 'scope' here; did you mean scopes?",
        },
    )


async def test_at_their_bounds(api: Api):
    for number, members in enumerate(
        (
            {"name": "x" * 64},
            {"queues": "*" * 256},
            {"expiresAt": START_MS + 1},
            {"expiresAt": START_MS + LIFE_MS},
        )
    ):
        assert (await create(api, **GOOD | {"name": f"a{number}"} | members))[0] == 201, members


async def test_tokens_are_made_by_admins_of_all_queues(api: Api, tokens: Tokens):
    body = msgspec.json.encode(GOOD)
    admin = await tokens.holder(Scope.ADMIN)
    assert (await admin.ask("POST", TOKENS, body))[0] == 201
    assert (await admin.ask("DELETE", f"{TOKENS}/a"))[0] == 204
    for confined in (await tokens.holder(Scope.ADMIN, queues="a*"), await tokens.holder(Scope.REDRIVE)):
        for request in [("POST", TOKENS, body), ("GET", TOKENS, b""), ("DELETE", f"{TOKENS}/t1", b"")]:
            await is_forbidden(confined, "admin", *request)
