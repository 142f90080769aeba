"""Receive by attributes: only messages that match, in claim order; the others stay for other claims."""

import pytest

from forq_trio.model.commands import ProduceMany, Release
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.where import where_of

from .script import claim, contents, do, nack, receipts, receive, run, send


def where(**wanted):
    return where_of(wanted)


EU = where(region="eu")


def picked(engine, conditions, most=10):
    return contents(do(engine, claim(most, where=conditions)))


@pytest.fixture
def regions(engine):
    for content, attributes in [
        ("us", {"region": "us"}),
        ("eu", {"region": "eu"}),
        ("eu free", {"region": "eu", "tier": "free"}),
        ("none", None),
    ]:
        send(engine, content, attributes=attributes)
    return engine


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"region": "eu"}, ["eu", "eu free"]),
        ({"region": {"not": "eu"}}, ["us"]),
        ({"region": {"not": "eu", "orAbsent": True}}, ["us", "none"]),
        ({"region": "eu", "tier": {"not": "free", "orAbsent": True}}, ["eu"]),
        ({"region": "asia"}, []),
        ({}, ["us", "eu", "eu free", "none"]),
    ],
)
def test_a_claim_takes_only_what_matches(regions, wanted, found):
    assert picked(regions, where_of(wanted)) == found
    rest = contents(receive(regions, 10))
    assert sorted([*found, *rest]) == ["eu", "eu free", "none", "us"]


def test_what_comes_back_before_the_place_is_found_again(regions):
    (first,) = do(regions, claim(1, where=EU))
    assert picked(regions, EU) == ["eu free"]
    assert picked(regions, EU) == []
    do(regions, Release("q", receipts([first])))
    assert picked(regions, EU) == ["eu"]
    (second,) = do(regions, claim(1, where=where(region="us")))
    nack(regions, receipts([second])[0], delay_ms=0)
    assert picked(regions, where(region="us")) == ["us"]


def test_a_message_of_higher_priority_comes_first_however_far_a_claim_has_looked(regions):
    assert picked(regions, EU, 1) == ["eu"]
    send(regions, "urgent", attributes={"region": "eu"}, priority=500)
    assert picked(regions, EU) == ["urgent", "eu free"]
    send(regions, "low", attributes={"region": "eu"}, priority=1)
    assert picked(regions, EU) == ["low"]
    send(regions, "usual", attributes={"region": "eu"})
    assert picked(regions, EU) == ["usual"]


def test_parked_receivers_get_what_matches_them_in_the_batch_that_sends_it(engine):
    parked = {"q": [claim(where=EU), claim(where=where(region="us")), claim()]}
    for attributes, receiver in [({"region": "us"}, 1), ({"region": "eu"}, 0), (None, 2)]:
        message = ProduceMany("q", (NewMessage("x", attributes=attributes),))
        served = run(engine, message, parked=parked).served
        assert [place for place, _ in served["q"]] == [receiver]


def test_claims_of_one_batch_share_what_is_there(regions):
    outcomes = run(regions, claim(10, where=EU), claim(10)).outcomes
    assert [contents(outcome) for outcome in outcomes] == [["eu", "eu free"], ["us", "none"]]
