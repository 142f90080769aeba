"""A dead letter tells of its key, and another message may have it; a redrive gives it back if it is free."""

from forq_trio.model.commands import Ack, DropKeys, PurgeStep, Redrive, Resubmit, SweepKind

from .keyed import offer, offer_all, offering, pending, read
from .script import T0, contents, counted, do, look, nack, receive, receive_one, redrive, run, sweep


def kill(engine, key="k", content="x", **members):
    """Offer a message and have it fail into `q-dlq`."""
    offered = offer(engine, key, content, max_attempts=1, **members)
    _, receipt = receive_one(engine)
    assert nack(engine, receipt, 0)
    sweep(engine, SweepKind.FAILED)
    return offered


def test_a_dead_letter_tells_of_its_key_and_frees_it(engine):
    dead = kill(engine, kind="mail")
    keyed = look(engine, dead.id, "q-dlq").keyed
    assert (keyed.key, keyed.kind, keyed.revision) == ("k", "mail", dead.revision)
    assert [read(engine, "k", "mail"), read(engine, "k", "mail", "q-dlq")] == [None, None]
    assert offer(engine, kind="mail", mode="create").outcome == "created"


def test_a_dead_letter_is_delivered_without_a_key(engine):
    kill(engine, kind="mail")
    (delivery,) = receive(engine, queue="q-dlq")
    assert (delivery.key, delivery.kind) == (None, "")


def test_two_dead_letters_may_have_had_the_same_key(engine):
    dead = [kill(engine), kill(engine)]
    assert [look(engine, each.id, "q-dlq").keyed.key for each in dead] == ["k", "k"]


def test_a_dead_letter_is_not_dropped_by_its_kind(engine):
    kill(engine)
    assert do(engine, DropKeys("q-dlq", "")) == PurgeStep(0, None)


def test_a_redrive_gives_the_key_back(engine):
    dead = kill(engine)
    assert redrive(engine, dead.id) == (True,)
    assert pending(engine).message.id == dead.id
    assert offer(engine, mode="createIfAbsent").outcome == "ignored"
    assert offer(engine, content="new").outcome == "updated"


def test_a_redrive_where_the_key_is_taken_sends_it_without(engine):
    dead = kill(engine, content="old")
    new = offer(engine, content="new")
    assert redrive(engine, dead.id) == (True,)
    assert pending(engine).message.id == new.id
    assert look(engine, dead.id).keyed is None
    assert sorted(contents(receive(engine, 2))) == ["new", "old"]


def test_a_redrive_of_two_gives_the_key_to_the_first(engine):
    first, second = kill(engine, content="1"), kill(engine, content="2")
    assert redrive(engine, first.id, second.id) == (True, True)
    assert pending(engine).message.id == first.id
    assert look(engine, second.id).keyed is None


def test_a_redrive_elsewhere_has_the_key_there(engine):
    dead = kill(engine)
    assert redrive(engine, dead.id, target="other") == (True,)
    assert read(engine) is None
    assert pending(engine, queue="other").message.id == dead.id


def test_a_redrive_in_the_batch_in_which_the_next_one_goes_on_leaves_it_the_key(engine):
    dead = kill(engine, content="dead")
    offer(engine, content="1")
    _, receipt = receive_one(engine)
    offer(engine, content="2", mode="onceMore")
    result = run(engine, Ack("q", (receipt,)), Redrive("q-dlq", (dead.id,), None))
    assert result.outcomes == [(True,), (True,)]
    assert pending(engine).message.content == "2"
    assert look(engine, dead.id).keyed is None


def test_a_message_that_is_moved_elsewhere_leaves_what_waits_behind_it(engine):
    first = offer(engine, content="1")
    receive_one(engine, lease_ms=10)
    offer(engine, content="2", mode="onceMore")
    run(engine, now=T0 + 10)
    assert redrive(engine, first.id, queue="q", target="other", now=T0 + 10) == (True,)
    assert pending(engine).message.content == "2"
    assert (pending(engine, queue="other").message.content, pending(engine, queue="other").once_more) == (
        "1",
        None,
    )
    counts = engine.snapshot().counts
    assert (counts["q"].bytes, counts["other"].bytes) == (1, 1)


def test_a_copy_has_no_key(engine):
    dead = kill(engine)
    produced = do(engine, Resubmit("q-dlq", dead.id, None, None, None, False))
    assert look(engine, produced.id).keyed is None
    assert read(engine) is None


def test_one_that_expires_is_a_dead_letter_with_its_key(engine):
    offered = offer(engine, ttl_ms=100)
    run(engine, now=T0 + 100)
    assert look(engine, offered.id, "q-dlq").keyed.key == "k"
    assert read(engine) is None


def test_the_sweeps_free_keys(engine):
    offer_all(engine, offering("a", ttl_ms=100), offering("b", ttl_ms=100))
    sweep(engine, SweepKind.EXPIRED, now=T0 + 100)
    assert [read(engine, key) for key in "ab"] == [None, None]
    assert counted(engine)["q-dlq"].ready == 2
