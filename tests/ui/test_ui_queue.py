"""The queue's page over HTTP: what it shows, what each action does, who may do it, and what bad input is answered."""

import html
import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import apsw
import httpx
import pytest

from forq_trio.model.access.types import Scope
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.storage.open import SQLITE_PREFIX
from support.in_process_ui import in_process_ui
from support.ui_http import Markup, flat, logged_in, until

SEQUENCE = re.compile(r'data-seq="(\d+)"')
Post = Callable[..., httpx.Response]


class Session:
    """Somebody who is logged in. post: an action as htmx sends it."""

    def __init__(self, http: httpx.Client, url: str) -> None:
        self.http = http
        self.url = url

    def get(self, path: str, **query: str) -> str:
        answer = self.http.get(path, params=query or None)
        assert answer.status_code == 200, answer.text
        return html.unescape(answer.text)

    def post(self, path: str, **fields: str) -> httpx.Response:
        csrf = Markup(self.http.get("/").text).hidden["csrf"]
        headers = {
            "Origin": self.url,
            "HX-Request": "true",
            "HX-Current-URL": f"{self.url}/queue/orders?state=ready",
        }
        return self.http.post(path, data={"csrf": csrf} | fields, headers=headers)


def toast_of(answer: httpx.Response) -> dict[str, str]:
    assert answer.status_code == 204, answer.text
    return json.loads(answer.headers["HX-Trigger"])["forq:done"]


def sequences(page: str) -> list[int]:
    return list(map(int, SEQUENCE.findall(page)))


@pytest.fixture
def login(ui, client) -> Iterator[Callable[..., Session]]:
    with ExitStack() as opened:

        def login(**key: str) -> Session:
            return Session(opened.enter_context(logged_in(ui.ui_url, **key)), ui.ui_url)

        yield login


@pytest.fixture
def admin(login) -> Session:
    return login()


@pytest.fixture
def browser(login, client) -> Session:
    """Somebody whose token may only browse, and only some queues."""
    return login(key=client.create_token("reader", scopes=[Scope.BROWSE], queues="orders*").token)


def test_messages_come_newest_first_and_the_pages_stay_stable_while_new_ones_arrive(admin, client) -> None:
    client.produce_many("orders", [NewMessage(f"number {number}") for number in range(120)])
    page = admin.get("/queue/orders")
    assert "50 of 120 shown, the rest loads as you scroll" in page
    seen = sequences(page)
    while following := re.search(r'hx-get="(/queue/orders/rows[^"]+)"', page):
        client.produce("orders", "new")
        page = admin.get(following[1])
        seen += sequences(page)
    assert len(seen) == 120
    assert seen == sorted(seen, reverse=True)
    assert "All 120 shown" in page


def test_each_tab_has_the_messages_of_its_state_and_ready_ones_come_as_they_are_delivered(
    admin, client
) -> None:
    low, high = (client.produce("orders", "x", priority=priority).sequence for priority in (1, 9))
    later = client.produce("orders", "later", delay_ms=600_000).sequence
    client.produce("orders", "taken", priority=99)
    taken = client.receive("orders")[0].sequence
    assert sequences(admin.get("/queue/orders", state="ready")) == [high, low]
    assert "Next to be delivered first" in admin.get("/queue/orders", state="ready")
    assert sequences(admin.get("/queue/orders", state="delayed")) == [later]
    in_flight = admin.get("/queue/orders", state="processing")
    assert sequences(in_flight) == [taken]
    assert "data-until=" in in_flight
    assert sequences(admin.get("/queue/orders")) == [taken, later, high, low]
    assert "No message is held back by its group." in admin.get("/queue/orders", state="held")


def test_a_search_by_text_attribute_and_id_says_how_far_it_looked(admin, client) -> None:
    found = client.produce("orders", "<i>needle</i> in hay", attributes={"tenant": "acme"})
    client.produce_many("orders", [NewMessage("hay") for _ in range(60)])
    page = admin.http.get("/queue/orders", params={"q": "needle"}).text
    assert sequences(page) == [found.sequence]
    assert "&lt;i&gt;<mark>needle</mark>&lt;/i&gt; in hay" in page
    assert "Found 1.</b> Searched all 61." in flat(page)
    for query in ("tenant:acme", found.id, found.id.upper()):
        assert sequences(admin.get("/queue/orders", q=query)) == [found.sequence]
    assert "No message matches." in admin.get("/queue/orders", q="nothing like it")
    second = re.search(r'hx-get="(/queue/orders/rows[^"]+)"', admin.get("/queue/orders", q="hay"))
    assert second is not None
    rest = admin.get(second[1])
    assert len(sequences(rest)) == 11
    assert "Found 61." in rest


@pytest.mark.parametrize(
    "query", [{"q": "x" * 2_000}, {"q": "a:" + "x" * 2_000}, {"q": "\ud800"}, {"shown": "x"}]
)
def test_a_search_that_cannot_be_is_told_on_the_page(admin, client, query) -> None:
    client.produce("orders", "x")
    text = {name: value.encode("utf-8", "surrogatepass") for name, value in query.items()}
    assert admin.http.get("/queue/orders", params=text).status_code == 200


def test_a_cursor_that_is_none_is_refused(admin, client) -> None:
    client.produce("orders", "x")
    assert admin.http.get("/queue/orders/rows", params={"cursor": "x"}).status_code == 400


def test_a_list_learns_which_of_its_messages_are_gone(admin, client) -> None:
    gone, here = (client.produce("orders", "x").sequence for _ in range(2))
    elsewhere = client.produce("others", "x").sequence
    client.ack("orders", [client.receive("orders")[0].receipt])
    asked = f"{gone},{here},{elsewhere},nonsense"
    assert admin.get("/queue/orders/present", seq=asked) == str(here)


def test_a_queue_is_paused_and_resumed(admin, client) -> None:
    client.produce("orders", "x")
    answer = toast_of(admin.post("/queue/orders/pause", paused="1"))
    assert answer["go"] == "/queue/orders?state=ready"
    assert client.queue_stats("orders").paused
    assert "Resume queue" in admin.get("/queue/orders")
    toast_of(admin.post("/queue/orders/pause", paused="0"))
    assert not client.queue_stats("orders").paused


def test_settings_are_saved_with_units_and_every_mistake_keeps_what_was_typed(admin, client) -> None:
    client.produce_many("orders", [NewMessage("x") for _ in range(3)])
    wrong = admin.post("/queue/orders/settings", lease_ms="soon", max_messages="2")
    assert wrong.status_code == 400
    assert 'value="soon"' in wrong.text
    assert 'id="e-lease_ms"' in wrong.text
    assert Markup(wrong.text).hidden
    dropping = {"lease_ms": "1 h 30 min", "max_messages": "2", "overflow": "drop_oldest"}
    asks = admin.post("/queue/orders/settings", **dropping)
    assert asks.status_code == 400
    assert "up to 1 message" in asks.text
    assert client.settings("orders").settings.lease_ms is None
    toast_of(admin.post("/queue/orders/settings", sure="1", **dropping))
    settings = client.settings("orders").settings
    assert (settings.lease_ms, settings.max_messages) == (5_400_000, 2)
    assert "1 h 30 min" in admin.get("/queue/orders")
    circle = {"dead_letter_queue": "orders.second"}
    client.configure("orders.second", dead_letter_queue="orders")
    refused = admin.post("/queue/orders/settings", **circle)
    assert refused.status_code == 400
    assert 'value="orders.second"' in refused.text
    client.reset_settings("orders.second")  # a queue without messages is not listed, so nobody else would
    toast_of(admin.post("/queue/orders/settings/reset"))
    assert client.settings("orders").settings.lease_ms is None


def test_a_fifo_queue_stays_one_and_the_field_says_why(admin, client) -> None:
    client.configure("steps.fifo", lease_ms=1_000)
    refused = admin.post("/queue/steps.fifo/settings", group_order="fair")
    assert refused.status_code == 400
    assert 'aria-describedby="e-group_order' in refused.text
    assert "A queue whose name ends in .fifo has strict groups." in refused.text
    assert client.settings("steps.fifo").effective.group_order == "strict"
    client.reset_settings("steps.fifo")


def test_the_remedy_of_a_short_lease_is_filled_in(admin, client) -> None:
    client.produce("orders", "x")
    assert 'value="1 min"' in admin.get("/queue/orders/settings", lease_ms="1 min")


def test_a_message_is_sent_with_all_it_can_have(admin, client) -> None:
    fields = {"content": "<b>hello</b>", "attributes": "tenant: acme", "priority": "7", "group": "g"}
    answer = toast_of(admin.post("/queue/orders/send", **fields, deduplication_id="d"))
    delivery = client.receive("orders")[0]
    assert (delivery.content, delivery.attributes) == ("<b>hello</b>", {"tenant": "acme"})
    assert (delivery.priority, delivery.group) == (7, "g")
    assert answer["href"] == f"/queue/orders/message/{delivery.id}"
    again = toast_of(admin.post("/queue/orders/send", **fields, deduplication_id="d"))
    assert again["toast"].startswith("It was sent before")
    fresh = toast_of(admin.post("/send", queue="fresh", content="x"))
    assert (fresh["go"], fresh["toast"]) == (
        "/queue/fresh",
        f"Sent message {delivery.sequence + 1:,} to fresh",
    )


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"queue": "a b", "content": "kept"}, "e-queue"),
        ({"queue": "orders-dlq", "content": "kept"}, "e-queue"),
        ({"queue": "orders", "content": "kept", "priority": "1001"}, "e-priority"),
        ({"queue": "orders", "content": "kept", "delay": "400 d"}, "e-delay"),
        (
            {"queue": "orders", "content": "kept", "attributes": "\n".join(f"{n}: x" for n in range(11))},
            "e-attributes",
        ),
        ({"queue": "orders", "content": "kept" * 65_537}, "e-content"),
    ],
)
def test_a_message_that_cannot_be_sent_is_kept_in_the_form(admin, fields, error) -> None:
    answer = admin.post("/send", **fields)
    assert answer.status_code == 400
    assert f'id="{error}"' in answer.text
    assert "kept" in answer.text


def test_a_purge_takes_the_name_and_the_count_and_runs_in_the_background(admin, client) -> None:
    client.produce_many("orders", [NewMessage("x") for _ in range(300)])
    dialog = admin.get("/queue/orders/purge")
    assert "Purge 300 messages" in dialog
    for fields in ({"name": "order", "count": "300"}, {"name": "orders", "count": "200"}, {"name": "orders"}):
        assert admin.post("/queue/orders/purge", **fields).status_code == 400
    assert client.queue_stats("orders").total == 300
    toast_of(admin.post("/queue/orders/purge", name="orders", count="300"))
    until(lambda: client.queue_stats("orders").total == 0)


def test_only_an_empty_queue_is_deleted(admin, client) -> None:
    client.produce("orders", "x")
    assert admin.post("/queue/orders/delete", name="orders").status_code == 400
    client.purge("orders")
    assert admin.post("/queue/orders/delete", name="order").status_code == 400
    assert toast_of(admin.post("/queue/orders/delete", name="orders"))["go"] == "/"
    unknown = admin.http.get("/queue/orders")
    assert unknown.status_code == 404
    assert "There is no queue called orders" in unknown.text


def test_one_goes_to_queues_and_messages(admin, client) -> None:
    sent = client.produce("orders", "x")
    client.produce("others", "x")
    message = f"/queue/orders/message/{sent.id}"
    goals = {
        "orders": "/queue/orders",
        "order": "/queue/orders",
        sent.id: message,
        sent.id.upper(): message,
        f"{sent.sequence:,}": message,
        "o": "/?q=o",
        "a b&c": "/?q=a+b%26c",
    }
    for text, goal in goals.items():
        assert admin.http.get("/go", params={"to": text}).headers["Location"] == goal, text
    lost = admin.http.get("/go", params={"to": "0199164b-4dea-78d9-9b4c-c699d5037962"})
    assert lost.status_code == 404
    assert "It is in none of 2 queues" in lost.text
    assert re.findall(r'value="([^"]+)"', admin.get("/go/names", to="th")) == ["others"]


def test_who_may_only_browse_sees_no_action_and_is_refused_each(browser, client) -> None:
    client.produce("orders", "x")
    client.produce("secrets", "x")
    page = browser.get("/queue/orders")
    for word in ("Send message", "Pause queue", "Purge…", "Edit</button>"):
        assert word not in page, word
    assert "takes the scope admin" in page.replace("<code>", "").replace("</code>", "")
    actions = ("pause", "settings", "settings/reset", "purge", "delete", "send")
    for action in actions:
        assert (
            browser.post(f"/queue/orders/{action}", name="orders", count="1", paused="1").status_code == 403
        ), action
    for dialog in ("settings", "purge", "delete", "send"):
        assert browser.http.get(f"/queue/orders/{dialog}").status_code == 403, dialog
    for path in ("", "/rows", "/present?seq=1"):
        assert browser.http.get(f"/queue/secrets{path}").status_code == 403, path
    assert browser.http.get("/live/poll/queue?queue=secrets").status_code == 403
    assert browser.get("/go/names", to="e").count("value=") == 1
    assert client.queue_stats("orders").total == 1
    assert not client.queue_stats("orders").paused


def test_the_live_view_has_the_cells_that_the_page_has(admin, client) -> None:
    client.produce(
        "live-cells", "x"
    )  # a queue of its own: the first ack of another test brings another chart
    page = admin.http.get("/queue/live-cells").text
    live = html.unescape(re.search(r'data-live-path="([^"]+)"', page)[1])
    cells = json.loads(admin.http.get(live.replace("/live/", "/live/poll/")).text)
    shown = set(re.findall(r'data-live="([^"]+)"', page))
    assert shown == cells.keys()


def test_a_rate_is_charted_and_said_with_what_waits_for_it(admin, client) -> None:
    client.configure("slow", rate={"count": 2, "periodMs": 86_400_000})
    client.produce_many("slow", [NewMessage(str(number)) for number in range(5)])
    page = admin.http.get("/queue/slow?state=ready").text
    assert "<dt>Held by it</dt><dd>3</dd>" in flat(page)
    assert "3 of 5 messages wait for the rate of the queue" in page
    assert "Held by the rate" in page
    assert "Leases ended a minute" not in page
    values = json.loads(
        html.unescape(re.search(r'data-live="chart:held"[^>]* data-values="([^"]+)"', page)[1])
    )
    assert [name for name, _ in values["lines"]] == ["Held"]
    client.configure("slow", rate=None)
    page = admin.http.get("/queue/slow").text
    assert 'data-live="limits" class="limits" hidden="">' in page
    assert "Held by the rate" not in page


RELEASE = "/queue/piped/consumers/archive/release"


def make_consumer(client, queue="piped") -> None:
    client.produce_many(queue, [NewMessage(content) for content in "abc"])
    generation = client.open_consumer(queue, "archive").generation
    client.lease(queue, "archive", generation, 1, max_messages=2)


def test_a_lease_is_shown_and_released(admin, client) -> None:
    make_consumer(client)
    page = admin.get("/queue/piped")
    assert "Pipeline consumers" in page
    assert "<dt>Leased</dt><dd>2, lease 1</dd>" in flat(page)
    dialog = admin.get(RELEASE)
    assert "2 messages of piped go back to the queue" in flat(dialog)
    assert "another lease" in toast_of(admin.post(RELEASE, number="7"))["toast"]
    assert client.consumer("piped", "archive").open_messages == 2
    assert toast_of(admin.post(RELEASE, number="1"))["toast"] == "Gave back 2 messages of archive"
    assert client.queue_stats("piped").ready == 3
    assert "Release…" not in admin.get("/queue/piped")
    client.delete_consumer("piped", "archive")
    assert admin.http.get(RELEASE).status_code == 404


def test_who_may_not_consume_sees_it_and_cannot_release_it(login, client) -> None:
    make_consumer(client, "watched")
    token = client.create_token("looker", scopes=[Scope.BROWSE], queues="watched").token
    looker = login(key=token)
    release = RELEASE.replace("piped", "watched")
    page = looker.get("/queue/watched")
    assert "archive" in page
    assert "Release…" not in page
    assert looker.http.get(release).status_code == 403
    assert looker.post(release, number="1").status_code == 403
    client.delete_consumer("watched", "archive")


def test_a_queue_that_a_token_makes_in_the_ui_counts_for_the_token(tmp_path) -> None:
    path = tmp_path / "forq.db"
    with in_process_ui(f"{SQLITE_PREFIX}{path}") as ui:
        key = ui.call(ui.broker.create_token, "maker", list(Scope)).token
        with logged_in(ui.ui_url, key=key) as http:
            toast_of(Session(http, ui.ui_url).post("/queue/anew/settings", lease_ms="1h"))
    with closing(apsw.Connection(str(path))) as connection:
        assert connection.execute("SELECT queue, made_by FROM queue_counts").fetchall() == [("anew", "maker")]
