"""The pages of schedules: each action once for real, who may do it, and the form that follows the typing."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
import trio
from playwright.sync_api import expect

from forq_trio import ForqClient, NewSchedule, ScheduleNotFound
from forq_trio.drawing import format
from forq_trio.model.clock import SystemClock
from forq_trio.model.commands import SaveSchedule
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.sqlite.engine import SqliteEngine
from forq_trio.ui import schedule_form
from forq_trio.ui.pages.schedule_edit import preview_of
from support.batches import do
from support.browser import axe, keyboard
from support.in_process_ui import in_process_ui
from support.real_server import SECRET
from support.ui_http import Markup, flat, logged_in

YEAR_2100 = 4_102_444_800_000
HTMX = {"HX-Request": "true"}
FORM = {
    "kind": "daily",
    "daily": "08:00",
    "time_zone": "Europe/Prague",
    "queue": "reports",
    "content": "daily",
}


class Desk:
    """Somebody at the pages of schedules."""

    def __init__(self, http: httpx.Client) -> None:
        self.http = http

    def get(self, path: str, **query: object) -> httpx.Response:
        return self.http.get(path, params=query)

    def post(self, path: str, **fields: object) -> httpx.Response:
        form = {"csrf": Markup(self.http.get("/").text).hidden["csrf"], **fields}
        headers = {"Origin": str(self.http.base_url).rstrip("/"), **HTMX}
        return self.http.post(path, data=form, headers=headers)


@pytest.fixture
def api(shared) -> Iterator[ForqClient]:
    """Without schedules, before and after."""
    with ForqClient(shared.url, SECRET) as client:

        def clear() -> None:
            for schedule in client.schedules(limit=1_000).schedules:
                client.delete_schedule(schedule.name)

        clear()
        yield client
        clear()


@pytest.fixture
def desk(shared, api) -> Iterator[Callable[..., Desk]]:
    with ExitStack() as opened:
        yield lambda key=SECRET: Desk(opened.enter_context(logged_in(shared.ui_url, key)))


def daily(queue: str = "reports", **members) -> NewSchedule:
    return NewSchedule(queue=queue, content="daily", daily=("08:00",), **members)


def test_without_a_schedule_the_page_says_how_to_make_one(desk):
    page = desk().get("/schedules").text
    assert "No schedule yet" in page
    assert "forq schedule add daily-report reports" in page


def test_a_schedule_is_made_changed_run_paused_and_deleted(desk, api):
    desk = desk()
    assert "New schedule" in desk.get("/schedule-new").text
    made = desk.post("/schedule-new", name="reports.daily", **FORM)
    assert (made.status_code, "Saved reports.daily" in made.headers["HX-Trigger"]) == (204, True)
    stored = api.schedule("reports.daily").schedule
    assert (stored.daily, stored.time_zone, stored.queue, stored.content) == (
        ("08:00",),
        "Europe/Prague",
        "reports",
        "daily",
    )
    assert "every day at 08:00 in Prague" in desk.get("/schedules/reports.daily").text
    again = desk.post("/schedule-new", name="reports.daily", **FORM)
    assert (again.status_code, "of that name already" in again.text) == (400, True)

    assert 'value="08:00"' in desk.get("/schedules/reports.daily/edit").text
    assert (
        desk.post("/schedules/reports.daily/edit", **FORM | {"kind": "every", "every": "90 s"}).status_code
        == 204
    )
    assert api.schedule("reports.daily").schedule.every_ms == 90_000

    ran = desk.post("/schedules/reports.daily/run")
    message = api.schedule("reports.daily").runs[0]
    assert message.message_id in ran.headers["HX-Trigger"]
    assert "Run by hand" in desk.get("/schedules/reports.daily").text
    assert desk.get(f"/queue/reports/message/{message.message_id}").status_code == 200

    desk.post("/schedules/reports.daily/pause", paused="1")
    assert api.schedule("reports.daily").schedule.paused
    assert "Resume schedule" in desk.get("/schedules/reports.daily").text
    assert "Paused <small>1" in flat(desk.get("/schedules").text)
    desk.post("/schedules/reports.daily/pause", paused="0")
    assert not api.schedule("reports.daily").schedule.paused

    assert "Messages already sent stay" in desk.http.get("/schedules/reports.daily/delete", headers=HTMX).text
    desk.post("/schedules/reports.daily/delete")
    with pytest.raises(ScheduleNotFound):
        api.schedule("reports.daily")
    assert desk.get("/schedules/reports.daily").status_code == 404


def test_a_wrong_form_says_so_at_the_field_and_saves_nothing(desk, api):
    desk = desk()
    wrong = desk.post("/schedule-new", name="s", **FORM | {"kind": "cron", "cron": "30 2 * * 7,8"})
    assert wrong.status_code == 400
    assert "characters 12 to 12" in wrong.text
    for name, text in (("a b", "1 to 128 characters"), ("..", "1 to 128 characters")):
        refused = desk.post("/schedule-new", **FORM | {"name": name})
        assert (refused.status_code, text in refused.text) == (400, True)
    assert api.schedules().schedules == []


def test_the_list_is_filtered_and_grouped(desk, api):
    api.save_schedule("alpha", daily("first"))
    api.save_schedule("beta", daily("second", paused=True))
    desk = desk()
    whole = desk.get("/schedules").text
    assert whole.index("As planned") > whole.index(">Paused</b>")
    assert "/schedules/beta" not in desk.get("/schedules", q="FIRST").text
    assert "/schedules/alpha" not in desk.get("/schedules", show="paused").text
    assert "No schedule matches" in desk.get("/schedules", q="nothing").text


def test_a_token_sees_the_schedules_of_its_queues_and_is_told_what_it_lacks(desk, api):
    api.save_schedule("mine", daily("my.reports"))
    api.save_schedule("other", daily("secret.reports"))
    for token in api.tokens():
        api.revoke_token(token.name)
    browse = desk(api.create_token("reader", ["browse"], queues="my.*").token)
    listed = browse.get("/schedules").text
    assert "/schedules/mine" in listed
    assert "other" not in listed
    assert browse.get("/schedules/other").status_code == 404
    assert ("New schedule" in listed, browse.get("/schedule-new").status_code) == (False, 403)
    assert browse.post("/schedule-preview", **FORM).status_code == 403
    page = browse.get("/schedules/mine").text
    assert "<code>schedule</code> and <code>produce</code>" in flat(page)
    assert "Run now" not in page
    for action in ("run", "pause", "delete", "edit"):
        assert browse.post(f"/schedules/mine/{action}", paused="1", **FORM).status_code == 403
    stopper = desk(api.create_token("stopper", ["browse", "schedule"], queues="my.*").token)
    page = stopper.get("/schedules/mine").text
    assert ("Pause schedule" in page, "Run now" in page) == (True, False)
    assert stopper.post("/schedules/mine/run").status_code == 403
    assert stopper.post("/schedules/mine/pause", paused="1").status_code == 204
    assert "New schedule" not in stopper.get("/schedules").text
    maker = desk(api.create_token("maker", ["browse", "schedule", "produce"], queues="my.*").token)
    assert "New schedule" in maker.get("/schedules").text
    assert maker.post("/schedule-new", name="new", **FORM | {"queue": "other.queue"}).status_code == 400
    assert maker.post("/schedule-new", name="new", **FORM | {"queue": "my.queue"}).status_code == 204
    assert api.schedule("new").schedule.made_by == "maker"
    api.save_schedule("mine", daily("my.reports", dead_letter_queue="other.dead"))
    assert maker.post("/schedules/mine/run").status_code == 403
    assert "Run now" not in maker.get("/schedules/mine").text
    for token in api.tokens():
        api.revoke_token(token.name)


def test_the_preview_follows_the_typing(api, shared, open_page):
    api.save_schedule(
        "sundays", NewSchedule(queue="q", content="c", cron="30 2 * * 7", time_zone="Europe/Prague")
    )
    page = open_page(shared)
    page.goto("/schedules/sundays")
    keyboard(page, "e")
    page.wait_for_url("**/schedules/sundays/edit")
    expect(page.locator("#preview")).to_contain_text("Sundays at 02:30 in Prague")
    page.fill("[name=cron]", "30 2 * * 7,8")
    expect(page.locator("#e-cron .caret")).to_have_text(" " * 11 + "^", use_inner_text=False)
    expect(page.locator("#save")).to_be_disabled()
    expect(page.locator("#preview")).to_contain_text("No times")
    expect(page.locator("#unread")).to_have_text("1 field cannot be as typed.")
    axe(page)
    page.get_by_role("radio", name="Every").check()
    page.fill("[name=every]", "90 s")
    expect(page.locator("#preview")).to_contain_text("Every 1 min 30 s")
    page.locator("#save:not([disabled])").click()
    page.wait_for_url("**/schedules/sundays")
    assert api.schedule("sundays").schedule.every_ms == 90_000


def test_the_preview_of_another_period_counts_from_when_the_schedule_was_made(desk, api):
    made_at = api.save_schedule("s", NewSchedule(queue="q", content="c", every="2h")).made_at
    desk = desk()
    page = desk.get("/schedules/s/edit").text
    assert f'datetime="{format.iso(made_at + 2 * 3_600_000)}"' in page
    typed = Markup(page).hidden | FORM | {"kind": "every", "every": "3 h"}
    assert f'datetime="{format.iso(made_at + 3 * 3_600_000)}"' in desk.post("/schedule-preview", **typed).text
    for more in ({"made_at": "9" * 15}, {"made_at": "9" * 5_000}, {"end": "2020-01-01"}):
        assert desk.post("/schedule-preview", **typed | more).status_code == 200


def test_others_go_on_while_a_preview_computes_rare_times():
    """The rarest runs take a millisecond each, of which the page looks at a hundred."""
    found = schedule_form.read(FORM | {"kind": "cron", "cron": "0 0 29 2 *"})
    passes = 0

    async def count_passes() -> None:
        nonlocal passes
        while True:
            await trio.lowlevel.checkpoint()
            passes += 1

    with in_process_ui() as ui:
        site = SimpleNamespace(broker=ui.broker, clock=SystemClock())

        async def preview() -> dict[str, Any]:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(count_passes)
                shown = await preview_of(site, found)
                nursery.cancel_scope.cancel()
            return shown

        assert len(ui.call(preview)["coming"]) == 5
    assert passes >= 90


def test_a_page_says_where_more_runs_were_missed_than_were_counted(tmp_path):
    path = tmp_path / "forq.db"
    missed = NewSchedule(queue="reports", content="daily", daily=("08:00",), missed="skip")
    with closing(SqliteEngine(str(path), EngineSettings(), "normal")) as engine:
        do(engine, SaveSchedule("old", missed), 0)
    with in_process_ui(f"sqlite:///{path}") as ui, logged_in(ui.ui_url, SECRET) as http:
        ui.call(ui.broker.pause_schedule, "old")  # behind the batch that notes what was missed
        text = flat(http.get("/schedules/old").text)
    assert "0 sent, more than 3,660 missed" in text
    assert "More than 3,660 missed while stopped, this one last" in text


def test_a_zone_that_is_the_readers_has_one_column(api, shared, open_page):
    for name, zone in (("here", "Europe/London"), ("there", "Europe/Prague")):
        api.save_schedule(name, daily(time_zone=zone, start=YEAR_2100))
    page = open_page(shared, timezone_id="Europe/London")
    for name, shown in (("here", 0), ("there", 6)):
        page.goto(f"/schedules/{name}")
        expect(page.locator(".you:visible")).to_have_count(shown)
        expect(page.locator("table").first).to_contain_text("Jan 2100 08:00")
        page.goto(f"/schedules/{name}/edit")
        expect(page.locator(".you:visible")).to_have_count(shown)


def test_open_pages_are_live_and_g_c_goes_to_the_list(api, shared, open_page):
    page = open_page(shared)
    page.goto("/dead")
    keyboard(page, "g c")
    expect(page.locator("h1")).to_have_text("No schedule yet")
    api.save_schedule("first", daily())
    expect(page.locator("h1")).to_have_text("1 of 1 schedule runs as planned")
    api.pause_schedule("first")
    expect(page.locator(".s-last")).to_contain_text(["Last run", "Paused"])
    page.goto("/schedules/first")
    api.resume_schedule("first")
    expect(page.get_by_role("button", name="Pause schedule")).to_be_visible()
    api.run_schedule("first")
    expect(page.locator(".tk")).to_contain_text("Run by hand")
