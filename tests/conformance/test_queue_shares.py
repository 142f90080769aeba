"""An access token makes a share of all queues: relational/parts/counts.py."""

import pytest

from forq_trio.model import limits
from forq_trio.model.access.types import SECRET, Key
from forq_trio.model.commands import Configure, ForgetQueue, NameQueues, Publish, Purge, StagePage, SweepKind
from forq_trio.model.errors import TooManyQueues
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.publishing.types import Stage
from forq_trio.model.queues.settings import SettingsChange
from forq_trio.model.sqs.types import SqsChange
from support.actors import T0

from .script import counted, do, fail, run, send, sweep
from .test_publishing import part

TOO_MANY = "this token has made 2 queues, the most for one; delete some"


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(limits, "QUEUES_A_TOKEN_MAX", 2)


def name(engine, *queues, made_by="narrow"):
    return [None if each is None else each.message for each in do(engine, NameQueues(queues, made_by))]


def made(engine):
    return {key: count for key, count in engine.snapshot().queues_made.items() if count}


def test_they_exist_then(engine):
    assert name(engine, "b", "a") == [None, None]
    assert engine.snapshot().queue_names == ["a", "b"]
    assert made(engine) == {"narrow": 2}


def test_one_more_is_refused_and_other_keys_go_on(engine):
    assert name(engine, "a", "b", "c") == [None, None, TOO_MANY]
    assert name(engine, "c", made_by="other") == [None]
    send(engine, queue="d")
    assert engine.snapshot().queue_names == ["a", "b", "c", "d"]


def test_queues_that_are_there_count_for_nobody(engine):
    for queue in ("a", "b", "c"):
        send(engine, queue=queue)
    assert name(engine, "a", "b", "c", "d") == [None] * 4
    assert made(engine) == {"narrow": 1}


def test_commands_of_one_batch_count_together(engine):
    mine = [NameQueues((queue,), "narrow") for queue in "abc"]
    outcomes = run(engine, *mine, NameQueues(("b",), "other")).outcomes
    assert [type(outcome) for (outcome,) in outcomes] == [type(None), type(None), TooManyQueues, type(None)]


def test_a_forgotten_queue_makes_space_for_another(engine):
    name(engine, "a", "b")
    assert do(engine, ForgetQueue("a")) is True
    assert name(engine, "c", "d") == [None, TOO_MANY]
    run(engine, NameQueues(("x",), "other"), ForgetQueue("x"))
    assert made(engine) == {"narrow": 2}


def configure_for_sqs(engine, queue, made_by):
    return do(engine, Configure(queue, SettingsChange(lease_ms=1), SqsChange(full_name="", at_ms=1), made_by))


def test_queues_that_sqs_makes_count_too(engine):
    for queue in ("a", "b", "a"):
        assert configure_for_sqs(engine, queue, "narrow").lease_ms == 1
    refused = configure_for_sqs(engine, "c", "narrow")
    assert (type(refused), refused.message) == (TooManyQueues, TOO_MANY)
    assert "c" not in engine.snapshot().settings
    configure_for_sqs(engine, "c", "")
    assert engine.snapshot().queue_names == ["a", "b", "c"]
    assert made(engine) == {"narrow": 2}


def test_all_together_are_bounded_too(engine, monkeypatch):
    monkeypatch.setattr(limits, "QUEUES_MAX", 1)
    assert name(engine, "a", "b") == [None, "there are 1 queues already"]


@pytest.mark.parametrize(("key", "count"), [(Key("narrow"), 2), (SECRET, 4)])
def test_dead_letter_queues_of_published_messages_count_for_the_key_of_the_stage(engine, key, count):
    messages = [NewMessage("x", dead_letter_queue=f"dead{number}") for number in range(4)]
    do(engine, StagePage("q", "s", 0, (part(*messages),), key))
    do(engine, Publish("app", 1, (Stage("q", "s", 1),), key=key))
    run(engine)
    assert len([queue for queue in counted(engine) if queue.startswith("dead")]) == count


def test_default_dead_letter_queues_count_for_the_maker_of_their_queue_also_past_the_share(engine):
    name(engine, "a", "b")
    send(engine, queue="a")
    fail(engine, queue="a")
    send(engine, queue="b", ttl_ms=1)
    sweep(engine, SweepKind.EXPIRED, T0 + 1)
    assert engine.snapshot().queue_names == ["a", "a-dlq", "b", "b-dlq"]
    assert made(engine) == {"narrow": 4}
    assert name(engine, "c") == [TOO_MANY]


def test_a_dead_letter_queue_counts_until_it_is_forgotten_itself(engine):
    name(engine, "a")
    send(engine, queue="a")
    fail(engine, queue="a")
    do(engine, ForgetQueue("a"))
    assert made(engine) == {"narrow": 1}
    do(engine, Purge("a-dlq"))
    do(engine, ForgetQueue("a-dlq"))
    assert made(engine) == {}


def test_a_dead_letter_queue_counts_for_nobody_if_its_queue_does(engine):
    send(engine, queue="a")
    fail(engine, queue="a")
    assert engine.snapshot().queue_names == ["a", "a-dlq"]
    assert made(engine) == {}
