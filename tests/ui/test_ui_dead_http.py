"""The workbench through HTTP: each action once for real, who may do it, and what is refused."""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import httpx
import pytest

from forq_trio import ForqClient
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.ui.pages.workbench_actions import CONFIRM_TEXT
from support.real_server import SECRET
from support.redrives import MANY
from support.ui_http import Markup, flat, logged_in, until

HTMX = {"HX-Request": "true"}


@pytest.fixture
def api(shared) -> Iterator[ForqClient]:
    with ForqClient(shared.url, SECRET) as client:
        yield client


class Desk:
    """Somebody at the workbench of a queue of their own, with dead letters of two kinds.

    A task over MANY of them with one a second goes on for as long as the test.
    """

    def __init__(self, http: httpx.Client, api: ForqClient, name: str, count: int) -> None:
        self.http, self.api, self.name, self.queue = http, api, name, f"{name}-dlq"
        api.configure(name, max_attempts=1)
        if count:
            api.produce_many(name, [NewMessage(f"message {number}") for number in range(count)])
        taken = api.receive(name, max_messages=100, wait_ms=0)
        for place, reason in enumerate(("timeout", "410 Gone")):
            if receipts := [delivery.receipt for delivery in taken[place::2]]:
                api.nack(name, receipts, reason=reason)
        self.wait_for(count)
        self.ids = [message.id for message in api.search_dead_letters(self.queue).messages] if count else []

    def get(self, rest: str = "", **query: object) -> httpx.Response:
        return self.http.get(f"/dead/{self.queue}{rest}", params=query)

    def post(self, rest: str, **fields: object) -> httpx.Response:
        page = self.http.get("/").text
        form = {"csrf": Markup(page).hidden["csrf"], **fields}
        headers = {"Origin": str(self.http.base_url).rstrip("/"), **HTMX}
        return self.http.post(f"/dead/{self.queue}{rest}", data=form, headers=headers)

    def total(self, queue: str | None = None) -> int:
        info = self.api.queue_stats(queue or self.queue)
        return info.ready + info.processing + info.delayed

    def wait_for(self, total: int) -> None:
        """Until a task has left so many."""
        until(lambda: self.total() == total)


@pytest.fixture
def desk(shared, api, request) -> Iterator[Callable[..., Desk]]:
    """desk(count=6, key=SECRET): somebody at the workbench of a queue of this test's own."""
    with ExitStack() as opened:

        def desk(count: int = 6, key: str = SECRET) -> Desk:
            http = opened.enter_context(logged_in(shared.ui_url, key))
            return Desk(http, api, re.sub(r"[^a-z0-9]+", "-", request.node.name)[-50:], count)

        yield desk


def test_the_list_and_the_workbench_say_what_is_there(desk):
    desk = desk()
    assert f'href="/dead/{desk.queue}"' in desk.http.get("/dead").text
    page = desk.get().text
    assert ">6</b> dead letters" in flat(page)
    assert page.count("data-select>") == 6
    groups = desk.get("/groups").text
    assert "410 Gone" in groups
    assert "Attempts used up" in groups
    found = desk.get(error="410 Gone", q="sage 3").text
    assert "Found <b>1</b>. Searched all 6" in flat(found)
    assert "<mark>sage 3</mark>" in found


def test_a_search_goes_on_where_it_was_asked_to(desk):
    desk = desk()
    part = desk.get("/search", q="message", depth=4).text
    assert "Found <b>4</b>. Searched newest 4 of 6" in flat(part)
    state = Markup(part).hidden
    rest = desk.get("/search", q="message", **state | {"depth": 8}).text
    assert "Found <b>6</b>. Searched all 6" in flat(rest)
    rows = desk.get("/rows", q="message", **state).text
    assert rows.count("data-select>") == 4
    assert "forq:searched from:body" in rows


def test_selected_messages_are_redriven_at_once(desk):
    desk = desk()
    dialog = desk.post("/redrive/ask", id=desk.ids[:2]).text
    assert "Redrive 2 messages?" in dialog
    answer = desk.post("/redrive", id=desk.ids[:2])
    assert (answer.status_code, "Redrove 2 messages" in answer.headers["HX-Trigger"]) == (204, True)
    assert (desk.total(), desk.total(desk.name)) == (4, 2)
    (delivery,) = desk.api.receive(desk.name)
    assert delivery.attempts == 1


def test_one_in_process_is_left_and_said(desk):
    desk = desk()
    (held,) = desk.api.receive(desk.queue)
    answer = desk.post("/redrive", id=desk.ids)
    assert "Redrove 5 messages; 1 was left: in process" in answer.headers["HX-Trigger"]
    assert [message.id for message in desk.api.search_dead_letters(desk.queue).messages] == [held.id]


def test_all_that_match_are_redriven_to_another_queue_by_a_task(desk):
    desk = desk()
    state = Markup(desk.get("/search", error="timeout").text).hidden
    target = f"{desk.name}.again"
    answer = desk.post("/redrive", all=1, error="timeout", target=target, rate="1,000", **state)
    assert "Redriving 3 messages" in answer.headers["HX-Trigger"]
    desk.wait_for(3)
    assert desk.total(target) == 3
    assert "“timeout” to" in desk.get().text


def test_what_was_confirmed_is_counted_again(desk):
    desk = desk()
    state = Markup(desk.get("/search", error="timeout").text).hidden
    desk.api.delete_dead_letters(desk.queue, desk.ids)
    for action in ("/redrive", "/delete"):
        answer = desk.post(action, all=1, error="timeout", **state)
        assert answer.status_code == 400
        assert "It was 3 messages when this was asked, and it is 0 by now. Nothing was done." in answer.text
    assert not desk.api.redrives(desk.queue)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"target": "a b"}, "target"),
        ({"rate": "0", "all": "1", "found": "1"}, "from 1 to 10,000"),
        ({"target": "{queue}"}, "in this queue already"),
    ],
)
def test_a_redrive_that_cannot_be_is_explained_beside_its_field(desk, fields, problem):
    desk = desk(1)
    fields = {name: value.format(queue=desk.queue) for name, value in fields.items()}
    answer = desk.post("/redrive", id=desk.ids, **fields)
    assert (answer.status_code, problem in answer.text) == (400, True)
    assert desk.total() == 1


def test_selected_messages_and_all_that_match_are_deleted(desk):
    desk = desk()
    assert "Deleted 1 message" in desk.post("/delete", id=desk.ids[:1]).headers["HX-Trigger"]
    assert desk.total() == 5
    state = Markup(desk.get("/search", q="message").text).hidden
    assert "Delete 5 messages?" in desk.post("/delete/ask", all=1, q="message", **state).text
    assert "Deleting 5 messages" in desk.post("/delete", all=1, q="message", **state).headers["HX-Trigger"]
    desk.wait_for(0)


def test_all_are_deleted_once_the_name_is_typed_and_the_count_holds(desk):
    desk = desk(MANY)
    task = desk.api.start_redrive(desk.queue, rate_per_second=1)
    desk.api.pause_redrive(desk.queue, task.id)  # from now on the count holds
    dialog = desk.get("/delete-all").text
    assert CONFIRM_TEXT == (
        "Are you sure you want to permanently delete all messages? This cannot be undone."
    )
    assert CONFIRM_TEXT in dialog
    assert "is cancelled" in dialog
    count = desk.total()
    for fields in (
        {"name": desk.name, "count": count},
        {"name": desk.queue, "count": count + 5},
        {"name": desk.queue},
    ):
        assert desk.post("/delete-all", **fields).status_code == 400
    (task,) = desk.api.redrives(desk.queue)
    assert task.state == "paused"
    assert desk.post("/delete-all", name=desk.queue, count=count).status_code == 204
    desk.wait_for(0)
    assert [each.state for each in desk.api.redrives(desk.queue)][-1] == "cancelled"


def test_a_task_is_paused_resumed_cancelled_and_dismissed(desk):
    desk = desk(MANY)
    task = desk.api.start_redrive(desk.queue, rate_per_second=1)
    for verb, state in (("pause", "paused"), ("resume", "running"), ("cancel", "cancelled")):
        answer = desk.post(f"/tasks/{task.id}/{verb}")
        assert (answer.status_code, f"is-{state}" in answer.text) == (200, True)
        assert desk.api.redrive_info(desk.queue, task.id).state == state
    assert desk.post(f"/tasks/{task.id}/resume").status_code == 400
    assert desk.post(f"/tasks/{task.id}/dismiss").status_code == 200
    assert desk.post(f"/tasks/{task.id}/dismiss").status_code == 404


ACTIONS = (
    "/redrive/ask", "/redrive", "/delete/ask", "/delete", "/delete-all", "/edit",
    "/tasks/x/pause", "/tasks/x/resume", "/tasks/x/cancel", "/tasks/x/dismiss",
)  # fmt: skip


def test_who_may_browse_sees_no_button_and_may_do_nothing(desk, api):
    token = api.create_token("reader", ["browse"])
    desk = desk(key=token.token)
    page = desk.get().text
    assert "take the scope <code>redrive</code>" in flat(page)
    assert "hx-post" not in page
    assert "data-select>" not in page
    for action in ACTIONS:
        assert desk.post(action, id=desk.ids, name=desk.queue, count=6).status_code == 403
    assert desk.get("/delete-all").status_code == 403
    assert desk.total() == 6


def test_only_queues_that_take_dead_letters_have_a_workbench(desk):
    desk = desk(0)
    desk.queue = desk.name
    for answer in (desk.get(), desk.get("/rows"), desk.get("/delete-all"), *map(desk.post, ACTIONS)):
        assert (answer.status_code, "bad_request.dlq_only_operation" in answer.text) == (400, True)


def test_an_action_without_a_selection_or_with_a_bad_one_is_refused(desk):
    desk = desk(1)
    for fields in ({}, {"id": ["x"]}, {"id": [f"{desk.ids[0][:-4]}{n:04}" for n in range(1_001)]}):
        assert desk.post("/delete", **fields).status_code == 400
    assert desk.total() == 1


def test_a_page_without_dead_letters_says_so(desk):
    desk = desk(0)
    assert "Nothing is dead here" in desk.get().text
