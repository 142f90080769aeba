"""A claim by attributes looks at a bounded number of messages in a batch, and goes on in the next one."""

import pytest

from conformance.script import claim, contents, do, receive, run, send
from forq_trio.model import limits
from forq_trio.model.commands import ProduceMany
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.where import where_of
from forq_trio.storage.engine import DEFERRED

MATCH = NewMessage("match", attributes={"region": "eu"})
EU = where_of({"region": "eu"})


@pytest.fixture(autouse=True)
def _short(monkeypatch):
    monkeypatch.setattr(limits, "CLAIM_SCAN_MAX", 4)
    monkeypatch.setattr(limits, "CLAIM_SCAN_PAGE", 3)


def send_others(engine, count):
    for _ in range(count):
        send(engine, "other")


def answers(engine, most=20):
    """The outcomes of a claim until it is not deferred."""
    found = []
    while len(found) < most:
        found.append(do(engine, claim(where=EU)))
        if found[-1] is not DEFERRED:
            break
    return found


def test_it_goes_on_where_it_left_off(engine):
    send_others(engine, 10)
    send(engine, "match", attributes={"region": "eu"})
    *deferred, found = answers(engine)
    assert (len(deferred), contents(found)) == (2, ["match"])
    assert answers(engine)[-1] == ()
    assert len(receive(engine, 20)) == 10


def test_a_parked_receiver_is_served_by_later_batches(engine):
    send_others(engine, 10)
    parked = {"q": [claim(where=EU)]}
    assert run(engine, ProduceMany("q", (MATCH,)), parked=parked).served == {}
    served = [run(engine, parked=parked).served for _ in range(3)]
    assert [contents(found) for each in served for _, found in each.get("q", ())] == [["match"]]


def test_steady_arrivals_before_the_place_do_not_keep_it_from_the_end(engine):
    send_others(engine, 20)
    send(engine, "match", attributes={"region": "eu"})
    for _ in range(8):
        send(engine, "urgent other", priority=500)
        found = do(engine, claim(where=EU))
        if found is not DEFERRED:
            break
    assert contents(found) == ["match"]
    send(engine, "urgent", attributes={"region": "eu"}, priority=600)
    assert contents(answers(engine)[-1]) == ["urgent"]


def test_another_claim_of_the_queue_is_not_kept_waiting(engine):
    send_others(engine, 10)
    outcomes = run(engine, claim(where=EU), claim(2)).outcomes
    assert outcomes[0] is DEFERRED
    assert contents(outcomes[1]) == ["other", "other"]


def test_queues_share_what_a_batch_looks_at(engine):
    for queue in "ab":
        for _ in range(10):
            send(engine, "other", queue=queue)
    send(engine, "match", queue="c", attributes={"region": "eu"})
    claims = [claim(where=EU, queue=queue) for queue in "abc"]
    assert run(engine, *claims).outcomes == [DEFERRED] * 3
    parked = {queue: [each] for queue, each in zip("abc", claims, strict=True)}
    served = [run(engine, parked=parked).served for _ in range(3)]
    assert [contents(found) for each in served for _, found in each.get("c", ())][:1] == [["match"]]


def test_every_condition_that_waits_comes_to_the_end(engine):
    send_others(engine, 8)
    send(engine, "match", attributes={"region": "eu"})
    waiting = [where_of({"region": str(number)}) for number in range(limits.RECEIVERS_OFFERED_MAX // 2 - 1)]
    parked = {"q": [*(claim(where=where) for where in waiting), claim(where=EU)]}
    assert run(engine, ProduceMany("q", (NewMessage("other"),)), parked=parked).served == {}
    served = [run(engine, parked=parked).served for _ in range(9)]
    assert [contents(found) for each in served for _, found in each.get("q", ())] == [["match"]]
