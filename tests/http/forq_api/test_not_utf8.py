"""Percent-encoded bytes that are not UTF-8: refused everywhere, and never taken for another text."""

import re

import pytest

from forq_trio.http.message import Response
from forq_trio.http.router import Route
from support.forq_api import Api, make_request

FILLED = {"queue": "q", "messageId": "01890000-0000-7000-8000-000000000000", "number": "1", "page": "0"}
BROKEN = ("%FF", "%C3", "%ED%A0%80", "a%80b")
"""A byte that UTF-8 has not, a text that ends too early, a surrogate, and a byte in the middle."""


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
    for path in ("/api/v1/events?queue=%FF", "/api/v1/history?queue=%FF", "/api/v1/queues?after=%FF"):
        response = await api.handler(make_request("GET", path))
        assert response.status < 500, path
