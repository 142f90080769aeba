"""Which of the parked receivers a batch is offered."""

from collections.abc import Sequence
from math import inf

import pytest

from forq_trio.model import limits
from forq_trio.model.commands import Claim
from forq_trio.model.messages.where import where_of
from forq_trio.waiters import Call, ParkedReceivers

EU = where_of({"region": "eu"})


def offered(claims: Sequence[Claim]) -> list[Claim]:
    parked = ParkedReceivers(100)
    for claim in claims:
        assert parked.add(Call(claim), claim, inf)
    return [receiver.claim for receiver in parked.by_queue()["q"]]


def test_half_of_the_places_are_for_receivers_without_conditions(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many with conditions wait longer; in a line of their own they get no more."""
    monkeypatch.setattr(limits, "RECEIVERS_OFFERED_MAX", 6)
    picky, plain = Claim("q", 1, 1_000, where=EU), Claim("q", 1, 1_000)
    assert offered([picky] * 9 + [plain] * 9) == [picky] * 3 + [plain] * 3
    assert offered([plain] * 9 + [picky] * 9) == [plain] * 6
    assert offered([picky] * 9) == [picky] * 3
