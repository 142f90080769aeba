"""Contents in a pipe or a file are the bytes that were sent; on a terminal none of them drives it."""

import json
import os
import pty
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from forq_trio import ForqClient, NewMessage, NewSchedule, cli
from support.real_server import environment

from .conftest import Forq
from .test_cli_processes import command

CONTENTS = (
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07 \x1bc",
    "\x9b2J\x85\x7f",
    "one\rtwo",
    "a\r\nb",
    "\u2028between\u2029",
    "\n",
    "\n\n\x1b[2Jbelow\n\n",
    "no end of line",
    " \t blanks \t ",
    "\u202eabc \ud7ff\ufeff \U0001f600",
    "\x00nul",
)
Made = Callable[[ForqClient, str, str], tuple[str, ...]]


def _ready(client: ForqClient, queue: str, content: str) -> str:
    return client.produce(queue, content, attributes={"a": content} if content.strip() else None).id


def _receive(client: ForqClient, queue: str, content: str) -> tuple[str, ...]:
    _ready(client, queue, content)
    return "receive", queue, "--ack"


def _peek(client: ForqClient, queue: str, content: str) -> tuple[str, ...]:
    _ready(client, queue, content)
    return "peek", queue


def _export(client: ForqClient, queue: str, content: str) -> tuple[str, ...]:
    _ready(client, queue, content)
    return "export", queue


def _dead(client: ForqClient, queue: str, content: str) -> str:
    sent = _ready(client, queue, content)
    (message,) = client.receive(queue, wait_ms=0)
    client.nack(queue, [message.receipt], reason=content, final=True)
    return sent


def _dead_show(client: ForqClient, queue: str, content: str) -> tuple[str, ...]:
    return "dead", "show", f"{queue}-dlq", _dead(client, queue, content)


def _dead_list(client: ForqClient, queue: str, content: str) -> tuple[str, ...]:
    _dead(client, queue, content)
    return "dead", "list", f"{queue}-dlq"


def _finished(client: ForqClient, queue: str, content: str) -> str:
    sent = _ready(client, queue, content)
    client.purge(queue)
    return sent


def _history_show(client: ForqClient, queue: str, content: str) -> tuple[str, ...]:
    return "history", "show", queue, _finished(client, queue, content)


def _history_list(client: ForqClient, queue: str, content: str) -> tuple[str, ...]:
    _finished(client, queue, content)
    return "history", "list", queue


def _history_export(client: ForqClient, queue: str, content: str) -> tuple[str, ...]:
    _finished(client, queue, content)
    return "history", "export", "--queue", queue


def _key_show(client: ForqClient, queue: str, content: str) -> tuple[str, ...]:
    client.offer(queue, "k", content)
    return "key", "show", queue, "k"


def _key_list(client: ForqClient, queue: str, content: str) -> tuple[str, ...]:
    client.offer(queue, "k", content)
    return "key", "list", queue


def _schedule_show(client: ForqClient, queue: str, content: str) -> tuple[str, ...]:
    client.save_schedule(queue, NewSchedule(queue=queue, content=content, every="1h"))
    return "schedule", "show", queue


WHOLE = (_receive, _dead_show, _history_show, _key_show, _schedule_show)
"""Commands that print a whole content, at the end of what they print."""
LINES = (_export, _history_export)
"""Commands that print lines of JSON as the server made them."""
LISTS = (_peek, _dead_list, _history_list, _key_list)
"""Commands that print the beginning of each content."""


def crossed(*kinds: tuple[Made, ...]) -> pytest.MarkDecorator:
    """The first command of each kind with every content, and the others with one that has all of them.

    That all print by one function is a test of its own.
    """
    firsts = [kind[0] for kind in kinds]
    cases = [
        pytest.param(made, CONTENTS if made in firsts else ("".join(CONTENTS),), id=made.__name__)
        for kind in kinds
        for made in kind
    ]
    return pytest.mark.parametrize(("made", "contents"), cases)


def in_queues(queue: str, contents: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """A queue of its own for each content."""
    return ((f"{queue}-{number}", content) for number, content in enumerate(contents))


def content_in(line: str) -> object:
    """The content in an object of JSON, wherever it has it."""
    found = json.loads(line)
    return (found.get("message") or found.get("schedule") or found)["content"]


def test_all_commands_print_by_one_function():
    """`click.echo` leaves out parts of a content, and `print` writes what the locale makes of it."""
    modules = Path(cli.__file__).parent.glob("*.py")
    printing = {
        path.name
        for path in modules
        if re.search(r"click\.(secho|echo)\b|\bstdout\.(buffer|write)|^ +print\(", path.read_text(), re.M)
    }
    assert printing == {
        "output.py",
        "health.py",  # a sentence, which it makes printable itself
        "__init__.py",  # to stderr, where click is missing
        "spark.py",  # the log of a pipeline, to a file
    }


@crossed(WHOLE)
def test_a_content_in_a_pipe(
    connected: Forq, client: ForqClient, queue: str, made: Made, contents: tuple[str, ...]
):
    for each, content in in_queues(queue, contents):
        outcome = connected(*made(client, each, content))
        assert outcome.code == 0
        if made is _receive:
            assert outcome.out == f"{content}\n"
        elif made is _schedule_show:
            assert f"content          {content}\n" in outcome.out
        else:
            assert outcome.out.endswith(f"\n\n{content}\n")


@crossed(WHOLE, LINES, LISTS)
def test_a_content_as_json(
    connected: Forq, client: ForqClient, queue: str, made: Made, contents: tuple[str, ...]
):
    options = () if made in LINES else ("--json",)
    for each, content in in_queues(queue, contents):
        arguments = made(client, each, content)
        once = connected(*arguments, *options, terminal=made is not _receive)
        again = connected(*arguments, *options)
        assert content_in(once.out) == content
        assert made is _receive or content_in(again.out) == content


@pytest.mark.parametrize("made", LISTS)
def test_the_beginning_of_a_content_in_a_pipe(connected: Forq, client: ForqClient, queue: str, made: Made):
    content = "\x1b[31mred\x1b[0m\x9b2J"
    _, row = connected(*made(client, queue, content)).out.splitlines()
    assert row.split("\t")[-1] == content


@crossed(WHOLE, LINES, LISTS)
def test_on_a_terminal_no_content_drives_it(
    connected: Forq, client: ForqClient, queue: str, made: Made, contents: tuple[str, ...]
):
    """What is left are the ends of lines, tabs, and our own bold and dim."""
    for each, content in in_queues(queue, contents):
        drives_nothing(connected(*made(client, each, content), terminal=True).out)


@crossed(WHOLE, LISTS)
def test_on_a_terminal_no_content_in_json_drives_it(
    connected: Forq, client: ForqClient, queue: str, made: Made, contents: tuple[str, ...]
):
    for each, content in in_queues(queue, contents):
        drives_nothing(connected(*made(client, each, content), "--json", terminal=True).out)


def drives_nothing(out: str) -> None:
    for own in ("\x1b[1m", "\x1b[2m", "\x1b[0m"):
        out = out.replace(own, "")
    assert not [character for character in out if ord(character) in {*range(32), *range(127, 160)} - {9, 10}]


def test_a_reason_of_an_event_in_a_pipe(forq: Forq, connected: Forq, tmp_path: Path):
    """Whole, and on a terminal a line that fits it (test_cli_events.py)."""
    from support.in_process import in_process_server
    from support.real_server import SECRET

    reason = "\x1b[31m" + "no luck, " * 50
    with in_process_server(events=True) as url, ForqClient(url, SECRET) as client:
        client.produce("a", "one")
        (message,) = client.receive("a", wait_ms=0)
        client.nack("a", [message.receipt], reason=reason)
        lines = forq("events", "--url", url, "--kind", "nacked").out.splitlines()
    assert len(lines) == 1
    assert lines[0].endswith(reason.rstrip())


@pytest.mark.process
def test_all_that_was_sent_is_in_the_file(client: ForqClient, url: str, queue: str, tmp_path: Path):
    """A real process, with a locale that has none of these characters."""
    client.produce_many(queue, [NewMessage(content) for content in CONTENTS])
    env = environment(FORQ_URL=url, PYTHONIOENCODING="latin-1:strict", LC_ALL="C")
    arguments = command("receive", queue, "--max", str(len(CONTENTS)), "--ack")
    with open(tmp_path / "out", "wb") as out:
        subprocess.run(arguments, env=env, stdout=out, check=True, timeout=60)
    assert (tmp_path / "out").read_bytes() == "".join(f"{each}\n" for each in CONTENTS).encode()
    assert client.queue_stats(queue).total == 0


@pytest.mark.process
def test_what_nobody_read_comes_again(client: ForqClient, url: str, queue: str):
    """The reader of the pipe has gone before the first message."""
    client.produce_many(queue, [NewMessage(content) for content in CONTENTS])
    reader, writer = os.pipe()
    os.close(reader)
    try:
        arguments = command("receive", queue, "--max", "100", "--ack")
        done = subprocess.run(
            arguments, env=environment(FORQ_URL=url), stdout=writer, timeout=60, check=False
        )
    finally:
        os.close(writer)
    assert done.returncode == 1
    assert [each.content for each in client.receive(queue, max_messages=100, wait_ms=0)] == list(CONTENTS)


@pytest.mark.process
def test_a_real_terminal(client: ForqClient, url: str, queue: str):
    client.produce(queue, "a\x1b[2J\x9b2Jb")
    ours, theirs = pty.openpty()
    env = environment(FORQ_URL=url)
    process = subprocess.Popen(command("receive", queue, "--ack", "--json"), env=env, stdout=theirs)
    os.close(theirs)
    try:
        assert process.wait(60) == 0
        shown = os.read(ours, 65_536)
    finally:
        os.close(ours)
    assert rb'"a\u001b[2J\u009b2Jb"' in shown
