"""Servers on one database behind a load balancer: any of them answers any request (docs/postgres.md)."""

import threading

import pytest

from forq_trio import ForqClient
from support.processes import WAIT_SECONDS_MAX
from support.real_server import SECRET, real_server
from support.ui_http import Markup, logged_in, until

pytestmark = pytest.mark.process


@pytest.mark.tier2
def test_any_server_answers_whatever_another_one_began(empty_tables) -> None:
    with (
        real_server(empty_tables, ui=True, FORQ_ENV="local") as a,
        real_server(empty_tables, ui=True, FORQ_ENV="local") as b,
        ForqClient(a.url, SECRET) as at_a,
        ForqClient(b.url, SECRET) as at_b,
    ):
        at_a.produce("orders", "one")
        (held,) = at_b.receive("orders")
        assert [each.ok for each in at_a.extend("orders", [held])] == [True]
        assert [each.ok for each in at_a.ack("orders", [held])] == [True]

        got = []
        waiting = threading.Thread(target=lambda: got.extend(at_b.receive("orders", wait_ms=30_000)))
        waiting.start()
        with ForqClient(b.url, SECRET) as looking:
            until(lambda: looking.queue_stats("orders").waiting == 1)
        at_a.produce("orders", "two")
        waiting.join(WAIT_SECONDS_MAX)
        assert [each.content for each in got] == ["two"]

        with logged_in(a.ui_url) as http:
            until(lambda: http.get(f"{b.ui_url}/queue/orders").status_code == 200)
            page = http.get(f"{b.ui_url}/queue/orders")
            fields = Markup(page.text).hidden
            paused = http.post(
                f"{b.ui_url}/queue/orders/pause", data=fields | {"paused": "1"}, headers={"Origin": b.ui_url}
            )
            assert paused.status_code in (200, 204, 303), paused.text
        until(lambda: at_a.queue_stats("orders").paused)
