"""Apps of tokens that are limited to some queues are apart from all others."""

import msgspec

from forq_trio.model import limits
from forq_trio.model.access import Scope
from support.forq_api import Api, json_of, open_api

from .conftest import Tokens

PUBLICATIONS = "/api/v1/publications"


async def stage(api: Api, queue: str, name: str) -> list[dict[str, object]]:
    response = await api.call("POST", f"{queue}/stages/{name}/pages/0", b'{"content": "x"}')
    assert response.status == 200, response.body
    return [{"queue": queue, "stage": name, "pages": 1}]


async def test_nobody_uses_up_a_version_of_somebody_elses_app():
    async with open_api() as api:
        limited = await Tokens(api).holder(Scope.PRODUCE, queues="mine-*")
        hostile = {"app": "loader", "version": limits.SEQUENCE_MAX, "stages": await stage(api, "mine-x", "s")}
        _, answer = await limited.ask("POST", PUBLICATIONS, msgspec.json.encode(hostile))
        assert answer == {"published": True, "messages": 1}
        own = {"app": "loader", "version": 5, "stages": await stage(api, "q", "s")}
        assert json_of(await api.call("POST", PUBLICATIONS, own)) == {"published": True, "messages": 1}
        assert json_of(await api.call("GET", f"{PUBLICATIONS}/loader"))["version"] == 5
        status, shown = await limited.ask("GET", f"{PUBLICATIONS}/loader")
        assert (status, shown["version"]) == (200, limits.SEQUENCE_MAX)


async def test_a_publication_of_nothing_is_refused():
    async with open_api() as api:
        nothing = {"app": "loader", "version": 5, "stages": []}
        assert (await api.call("POST", PUBLICATIONS, nothing)).status == 400
        assert (await api.call("GET", f"{PUBLICATIONS}/loader")).status == 404
