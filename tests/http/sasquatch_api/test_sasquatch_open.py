"""Without keys (FORQ_SASQUATCH_AUTH=false) the API is for programs on this machine, and for no web page."""

import pytest

from .harness import SECRET, Api, json_of, make_request


@pytest.fixture
def open_api(api: Api) -> Api:
    api.serve(auth=False)
    return api


async def ask(api: Api, **headers: str) -> tuple[int, str]:
    named = {name.encode(): value.encode() for name, value in headers.items()}
    request = make_request("POST", "/send", b'{"queue_name": "q", "message_body": "x"}', named)
    response = await api.handler(request)
    return response.status, json_of(response).get("error", {}).get("code", "")


async def test_programs_of_this_machine_are_let_in(open_api: Api):
    for host in ("localhost:8080", "127.0.0.1:8080", "[::1]:8080", "127.9.9.9", "LOCALHOST"):
        assert await ask(open_api, host=host) == (200, "")
        assert await ask(open_api, host=host, origin=f"http://{host}") == (200, ""), host


async def test_pages_of_other_sites_are_refused(open_api: Api):
    for origin in (
        "https://example.org",
        "http://localhost.example.org",
        "null",
        "http://10.0.0.1",
        "http://127.0.0.1.nip.io",
    ):
        assert await ask(open_api, host="localhost:8080", origin=origin) == (403, "Forbidden"), origin
    assert open_api.broker.known.counts() == {}


async def test_a_name_made_to_mean_this_machine_is_refused(open_api: Api):
    for host in ("example.org", "rebound.example.org:8080", "10.0.0.1", "[2001:db8::1]:8080", ""):
        assert await ask(open_api, host=host) == (403, "Forbidden"), host
    assert open_api.broker.known.counts() == {}


async def test_with_keys_it_does_not_matter_who_asks(api: Api):
    headers = {b"x-api-key": SECRET.encode(), b"host": b"example.org", b"origin": b"https://example.org"}
    request = make_request("POST", "/send", b'{"queue_name": "q", "message_body": "x"}', headers)
    assert (await api.handler(request)).status == 200
