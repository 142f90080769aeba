"""Bodies that are no JSON, no UTF-8, or not what was asked for: 400 `bad_request.body.invalid` (contract F1)."""

import pytest

from support.forq_api import Api, blamed, json_of

DEPTH = 100_000
BODIES = {
    "empty": b"",
    "blank": b"  \n",
    "cut off": b'{"content":"m"',
    "two values": b'{"content":"m"}{"content":"m"}',
    "null": b"null",
    "a list": b'["content"]',
    "a text": b'"content"',
    "a number": b"1",
    "no member": b"{}",
    "content null": b'{"content":null}',
    "content a number": b'{"content":1}',
    "content a list": b'{"content":["m"]}',
    "content an object": b'{"content":{}}',
    "another case": b'{"Content":"m"}',
    "a form": b"content=m",
    "a byte order mark": b'\xef\xbb\xbf{"content":"m"}',
    "UTF-16": '{"content":"m"}'.encode("utf-16"),
    "latin-1": '{"content":"ü"}'.encode("latin-1"),
    "latin-1 where nobody looks": '{"content":"m","other":"ü"}'.encode("latin-1"),
    "an overlong form": b'{"content":"\xc0\xaf"}',
    "a surrogate in UTF-8": b'{"content":"\xed\xa0\x80"}',
    "a lone high surrogate": b'{"content":"\\ud800"}',
    "a lone low surrogate": b'{"content":"\\udc00"}',
    "surrogates in the wrong order": b'{"content":"\\udc00\\ud800"}',
    "a lone surrogate where nobody looks": b'{"content":"m","other":"\\ud800"}',
    "a control character": b'{"content":"\x00"}',
    "an unknown escape": b'{"content":"\\x41"}',
    "single quotes": b"{'content':'m'}",
    "a trailing comma": b'{"content":"m",}',
    "a comment": b'{"content":"m"}//',
    "NaN": b'{"content":"m","other":NaN}',
    "deep lists": b'{"content":"m","other":' + b"[" * DEPTH + b"]" * DEPTH + b"}",
    "deep objects": b'{"content":"m","other":' + b'{"a":' * DEPTH + b"1" + b"}" * DEPTH + b"}",
    "deep and cut off": b"[" * DEPTH,
}


VALID_FOR_RECEIVE = {"no member", "another case", "content a number"}

# JSON, and wrong only in that it has these members; a body is read to its end before they are complained of.
OF_ANOTHER_ENDPOINT = {name: body for name, body in BODIES.items() if name.startswith("content")}
OF_NONE = {"another case": BODIES["another case"]}
JSON_WITH_MEMBERS = OF_ANOTHER_ENDPOINT | OF_NONE


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
async def test_f1_bad_bodies(api: Api, body: bytes):
    assert await api.code("POST", "q/messages", body) == (400, "bad_request.body.invalid")
    assert api.broker.known.counts() == {}


@pytest.mark.parametrize("verb", ["batch", "ack", "nack", "extend", "release"])
@pytest.mark.parametrize("name", sorted(BODIES.keys() - JSON_WITH_MEMBERS.keys()))
async def test_bad_bodies_of_batches(api: Api, verb: str, name: str):
    assert await api.code("POST", f"q/messages/{verb}", BODIES[name]) == (400, "bad_request.body.invalid")
    assert api.broker.known.counts() == {}


@pytest.mark.parametrize("verb", ["messages/batch", "messages/ack", "messages/receive", "settings"])
@pytest.mark.parametrize("body", JSON_WITH_MEMBERS.values(), ids=JSON_WITH_MEMBERS.keys())
async def test_members_that_have_no_place_there(api: Api, verb: str, body: bytes):
    response = await api.call("PUT" if verb == "settings" else "POST", f"q/{verb}", body)
    member = "Content" if b"Content" in body else "content"
    assert response.status == 400
    answer = blamed(json_of(response))
    assert answer == {"code": "bad_request.body.unknown_field", "field": f"$.{member}"}


@pytest.mark.parametrize("name", sorted(BODIES.keys() - VALID_FOR_RECEIVE))
async def test_bad_bodies_of_receive(api: Api, name: str):
    """Every member is optional there, so `max` takes the place of `content`."""
    body = BODIES[name].replace(b'"content"', b'"max"')
    assert await api.code("POST", "q/messages/receive", body) == (400, "bad_request.body.invalid")


@pytest.mark.parametrize("name", sorted(BODIES.keys() - VALID_FOR_RECEIVE - {"content null"}))
async def test_bad_bodies_of_settings(api: Api, name: str):
    """There null is the default, so that `maxMessages` may be null, too."""
    body = BODIES[name].replace(b'"content"', b'"maxMessages"')
    assert await api.code("PUT", "q/settings", body) == (400, "bad_request.body.invalid")
    assert api.broker.known.settings() == {}


async def test_nothing_of_a_refused_request_stays(api: Api):
    """The server goes on as if it had never seen them."""
    for body in BODIES.values():
        await api.call("POST", "q/messages", body)
    await api.send("m")
    assert (await api.receive())["content"] == "m"
