"""Dead letters by why they died: groups of reason and fingerprint of the last error, the largest first."""

from msgspec.structs import replace

from forq_trio.model import limits
from forq_trio.model.commands import SweepKind
from forq_trio.model.dead_letters.searches import ErrorGroup, ErrorTexts, MessageFilter
from forq_trio.model.fingerprints import fingerprint
from forq_trio.model.messages.types import REASON_EXPIRED, REASON_MAX_ATTEMPTS

from .script import T0, nack, receive_one, run, send, sweep


def die(engine, error, now=T0):
    send(engine, max_attempts=1, now=now)
    nack(engine, receive_one(engine, now=now)[1], 0, error, now=now)
    sweep(engine, SweepKind.FAILED, now=now)


def test_messages_are_grouped_by_reason_and_error(engine, reader):
    for at, error in ((1, "503"), (2, "404"), (3, "503"), (4, None), (5, "")):
        die(engine, error, T0 + at)
    send(engine, ttl_ms=1, now=T0)
    run(engine, now=T0 + 10)
    found = reader.error_groups("q-dlq", None, 100)
    assert found.groups == [
        ErrorGroup(REASON_MAX_ATTEMPTS, None, 2, T0 + 5, 0),
        ErrorGroup(REASON_MAX_ATTEMPTS, "503", 2, T0 + 3, 1),
        ErrorGroup(REASON_EXPIRED, None, 1, T0 + 10, 0),
        ErrorGroup(REASON_MAX_ATTEMPTS, "404", 1, T0 + 2, 1),
    ]
    assert (found.searched, found.total, found.next_before, found.others) == (6, 6, None, [])


HOOKS = (
    "timed out after 10 s at /hooks/41",
    "timed out after 10 s at /hooks/42",
    "timed out after 9 s at /hooks/41",
)


def test_errors_that_differ_by_numbers_are_one_group(engine, reader):
    for at, error in enumerate((*HOOKS, HOOKS[2], "no route")):
        die(engine, error, T0 + at)
    assert reader.error_groups("q-dlq", None, 100).groups == [
        ErrorGroup(REASON_MAX_ATTEMPTS, HOOKS[0], 4, T0 + 3, 3),
        ErrorGroup(REASON_MAX_ATTEMPTS, "no route", 1, T0 + 4, 1),
    ]


def test_the_most_frequent_errors_of_a_group(engine, reader):
    for at, error in enumerate((*HOOKS, HOOKS[2], "no route", None, "")):
        die(engine, error, T0 + at)
    like = MessageFilter(error_like="timed out after 8 s at /hooks/1")
    assert reader.error_texts("q-dlq", like, 100, 2) == ErrorTexts([(HOOKS[2], 2), (HOOKS[0], 1)], 3)
    assert reader.error_texts("q-dlq", replace(like, reason=REASON_EXPIRED), 100, 2) == ErrorTexts([], 0)
    assert reader.error_texts("q-dlq", like, 4, 2) == ErrorTexts([(HOOKS[2], 1)], 1)


def test_messages_are_found_by_an_error_like_theirs(engine, reader):
    for at, error in enumerate((*HOOKS, "no route", None)):
        die(engine, error, T0 + at)
    for like, found in ((HOOKS[1], 3), (fingerprint(HOOKS[1]), 3), ("no route", 1), ("no", 0)):
        wanted = MessageFilter(error_like=like)
        assert len(reader.find_messages("q-dlq", wanted, None, 100, 100).rows) == found
        assert reader.count_messages("q-dlq", wanted, None, 100).count == found
        assert len(reader.search("q-dlq", wanted, None, 100, 100).messages) == found


def test_what_no_message_of_a_queue_has_is_none(engine, reader):
    send(engine, now=T0 + 4)
    assert reader.error_groups("q", None, 100).groups == [ErrorGroup(None, None, 1, T0 + 4, 0)]
    assert reader.error_groups("none", None, 100).groups == []


def test_a_bounded_number_is_looked_at(engine, reader):
    for at, error in enumerate("aabbb"):
        die(engine, error, T0 + at)
    first = reader.error_groups("q-dlq", None, 4)
    assert [(group.error, group.count) for group in first.groups] == [("b", 3), ("a", 1)]
    assert (first.searched, first.total) == (4, 5)
    rest = reader.error_groups("q-dlq", first.next_before, 4)
    assert [(group.error, group.count) for group in rest.groups] == [("a", 1)]
    assert (rest.searched, rest.next_before) == (1, None)


def test_beyond_the_bound_of_groups_only_the_reason_counts(engine, reader, monkeypatch):
    monkeypatch.setattr(limits, "ERROR_GROUPS_MAX", 2)
    for at, error in enumerate(("a", "a", "a", "b", "b", "c", "d", None)):
        die(engine, error, T0 + at)
    send(engine, ttl_ms=1, now=T0)
    run(engine, now=T0 + 1)
    found = reader.error_groups("q-dlq", None, 100)
    assert [(group.error, group.count) for group in found.groups] == [("a", 3), ("b", 2)]
    assert sorted((each.reason, each.error, each.count, each.last_at) for each in found.others) == [
        (REASON_MAX_ATTEMPTS, None, 3, T0 + 7),
        (REASON_EXPIRED, None, 1, T0 + 1),
    ]
