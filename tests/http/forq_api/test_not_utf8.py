"""Percent-encoded bytes that are not UTF-8: refused everywhere, and never taken for another text."""

import re
from itertools import product

import pytest

from forq_trio.http.message import Response
from forq_trio.http.router import Route
from forq_trio.model.queries import parameters_of
from support.forq_api import Api, make_request

FILLED = {"queue": "q", "messageId": "01890000-0000-7000-8000-000000000000", "number": "1", "page": "0"}
BROKEN = ("%FF", "a%ED%A0%80")
"""A byte that UTF-8 has not, and a surrogate."""


async def ask(api: Api, route: Route, path: str) -> Response:
    return await api.handler(make_request(route.method, path, b"{}" if route.operation.body else b""))


@pytest.mark.parametrize("broken", BROKEN)
async def test_a_segment_that_is_not_utf_8_names_nothing(api: Api, broken: str):
    await api.send("m")
    asked = 0
    for route in api.routes:
        for name in re.findall(r"{(\w+)}", route.path):
            values = {each: FILLED.get(each, "a") for each in re.findall(r"{(\w+)}", route.path)}
            response = await ask(api, route, route.path.format_map(values | {name: broken}))
            assert 400 <= response.status < 500, (route.path, name)
            asked += 1
    assert asked > 50


async def test_a_query_that_is_not_utf_8_breaks_nothing(api: Api):
    asked = 0
    for route in api.routes:
        path = route.path.format_map(
            {each: FILLED.get(each, "a") for each in re.findall(r"{(\w+)}", route.path)}
        )
        query = route.operation.query
        for each in () if query is None else parameters_of(query):
            if each.schema["type"] == "string" and "enum" not in each.schema and each.name != "verbose":
                response = await ask(api, route, f"{path}?{each.name}=%FF")
                assert response.status < 500, (path, each.name)
                asked += 1
    assert asked > 20


@pytest.mark.parametrize("broken", BROKEN)
async def test_a_search_takes_it_for_no_other_text(api: Api, broken: str):
    """As U+FFFD it would find messages that have that character."""
    for path, name in product(
        ("q/history", "q-dlq/dead-letters"),
        ("reason", "text", "error", "errorLike", "attribute=a:b&attribute"),
    ):
        value = f"a:{broken}" if "attribute" in name else broken
        assert (await api.code("GET", f"{path}?{name}={value}"))[0] == 400, (path, name)
