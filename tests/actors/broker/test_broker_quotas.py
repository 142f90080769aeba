"""Quotas: how much of what all share is used, and how much of it by the key that uses most."""

from collections.abc import Iterator

import pytest

from forq_trio.broker.broker import Broker
from forq_trio.broker.quotas import quotas
from forq_trio.model import limits
from forq_trio.model.access.types import Key
from forq_trio.model.commands import RedrivePolicy
from forq_trio.model.errors import TooManyQueues
from forq_trio.model.holders import HOLDER, Holder, HolderKind
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.publishing.types import Stage
from forq_trio.model.quotas import Quota
from forq_trio.model.schedules.types import NewSchedule
from forq_trio.system import open_broker

MINE, OTHER = Key("t", "q"), Key("u", "q")


def quotas_of(broker: Broker) -> list[Quota]:
    return quotas(broker._writer.snapshot(), broker.redrive_tasks.running_by_key())


async def test_what_is_used_in_all_and_by_one_key(broker: Broker):
    for name in "abc":
        await broker.open_consumer("q", name, key=OTHER if name == "c" else MINE)
        await broker.stage("q", name, 0, [NewMessage("x")], key=MINE)
    for name, key in (("a", MINE), ("b", OTHER)):
        await broker.publish(name, 1, [Stage("q", name, 1)], key=key)
    found = {quota.name: quota for quota in quotas_of(broker)}
    assert found["consumers"] == Quota("consumers", 3, limits.CONSUMERS_MAX, 2, limits.CONSUMERS_A_KEY_MAX)
    assert found["stages"] == Quota("stages", 1, limits.STAGES_MAX, 1, limits.STAGES_A_KEY_MAX)
    assert found["apps"] == Quota("apps", 2, limits.APPS_MAX, 1, limits.APPS_A_KEY_MAX)
    with_token = HOLDER.set(Holder(HolderKind.TOKEN, "t"))
    await broker.save_schedule("s", NewSchedule(queue="q", content="x", every="1h"))
    HOLDER.reset(with_token)
    await broker.save_schedule("t", NewSchedule(queue="q", content="x", every="1h"))
    assert {quota.name: quota for quota in quotas_of(broker)}["schedules"] == Quota(
        "schedules", 2, limits.SCHEDULES_MAX, 1, limits.SCHEDULES_A_TOKEN_MAX
    )
    staged = found["staged_bytes"]
    assert staged.used == staged.key_used > 0
    assert found["leased_bytes"] == Quota(
        "leased_bytes", 0, limits.CONSUMER_PAGES_BYTES_MAX, 0, limits.CONSUMER_PAGES_BYTES_A_KEY_MAX
    )
    for name, content in (("a", "x"), ("b", "yy"), ("c", "zzz")):
        await broker.produce("leased", content)
        made = await broker.open_consumer("leased", name, key=OTHER if name == "c" else MINE)
        await broker.lease("leased", name, made.generation, 1)
    sizes = [(await broker.consumer("leased", name)).open_bytes for name in "abc"]
    leased = {quota.name: quota for quota in quotas_of(broker)}["leased_bytes"]
    assert (leased.used, leased.key_used) == (sum(sizes), sizes[0] + sizes[1])
    assert [found[name].used for name in ("redrives_running", "redrives")] == [0, 0]
    assert all(quota.key_limit * 2 <= quota.limit for quota in found.values())


@pytest.fixture
def narrow(monkeypatch) -> Iterator[None]:
    """The test runs for an access token that may make one queue."""
    monkeypatch.setattr(limits, "QUEUES_A_TOKEN_MAX", 1)
    token = HOLDER.set(Holder(HolderKind.TOKEN, "narrow"))
    yield
    HOLDER.reset(token)


async def test_a_token_makes_a_share_of_the_queues(broker: Broker, narrow, url, clock):
    await broker.produce("a", "x")
    await broker.produce("a", "y")
    with pytest.raises(TooManyQueues, match="this token has made 1 queues"):
        await broker.produce("b", "x")
    quota = next(quota for quota in quotas_of(broker) if quota.name == "queues")
    assert quota == Quota("queues", 1, limits.QUEUES_MAX, 1, limits.QUEUES_A_TOKEN_MAX)
    HOLDER.set(Holder(HolderKind.TOKEN, "other"))
    await broker.produce("b", "x")
    HOLDER.set(Holder(HolderKind.OWNER, ""))
    for queue in "cde":
        await broker.produce(queue, "x")
    assert broker.known.queue_names() == ["a", "b", "c", "d", "e"]


async def test_the_share_outlives_a_restart_and_a_deleted_queue_gives_it_back(url, clock, narrow):
    async with open_broker(url, durability="normal", clock=clock) as first:
        await first.configure("a", max_attempts=3)
    async with open_broker(url, durability="normal", clock=clock) as again:
        with pytest.raises(TooManyQueues):
            await again.produce("b", "x")
        await again.delete_queue("a")
        await again.produce("b", "x")


NAMING = {
    "a batch": lambda broker: broker.produce_many("new", [NewMessage("x")]),
    "a message": lambda broker: broker.produce("a", "x", dead_letter_queue="new"),
    "settings": lambda broker: broker.configure("new", max_attempts=3),
    "a setting": lambda broker: broker.configure("a", dead_letter_queue="new"),
    "a publication": lambda broker: broker.publish("app", 1, [Stage("new", "s", 1)]),
    "a redrive": lambda broker: broker.redrive("a-dlq", [], target="new"),
    "a copy": lambda broker: broker.resubmit("a-dlq", "0199164b-4dea-78d9-9b4c-c699d5037962", target="new"),
    "a task": lambda broker: broker.start_redrive("a-dlq", target="new"),
    "a receiver": lambda broker: broker.receive("a", wait_ms=0, redrive_policy=RedrivePolicy(5, "new")),
}


async def test_all_that_names_a_queue_makes_it(broker: Broker, narrow):
    await broker.produce("a", "x")
    for what, names in NAMING.items():
        with pytest.raises(TooManyQueues, match="the most for one"):
            await names(broker)
        assert not broker.known.has_queue("new"), what


async def test_of_messages_for_several_queues_those_for_new_ones_are_refused(broker: Broker, narrow):
    to_dead = NewMessage("x", dead_letter_queue="c")
    messages = [("a", NewMessage("x")), ("b", NewMessage("x")), ("a", NewMessage("y")), ("a", to_dead)]
    first, second, third, fourth = await broker.produce_across(messages)
    assert [type(each) for each in (second, fourth)] == [TooManyQueues, TooManyQueues]
    assert (first.sequence, third.sequence) == (1, 2)
