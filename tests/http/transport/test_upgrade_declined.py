"""Upgrades to HTTP/2 that are none (RFC 7540 section 3.2, RFC 9110 section 7.8): the request is answered in HTTP/1."""

import pytest

from support.transport import get, running

GOOD = "AAMAAABkAAQAAP__"
BAD_SETTINGS = {
    "not base64": "A",
    "not whole settings": "AAMAAABkAAQA",
    "characters of another alphabet": "AAMAAABkAAQAAP//",
    "ENABLE_PUSH is 2": "AAIAAAAC",
    "INITIAL_WINDOW_SIZE of 2**31": "AASAAAAA",
    "MAX_FRAME_SIZE of 1": "AAUAAAAB",
    "twice": f"{GOOD}, {GOOD}",
}


def upgrade(settings: str, version: str = "1.1") -> bytes:
    headers = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", f"HTTP2-Settings: {settings}")
    return get("/here", *headers, version=version)


@pytest.mark.parametrize("name", BAD_SETTINGS)
async def test_settings_that_are_none(name):
    """Found by fuzzing: such a request was dropped without an answer and reported as an error of ours."""
    async with running() as transport:
        client = await transport.connect()
        await client.send(upgrade(BAD_SETTINGS[name]) + get("/next"))
        assert (await client.answer()).body == b"GET /here?\n"
        assert (await client.answer()).body == b"GET /next?\n"


async def test_http_1_0_is_not_upgraded():
    async with running() as transport:
        client = await transport.connect()
        await client.send(upgrade(GOOD, version="1.0"))
        assert (await client.answer()).body == b"GET /here?\n"


@pytest.mark.parametrize("settings", [GOOD, "", "AAIAAAABAAR_____AAUAAEAA_wD_____"])
async def test_control_good_settings_are_upgraded(settings):
    async with running() as transport:
        client = await transport.connect()
        await client.send(upgrade(settings))
        assert (await client.stream.receive_some()).startswith(b"HTTP/1.1 101 ")
