"""`forq send`."""

import json
import os
import threading
from pathlib import Path

import pytest

from client.fake_forq import FakeForq, error, serving
from client.fake_time import Clock
from forq_trio.cli.lines import NOT_UTF8
from forq_trio.client.types import PRODUCE_BATCH_MAX

from .conftest import Forq


def contents(fake: FakeForq, queue: str = "orders") -> list[str]:
    return [message.content for message in fake.queues.get(queue, [])]


def test_one_message(connected: Forq, fake: FakeForq):
    outcome = connected("send", "orders", '{"order": 1}')
    (stored,) = fake.queues["orders"]
    assert (stored.content, stored.options) == ('{"order": 1}', {})
    assert (outcome.code, outcome.out, outcome.err) == (0, f"sent {stored.id} to orders, sequence 1\n", "")


def test_one_message_as_json(connected: Forq, fake: FakeForq):
    outcome = connected("send", "orders", "x", "--json")
    assert json.loads(outcome.out) == {
        "id": fake.queues["orders"][0].id,
        "sequence": 1,
        "duplicate": False,
    }


def test_an_option_for_the_url_goes_before_the_variable(
    forq: Forq, fake: FakeForq, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("FORQ_URL", "http://nowhere.invalid")
    with serving(fake) as url:
        assert forq("send", "orders", "x", "--url", url).code == 0
    assert contents(fake) == ["x"]


@pytest.mark.parametrize("arguments", [(), ("-",)])
def test_lines_of_stdin(connected: Forq, fake: FakeForq, arguments: tuple[str, ...]):
    outcome = connected("send", "orders", *arguments, stdin="a\n\nkäse\nc".encode())
    assert contents(fake) == ["a", "käse", "c"]
    assert outcome.code == 0
    assert outcome.out.startswith("sent 3 messages to orders in ")
    assert outcome.err == ""


def test_lines_of_a_file_in_batches(connected: Forq, fake: FakeForq, tmp_path: Path):
    file = tmp_path / "lines"
    file.write_text("".join(f"line {number}\n" for number in range(2 * PRODUCE_BATCH_MAX + 1)))
    outcome = connected("send", "orders", "--file", str(file), "--json")
    assert json.loads(outcome.out) == {"queue": "orders", "sent": 2_001, "rejected": []}
    assert contents(fake)[::1000] == ["line 0", "line 1000", "line 2000"]
    assert [len(members["messages"]) for _, _, members in fake.requests] == [1_000, 1_000, 1]


def test_progress_on_a_terminal(connected: Forq, tmp_path: Path):
    file = tmp_path / "lines"
    file.write_text("a\nb\n")
    outcome = connected("send", "orders", "--file", str(file), terminal=True)
    assert "100%" in outcome.err
    assert "2 sent" in outcome.err
    assert outcome.out.startswith("sent 2 messages to orders")


def test_lines_that_cannot_be_sent_are_told_and_the_others_sent(connected: Forq, fake: FakeForq):
    outcome = connected("send", "orders", stdin=b"a\n\xff\nb\n" + b"x" * 300_000 + b"\nc\n")
    assert contents(fake) == ["a", "b", "c"]
    assert outcome.code == 1
    assert outcome.err.splitlines() == [
        "forq: line 2 was not sent: the request's body is not what the server expects",
        "forq: line 4 was not sent: the content is longer than 256 KiB of UTF-8",
    ]
    assert outcome.out.startswith("sent 3 messages to orders in ")


def test_what_the_server_rejects_is_told_by_line(connected: Forq, fake: FakeForq):
    outcome = connected("send", "orders", "--process-after", "1", "--json", stdin=b"a\n\nb\n\xff")
    assert json.loads(outcome.out) == {
        "queue": "orders",
        "sent": 0,
        "rejected": [
            {"line": 1, "code": "bad_request.body.processAfter.in_past"},
            {"line": 3, "code": "bad_request.body.processAfter.in_past"},
            {"line": 4, "code": NOT_UTF8},
        ],
    }
    assert outcome.code == 1


def test_many_rejected_lines_are_told_in_short(connected: Forq):
    outcome = connected("send", "orders", stdin=b"\xff\n" * 12)
    assert len(outcome.err.splitlines()) == 11
    assert outcome.err.splitlines()[-1] == "forq: … 12 lines in all were not sent"


def test_when_the_server_goes_away_it_is_said_how_far_it_got(connected: Forq, fake: FakeForq):
    fake.answers.append((200, {}, b'{"results":[' + b",".join([b'{"id":"a","sequence":1}'] * 1_000) + b"]}"))
    fake.answers.append(error(500, "internal"))
    outcome = connected("send", "orders", stdin=b"x\n" * 1_500)
    assert outcome.code == 1
    assert outcome.out.startswith("sent 1,000 messages to orders in ")
    assert outcome.err == "forq: the server met an error of its own; its log tells more (500 internal)\n"


def test_a_pipe_is_sent_along_as_it_comes(connected: Forq, fake: FakeForq, monkeypatch: pytest.MonkeyPatch):
    """The second line is written only after the first has arrived."""
    read_end, write_end = os.pipe()

    def write() -> None:
        os.write(write_end, b"first\nsec")
        with fake.changed:
            arrived = fake.changed.wait_for(lambda: contents(fake) == ["first"], timeout=10)
        os.write(write_end, b"ond\n" if arrived else b"\n")
        os.close(write_end)

    writer = threading.Thread(target=write)
    writer.start()
    outcome = connected("send", "orders", "--file", f"/dev/fd/{read_end}")
    writer.join()
    os.close(read_end)
    assert contents(fake) == ["first", "second"]
    assert outcome.code == 0


def test_due_times(connected: Forq, fake: FakeForq):
    for option, text in (
        ("--delay", "1.5s"),
        ("--delay", "2h"),
        ("--process-after", "2033-05-18T03:33:20Z"),
        ("--process-after", "2033-05-18T05:33:21+02:00"),
        ("--process-after", "2000000000123"),
    ):
        assert connected("send", "orders", "x", option, text).code == 0
    assert [message.options for message in fake.queues["orders"]] == [
        {"delayMs": 1_500},
        {"delayMs": 7_200_000},
        {"processAfter": 2_000_000_000_000},
        {"processAfter": 2_000_000_001_000},
        {"processAfter": 2_000_000_000_123},
    ]


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


def test_all_that_a_message_can_have(connected: Forq, fake: FakeForq):
    outcome = connected("send", "orders", "x", *EVERYTHING, "--dedup-id", "7", "--dedup-window", "2m")
    assert (outcome.code, outcome.err) == (0, "")
    (stored,) = fake.queues["orders"]
    assert stored.options == STORED | {"deduplicationId": "7", "deduplicationWindowMs": 120_000}


def test_every_line_has_it(connected: Forq, fake: FakeForq):
    assert connected("send", "orders", *EVERYTHING, stdin=b"a\nb\n").code == 0
    assert [message.options for message in fake.queues["orders"]] == [STORED, STORED]


def test_a_duplicate_is_told(connected: Forq, fake: FakeForq):
    assert connected("send", "orders", "a", "--dedup-id", "7").out.startswith("sent ")
    outcome = connected("send", "orders", "b", "--dedup-id", "7")
    stored = fake.queues["orders"][0].id
    assert (outcome.code, outcome.out) == (0, f"already sent {stored} to orders, sequence 1\n")
    assert json.loads(connected("send", "orders", "b", "--dedup-id", "7", "--json").out)["duplicate"] is True
    assert contents(fake) == ["a"]


def test_a_full_queue_is_tried_again_for_a_second(
    connected: Forq, fake: FakeForq, monkeypatch: pytest.MonkeyPatch
):
    clock = Clock(monkeypatch)
    status, headers, body = error(503, "forq.queue_full")
    fake.answers.extend([(status, headers | {"Retry-After": "1"}, body)] * 2)
    outcome = connected("send", "orders", "x")
    assert (outcome.code, clock.slept) == (1, [1.0])
    assert outcome.err == (
        "forq: the queue holds as many messages or bytes as its settings allow (503 forq.queue_full)\n"
    )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("x", "--file", __file__), "CONTENT and --file exclude each other"),
        (("x", "--delay", "1", "--process-after", "1"), "--process-after and --delay exclude each other"),
        (("x", "--delay", "soon"), "Invalid value for '--delay': 'soon' is not a duration such as 30, 1.5s"),
        (("x", "--process-after", "noon"), "'noon' is neither ISO 8601 nor milliseconds since the epoch"),
        (("--file", "/does/not/exist"), "Invalid value for '--file'"),
        (("--dedup-id", "7"), "--dedup-id is one message's: it would let only the first line through"),
        (("-", "--dedup-id", "7"), "--dedup-id is one message's"),
        (("x", "--attribute", "colour"), "'colour' is not of the form NAME=VALUE"),
        (("x", "--attribute", "=red"), "'=red' is not of the form NAME=VALUE"),
        (("x", "--attribute", "a=1", "--attribute", "a=2"), "'--attribute': two have the same name"),
        (("x", "--priority", "1001"), "1001 is not in the range 0<=x<=1000"),
        (("x", "--max-attempts", "0"), "0 is not in the range x>=1"),
    ],
)
def test_wrong_use(connected: Forq, fake: FakeForq, arguments: tuple[str, ...], sentence: str):
    outcome = connected("send", "orders", *arguments)
    assert outcome.code == 2
    assert sentence in outcome.err
    assert fake.requests == []


def test_a_batch_whose_answer_is_lost_is_told_by_its_lines(
    connected: Forq, fake: FakeForq, monkeypatch: pytest.MonkeyPatch
):
    def break_off(self: FakeForq, queue: str, message: dict[str, object]) -> dict[str, object]:
        raise ConnectionAbortedError

    monkeypatch.setattr(FakeForq, "store", break_off)
    outcome = connected("send", "orders", stdin=b"\na\nb\n")
    assert outcome.code == 3
    assert outcome.err.startswith("forq: whether lines 2 to 3 are stored is not known\nforq: the server at ")
    assert len(fake.requests) == 1
    assert outcome.out.startswith("sent 0 messages")


def test_typing_on_a_terminal_is_explained(connected: Forq, fake: FakeForq):
    outcome = connected("send", "orders", stdin=b"a\n", terminal=True)
    assert outcome.err == "Each line you type is sent as one message; end with Ctrl-D.\n"
    assert contents(fake) == ["a"]
