"""Apps belong to the queues that they write, with whatever key; a key sees and uses those that it covers."""

import msgspec

from forq_trio.model import limits
from forq_trio.model.access.types import Scope
from support.forq_api import Api, json_of, open_api

from .conftest import Tokens

PUBLICATIONS = "/api/v1/publications"


async def stage(api: Api, queue: str, name: str) -> list[dict[str, object]]:
    response = await api.call("POST", f"{queue}/stages/{name}/pages/0", b'{"content": "x"}')
    assert response.status == 200, response.body
    return [{"queue": queue, "stage": name, "pages": 1}]


def publication(version: int, *stages: list[dict[str, object]]) -> bytes:
    named = [each for stage in stages for each in stage]
    return msgspec.json.encode({"app": "loader", "version": version, "stages": named})


async def test_a_version_is_published_once_with_whatever_key():
    """The depth stays when the program gets another token, and when it gets the secret."""
    async with open_api() as api:
        tokens = Tokens(api)
        keys = [
            await tokens.holder(Scope.PRODUCE, queues=queues) for queues in ("mine-*", "mine-*", "mine-x*")
        ]
        told = []
        for number, key in enumerate(keys):
            body = publication(1, await stage(api, "mine-x", f"s{number}"))
            told.append((await key.ask("POST", PUBLICATIONS, body))[1]["published"])
        body = publication(1, await stage(api, "mine-x", "last"))
        told.append(json_of(await api.call("POST", PUBLICATIONS, body))["published"])
        assert told == [True, False, False, False]
        assert api.broker.known.counts()["mine-x"].ready == 1


async def test_nobody_uses_up_or_sees_a_version_of_an_app_whose_queues_are_not_theirs():
    async with open_api() as api:
        limited = await Tokens(api).holder(Scope.PRODUCE, queues="mine-*")
        hostile = publication(limits.SEQUENCE_MAX, await stage(api, "mine-x", "s"))
        _, answer = await limited.ask("POST", PUBLICATIONS, hostile)
        assert answer == {"published": True, "messages": 1}
        own = publication(5, await stage(api, "q", "s"))
        assert json_of(await api.call("POST", PUBLICATIONS, own)) == {"published": True, "messages": 1}
        assert json_of(await api.call("GET", f"{PUBLICATIONS}/loader"))["version"] == 5
        status, shown = await limited.ask("GET", f"{PUBLICATIONS}/loader")
        assert (status, shown["version"]) == (200, limits.SEQUENCE_MAX)
        _, listed = await limited.ask("GET", PUBLICATIONS)
        assert [app["queues"] for app in listed["apps"]] == [["mine-x"]]
        assert (await limited.ask("DELETE", f"{PUBLICATIONS}/loader"))[0] == 204
        assert (await limited.ask("DELETE", f"{PUBLICATIONS}/loader"))[0] == 404
        assert json_of(await api.call("GET", f"{PUBLICATIONS}/loader"))["version"] == 5


async def test_an_app_that_writes_more_than_the_key_may_is_refused():
    async with open_api() as api:
        limited = await Tokens(api).holder(Scope.PRODUCE, queues="mine-*")
        both = publication(1, await stage(api, "mine-x", "s"), await stage(api, "q", "s"))
        assert json_of(await api.call("POST", PUBLICATIONS, both))["published"]
        status, answer = await limited.ask(
            "POST", PUBLICATIONS, publication(2, await stage(api, "mine-x", "t"))
        )
        assert (status, answer["code"]) == (409, "conflict.app_in_use")
        assert (await limited.ask("GET", f"{PUBLICATIONS}/loader"))[0] == 404


async def test_what_a_key_makes_counts_to_its_share(monkeypatch):
    """Stages, apps and consumers: the name of the token is stored with each."""
    for limit in ("STAGES_A_KEY_MAX", "APPS_A_KEY_MAX", "CONSUMERS_A_KEY_MAX"):
        monkeypatch.setattr(limits, limit, 1)
    async with open_api() as api:
        key = await Tokens(api).holder(Scope.PRODUCE, Scope.CONSUME, queues="mine")
        assert (await key.ask("POST", "/api/v1/queues/mine/stages/a/pages/0", b'{"content": "x"}'))[0] == 200
        full = await key.ask("POST", "/api/v1/queues/mine/stages/b/pages/0", b'{"content": "x"}')
        assert (full[0], full[1]["code"]) == (503, "forq.staging_full")
        stages = [{"queue": "mine", "stage": "a", "pages": 1}]
        assert (await key.ask("POST", PUBLICATIONS, publication(1, stages)))[0] == 200
        other = [{"queue": "mine", "stage": "c", "pages": 1}]
        assert (await key.ask("POST", "/api/v1/queues/mine/stages/c/pages/0", b'{"content": "x"}'))[0] == 200
        refused = await key.ask(
            "POST", PUBLICATIONS, msgspec.json.encode({"app": "second", "version": 1, "stages": other})
        )
        assert (refused[0], refused[1]["code"]) == (503, "forq.too_many_apps")
        assert (await key.ask("PUT", "/api/v1/queues/mine/consumers/a"))[1]["madeBy"] == "t1"
        refused = await key.ask("PUT", "/api/v1/queues/mine/consumers/b")
        assert (refused[0], refused[1]["code"]) == (409, "conflict.too_many_consumers")
        assert (await api.call("PUT", "mine/consumers/b")).status == 200
        await stage(api, "q", "s")


async def test_a_publication_of_nothing_is_refused():
    async with open_api() as api:
        nothing = {"app": "loader", "version": 5, "stages": []}
        assert (await api.call("POST", PUBLICATIONS, nothing)).status == 400
        assert (await api.call("GET", f"{PUBLICATIONS}/loader")).status == 404
