"""Cutting messages into requests: bounded in number and bytes, in order, complete."""

import random

import msgspec

from forq_trio import NewMessage, batches
from forq_trio.model.limits import PRODUCE_BATCH_BYTES_MAX, PRODUCE_BATCH_MAX


def test_no_message_no_batch():
    assert list(batches([])) == []


def test_a_full_batch_is_cut_at_its_number():
    sizes = [len(batch) for batch in batches(NewMessage("x") for _ in range(2 * PRODUCE_BATCH_MAX + 1))]
    assert sizes == [PRODUCE_BATCH_MAX, PRODUCE_BATCH_MAX, 1]


def test_order_bounds_and_completeness(rng: random.Random):
    messages = [NewMessage(rng.choice("aé\x01") * rng.choice((1, 1_000, 200_000))) for _ in range(300)]
    cut = list(batches(messages))
    assert [message for batch in cut for message in batch] == messages
    assert all(len(msgspec.json.encode(batch)) <= PRODUCE_BATCH_BYTES_MAX + 1 for batch in cut)
    assert len(cut) > 1


def test_batches_are_made_as_they_are_wanted():
    def endless():
        while True:
            yield NewMessage("x")

    assert len(next(batches(endless()))) == PRODUCE_BATCH_MAX
