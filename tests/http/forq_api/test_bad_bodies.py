"""Bodies that are no JSON, no UTF-8, or not what was asked for: 400 `bad_request.body.invalid` (contract F1)."""

from collections.abc import Mapping, Set

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


async def all_refused(api: Api, method: str, path: str, bodies: Mapping[str, bytes]) -> None:
    """Whoever sends these bodies is told that they are wrong, and nothing is stored."""
    answers = {name: await api.code(method, path, body) for name, body in bodies.items()}
    assert answers == dict.fromkeys(bodies, (400, "bad_request.body.invalid"))
    assert (api.broker.known.counts(), api.broker.known.settings()) == ({}, {})


async def test_f1_bad_bodies(api: Api):
    await all_refused(api, "POST", "q/messages", BODIES)


@pytest.mark.parametrize("verb", ["batch", "ack"])
async def test_bad_bodies_of_batches(api: Api, verb: str):
    """What a type refuses of a list of receipts is tested with batches, for each verb."""
    bodies = {name: body for name, body in BODIES.items() if name not in JSON_WITH_MEMBERS}
    await all_refused(api, "POST", f"q/messages/{verb}", bodies)


@pytest.mark.parametrize("verb", ["messages/batch", "messages/ack", "messages/receive", "settings"])
async def test_members_that_have_no_place_there(api: Api, verb: str):
    for body in JSON_WITH_MEMBERS.values():
        response = await api.call("PUT" if verb == "settings" else "POST", f"q/{verb}", body)
        member = "Content" if b"Content" in body else "content"
        assert response.status == 400
        answer = blamed(json_of(response))
        assert answer == {"code": "bad_request.body.unknown_field", "field": f"$.{member}"}


def bad_with(member: bytes, left_out: Set[str]) -> dict[str, bytes]:
    """The bad bodies with this member in the place of `content`."""
    return {
        name: body.replace(b'"content"', b'"%b"' % member)
        for name, body in BODIES.items()
        if name not in left_out
    }


async def test_bad_bodies_of_receive(api: Api):
    """Every member is optional there, so `max` takes the place of `content`."""
    await all_refused(api, "POST", "q/messages/receive", bad_with(b"max", VALID_FOR_RECEIVE))


async def test_bad_bodies_of_settings(api: Api):
    """There null is the default, so that `maxMessages` may be null, too."""
    await all_refused(
        api, "PUT", "q/settings", bad_with(b"maxMessages", VALID_FOR_RECEIVE | {"content null"})
    )
