"""Attributes with their types: what is shown of them, and what stays when others take their place."""

import json

import pytest

from forq_trio.model.messages.attributes import Attribute, described, replaced
from forq_trio.model.sqs.types import SqsDetails
from forq_trio.model.sqs.words import in_words
from forq_trio.ui.attributes import BYTES_DUMPED_MAX, TEXT_IN_ROW_MAX, TEXT_SHOWN_MAX, attribute_context

SAID = {
    "types": {"n": "Number.int", "b": "Binary"},
    "deduplicationId": "d",
    "traceHeader": "Root=1",
    "sender": "shop",
}


def noted(attributes: dict[str, str], said: object) -> dict[str, str]:
    return {**attributes, "AWS.SQS": json.dumps(said)}


def test_each_attribute_has_its_type() -> None:
    found = described(noted({"s": "x", "n": "-1", "b": "AP8="}, SAID))
    assert found.attributes == (
        Attribute("s", "x"),
        Attribute("n", "-1", "Number.int"),
        Attribute("b", "AP8=", "Binary", b"\x00\xff"),
    )
    assert found.facts == (("Deduplication id", "d"), ("Noted sender", "shop"), ("Trace header", "Root=1"))


@pytest.mark.parametrize("attributes", [None, {}])
def test_there_may_be_none(attributes) -> None:
    assert (described(attributes).attributes, described(attributes).facts) == ((), ())


@pytest.mark.parametrize("said", ["text", 1, {"types": {"n": 1}}, {"types": "n"}, {"sender": []}])
def test_what_cannot_be_read_is_an_attribute_like_any_other(said) -> None:
    attributes = noted({"n": "1"}, said)
    assert described(attributes).attributes == tuple(Attribute(*each) for each in attributes.items())
    assert replaced(attributes, {"n": "2"}) == {"n": "2"}


def test_a_value_that_does_not_fit_its_type_is_a_text() -> None:
    found = described(noted({"n": "one", "b": "no base64"}, SAID))
    assert found.attributes == (Attribute("n", "one"), Attribute("b", "no base64"))


def test_types_stay_where_other_values_fit() -> None:
    original = noted({"s": "x", "n": "-1", "b": "AP8="}, SAID)
    new = replaced(original, {"n": "2.5", "b": "no base64", "other": "3"})
    assert json.loads(new.pop("AWS.SQS")) == SAID | {"types": {"n": "Number.int"}}
    assert new == {"n": "2.5", "b": "no base64", "other": "3"}


def test_nothing_is_noted_where_nothing_is_left_to_say() -> None:
    assert replaced(noted({"n": "1"}, {"types": {"n": "Number"}}), {"m": "1"}) == {"m": "1"}
    assert replaced({"n": "1"}, {"m": "1"}) == {"m": "1"}


def test_who_names_the_types_replaces_them() -> None:
    new = noted({"n": "1"}, {"types": {"n": "Number"}})
    assert replaced(noted({"n": "1"}, SAID), new) == new


def test_a_page_shows_the_beginning_of_what_is_long() -> None:
    long = "x" * (TEXT_SHOWN_MAX + 1)
    (text, short) = attribute_context({"long": long, "short": long[1:]})["given"]
    assert (text.text, text.note, text.copied) == (long[1:], "first 2,048 of 2,049 characters", long)
    assert (short.text, short.note, short.copied) == (long[1:], "", "")
    assert (text.in_row, text.note_in_row) == ("x" * TEXT_IN_ROW_MAX + "…", "2,049 characters")


def test_a_page_shows_bytes_as_numbers_with_their_size() -> None:
    kinds = {"types": dict.fromkeys(("few", "some", "many"), "Binary")}
    values = {"few": "AP8Q", "some": "AAAA" * 6, "many": "AAAA" * BYTES_DUMPED_MAX}
    few, some, many = attribute_context(noted(values, kinds))["given"]
    assert (few.text, few.note, few.dump, few.copied) == ("00 ff 10", "Binary, 3 bytes", None, "AP8Q")
    assert (some.text, some.note) == ("00 " * 16 + "…", "Binary, 18 bytes")
    assert some.dump.count("\n") == 1
    assert (many.note, many.note_in_row) == ("Binary, first 256 bytes of 768 bytes", "Binary, 768 bytes")
    assert many.dump.count("\n") == 15


def details(**attributes: str) -> SqsDetails:
    return SqsDetails(created_at=1, modified_at=1, attributes=attributes, tags={"team": "mail"})


def test_a_queue_in_words() -> None:
    found = in_words(
        "q", details(MaximumMessageSize="262144", ReceiveMessageWaitTimeSeconds="20", KmsMasterKeyId="k")
    )
    assert found.facts == (
        ("Type", "standard"),
        ("Largest message", "256 KiB"),
        ("Receives wait", "20 s"),
        ("KmsMasterKeyId", "k"),
    )
    assert (found.dialect, found.documents, found.tags) == ("SQS", (), {"team": "mail"})
    assert in_words("q", details(MaximumMessageSize="1025", Policy="{}")).facts[1:] == (
        ("Largest message", "1,025 B"),
    )
    assert in_words("q", details(Policy="{}")).documents == (("Policy", "{}"),)


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({}, "by id"),
        ({"ContentBasedDeduplication": "true"}, "by content"),
        (
            {"ContentBasedDeduplication": "true", "DeduplicationScope": "messageGroup"},
            "by content, in each group",
        ),
        ({"DeduplicationScope": "queue"}, "by id"),
    ],
)
def test_a_fifo_queue_says_how_it_knows_duplicates(attributes, words) -> None:
    found = in_words("q.fifo", details(FifoQueue="true", **attributes))
    assert found.facts == (("Type", "FIFO"), ("Deduplication", words))


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ({"redrivePermission": "allowAll"}, "all queues"),
        ({"redrivePermission": "denyAll"}, "no queue"),
        (
            {
                "redrivePermission": "byQueue",
                "sourceQueueArns": ["arn:aws:sqs:us-east-1:000000000000:a", "x:b"],
            },
            "a, b",
        ),
    ],
)
def test_a_dead_letter_queue_says_whose_messages_it_takes(policy, words) -> None:
    assert in_words("q", details(RedriveAllowPolicy=json.dumps(policy))).facts[1:] == (
        ("Dead letters from", words),
    )


def test_a_long_name_is_shown_whole() -> None:
    long = f"eu-west-1.{'q' * 60}.fifo"
    found = in_words("cut", SqsDetails(full_name=long, created_at=1, modified_at=1))
    assert found.facts[:2] == (("Name", long), ("Type", "FIFO"))
