"""Stages and publications: all or nothing, in order, once; and what ends them."""

import msgspec
import pytest

from forq_trio.model import limits
from forq_trio.model.commands import DiscardStage, EndStages, Publish, StagePage
from forq_trio.model.errors import QueueFull, StageMissing, StagingFull, TooManyApps
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.publishing.types import Published, PublishedVersion, Stage, Staged, StagedPart
from forq_trio.model.queues.setting_values import Overflow
from forq_trio.storage.engine import DEFERRED, Batch, Deferred

from .engines import on_sql
from .script import DAY_MS, T0, claim, configure, contents, do, drain, run, send


def part(*messages):
    messages = [NewMessage(each) if isinstance(each, str) else each for each in messages]
    size = sum(len(message.content.encode()) for message in messages)
    return StagedPart(msgspec.msgpack.encode(messages), len(messages), size)


def stage(engine, *parts, name="s", page=0, queue="q", now=T0):
    return do(engine, StagePage(queue, name, page, tuple(part(*each) for each in parts)), now)


def publish(engine, *stages, app="app", version=1, now=T0, once=False):
    named = [each if isinstance(each, Stage) else Stage("q", each, 1) for each in stages]
    return do(engine, Publish(app, version, tuple(named), once), now)


def advance(engine, now=T0):
    """Run batches until nothing is on its way; returns how many there were."""
    batches = 0
    while engine.snapshot().staging.in_progress:
        result = run(engine, now=now)
        batches += 1
        assert not engine.snapshot().staging.in_progress or result.next_due_ms <= now
        assert batches < 1_000
    return batches


def last_version(reader, app):
    """What an app published last, None for nothing."""
    found = reader.apps_named(app)
    return found[0] if found else None


def size(*parts):
    """The bytes of these parts as they are stored."""
    return sum(len(part(*each).body) for each in parts)


def staged(engine):
    staging = engine.snapshot().staging
    return staging.stages, staging.bytes


def test_pages_enter_the_queue_in_order_once_they_are_published(engine):
    assert stage(engine, ["c", "d"], ["e"], page=1) == Staged(3, 3)
    assert stage(engine, ["a"], ["b"]) == Staged(2, 2)
    assert stage(engine, ["y"], name="t") == Staged(1, 1)
    assert staged(engine) == (2, size(["c", "d"], ["e"], ["a"], ["b"], ["y"]))
    assert "q" not in engine.snapshot().counts
    assert publish(engine, "t", Stage("q", "s", 2)) == Published(True, 6, 2)
    advance(engine)
    assert staged(engine) == (0, 0)
    assert drain(engine) == ["y", "a", "b", "c", "d", "e"]


def test_an_empty_stage_that_gives_way_takes_no_more_pages_in_the_same_batch(engine, monkeypatch):
    monkeypatch.setattr(limits, "STAGES_A_KEY_MAX", 2)
    for queue in ("q", "r"):
        stage(engine, [], queue=queue)
    page = StagePage("q", "s", 1, (part("b"),))
    run(engine, StagePage("t", "s", 0, (part("a"),)), page)
    assert do(engine, DiscardStage("q", "s")) is True  # it began anew, and the stage of "r" gave way to it
    assert do(engine, DiscardStage("r", "s")) is False
    assert do(engine, DiscardStage("t", "s")) is True


def test_a_page_that_is_sent_again_is_ignored(engine):
    stage(engine, ["a"])
    assert stage(engine, ["bb", "cc"]) == Staged(1, 1)
    publish(engine, "s")
    advance(engine)
    assert drain(engine) == ["a"]


def test_a_version_is_published_once(engine):
    for number, name in enumerate("stu", 1):
        stage(engine, [f"{number}"], name=name)
    assert publish(engine, "s", version=5).published
    assert not publish(engine, "t", version=5).published
    assert not publish(engine, "t", version=4).published
    assert not publish(engine, "nothing of this name", version=5).published
    assert publish(engine, "u", version=5, app="other").published
    advance(engine)
    assert drain(engine) == ["1", "3"]
    assert staged(engine) == (1, size(["2"]))


@pytest.mark.parametrize(
    "stages",
    [
        (Stage("q", "s", 1), Stage("q", "t", 1)),
        (Stage("q", "s", 2),),
        (Stage("p", "s", 1),),
        (Stage("q", "s", 1), Stage("q", "s", 1)),
        (Stage("q", "gap", 2),),
        (Stage("q", "s", 1), Stage("q", "gap", 1)),
    ],
)
def test_nothing_is_published_where_a_stage_is_not_as_it_was_named(engine, stages):
    stage(engine, ["a"])
    stage(engine, ["a"], name="gap", page=0)
    stage(engine, ["c"], name="gap", page=2)
    assert isinstance(publish(engine, *stages), StageMissing)
    assert engine.snapshot().staging.in_progress == 0
    assert publish(engine, "s").published


def test_messages_are_as_they_were_sent(engine, reader):
    message = NewMessage(
        "größe", priority=7, delay_ms=5_000, ttl_ms=9_000, attributes={"k": "v"}, group="g", max_attempts=2
    )
    stage(engine, [message, NewMessage("x", deduplication_id="d"), NewMessage("y", deduplication_id="d")])
    publish(engine, "s", now=T0 + 1)
    advance(engine, T0 + 2)
    second, first = reader.browse("q", None, 10)
    assert (first.content, first.priority, first.process_after) == ("größe", 7, T0 + 5_002)
    assert (first.expires_after, first.attributes, first.group) == (T0 + 14_002, {"k": "v"}, "g")
    assert (first.received_at, second.content) == (T0 + 2, "x")


@on_sql
def test_a_batch_moves_so_many_and_others_are_served_between(engine, monkeypatch):
    monkeypatch.setattr(limits, "PUBLISH_STEP_MESSAGES_MAX", 4)
    stage(engine, ["1", "2"], ["3"], ["4", "5", "6", "7", "8"], ["9"], [])
    publish(engine, "s")
    result = run(engine, parked={"q": [claim(10)]})
    assert contents(result.served["q"][0][1]) == ["1", "2"]
    assert result.next_due_ms == T0
    assert run(engine).next_due_ms == T0
    send(engine, "between")
    assert advance(engine) == 1
    assert drain(engine) == ["3", "4", "5", "6", "7", "8", "between", "9"]


@on_sql
def test_beside_others_a_batch_moves_a_part(engine, monkeypatch):
    monkeypatch.setattr(limits, "PUBLISH_STEP_MESSAGES_MAX", 16)
    stage(engine, *["abc"] * 5)
    publish(engine, "s")
    engine.execute_batch(Batch([], T0, shared=True))
    engine.commit()
    assert engine.snapshot().counts["q"].ready == 3
    assert advance(engine) == 1


def test_while_nothing_can_be_stored_nothing_moves(engine):
    stage(engine, ["a"])
    publish(engine, "s")
    result = engine.execute_batch(Batch([], T0, moves_staged=False))
    engine.commit()
    assert result.next_due_ms == T0 + limits.DUE_RETRY_MS
    assert engine.snapshot().counts.get("q") is None
    advance(engine)
    assert drain(engine) == ["a"]


def test_a_full_queue_is_told_before_anything_is_published(engine):
    configure(engine, max_messages=3)
    send(engine, "here")
    stage(engine, ["a", "b"], name="two")
    stage(engine, ["c"], name="one")
    assert isinstance(publish(engine, "two", "one"), QueueFull)
    assert publish(engine, "two").published
    assert isinstance(publish(engine, "one", app="other"), QueueFull)  # what is on the way counts
    advance(engine)
    assert isinstance(publish(engine, "one", app="other"), QueueFull)
    assert drain(engine) == ["here", "a", "b"]
    assert publish(engine, "one", app="other").published


def test_a_queue_that_evicts_takes_a_publication_and_evicts_later(engine):
    configure(engine, max_messages=3, overflow=Overflow.DROP_OLDEST)
    send(engine, "here")
    send(engine, "there")
    stage(engine, ["a", "b"], name="two")
    stage(engine, ["1", "2", "3", "4"], name="four")
    assert isinstance(publish(engine, "four"), QueueFull)
    assert publish(engine, "two").published
    advance(engine)
    assert engine.snapshot().counts["q"].total == 4
    send(engine, "new")
    assert drain(engine) == ["a", "b", "new"]


def test_a_discarded_stage_is_gone_and_its_name_free(engine):
    stage(engine, ["a"])
    assert do(engine, DiscardStage("q", "s")) is True
    assert do(engine, DiscardStage("q", "s")) is False
    assert isinstance(publish(engine, "s"), StageMissing)
    assert stage(engine, ["b", "c"]) == Staged(2, 2)
    advance(engine)
    assert staged(engine) == (1, size(["b", "c"]))
    assert publish(engine, "s").published
    advance(engine)
    assert drain(engine) == ["b", "c"]


@on_sql
def test_a_stage_ends_a_day_after_its_last_page(engine, monkeypatch):
    monkeypatch.setattr(limits, "STAGES_ENDED_MAX", 1)
    stage(engine, ["a"], name="s")
    stage(engine, ["b"], name="t", now=T0)
    stage(engine, ["c"], name="t", page=1, now=T0 + 5)
    stage(engine, ["d"], name="u", now=T0 + 1)
    assert do(engine, EndStages(), T0 + DAY_MS - 1) == 0
    assert do(engine, EndStages(), T0 + DAY_MS + 1) == 1
    assert do(engine, EndStages(), T0 + DAY_MS + 1) == 1
    assert do(engine, EndStages(), T0 + DAY_MS + 1) == 0
    advance(engine, T0 + DAY_MS + 1)
    assert staged(engine) == (1, size(["b"], ["c"]))
    assert publish(engine, Stage("q", "t", 2), now=T0 + DAY_MS).published


def test_what_is_staged_is_bounded_as_it_is_stored(engine, monkeypatch):
    page = size(["aaa"])
    assert page > 3
    monkeypatch.setattr(limits, "STAGED_BYTES_MAX", 2 * page)
    monkeypatch.setattr(limits, "STAGES_MAX", 2)
    assert stage(engine, ["aaa"]) == Staged(1, 3)
    assert staged(engine) == (1, page)
    assert isinstance(stage(engine, ["bbb"], ["c"], page=1), StagingFull)
    assert stage(engine, ["aaa", "whatever"]) == Staged(1, 3)
    assert stage(engine, ["ccc"], name="t") == Staged(1, 3)
    assert isinstance(stage(engine, [], name="u"), StagingFull)
    publish(engine, "s")
    advance(engine)
    assert staged(engine) == (1, page)
    assert stage(engine, ["bbb"], name="u") == Staged(1, 3)


def test_the_last_version_of_an_app_is_remembered_for_a_year(engine, reader):
    year = limits.APP_LIFE_MS
    assert publish(engine, app="a", version=1).published
    assert publish(engine, app="b", version=4, now=T0 + 1).published
    assert publish(engine, app="a", version=2, now=T0 + 2).published
    assert last_version(reader, "a") == PublishedVersion("a", 2, T0 + 2)
    assert publish(engine, app="c", now=T0 + year).published
    assert not publish(engine, app="b", version=4, now=T0 + year).published
    assert publish(engine, app="c", version=2, now=T0 + year + 1).published
    assert last_version(reader, "b") is None
    assert publish(engine, app="c", version=3, now=T0 + year + 2).published
    assert last_version(reader, "a") is None
    assert engine.snapshot().staging.apps == 1


def test_an_app_of_one_job_is_forgotten_after_a_week(engine, reader):
    publish(engine, app="stays", version=9)
    publish(engine, app="job", once=True)
    publish(engine, app="other", now=T0 + 7 * DAY_MS - 1)
    assert last_version(reader, "job") is not None
    publish(engine, app="other", version=2, now=T0 + 7 * DAY_MS)
    assert last_version(reader, "job") is None
    assert last_version(reader, "stays").version == 9


def test_many_jobs_do_not_make_an_app_forgotten(engine, reader, monkeypatch):
    monkeypatch.setattr(limits, "APPS_MAX", 3)
    publish(engine, app="query", version=5)
    for number in range(5):
        assert publish(engine, app=f"job-{number}", now=T0 + number, once=True).published
    assert last_version(reader, "query").version == 5
    assert [last_version(reader, f"job-{number}") is None for number in range(5)] == [True] * 3 + [False] * 2
    assert publish(engine, app="second").published
    assert publish(engine, app="third").published
    stage(engine, ["a"])
    assert isinstance(publish(engine, "s", app="fourth"), TooManyApps)
    assert isinstance(publish(engine, "s", app="job", once=True), TooManyApps)
    assert publish(engine, "s", app="third", version=2).published
    assert engine.snapshot().staging.apps == 3


def test_an_empty_page_is_a_page(engine):
    assert stage(engine, []) == Staged(0, 0)
    assert stage(engine, ["a"]) == Staged(0, 0)
    assert publish(engine, "s") == Published(True, 0, 1)
    advance(engine)
    assert staged(engine) == (0, 0)


@on_sql
def test_publications_of_one_batch_name_a_bounded_number_of_stages(engine, monkeypatch):
    monkeypatch.setattr(limits, "PUBLISH_STAGES_MAX", 3)
    for name in "abc":
        stage(engine, [name], name=name)
    missing = (Stage("q", "a", 1), Stage("q", "b", 1), Stage("q", "missing", 1))
    first, second, third = (Publish(f"app {number}", 1, missing) for number in range(3))
    result = run(engine, first, second, third)
    assert isinstance(result.outcomes[0], StageMissing)
    assert result.outcomes[1:] == [DEFERRED, DEFERRED]
    result = run(engine, second, Publish("other", 1, (Stage("q", "c", 1),)))
    assert [type(outcome) for outcome in result.outcomes] == [StageMissing, Deferred]
