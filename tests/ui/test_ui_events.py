"""Lifecycle events in the admin UI: the timeline of a message, also of one that has gone, and the System page."""

from collections.abc import Iterator

import pytest

from forq_trio import ForqClient
from support.real_server import SECRET, RealServer, real_server
from support.ui_http import logged_in


@pytest.fixture(scope="module")
def keeping(tmp_path_factory) -> Iterator[RealServer]:
    """A server that keeps events."""
    path = tmp_path_factory.mktemp("keeping") / "forq.db"
    with real_server(path, FORQ_ENV="local", FORQ_EVENTS="on", FORQ_HISTORY="on") as server:
        yield server


def test_the_timeline_is_that_of_the_events_and_stays(keeping) -> None:
    with ForqClient(keeping.url, SECRET) as client, logged_in(keeping.ui_url) as browser:
        sent = client.produce("orders", "x")
        (message,) = client.receive("orders", wait_ms=0)
        client.release("orders", [message.receipt])
        path = f"/queue/orders/message/{sent.id}"
        assert "<b>Released</b>" in browser.get(path).text
        (message,) = client.receive("orders", wait_ms=0)
        client.ack("orders", [message.receipt])
        gone = browser.get(path)
        assert gone.status_code == 404
        assert "not there any more" in gone.text
        assert gone.text.index("<b>Acked</b>") < gone.text.index("<b>Released</b>") < gone.text.index("Sent")
        finished = browser.get(f"/queue/orders/history/message/{sent.id}")
        assert finished.text.index("<b>Acked</b>") < finished.text.index("<b>Released</b>")
        other = browser.get(f"/queue/other/message/{sent.id}")
        assert "Timeline" not in other.text


def test_the_system_page_says_which_there_are(keeping) -> None:
    with ForqClient(keeping.url, SECRET) as client, logged_in(keeping.ui_url) as browser:
        client.produce("more", "x")
        assert "Lifecycle events" in browser.get("/system").text
        assert f"to {client.event_range().last}" in browser.get("/system").text
