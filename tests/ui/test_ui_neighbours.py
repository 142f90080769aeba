"""What one token stored in its queues is on no page, and in no answer to a change, of another token.

Whoever has a session may look: a login takes `browse`, and the scopes of a token are for the same queues. So what a
change may show is decided by the queue alone.
"""

import re
from collections.abc import Iterator

import pytest

from forq_trio.model.access.types import Scope
from forq_trio.model.dead_letters.bodies import DeadLetterFilter
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.schedules.types import NewSchedule
from forq_trio.storage.engine import EngineSettings
from support.in_process_ui import InProcessUi, in_process_ui
from support.ui_http import Markup, is_stream, logged_in

CANARY = "canary"
SESSIONS = {"/login", "/logout", "/live/<name>"}
"""Log-ins and log-outs, and streams: what they send is what `/live/poll/<name>` answers."""


@pytest.fixture(scope="module")
def ui() -> Iterator[InProcessUi]:
    with in_process_ui(settings=EngineSettings(history=True, events=True)) as ui:
        yield ui


def fill(ui: InProcessUi) -> list[str]:
    """Messages in all states, a keyed one, dead letters, a history, a schedule and a redrive; returns an id of each."""
    broker = ui.broker
    message = NewMessage(CANARY, attributes={CANARY: CANARY}, max_attempts=1)
    for _ in range(3):
        dead = ui.call(broker.produce_message, "q", message).id
        (delivery,) = ui.call(lambda: broker.receive("q", max_messages=1))
        ui.call(lambda receipt=delivery.receipt: broker.nack("q", [receipt], reason=CANARY))
    finished = ui.call(broker.produce_message, "q", message).id
    (delivery,) = ui.call(lambda: broker.receive("q", max_messages=1))
    ui.call(lambda: broker.ack("q", [delivery.receipt]))
    ready = ui.call(broker.produce_message, "q", message).id
    schedule = NewSchedule(queue="q", content=CANARY, every="1h", attributes={CANARY: CANARY})
    ui.call(broker.save_schedule, "s", schedule)
    ui.call(broker.run_schedule, "s")
    ui.call(lambda: broker.start_redrive("q-dlq", DeadLetterFilter(text=CANARY), rate_per_second=1))
    return [dead, finished, ready]


def paths_of(rule: str, queue: str, ids: list[str]) -> Iterator[str]:
    """The paths of a rule, about a queue, messages and a schedule of others."""
    for message_id in ids if "<message_id>" in rule else ids[:1]:
        given = {"queue": queue, "message_id": message_id, "name": "s", "worker": ids[0]}
        yield re.sub(r"<(?:[^:<>]*:)?(\w+)>", lambda part, given=given: given.get(part[1], "x"), rule)


def answers(ui: InProcessUi, key: str, ids: list[str], *methods: str) -> Iterator[tuple[str, str, str]]:
    """Method, path and text of each answer to these methods."""
    with logged_in(ui.ui_url, key) as client:
        csrf = Markup(client.get("/").text).hidden["csrf"]
        form = {"csrf": csrf, "id": ids, "ids": ids, "name": "s", "queue": "q", "content": "x", "paused": "1"}
        for method, rule in ui.rules:
            if method not in methods or rule in SESSIONS or rule.startswith("/static"):
                continue
            for queue in ("q", "q-dlq", "mine") if "<queue>" in rule else ("q",):
                for path in paths_of(rule, queue, ids):
                    if method == "GET":
                        answer = client.get(path, params={"name": "s", "queue": queue, "to": ids[-1]})
                    else:
                        answer = client.post(path, data=form, headers={"Origin": ui.ui_url})
                    assert not is_stream(answer), path
                    assert answer.status_code < 500, (method, path, answer.text)
                    yield method, path, answer.text + str(answer.headers)


def test_nothing_of_others_is_on_any_page_or_in_any_answer_to_a_change(ui) -> None:
    ids = fill(ui)
    ui.call(ui.broker.produce_message, "mine", NewMessage("own"))
    key = ui.call(lambda: ui.broker.create_token("neighbour", list(Scope), "mine*")).token
    shown = [(method, path) for method, path, text in answers(ui, key, ids, "GET", "POST") if CANARY in text]
    assert shown == []
    looker = ui.call(lambda: ui.broker.create_token("looker", [Scope.BROWSE])).token
    seen = {path for _, path, text in answers(ui, looker, ids, "GET") if CANARY in text}
    assert {"/schedules/s", f"/queue/q/message/{ids[-1]}", "/dead/q-dlq", "/queue/q/history"} <= seen
