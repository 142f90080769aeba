"""Queue names, receipts and the shape of what leaves the house."""

import re
from uuid import UUID

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from forq_trio.model.errors import InvalidQueueName, MalformedReceipt
from forq_trio.model.messages import types as model
from forq_trio.model.messages.types import Receipt
from forq_trio.model.queues.names import is_dead_letter_queue

SEQS = st.integers(1, 2**47 - 1)
TOKENS = st.integers(0, 2**62 - 1)


@pytest.mark.parametrize("name", ["a", "mail", "A.b_c-9", "x" * 64, "mail-dlq", "-", "...", ".a"])
def test_f2_good_queue_names(name):
    assert model.check_queue_name(name) == name


@pytest.mark.parametrize(
    "name", ["", ".", "..", "x" * 65, "a b", "a/b", "größe", "a\n", "a\x00", "a%20b", "٣"]
)
def test_f2_bad_queue_names(name):
    with pytest.raises(InvalidQueueName):
        model.check_queue_name(name)


def test_f7_a_dead_letter_queue_is_known_by_its_name():
    assert is_dead_letter_queue("mail-dlq")
    assert not is_dead_letter_queue("mail")
    assert not is_dead_letter_queue("mail-dlq-2")


@given(SEQS, TOKENS)
def test_f4_a_receipt_survives_its_text_form(seq, token):
    receipt = Receipt(seq, token)
    text = str(receipt)
    assert Receipt.parse(text) == receipt
    assert Receipt.parse(text.upper()) == receipt
    assert UUID(text).version == 8
    assert str(UUID(text)) == text


@given(SEQS, TOKENS, SEQS, TOKENS)
def test_f4_different_receipts_have_different_texts(seq, token, other_seq, other_token):
    same = (seq, token) == (other_seq, other_token)
    assert (str(Receipt(seq, token)) == str(Receipt(other_seq, other_token))) is same


@given(st.uuids())
@example(UUID("a9f74498-67b4-8000-3e25-dc5584c2df3b"))  # version 8 of another variant
def test_f4_a_foreign_uuid_is_well_formed_and_matches_nothing(uuid):
    if uuid.version != 8:
        assert Receipt.parse(str(uuid)).seq == 0


@pytest.mark.parametrize(
    "text",
    [
        "",
        "receipt",
        "00000000-0001-8000-8000-00000000000",
        "00000000-0001-8000-8000-0000000000001",
        "00000000000180008000000000000001",
        "0000000000001-8000-8000-000000000001",
        "{0000000-0001-8000-8000-000000000001",
        "0000000g-0001-8000-8000-000000000001",
    ],
)
def test_f4_malformed_receipts(text):
    with pytest.raises(MalformedReceipt):
        Receipt.parse(text)


NOT_QUITE_HEXADECIMAL = st.text("0123456789abcdefABCDEF_+- \n٣", min_size=12, max_size=12)


@given(NOT_QUITE_HEXADECIMAL)
def test_f4_what_parses_as_a_receipt_is_a_uuid(digits):
    text = f"00000000-0001-8000-8000-{digits}"
    if re.fullmatch("[0-9a-fA-F]{12}", digits):
        assert Receipt.parse(text).seq == 1
    else:
        with pytest.raises(MalformedReceipt):
            Receipt.parse(text)


def test_counts_add_up():
    assert model.QueueCounts(ready=1, processing=2, failed=3, delayed=4).total == 10


def test_deliveries_and_views_are_json_in_camel_case():
    delivery = model.Delivery("id", "body", "receipt", 1, 7, 1000, 2000, priority=5, first_received_at=1500)
    plain = {
        "id": "id",
        "content": "body",
        "receipt": "receipt",
        "attempts": 1,
        "sequence": 7,
        "receivedAt": 1000,
        "leaseUntil": 2000,
        "priority": 5,
        "firstReceivedAt": 1500,
    }
    assert msgspec.json.decode(msgspec.json.encode(delivery)) == plain
    full = msgspec.structs.replace(delivery, attributes={"k": "v"}, group="g")
    assert msgspec.to_builtins(full) == {**plain, "attributes": {"k": "v"}, "group": "g"}
