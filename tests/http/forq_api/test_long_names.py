"""What a client sent is repeated and compared only as far as an answer shows it, however long it is."""

import sys
from collections.abc import Callable
from typing import Any

import pytest

from forq_trio.http.forq_api.bodies import BodyReader
from forq_trio.http.forq_api.body_errors import did_you_mean
from forq_trio.http.forq_api.refusals import Refused
from forq_trio.http.forq_api.sends import read_message, split_messages
from forq_trio.model.consumers.bodies import OpenConsumerRequest

LONG = 200_000
NAME = b'"' + b"a" * LONG + b'":1'


def calls_of(action: Callable[[], Any]) -> int:
    """How many functions were called, also those of C."""
    count = 0

    def note(*_: object) -> None:
        nonlocal count
        count += 1

    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(None)
    return count


def refused(read: Callable[[bytes], Any], body: bytes) -> Refused:
    with pytest.raises(Refused) as refusal:
        read(body)
    return refusal.value


@pytest.mark.parametrize(
    "read",
    [
        split_messages,
        BodyReader(OpenConsumerRequest),
        lambda body: read_message(b'{"content":"x","priority":1,' + body[1:]),
    ],
)
def test_a_member_with_a_long_name_costs_no_more_than_a_short_one(read):
    refusals = []
    calls = calls_of(lambda: refusals.append(refused(read, b"{" + NAME + b"}")))
    assert calls < 5_000
    view = refusals[0].view
    assert view.code == "bad_request.body.unknown_field"
    assert view.message.startswith("there is no member 'aaaa")
    assert "did you mean" not in view.message
    assert max(len(view.message), len(view.field or "")) <= 300


def test_the_path_behind_a_long_name_is_still_told():
    refusal = refused(split_messages, b'{"messages":[{"content":"x"}],"m' + NAME[1:] + b"}")
    assert (refusal.view.field or "").startswith("$.maaaa")


def test_there_is_no_hint_at_a_long_name():
    assert did_you_mean("contend", ["content"]) == "; did you mean content?"
    assert calls_of(lambda: did_you_mean("content" * LONG, ["content"])) < 100


def test_only_the_beginning_of_a_long_form_is_looked_at():
    assert "form data" in refused(BodyReader(OpenConsumerRequest), b"content=" + b"a" * LONG).view.message
    assert "form data" not in refused(BodyReader(OpenConsumerRequest), b"a" * LONG + b"=1").view.message
