"""The commands and programs of docs/dead-letters.md, docs/history.md and docs/access.md run as they stand.

The ids that they show are those of messages and tasks that are made for them.
"""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from forq_trio import DeadLetterFilter, ForqClient, open_blocking_broker
from forq_trio.cli.commands import run
from support.in_process import in_process_server
from support.programs import run_program
from support.real_server import SECRET

ROOT = Path(__file__).parents[3]
MESSAGE = "0199164b-4dea-78d9-9b4c-c699d5037962"
TASK = "5f0c0d5e-9d0c-4b6e-8f0a-0c8f3a0f5f61"
ERRORS = ("no stock", "timed out after 12 s at /hooks/77", "no stock")


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def commands(page: str) -> list[str]:
    """The lines of its blocks, which are commands, without redirections, and with the answer to a question."""
    lines = [line for block in blocks(page, "sh") for line in block.splitlines() if line]
    assert all(line.startswith("forq ") for line in lines)
    return [re.sub(r" +# asks first$", " --yes", line.partition(" > ")[0]) for line in lines]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with in_process_server() as url:
        yield url


@pytest.fixture
def client(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[ForqClient]:
    monkeypatch.setenv("FORQ_URL", url)
    monkeypatch.setenv("FORQ_AUTH_SECRET", SECRET)
    with ForqClient() as client:
        failed(client)  # makes both queues
        client.purge("orders")
        client.purge("orders-dlq")
        yield client


def failed(client: ForqClient) -> str:
    """Make a dead letter of each error, and one that has expired; returns the id of the last error's."""
    client.produce("orders", "a sofa", ttl_ms=1)
    while not any(queue.queue == "orders-dlq" and queue.ready for queue in client.queues()):
        pass
    for error in ERRORS:
        client.produce("orders", "a sofa", max_attempts=1, attributes={"tenant": "acme"})
        (delivery,) = client.receive("orders", wait_ms=0)
        client.nack("orders", delivery, reason=error)
    return delivery.id


@pytest.mark.parametrize("command", commands("dead-letters.md"))
def test_a_command_on_dead_letters(
    command: str, client: ForqClient, capsys: pytest.CaptureFixture[str]
) -> None:
    message, task = failed(client), ""
    if TASK in command:
        task = client.start_redrive("orders-dlq", DeadLetterFilter(), rate_per_second=1).id
    elif "redrives" in command:
        client.start_redrive("orders-dlq", DeadLetterFilter(), dry_run=True)
    assert run(shlex.split(command.replace(MESSAGE, message).replace(TASK, task))[1:]) == 0
    shown = capsys.readouterr()
    assert shown.out
    if task:
        client.cancel_redrive("orders-dlq", task)


@pytest.mark.parametrize("command", commands("history.md"))
def test_a_command_on_the_history(
    command: str, client: ForqClient, capsys: pytest.CaptureFixture[str]
) -> None:
    sent = client.produce("orders", "a sofa")
    (delivery,) = client.receive("orders", wait_ms=0)
    client.discard("orders", delivery, reason="sent before")
    assert run(shlex.split(command.replace(MESSAGE, sent.id))[1:]) == 0
    assert "a sofa" in capsys.readouterr().out


def test_the_commands_on_tokens(client: ForqClient, capsys: pytest.CaptureFixture[str]) -> None:
    lines = commands("access.md")
    assert [run(shlex.split(line)[1:]) for line in lines] == [0] * len(lines)
    assert re.search(r"^forq_\S+$", capsys.readouterr().out, re.MULTILINE)
    assert [token.name for token in client.tokens()] == []


def test_the_program_on_dead_letters(tmp_path: Path) -> None:
    (program,) = blocks("dead-letters.md", "python")
    with open_blocking_broker(f"sqlite:///{tmp_path}/queue.db") as broker:
        failed(broker)
    done = run_program(program, tmp_path)
    assert (done.stdout, done.stderr) == ("4 moved, the others: running\n", "")


def test_the_program_that_reads_the_history(client: ForqClient, url: str, tmp_path: Path) -> None:
    (program,) = blocks("history.md", "python")
    for queue in ("orders", "orders-dlq"):
        client.purge_history(queue)
    client.produce("orders", "a sofa")
    client.ack("orders", client.receive("orders", wait_ms=0))
    done = run_program(program, tmp_path, FORQ_URL=url)
    assert done.stderr == ""
    assert re.fullmatch(r"\d+ acked a sofa\n", done.stdout)


def test_no_page_has_a_program_that_is_not_run() -> None:
    assert blocks("access.md", "python") == []
