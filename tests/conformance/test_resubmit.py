"""An edited copy of a dead letter is sent; the original stays, or goes in the same transaction."""

from forq_trio.model.commands import Resubmit
from forq_trio.model.errors import QueueFull
from forq_trio.model.message_batches.types import OWN_ATTRIBUTES
from forq_trio.model.messages.types import QueueCounts
from forq_trio.model.queues.setting_values import Overflow
from forq_trio.storage.engine import CLEANED_UP, PRODUCED, Event

from .script import (
    DAY_MS,
    T0,
    claim,
    configure,
    counted,
    do,
    drain,
    look,
    receive,
    run,
    send,
    send_dead_letter,
    woken_by,
)

LATER = T0 + 1_000
KEPT = {"priority": 7, "group": "g", "ttl_ms": 5_000, "max_attempts": 2, "attributes": {"k": "v"}}


def test_the_copy_is_a_new_message_with_the_old_ones_terms(engine):
    original = send_dead_letter(engine, "text", **KEPT)
    result = run(engine, Resubmit("q-dlq", original.id), now=LATER)
    (copy,) = result.outcomes
    assert result.events == [Event(PRODUCED, "q", 1)]
    assert copy.sequence == original.sequence + 1
    assert not copy.duplicate
    message = look(engine, copy.id)
    assert message.content == "text"
    assert {name: getattr(message, name) for name in KEPT} == KEPT
    assert (message.received_at, message.expires_after) == (LATER, LATER + 5_000)
    assert (message.attempts, message.failures, message.first_received_at) == (0, (), None)
    assert (message.source_queue, message.failure_reason, message.last_error) == (None, None, None)
    assert look(engine, original.id, "q-dlq") is not None


def test_content_and_attributes_can_be_edited(engine):
    original = send_dead_letter(engine, "text", attributes={"k": "v"})
    edited = do(engine, Resubmit("q-dlq", original.id, content="other", attributes={"k": "w"}))
    emptied = do(engine, Resubmit("q-dlq", original.id, content="", attributes={}))
    message = look(engine, edited.id)
    assert (message.content, message.attributes, message.bytes) == ("other", {"k": "w"}, 7)
    message = look(engine, emptied.id)
    assert (message.content, message.attributes, message.bytes) == ("", {}, 0)
    assert look(engine, original.id, "q-dlq").content == "text"


def test_the_original_can_go_in_the_same_step(engine):
    original = send_dead_letter(engine)
    result = run(engine, Resubmit("q-dlq", original.id, remove=True))
    assert result.events == [Event(CLEANED_UP, "q-dlq", 1, "deleted_by_user"), Event(PRODUCED, "q", 1)]
    assert counted(engine) == {"q": QueueCounts(ready=1), "q-dlq": QueueCounts()}


def test_another_queue_with_its_own_rules(engine):
    configure(engine, "other", delay_ms=50)
    original = send_dead_letter(engine)
    copy = do(engine, Resubmit("q-dlq", original.id, target="other"))
    message = look(engine, copy.id, "other")
    assert (message.process_after, message.expires_after) == (T0 + 50, T0 + 50 + DAY_MS)


def test_what_is_not_there_or_came_from_nowhere_is_none(engine):
    here = send(engine, queue="q-dlq")
    elsewhere = send(engine)
    for message_id in (here.id, elsewhere.id, "no such id"):
        assert do(engine, Resubmit("q-dlq", message_id)) is None
    assert do(engine, Resubmit("q-dlq", here.id, target="q")).sequence == 3


def test_one_in_process_can_be_copied_but_not_taken_away(engine):
    original = send_dead_letter(engine)
    receive(engine, queue="q-dlq")
    assert do(engine, Resubmit("q-dlq", original.id, remove=True)) is None
    assert do(engine, Resubmit("q-dlq", original.id)) is not None


def test_where_there_is_no_room_nothing_is_changed(engine):
    original = send_dead_letter(engine)
    configure(engine, max_messages=1)
    send(engine)
    result = run(engine, Resubmit("q-dlq", original.id, remove=True))
    assert isinstance(result.outcomes[0], QueueFull)
    assert result.events == []
    assert counted(engine) == {"q": QueueCounts(ready=1), "q-dlq": QueueCounts(ready=1)}


def test_room_is_made_as_for_any_send(engine):
    original = send_dead_letter(engine, "copy")
    configure(engine, max_messages=1, overflow=Overflow.DROP_OLDEST)
    send(engine, "oldest")
    do(engine, Resubmit("q-dlq", original.id))
    assert drain(engine) == ["copy"]


def test_the_original_does_not_stand_in_the_way_of_its_copy(engine):
    original = send_dead_letter(engine)
    configure(engine, "q-dlq", max_messages=1)
    copy = do(engine, Resubmit("q-dlq", original.id, target="q-dlq", remove=True))
    assert copy.sequence == original.sequence + 1
    assert counted(engine)["q-dlq"] == QueueCounts(ready=1)


def test_the_deduplication_id_stays_with_the_original(engine):
    original = send_dead_letter(engine, deduplication_id="k")
    assert do(engine, Resubmit("q-dlq", original.id)).id != original.id
    assert send(engine, deduplication_id="k").id == original.id


def test_it_takes_its_turn_by_its_group(engine):
    original = send_dead_letter(engine, "a3", group="a")
    for name in ("a1", "a2", "b1"):
        send(engine, name, group=name[0])
    do(engine, Resubmit("q-dlq", original.id))
    assert drain(engine) == ["a1", "b1", "a2", "a3"]


def test_who_waits_gets_it_in_the_same_batch(engine):
    original = send_dead_letter(engine, "x")
    assert woken_by(engine, Resubmit("q-dlq", original.id, content="edited")) == ["edited"]
    assert run(engine, claim()).outcomes == [()]


def test_a_message_that_a_copy_of_the_same_batch_evicted_is_gone(engine):
    configure(engine, "q", max_messages=1, overflow=Overflow.DROP_OLDEST)
    original, victim = send(engine, queue="a"), send(engine, queue="q")
    copied, gone = run(
        engine, Resubmit("a", original.id, target="q"), Resubmit("q", victim.id, target="p", remove=True)
    ).outcomes
    assert gone is None
    assert look(engine, copied.id).content == "x"
    assert counted(engine) == {"a": QueueCounts(ready=1), "q": QueueCounts(ready=1)}


def test_types_stay_where_other_values_fit_them(engine):
    noted = '{"types":{"n":"Number","b":"Binary"},"sender":"shop"}'
    original = send_dead_letter(engine, "text", attributes={"n": "1", "b": "AAAA", "AWS.SQS": noted})
    edited = do(engine, Resubmit("q-dlq", original.id, attributes={"n": "2", "b": "no base64"}))
    same = do(engine, Resubmit("q-dlq", original.id, content="other"))
    assert look(engine, edited.id).attributes == {
        "n": "2",
        "b": "no base64",
        "AWS.SQS": '{"types":{"n":"Number"},"sender":"shop"}',
    }
    assert look(engine, same.id).attributes["AWS.SQS"] == noted


def test_a_copy_is_no_member_of_the_batch_of_its_original(engine):
    """Its handler would have added to that batch, though nothing counts the copy."""
    own = dict.fromkeys(OWN_ATTRIBUTES, "b")
    original = send_dead_letter(engine, "text", attributes={"k": "v", **own})
    lone = send_dead_letter(engine, "text", attributes=own)
    as_it_was = do(engine, Resubmit("q-dlq", original.id))
    edited = do(engine, Resubmit("q-dlq", original.id, attributes={"k": "w", **own}))
    without = do(engine, Resubmit("q-dlq", lone.id))
    copies = [look(engine, each.id).attributes for each in (as_it_was, edited, without)]
    assert copies == [{"k": "v"}, {"k": "w"}, {}]
    assert look(engine, original.id, "q-dlq").attributes == {"k": "v", **own}
