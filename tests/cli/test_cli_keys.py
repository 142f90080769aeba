"""`forq send --key` and `forq key …`."""

import json

import pytest

from forq_trio import ForqClient

from .conftest import NOWHERE, Forq

HOUR_MS = 3_600_000


def test_what_became_of_an_offer_is_printed(connected: Forq, client: ForqClient, queue: str):
    first = connected("send", queue, "a", "--key", "k/1", "--kind", "mail", "--delay", "1h")
    found = client.keyed_message(queue, "k/1", "mail")
    assert found is not None
    message = found.message
    assert message.keyed is not None
    told = f"{message.id} in {queue}, sequence {message.sequence}, revision"
    assert (first.code, first.out) == (0, f"created {told} {message.keyed.revision}\n")
    assert connected("send", queue, "b", "--key", "k/1", "--kind", "mail", "--if-absent").out.startswith(
        "ignored"
    )
    last = connected("send", queue, "b", "--key", "k/1", "--kind", "mail", "--update")
    assert last.out.startswith(f"updated {told} ")
    assert [each.content for each in client.peek(queue)] == ["b"]


def test_an_offer_as_json(connected: Forq, client: ForqClient, queue: str):
    offered = json.loads(connected("send", queue, "a", "--key", "k", "--json").out)
    assert offered.keys() == {"outcome", "id", "sequence", "processAfter", "revision", "onceMore"}
    assert (offered["outcome"], offered["onceMore"]) == ("created", False)
    client.receive(queue)
    waits = connected("send", queue, "b", "--key", "k", "--once-more")
    assert waits.out.endswith(": it waits until the message in process is done\n")


def test_create_fails_where_the_key_is_pending(connected: Forq, queue: str):
    assert connected("send", queue, "a", "--key", "k", "--create").code == 0
    refused = connected("send", queue, "b", "--key", "k", "--create")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err == "forq: a message with this key is pending already (conflict.key_exists)\n"


def test_a_debounced_offer(connected: Forq, client: ForqClient, queue: str):
    outcome = connected("send", queue, "a", "--key", "k", "--debounce", "1h", "--max-wait", "2h")
    assert outcome.code == 0
    found = client.keyed_message(queue, "k")
    assert found is not None
    message = found.message
    assert message.keyed is not None
    assert message.keyed.mode == "debounce"
    assert message.process_after - message.keyed.first_offer_at == HOUR_MS
    assert message.keyed.max_wait_until == message.keyed.first_offer_at + 2 * HOUR_MS


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--if-absent",), "--if-absent is for an offer: it needs --key"),
        (("--kind", "k"), "--kind is for an offer: it needs --key"),
        (("--debounce", "1s"), "--debounce is for an offer: it needs --key"),
        (("--max-wait", "1s"), "--max-wait is for an offer: it needs --key"),
        (("--key", "k", "--update", "--create"), "--update and --create exclude each other"),
        (("--key", "k", "--once-more", "--debounce", "1s"), "--once-more and --debounce exclude each other"),
        (("--key", "k", "--max-wait", "1s"), "--max-wait is for --debounce"),
        (("--key", "k", "--debounce", "1s", "--delay", "1s"), "--delay and --debounce exclude each other"),
        (
            ("--key", "k", "--debounce", "1s", "--process-after", "1"),
            "--process-after and --debounce exclude each other",
        ),
        (
            ("--key", "k", "--dedup-id", "d"),
            "--dedup-id and --key exclude each other: a key is unique while it is pending",
        ),
    ],
)
def test_options_that_do_not_go_together(forq: Forq, arguments: tuple[str, ...], says: str):
    outcome = forq("send", "q", "m", *arguments, "--url", NOWHERE)
    assert (outcome.code, outcome.err.splitlines()[0]) == (2, f"forq: {says}")


def test_lines_have_no_key(forq: Forq):
    outcome = forq("send", "q", "--key", "k", "--url", NOWHERE, stdin=b"a\nb\n")
    assert (outcome.code, outcome.err.splitlines()[0]) == (
        2,
        "forq: --key is for one message: give it as CONTENT",
    )


def test_keys_are_listed(connected: Forq, client: ForqClient, queue: str):
    for key in ("b/2", "a", "b/1"):
        client.offer(queue, key, f"m {key}", delay_ms=HOUR_MS)
    client.offer(queue, "b/3", "z", kind="mail")
    lines = connected("key", "list", queue, "--prefix", "b/").out.splitlines()
    assert lines[0].split("\t") == ["key", "kind", "status", "due", "offers", "revision", "content"]
    rows = [line.split("\t") for line in lines[1:]]
    assert [(row[0], row[1], row[2], row[4], row[6]) for row in rows] == [
        ("b/1", "-", "delayed", "1", "m b/1"),
        ("b/2", "-", "delayed", "1", "m b/2"),
        ("b/3", "mail", "ready", "1", "z"),
    ]
    page = connected("key", "list", queue, "-n", "2", "--json")
    assert [json.loads(line)["keyed"]["key"] for line in page.out.splitlines()] == ["a", "b/1"]
    after = page.err.split("--after ")[1].strip().strip("'")
    rest = connected("key", "list", queue, "--after", after, "--json")
    assert [json.loads(line)["keyed"]["key"] for line in rest.out.splitlines()] == ["b/2", "b/3"]
    assert rest.err == ""
    nothing = connected("key", "list", queue, "--kind", "other")
    assert (nothing.code, nothing.out, nothing.err) == (5, "", f"No such key of {queue} is pending.\n")


def test_a_key_is_shown_with_what_waits(connected: Forq, client: ForqClient, queue: str):
    client.offer(queue, "..", "first", kind="mail", attributes={"colour": "red"})
    client.receive(queue)
    client.offer(queue, "..", "second", kind="mail", mode="onceMore")
    shown = connected("key", "show", queue, "..", "--kind", "mail")
    lines = {line[:16].strip(): line[17:] for line in shown.out.splitlines()}
    assert (lines["key"], lines["kind"], lines["status"]) == ("..", "mail", "processing")
    assert lines["then"].startswith("once more, due ")
    assert lines["attribute colour"[:16].strip()] is not None
    assert shown.out.endswith("\nfirst\n\nThen:\n\nsecond\n")
    as_json = json.loads(connected("key", "show", queue, "..", "--kind", "mail", "--json").out)
    assert (as_json["message"]["content"], as_json["onceMore"]["content"]) == ("first", "second")
    missing = connected("key", "show", queue, "..")
    assert (missing.code, missing.err) == (5, "forq: no message with this key is pending (not_found.key)\n")


def test_a_key_is_rescheduled(connected: Forq, client: ForqClient, queue: str):
    offered = client.offer(queue, "k", "m", delay_ms=HOUR_MS)
    moved = connected("key", "reschedule", queue, "k", "--delay", "0")
    assert moved.out.startswith(f"{offered.id} is due ")
    assert client.peek(queue)[0].content == "m"
    client.receive(queue)
    assert connected("key", "reschedule", queue, "k", "--delay", "0").code == 1
    assert connected("key", "reschedule", queue, "k", "--delay", "0", "--once-more").code == 5
    for arguments in ((), ("--delay", "1s", "--process-after", "1")):
        assert connected("key", "reschedule", queue, "k", *arguments).code == 2
    due = json.loads(connected("send", queue, "n", "--key", "l", "--delay", "1h", "--json").out)
    again = connected(
        "key", "reschedule", queue, "l", "--process-after", str(due["processAfter"] + 1), "--json"
    )
    assert json.loads(again.out)["processAfter"] == due["processAfter"] + 1


def test_a_key_is_dropped(connected: Forq, client: ForqClient, queue: str):
    client.offer(queue, "k", "m")
    assert connected("key", "drop", queue, "k").out == f"1 message of {queue} removed\n"
    again = connected("key", "drop", queue, "k", "--json")
    assert (again.code, json.loads(again.out)) == (5, {"queue": queue, "dropped": 0})
    missing = connected("key", "drop", queue, "k")
    assert (missing.code, missing.out, missing.err) == (5, "", "forq: no message with this key is pending\n")
    for arguments in ((), ("k", "--all"), ("--all", "--once-more"), ("k", "--confirm", queue)):
        assert connected("key", "drop", queue, *arguments).code == 2


def test_all_keys_of_a_kind_are_dropped_with_the_name_of_the_queue(
    connected: Forq, client: ForqClient, queue: str
):
    for key in ("k", "l"):
        client.offer(queue, key, "m")
    client.offer(queue, "k", "m", kind="mail")
    client.produce(queue, "no key")
    nobody = connected("key", "drop", queue, "--all")
    assert nobody.code == 2
    assert "needs --confirm" in nobody.err
    assert connected("key", "drop", queue, "--all", "--confirm", "yes").code == 1
    wrong = connected("key", "drop", queue, "--all", terminal=True, stdin=b"yes\n")
    assert wrong.code == 1
    assert wrong.err.endswith("forq: nothing was removed\n")
    assert client.queue_stats(queue).total == 4
    asked = connected("key", "drop", queue, "--all", terminal=True, stdin=f"{queue}\n".encode())
    assert (asked.code, asked.out) == (0, f"2 messages of {queue} removed\n")
    assert "keys without a kind" in asked.err
    last = connected("key", "drop", queue, "--all", "--kind", "mail", "--confirm", queue, "--json")
    assert json.loads(last.out) == {"queue": queue, "dropped": 1}
    assert client.queue_stats(queue).total == 1


def test_receive_shows_the_key(connected: Forq, client: ForqClient, queue: str):
    client.offer(queue, "k/1", "m", kind="mail")
    seen = connected("receive", queue, terminal=True)
    assert "mkey k/1\x1b" in seen.out
    assert "mkind mail\x1b" in seen.out
    client.offer(queue, "k/2", "m")
    assert json.loads(connected("receive", queue, "--json").out)["key"] == "k/2"
