"""Lifecycle events in the admin UI: the timeline of a message, also of one that has gone, and the System page."""

from collections.abc import Iterator

import pytest

from forq_trio.storage.engine import EngineSettings
from support.in_process_ui import InProcessUi, in_process_ui
from support.ui_http import logged_in


@pytest.fixture(scope="module")
def keeping() -> Iterator[InProcessUi]:
    """One that keeps events."""
    with in_process_ui(settings=EngineSettings(history=True, events=True)) as ui:
        yield ui


def test_the_timeline_is_that_of_the_events_and_stays(keeping) -> None:
    broker, call = keeping.broker, keeping.call
    with logged_in(keeping.ui_url) as browser:
        sent = call(broker.produce, "orders", "x")
        (message,) = call(broker.receive, "orders")
        call(broker.release, "orders", [message.receipt])
        path = f"/queue/orders/message/{sent.id}"
        assert "<b>Released</b>" in browser.get(path).text
        (message,) = call(broker.receive, "orders")
        call(broker.ack, "orders", [message.receipt])
        gone = browser.get(path)
        assert gone.status_code == 404
        assert "not there any more" in gone.text
        assert gone.text.index("<b>Acked</b>") < gone.text.index("<b>Released</b>") < gone.text.index("Sent")
        finished = browser.get(f"/queue/orders/history/message/{sent.id}")
        assert finished.text.index("<b>Acked</b>") < finished.text.index("<b>Released</b>")
        other = browser.get(f"/queue/other/message/{sent.id}")
        assert "Timeline" not in other.text


def test_the_system_page_says_which_there_are(keeping) -> None:
    with logged_in(keeping.ui_url) as browser:
        keeping.call(keeping.broker.produce, "more", "x")
        assert "Lifecycle events" in browser.get("/system").text
        last = keeping.call(keeping.broker.event_range).last
        assert f"to {last}" in browser.get("/system").text
