"""The live hub: what is looked at is rendered once for all, not too often, and never queued up."""

import json
from contextlib import ExitStack

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from forq_trio.model import limits
from forq_trio.model.errors import ReadDeadlineExceeded
from forq_trio.telemetry.log import LogEvent
from forq_trio.ui.live.hub import LiveHub, TooManyDashboards
from forq_trio.ui.live.places import Places
from support.actors import elapse


class Counting:
    """A view whose cells the test sets, and that counts how often it was rendered."""

    def __init__(self):
        self.rendered = 0
        self.values = {"a": "1", "b": "1"}
        self.broken = False

    async def refresh(self):
        await trio.lowlevel.checkpoint()
        if self.broken:
            raise ReadDeadlineExceeded

    def cells(self):
        self.rendered += 1
        return dict(self.values)


@pytest.fixture
async def hub(nursery):
    hub = LiveHub()
    nursery.start_soon(hub.run)
    return hub


@pytest.fixture
async def exits():
    with ExitStack() as exits:
        yield exits


async def collect(hub, key, view, into):
    with hub.follow(key, lambda: view) as reader:
        while (data := await reader.next()) is not None:
            if data:
                into.append(json.loads(data))


async def test_a_reader_gets_all_cells_and_then_those_that_changed(autojump_clock, hub, nursery):
    view, got = Counting(), []
    nursery.start_soon(collect, hub, "k", view, got)
    await elapse(3.5)
    assert got == [{"a": "1", "b": "1"}]
    view.values = {"a": "1", "b": "2"}
    await elapse(2)
    assert got[1:] == [{"b": "2"}]
    nursery.cancel_scope.cancel()


async def test_a_view_is_rendered_once_a_second_however_many_look_at_it(autojump_clock, hub, nursery):
    view, others = Counting(), [[] for _ in range(20)]
    for each in others:
        nursery.start_soon(collect, hub, "k", view, each)
    await elapse(10.5)
    assert 10 <= view.rendered <= 12
    assert all(each == [{"a": "1", "b": "1"}] for each in others)
    assert hub.readers == 20
    nursery.cancel_scope.cancel()


async def test_without_readers_nothing_is_rendered(autojump_clock, hub, nursery):
    view = Counting()
    async with trio.open_nursery() as readers:
        readers.start_soon(collect, hub, "k", view, [])
        await elapse(2)
        readers.cancel_scope.cancel()
    rendered = view.rendered
    await elapse(60)
    assert view.rendered == rendered
    assert hub.readers == 0
    nursery.cancel_scope.cancel()


async def test_one_that_looks_later_gets_everything(autojump_clock, hub, nursery):
    view, first, second = Counting(), [], []
    nursery.start_soon(collect, hub, "k", view, first)
    await elapse(2)
    view.values = {"a": "5", "b": "1"}
    await elapse(2)
    nursery.start_soon(collect, hub, "k", view, second)
    await elapse(2)
    assert second == [{"a": "5", "b": "1"}]
    nursery.cancel_scope.cancel()


async def test_a_reader_that_does_not_keep_up_gets_the_newest_state_alone(
    autojump_clock, hub, nursery, exits
):
    view = Counting()
    reader = exits.enter_context(hub.follow("k", lambda: view))
    assert json.loads(await reader.next()) == {"a": "1", "b": "1"}
    for number in range(5):
        view.values = {"a": str(number), "b": str(number)}
        await elapse(2)
    assert json.loads(await reader.next()) == {"a": "4", "b": "4"}
    assert await reader.next() == b""
    nursery.cancel_scope.cancel()


async def test_a_view_that_cannot_be_read_is_tried_again(autojump_clock, hub, nursery, caplog):
    view, got = Counting(), []
    view.broken = True
    nursery.start_soon(collect, hub, "k", view, got)
    await elapse(3)
    assert got == []
    view.broken = False
    await elapse(2)
    assert got == [{"a": "1", "b": "1"}]
    nursery.cancel_scope.cancel()


async def test_a_view_with_a_fault_ends_neither_the_hub_nor_other_views(
    autojump_clock, hub, nursery, monkeypatch
):
    events = []
    monkeypatch.setattr("forq_trio.ui.live.hub.log", lambda event, **fields: events.append((event, fields)))
    faulty, good, got = Counting(), Counting(), []
    faulty.values = None
    nursery.start_soon(collect, hub, "faulty", faulty, [])
    nursery.start_soon(collect, hub, "good", good, got)
    await elapse(3)
    assert got == [{"a": "1", "b": "1"}]
    assert {event for event, _ in events} == {LogEvent.UI_VIEW_FAILED}
    assert "TypeError" in events[0][1]["error"]
    nursery.cancel_scope.cancel()


async def test_a_view_that_keeps_failing_is_logged_once(autojump_clock, hub, nursery, monkeypatch):
    events = []
    monkeypatch.setattr("forq_trio.ui.live.hub.log", lambda event, **fields: events.append(event))
    view = Counting()
    nursery.start_soon(collect, hub, "k", view, [])
    for failures in (1, 2):
        view.broken = True
        await elapse(5)
        assert events == [LogEvent.UI_VIEW_FAILED] * failures
        view.broken = False
        await elapse(5)
    nursery.cancel_scope.cancel()


async def test_a_session_looks_at_a_bounded_number_of_different_views(autojump_clock):
    places, views_max = Places(), limits.LIVE_VIEWS_A_SESSION_MAX
    with ExitStack() as streams:
        for number in range(views_max - 1):
            streams.enter_context(places.stream("one", f"k{number}"))
        streams.enter_context(places.stream("one", "k0"))
        places.poll("one", "polled")
        for refuse in (places.check, places.poll):
            with pytest.raises(TooManyDashboards):
                refuse("one", "one more")
        with pytest.raises(TooManyDashboards), places.stream("one", "one more"):
            pass
        places.check("one", "k0")
        places.check("another", "one more")
        await elapse(limits.LIVE_POLL_SECONDS)
        places.check("one", "one more")
    assert not places._until
    assert not places._streams


async def test_a_quiet_view_says_that_it_is_there(autojump_clock, hub, nursery, exits):
    reader = exits.enter_context(hub.follow("k", Counting))
    assert await reader.next()
    started = trio.current_time()
    assert await reader.next() == b""
    assert trio.current_time() - started == pytest.approx(limits.LIVE_BEAT_SECONDS, abs=2)
    nursery.cancel_scope.cancel()


async def test_those_that_poll_share_what_is_rendered(autojump_clock, hub, nursery):
    view = Counting()
    for _ in range(20):
        assert json.loads(await hub.state("k", lambda: view)) == {"a": "1", "b": "1"}
    assert view.rendered == 1
    await elapse(limits.LIVE_POLL_SECONDS / 2)
    view.values = {"a": "2"}
    await elapse(2)
    assert json.loads(await hub.state("k", lambda: view)) == {"a": "2"}
    await elapse(60)
    rendered = view.rendered
    await elapse(60)
    assert view.rendered == rendered
    nursery.cancel_scope.cancel()


async def test_many_readers_are_updated_less_often(autojump_clock, hub, nursery):
    """What sending takes is paid for with a pause: a thousand dashboards take no more than their share."""
    view, seconds = Counting(), 30
    for _ in range(limits.LIVE_READERS_MAX):
        nursery.start_soon(collect, hub, "k", view, [])
    for number in range(seconds):
        view.values = {"a": str(number)}
        await elapse(1)
    took = view.rendered * limits.LIVE_READERS_MAX * limits.LIVE_PUSH_SECONDS
    assert took <= seconds * limits.LIVE_SHARE_MAX * 1.5
    nursery.cancel_scope.cancel()


async def test_the_number_of_dashboards_is_bounded(autojump_clock, hub, nursery):
    view = Counting()
    for _ in range(limits.LIVE_READERS_MAX):
        nursery.start_soon(collect, hub, "k", view, [])
    await wait_all_tasks_blocked()
    with pytest.raises(TooManyDashboards):
        hub.check_place("k")
    nursery.cancel_scope.cancel()


async def test_the_number_of_views_is_bounded(autojump_clock, hub, nursery):
    view = Counting()
    for number in range(limits.LIVE_VIEWS_MAX):
        nursery.start_soon(collect, hub, str(number), view, [])
    await wait_all_tasks_blocked()
    with pytest.raises(TooManyDashboards):
        hub.check_place("one more")
    nursery.cancel_scope.cancel()


async def test_closing_ends_all_streams(autojump_clock, hub):
    view = Counting()
    async with trio.open_nursery() as readers:
        readers.start_soon(collect, hub, "k", view, [])
        await elapse(2)
        hub.close()
    assert hub.readers == 0
