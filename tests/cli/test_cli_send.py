"""`forq send`."""

import json
import os
import threading
import time
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from client.fake_time import Clock
from forq_trio import ForqClient, MessageInfo
from forq_trio.model.limits import PRODUCE_BATCH_MAX
from support.proxy import LOST, Answer, Proxy

from .conftest import NOWHERE, Forq


def stored(client: ForqClient, queue: str) -> list[MessageInfo]:
    """The messages that are ready; there are no others."""
    found = client.peek(queue, limit=100)
    assert client.queue_stats(queue).total == len(found)
    return found


def contents(client: ForqClient, queue: str) -> list[str]:
    return [message.content for message in stored(client, queue)]


def test_one_message(connected: Forq, client: ForqClient, queue: str):
    outcome = connected("send", queue, '{"order": 1}')
    (message,) = stored(client, queue)
    assert (message.content, message.priority, message.attributes) == ('{"order": 1}', 100, {})
    sent = f"sent {message.id} to {queue}, sequence {message.sequence}\n"
    assert (outcome.code, outcome.out, outcome.err) == (0, sent, "")


def test_one_message_as_json(connected: Forq, client: ForqClient, queue: str):
    outcome = connected("send", queue, "x", "--json")
    (message,) = stored(client, queue)
    assert json.loads(outcome.out) == {"id": message.id, "sequence": message.sequence, "duplicate": False}


def test_an_option_for_the_url_goes_before_the_variable(
    forq: Forq, client: ForqClient, url: str, queue: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("FORQ_URL", NOWHERE)
    assert forq("send", queue, "x", "--url", url).code == 0
    assert contents(client, queue) == ["x"]


@pytest.mark.parametrize("arguments", [(), ("-",)])
def test_lines_of_stdin(connected: Forq, client: ForqClient, queue: str, arguments: tuple[str, ...]):
    outcome = connected("send", queue, *arguments, stdin="a\n\nkäse\nc".encode())
    assert contents(client, queue) == ["a", "käse", "c"]
    assert outcome.code == 0
    assert outcome.out.startswith(f"sent 3 messages to {queue} in ")
    assert outcome.err == ""


def test_lines_of_a_file_in_batches(
    connected: Forq, client: ForqClient, proxy: Proxy, queue: str, tmp_path: Path
):
    lines = [f"line {number}" for number in range(2 * PRODUCE_BATCH_MAX + 1)]
    file = tmp_path / "lines"
    file.write_text("\n".join(lines))
    outcome = connected("send", queue, "--file", str(file), "--json")
    assert json.loads(outcome.out) == {
        "queue": queue,
        "sent": 2_001,
        "rejected": [],
        "unknown": None,
        "nextLine": None,
    }
    assert [len(body["messages"]) for body in proxy.sent("batch")] == [1_000, 1_000, 1]
    received = [message.content for _ in range(21) for message in client.receive(queue, max_messages=100)]
    assert received == lines


def test_progress_on_a_terminal(connected: Forq, queue: str, tmp_path: Path):
    file = tmp_path / "lines"
    file.write_text("a\nb\n")
    outcome = connected("send", queue, "--file", str(file), terminal=True)
    assert "100%" in outcome.err
    assert "2 sent" in outcome.err
    assert outcome.out.startswith(f"sent 2 messages to {queue}")


def test_lines_that_cannot_be_sent_are_told_and_the_others_sent(
    connected: Forq, client: ForqClient, queue: str
):
    outcome = connected("send", queue, stdin=b"a\n\xff\nb\n" + b"x" * 300_000 + b"\nc\n")
    assert contents(client, queue) == ["a", "b", "c"]
    assert outcome.code == 1
    assert outcome.err.splitlines() == [
        "forq: line 2 was not sent: it is not UTF-8 (bad_request.body.invalid)",
        "forq: line 4 was not sent: the content is longer than 256 KiB of UTF-8"
        " (bad_request.body.content.exceeds_limit)",
    ]
    assert outcome.out.startswith(f"sent 3 messages to {queue} in ")


def test_what_the_server_rejects_is_told_by_line(connected: Forq, queue: str):
    outcome = connected("send", queue, "--process-after", "1", "--json", stdin=b"a\n\nb\n\xff")
    summary = json.loads(outcome.out)
    told = [summary[name] for name in ("queue", "sent", "unknown", "nextLine")]
    assert told == [queue, 0, None, None]
    assert [(each["line"], each["code"], each["field"]) for each in summary["rejected"]] == [
        (1, "bad_request.body.processAfter.in_past", "processAfter"),
        (3, "bad_request.body.processAfter.in_past", "processAfter"),
        (4, "bad_request.body.invalid", None),
    ]
    assert "ms in the past" in summary["rejected"][0]["message"]
    assert outcome.code == 1


def test_many_rejected_lines_are_told_in_short(connected: Forq, queue: str):
    outcome = connected("send", queue, stdin=b"\xff\n" * 12)
    assert len(outcome.err.splitlines()) == 11
    assert outcome.err.splitlines()[-1] == "forq: … 12 lines in all were not sent"


def test_when_the_server_goes_away_it_is_said_how_far_it_got(
    connected: Forq, client: ForqClient, proxy: Proxy, queue: str
):
    proxy.spoiled += [None, Answer.error("internal")]
    outcome = connected("send", queue, stdin=b"x\n" * 1_500)
    assert outcome.code == 1
    assert outcome.out.startswith(f"sent 1,000 messages to {queue} in ")
    assert outcome.err == (
        "forq: whether lines 1001 to 1500 are stored is not known: --from-line 1001 sends them again,"
        " --from-line 1501 leaves them out\n"
        "forq: an error of the server; whether the change was made is not known (internal)\n"
    )
    assert client.queue_stats(queue).total == 1_000


def test_a_pipe_is_sent_along_as_it_comes(connected: Forq, client: ForqClient, queue: str):
    """The second line is written only after the first has arrived."""
    read_end, write_end = os.pipe()
    arrived: list[str] = []

    def write() -> None:
        os.write(write_end, b"first\nsec")
        arrived.extend(message.content for message in client.receive(queue))
        os.write(write_end, b"ond\n")
        os.close(write_end)

    writer = threading.Thread(target=write)
    writer.start()
    outcome = connected("send", queue, "--file", f"/dev/fd/{read_end}")
    writer.join()
    os.close(read_end)
    assert arrived == ["first"]
    assert [message.content for message in client.peek(queue, limit=10)] == ["second"]
    assert outcome.code == 0


def test_a_delay(connected: Forq, client: ForqClient, queue: str):
    produced = json.loads(connected("send", queue, "x", "--delay", "1.5s", "--json").out)
    message = client.message(queue, produced["id"])
    assert message.process_after - message.received_at == 1_500


@pytest.mark.parametrize("after_ms", [0, 123])
def test_due_times(connected: Forq, client: ForqClient, queue: str, after_ms: int):
    """An hour from now, in each of the forms in which one may say so."""
    due_ms = (time.time_ns() // 1_000_000_000 + 3_600) * 1_000 + after_ms
    due = datetime.fromtimestamp(due_ms / 1_000, UTC)
    east = due.astimezone(timezone(timedelta(hours=2)))
    for text in (str(due_ms), due.isoformat(), due.isoformat().replace("+00:00", "Z"), east.isoformat()):
        produced = json.loads(connected("send", queue, "x", "--process-after", text, "--json").out)
        assert client.message(queue, produced["id"]).process_after == due_ms


EVERYTHING = (
    *("--delay", "0", "--ttl", "7d", "--priority", "0", "--group", "tenant 1", "--max-attempts", "3"),
    *("--attribute", "colour=red", "--attribute", "formula=a=b", "--attribute", "empty="),
    *("--dead-letter-queue", ""),
)
STORED = {
    "delayMs": 0,
    "ttlMs": 604_800_000,
    "priority": 0,
    "group": "tenant 1",
    "maxAttempts": 3,
    "attributes": {"colour": "red", "formula": "a=b", "empty": ""},
    "deadLetterQueue": "",
}


def test_all_that_a_message_can_have(connected: Forq, client: ForqClient, proxy: Proxy, queue: str):
    outcome = connected("send", queue, "x", *EVERYTHING, "--dedup-id", "7", "--dedup-window", "2m")
    assert (outcome.code, outcome.err) == (0, "")
    (body,) = proxy.sent("batch")
    window = {"deduplicationId": "7", "deduplicationWindowMs": 120_000}
    assert body == {"messages": [STORED | window | {"content": "x"}]}
    (message,) = stored(client, queue)
    assert (message.ttl_ms, message.priority, message.group) == (604_800_000, 0, "tenant 1")
    assert (message.max_attempts, message.dead_letter_queue) == (3, "")
    assert message.attributes == STORED["attributes"]


def test_every_line_has_it(connected: Forq, proxy: Proxy, queue: str):
    assert connected("send", queue, *EVERYTHING, stdin=b"a\nb\n").code == 0
    (body,) = proxy.sent("batch")
    assert body == {"messages": [STORED | {"content": "a"}, STORED | {"content": "b"}]}


def test_a_duplicate_is_told(connected: Forq, client: ForqClient, queue: str):
    assert connected("send", queue, "a", "--dedup-id", "7").out.startswith("sent ")
    outcome = connected("send", queue, "b", "--dedup-id", "7")
    (first,) = stored(client, queue)
    told = f"already sent {first.id} to {queue}, sequence {first.sequence}\n"
    assert (outcome.code, outcome.out) == (0, told)
    assert json.loads(connected("send", queue, "b", "--dedup-id", "7", "--json").out)["duplicate"] is True
    assert contents(client, queue) == ["a"]


def test_a_full_queue_is_tried_again_for_a_second(
    connected: Forq, client: ForqClient, queue: str, monkeypatch: pytest.MonkeyPatch
):
    client.configure(queue, max_messages=1)
    client.produce(queue, "a")
    clock = Clock(monkeypatch)
    outcome = connected("send", queue, "x")
    assert (outcome.code, clock.slept) == (1, [1.0])
    assert outcome.err == (
        "forq: the queue holds as many messages or bytes as its settings allow; nothing was stored"
        " (forq.queue_full)\n"
    )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("x", "--file", __file__), "CONTENT and --file exclude each other"),
        (("x", "--delay", "1", "--process-after", "1"), "--process-after and --delay exclude each other"),
        (("x", "--delay", "soon"), "Invalid value for '--delay': 'soon' is not a duration such as 30, 1.5s"),
        (("x", "--process-after", "noon"), "'noon' is neither ISO 8601 nor milliseconds since the epoch"),
        (("--file", "/does/not/exist"), "Invalid value for '--file'"),
        (("--dedup-id", "7"), "--dedup-id is for one message: only the first line would be stored"),
        (("x", "--attribute", "colour"), "'colour' is not of the form NAME=VALUE"),
        (("x", "--attribute", "a=1", "--attribute", "a=2"), "'--attribute': two have the same name"),
        (("x", "--priority", "1001"), "1001 is not in the range 0<=x<=1000"),
    ],
)
def test_wrong_use_is_told_before_any_server_is_asked(forq: Forq, arguments: tuple[str, ...], sentence: str):
    outcome = forq("send", "orders", *arguments, "--url", NOWHERE)
    assert outcome.code == 2
    assert sentence in outcome.err


def test_a_batch_whose_answer_is_lost_is_told_by_its_lines(
    connected: Forq, client: ForqClient, proxy: Proxy, queue: str
):
    proxy.spoiled.append(LOST)
    outcome = connected("send", queue, stdin=b"\na\nb\n")
    assert outcome.code == 3
    assert outcome.err.startswith(
        "forq: whether lines 2 to 3 are stored is not known: --from-line 2 sends them again,"
        " --from-line 4 leaves them out\nforq: the server at "
    )
    assert outcome.out.startswith("sent 0 messages")
    assert contents(client, queue) == ["a", "b"]


def test_typing_on_a_terminal_is_explained(connected: Forq, client: ForqClient, queue: str):
    outcome = connected("send", queue, stdin=b"a\n", terminal=True)
    assert outcome.err == "Each line you type is sent as one message; end with Ctrl-D.\n"
    assert contents(client, queue) == ["a"]
