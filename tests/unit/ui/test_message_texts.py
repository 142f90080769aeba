"""The timeline of a message, its attributes as text, and the command that sends it again."""

import json
import shlex

import pytest

from forq_trio.model.errors import InvalidAttributes
from forq_trio.model.messages.types import LEASE_ENDED, Failure, MessageInfo
from forq_trio.ui.attributes import from_text, to_text
from forq_trio.ui.curl import curl_command
from forq_trio.ui.pages.message_actions import can_edit, edited
from forq_trio.ui.timeline import TimelineStep, timeline

NOW = 1_000_000


def message(**more) -> MessageInfo:
    members = {
        "id": "0199164b-4dea-78d9-9b4c-c699d5037962",
        "queue": "orders",
        "sequence": 7,
        "status": "ready",
        "content": "a",
        "attempts": 0,
        "priority": 100,
        "received_at": 1_000,
        "process_after": 1_000,
        "updated_at": 1_000,
        "expires_after": 2_000_000,
    }
    return MessageInfo(**members | more)


def words(steps: list[TimelineStep]) -> list[str]:
    return [
        step.words if step.entry is None else " ".join(filter(None, (step.entry.what, step.entry.reason)))
        for step in steps
    ]


def test_a_message_that_was_only_sent() -> None:
    assert words(timeline(message(), NOW)) == ["Sent"]
    assert words(timeline(message(process_after=6_000), NOW)) == ["Due", "Sent"]
    assert words(timeline(message(process_after=NOW + 60_000), NOW)) == ["Delay of 17 min", "Sent"]


@pytest.mark.parametrize(
    ("due", "updated", "failures", "entry"),
    [
        (170_000, 170_000, (), ("Due again", "its consumer gave it back", 170_000)),
        (NOW + 60_000, NOW, (), ("Delayed", "its consumer gave it back, due again in 1 min", NOW)),
        (170_000, 170_000, (Failure(1, 4_000, "no stock"),), ("Due again", "", 170_000)),
        (NOW + 60_000, NOW, (Failure(1, 4_000, None),), ("Delayed", "due again in 1 min", NOW)),
        (NOW + 60_000, NOW, (Failure(1, NOW, None),), ("Back-off of 1 min", "due again in 1 min", NOW)),
    ],
    ids=["released", "released for later", "released after a failure", "the same for later", "failed"],
)
def test_a_message_that_came_back_has_no_delay_that_nobody_gave_it(due, updated, failures, entry) -> None:
    stored = message(process_after=due, updated_at=updated, first_received_at=2_000, failures=failures)
    newest = timeline(stored, NOW)[0].entry
    assert (newest.what, newest.detail, newest.at) == entry


def test_a_dead_letter_shows_how_it_failed() -> None:
    failures = (Failure(1, 3_000, LEASE_ENDED), Failure(2, 5_000, "no stock"), Failure(3, 6_000, None))
    steps = timeline(
        message(
            queue="orders-dlq",
            failures=failures,
            first_received_at=2_000,
            dead_lettered_at=6_000,
            failure_reason="max_attempts_reached",
            source_attempts=3,
            process_after=6_000,
        ),
        NOW,
    )
    assert words(steps) == [
        "Moved to orders-dlq",
        "Nack",
        "Nack no stock",
        "Lease ended",
        "Delivered for the first time",
        "Sent",
    ]
    assert steps[0].entry.detail == "attempts used up, 3 attempts"
    assert [step.after_ms for step in steps] == [0, 1_000, 2_000, 1_000, 1_000, None]


def test_more_than_four_attempts_of_a_round_fold() -> None:
    rounds = [Failure(number, 2_000 + number, "early") for number in range(1, 4)]
    rounds += [Failure(number, 9_000 + number, "late") for number in range(1, 7)]
    steps = timeline(
        message(
            failures=tuple(rounds),
            attempts=6,
            status="delayed",
            process_after=9_006 + 30_000,
            updated_at=9_006,
        ),
        NOW,
    )
    assert words(steps) == [
        "Back-off of 30 s",
        "Nack late",
        "Nack late",
        "4 more, attempts 1 to 4",
        "Nack early",
        "Nack early",
        "Nack early",
        "Sent",
    ]
    assert [step.entry.detail for step in steps[3].folded] == [f"attempt {number}" for number in (4, 3, 2, 1)]


@pytest.mark.parametrize(
    "attributes",
    [{}, {"tenant": "acme", "trace": "a:b"}, {"a": " spaces "}, {"a b": "two\nlines"}, {"a:b": "c"}, {"a": ""},
     {"{": "x"}, {" ": "y"}, {"x": "a\r"}, {"\u2028": "\u202e"}],
)  # fmt: skip
def test_attributes_survive_their_text(attributes) -> None:
    assert from_text(to_text(attributes)) == attributes


@pytest.mark.parametrize("text", ["no colon", ": no name", "a: 1\na: 2", '{"a": 1}', "{"])
def test_text_that_is_no_attributes_is_refused(text) -> None:
    with pytest.raises(InvalidAttributes):
        from_text(text)


@pytest.mark.parametrize("content", ["a\nb\n", "a\r\nb", "\n", "", "a\r\nb\r\n\r\n"])
def test_a_text_field_gives_back_what_it_was_given(content) -> None:
    assert can_edit(content)
    for sent_by_browser in (
        content.replace("\r\n", "\n"),
        content.replace("\r\n", "\n").replace("\n", "\r\n"),
    ):
        assert edited(content, sent_by_browser) is None
        assert edited(content, sent_by_browser + "x") == content + "x"


@pytest.mark.parametrize("content", ["a\0b", "a\rb", "a\r\nb\nc"])
def test_what_a_text_field_would_change_is_not_edited(content) -> None:
    assert not can_edit(content)


def test_the_command_has_what_is_not_the_default() -> None:
    command = curl_command(
        message(
            content="it's $HOME `x` \u202e\0",
            priority=500,
            group="g",
            attributes={"a": "b"},
            ttl_ms=5,
            max_attempts=2,
            dead_letter_queue="",
            process_after=NOW + 1,
        ),
        "orders",
        "http://127.0.0.1:8080",
        NOW,
    )
    body = shlex.split(command)[-1]
    assert json.loads(body) == {
        "content": "it's $HOME `x` \u202e\0",
        "priority": 500,
        "group": "g",
        "attributes": {"a": "b"},
        "ttlMs": 5,
        "maxAttempts": 2,
        "deadLetterQueue": "",
        "processAfter": NOW + 1,
    }
    assert "'" not in body
    assert body.isprintable()
