"""A server that is killed gives no token of a rate back: what it delivered before counts for the next one."""

from itertools import combinations_with_replacement

import pytest

from forq_trio import ForqClient, NewMessage, Rate, RatePer
from support.real_server import SECRET, real_server

pytestmark = [pytest.mark.process, pytest.mark.tier2]

LEASE_MS = 3_600_000
RATE = Rate(6, 60_000)
ROUNDS = 3


@pytest.mark.parametrize("per", [RatePer.QUEUE, pytest.param(RatePer.GROUP, marks=pytest.mark.tier2)])
def test_kills_give_no_token_back(place, per):
    """The times are the server's own: a lease ends so long after its delivery as the client asked for."""
    delivered: list[int] = []
    for number in range(ROUNDS):
        with real_server(place) as server, ForqClient(server.url, SECRET) as client:
            if number == 0:
                client.configure("q", rate=Rate(RATE.count, RATE.period_ms, per))
                client.produce_many("q", [NewMessage(str(each), group="g") for each in range(40)])
            taken = client.receive("q", max_messages=4, lease_ms=LEASE_MS, wait_ms=0)
            delivered += [each.lease_until - LEASE_MS for each in taken]
            server.process.kill()
            server.process.wait()
    assert len(delivered) >= RATE.count
    for first, last in combinations_with_replacement(sorted(set(delivered)), 2):
        many = sum(first <= at <= last for at in delivered)
        assert many <= RATE.count + (last - first) * RATE.count // RATE.period_ms
