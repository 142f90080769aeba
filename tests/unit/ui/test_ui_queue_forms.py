"""The forms of a queue's page: what is typed becomes settings or a message, and every mistake is named."""

import pytest

from forq_trio.model import limits
from forq_trio.model.dead_letters.searches import MessageFilter
from forq_trio.model.messages.types import QueueCounts, Status
from forq_trio.model.queues.setting_values import Expiry, Overflow, Rate, RatePer
from forq_trio.model.queues.settings import QueueRules, QueueSettings, rules_of
from forq_trio.storage.engine import EngineSettings
from forq_trio.ui import curl, send_form, settings_form
from forq_trio.ui.pages.emptying import is_about
from forq_trio.ui.pages.jump import NAMES_MAX, names_with
from forq_trio.ui.pages.message_list import ListedMessages, marked, read_listed, read_query
from forq_trio.ui.settings_words import default_ones, set_ones
from support.settings import EVERYTHING

ALL = QueueSettings(**EVERYTHING)


class Config:
    queue_ttl_hours = 24
    dlq_ttl_hours = 168


def rules(queue="orders", settings=None) -> QueueRules:
    return rules_of(queue, settings, EngineSettings())


@pytest.mark.parametrize("queue", ["orders", "orders-dlq", "stack_lifo", "steps.fifo"])
def test_the_defaults_of_the_form_are_those_of_the_queue(queue) -> None:
    assert settings_form.default_rules(queue, Config()) == rules(queue)


@pytest.mark.parametrize(
    "settings",
    [
        QueueSettings(),
        ALL,
        QueueSettings(back_off=(0, 500, 1_000, 4_000_000), dead_letter_queue="", max_bytes=1_000),
    ],
)
def test_what_the_form_shows_is_read_as_the_settings_that_are(settings) -> None:
    read = settings_form.read("orders", settings_form.texts_of(settings))
    assert read.errors == {}
    assert settings.changed(read.change) == settings
    assert settings_form.rules_after(read.change, rules(), False) == rules(settings=settings)


@pytest.mark.parametrize(
    ("typed", "rate"),
    [
        ("10/s", Rate(10, 1_000)),
        ("10/s/group", Rate(10, 1_000, RatePer.GROUP)),
        ("100/5m/group", Rate(100, 300_000, RatePer.GROUP)),
        ("1,000 / 2 min / Group", Rate(1_000, 120_000, RatePer.GROUP)),
        ("5 in 1 s, each group", Rate(5, 1_000, RatePer.GROUP)),
        ("5 in 1 s, whole queue", Rate(5, 1_000)),
        ("5 in 1 min each group", Rate(5, 60_000, RatePer.GROUP)),
    ],
)
def test_a_rate_is_typed_in_words_or_as_in_the_command_line(typed, rate) -> None:
    assert settings_form.read("orders", {"rate": typed}).change.rate == rate


@pytest.mark.parametrize(
    "typed",
    [
        "10/s/queue",
        "10/group",
        "10/s/group, each group",
        "10/s/groups",
        "/s",
        "1/",
        "1/" + " " * 3_950 + "!" * 40,
    ],
)
def test_what_is_no_rate_is_said(typed) -> None:
    assert list(settings_form.read("orders", {"rate": typed}).errors) == ["rate"]


def test_an_empty_field_is_not_said_to_delete_dead_letters() -> None:
    """It stands for the default; a box beside it deletes them."""
    fields = {field.name: field for section in settings_form.SECTIONS.values() for field in section}
    assert settings_form.read("orders", {"dead_letter_queue": ""}).change.dead_letter_queue is None
    assert fields["dead_letter_queue"].help == "Where messages go when they fail or expire."


def test_a_number_of_bytes_shows_how_one_is_typed() -> None:
    fields = {field.name: field for section in settings_form.SECTIONS.values() for field in section}
    assert fields["max_bytes"].help.endswith(" As 10 MiB. Empty: no bound.")


def test_an_empty_form_sets_everything_back() -> None:
    read = settings_form.read("orders", {})
    assert ALL.changed(read.change) == QueueSettings()


def test_all_that_is_wrong_is_said_at_once() -> None:
    typed = {
        "lease_ms": "soon",
        "max_attempts": "0",
        "dead_letter_queue": "a b",
        "back_off": "exponential",
        "back_off_initial": "1 s",
        "back_off_factor": "0.5",
        "back_off_max": "0",
        "back_off_jitter": "101",
    }
    read = settings_form.read("orders", typed)
    assert read.change is None
    wrong = {
        "lease_ms",
        "max_attempts",
        "dead_letter_queue",
        "back_off_factor",
        "back_off_max",
        "back_off_jitter",
    }
    assert read.errors.keys() == wrong


@pytest.mark.parametrize(
    ("typed", "field", "words"),
    [
        ({"lease_ms": "soon"}, "lease_ms", "Type a number and a unit"),
        ({"lease_ms": "13 h"}, "lease_ms", "between 0 and"),
        ({"max_attempts": "0"}, "max_attempts", "between 1 and 1000"),
        ({"max_bytes": "much"}, "max_bytes", "Type a number of bytes"),
        ({"order": "random"}, "order", "Choose one"),
        ({"back_off": "list"}, "back_off_list", "Type one duration"),
        ({"back_off": "list", "back_off_list": "31 d"}, "back_off_list", "Each delay must"),
        ({"back_off": "exponential"}, "back_off_initial", "Type a number"),
        (
            {"back_off": "exponential", "back_off_initial": "1 s", "back_off_factor": "0.5"},
            "back_off_factor",
            "Factor must",
        ),
        (
            {"back_off": "exponential", "back_off_initial": "1 s", "back_off_jitter": "101"},
            "back_off_jitter",
            "Jitter must",
        ),
        ({"dead_letter_queue": "a b"}, "dead_letter_queue", "queue name"),
        ({"dead_letter_queue": "orders"}, "dead_letter_queue", "another queue"),
    ],
)
def test_a_mistake_is_named_beside_its_field_and_all_that_was_typed_is_kept(typed, field, words) -> None:
    read = settings_form.read("orders", typed | {"ttl_ms": "2 d"})
    assert read.change is None
    assert list(read.errors) == [field]
    assert words.lower() in read.errors[field].lower()
    assert read.texts == dict.fromkeys(settings_form.NAMES, "") | typed | {"ttl_ms": "2 d"}


def test_settings_that_drop_messages_say_how_many() -> None:
    counts = QueueCounts(ready=18_204, delayed=412, bytes=6_000)
    full = {"max_messages": 10_000, "overflow": Overflow.DROP_OLDEST}
    after = rules(settings=QueueSettings(**full))
    assert "up to 8,616 messages" in settings_form.losses(counts, rules(), after)[0]
    kept = rules(settings=QueueSettings(**full | {"overflow": Overflow.DEAD_LETTER}))
    assert settings_form.losses(counts, rules(), kept) == []
    assert settings_form.losses(counts, rules(), rules(settings=QueueSettings(max_messages=10_000))) == []
    nowhere = rules(settings=QueueSettings(dead_letter_queue=""))
    assert "18,616 messages" in settings_form.losses(counts, rules(), nowhere)[0]
    assert settings_form.losses(QueueCounts(), rules(), nowhere) == []
    expiring = rules(settings=QueueSettings(expiry=Expiry.DELETE))
    assert settings_form.losses(counts, rules(), expiring)[0].startswith("What expires is deleted")
    assert settings_form.losses(counts, expiring, expiring) == []


def test_settings_in_words() -> None:
    words = dict(row[:2] for row in set_ones(ALL, rules(settings=ALL)))
    assert words["Back-off"] == "1,500 ms × 1.5, at most 1 min, 25 % at random"
    assert words["Most messages"] == "100,000, then delete the oldest"
    assert default_ones(ALL, rules(settings=ALL)) == ""
    assert set_ones(QueueSettings(), rules()) == []
    assert default_ones(QueueSettings(), rules()).startswith(
        "Lease 5 min, 5 attempts, back-off 1, 5, 15, 30, 60 s,"
    )


def test_a_message_is_read() -> None:
    form = {
        "content": "a\r\nb ",
        "attributes": "tenant: acme\n\n trace : 00-a:b ",
        "priority": "7",
        "delay": "10 min",
        "group": "g",
        "deduplication_id": "d",
    }
    message = send_form.read(form).message
    assert (message.content, message.attributes) == ("a\nb ", {"tenant": "acme", "trace": "00-a:b"})
    assert (message.priority, message.delay_ms, message.group, message.deduplication_id) == (
        7,
        600_000,
        "g",
        "d",
    )
    plain = send_form.read({"content": ""}).message
    assert (plain.priority, plain.delay_ms, plain.attributes) == (limits.PRIORITY_DEFAULT, None, None)


@pytest.mark.parametrize(
    ("typed", "field"),
    [
        ({"priority": "high"}, "priority"),
        ({"delay": "10"}, "delay"),
        ({"attributes": "acme"}, "attributes"),
        ({"attributes": "a: 1\na: 2"}, "attributes"),
    ],
)
def test_a_mistake_in_a_message_is_named(typed, field) -> None:
    read = send_form.read(typed | {"content": "kept"})
    assert (read.message, list(read.errors), read.texts["content"]) == (None, [field], "kept")


def test_a_query_is_an_id_an_attribute_or_text() -> None:
    id_ = "0199164B-4dea-78d9-9b4c-c699d5037962"
    assert read_query(ListedMessages(q=id_)).id == id_.lower()
    assert read_query(ListedMessages(q="tenant: acme", state="held")).filter == MessageFilter(
        attributes={"tenant": "acme"}, status=Status.HELD
    )
    for text in ('{"tenant":"acme"}', "https://example.org", "acme", "a b:c"):
        assert read_query(ListedMessages(q=text)).filter == MessageFilter(text=text)
    assert read_query(ListedMessages(q="tenant:acme", as_text=True)).filter == MessageFilter(
        text="tenant:acme"
    )


def test_the_url_of_a_list_is_read_whatever_it_says() -> None:
    listed = ListedMessages(state="held", q="a", cursor="5", shown=50, searched=10_000)
    assert read_listed({**listed.query(), "cursor": "5", "shown": "50", "searched": "10000"}) == listed
    assert read_listed({"state": "x", "shown": "-1", "searched": "٣", "as": "x"}) == ListedMessages()


def test_hits_are_marked_and_everything_is_escaped() -> None:
    assert marked("<b>a</b>a", "a") == "&lt;b&gt;<mark>a</mark>&lt;/b&gt;<mark>a</mark>"
    assert marked("x<i>", "<i>") == "x<mark>&lt;i&gt;</mark>"
    assert marked("<i>", "") == "&lt;i&gt;"


def test_a_count_may_be_off_by_one_percent() -> None:
    assert is_about("1000", 1_010)
    assert not is_about("1000", 1_011)
    assert not is_about("0", 1)
    assert is_about("0", 0)
    assert not any(is_about(text, 1) for text in ("", "-1", "one", "1" * 20))


def test_names_that_begin_with_the_text_come_first() -> None:
    names = ["b.orders", "orders.b", "Orders.a", *(f"z.orders.{number}" for number in range(100)), "other"]
    assert names_with(names, "orders")[:3] == ["Orders.a", "orders.b", "b.orders"]
    assert len(names_with(names, "orders")) == NAMES_MAX


def test_the_command_to_copy_names_the_key_and_does_not_have_it() -> None:
    assert '"X-API-Key: $FORQ_AUTH_SECRET"' in curl.first_message("http://localhost:1", "orders")
