"""Quotas: how much of what all share is used, and how much of it by the key that uses most."""

from forq_trio.broker.broker import Broker
from forq_trio.model import limits
from forq_trio.model.access import Key
from forq_trio.model.messages import NewMessage
from forq_trio.model.quotas import Quota
from forq_trio.wire.publishing import Stage

MINE, OTHER = Key("t", "q"), Key("u", "q")


async def test_what_is_used_in_all_and_by_one_key(broker: Broker):
    for name in "abc":
        await broker.open_consumer("q", name, key=OTHER if name == "c" else MINE)
        await broker.stage("q", name, 0, [NewMessage("x")], key=MINE)
    for name, key in (("a", MINE), ("b", OTHER)):
        await broker.publish(name, 1, [Stage("q", name, 1)], key=key)
    quotas = {quota.name: quota for quota in broker.quotas()}
    assert quotas["consumers"] == Quota("consumers", 3, limits.CONSUMERS_MAX, 2, limits.CONSUMERS_A_KEY_MAX)
    assert quotas["stages"] == Quota("stages", 1, limits.STAGES_MAX, 1, limits.STAGES_A_KEY_MAX)
    assert quotas["apps"] == Quota("apps", 2, limits.APPS_MAX, 1, limits.APPS_A_KEY_MAX)
    staged = quotas["staged_bytes"]
    assert staged.used == staged.key_used > 0
    assert [quotas[name].used for name in ("redrives_running", "redrives")] == [0, 0]
    assert all(quota.key_limit * 2 <= quota.limit for quota in quotas.values())
