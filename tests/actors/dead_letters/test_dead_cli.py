"""`forq dead` against a real server: what it prints, and how it ends."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from cli.conftest import Forq
from forq_trio import ForqClient
from support.in_process import in_process_server
from support.real_server import SECRET, environment
from support.redrives import many_dead_letters

DEAD = "orders-dlq"
UNKNOWN = "00000000-0000-7000-8000-000000000000"
DRY = "dry run, nothing was changed"


@pytest.fixture
def url() -> Iterator[str]:
    with in_process_server() as url:
        yield url


@pytest.fixture
def client(url: str) -> Iterator[ForqClient]:
    with ForqClient(url, SECRET) as client:
        yield client


@pytest.fixture
def forq(monkeypatch: pytest.MonkeyPatch, url: str) -> Forq:
    for name in ("FORQ_CONFIG", "FORQ_DB_PATH", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {
        "FORQ_AUTH_SECRET": SECRET,
        "FORQ_URL": url,
        "COLUMNS": "200",
        "TERM": "xterm",
    }.items():
        monkeypatch.setenv(name, value)
    return Forq(monkeypatch)


def fail(client: ForqClient, *contents: str, attributes: dict[str, str] | None = None) -> list[str]:
    """Dead letters of these contents; their ids once they are all there."""
    sent = []
    for content in contents:
        sent.append(client.produce("orders", content, max_attempts=1, attributes=attributes).id)
        (delivery,) = client.receive("orders", wait_ms=0)
        client.nack("orders", [delivery.receipt], reason="no stock")
    # The sweep that moves them is done when a receiver of the dead-letter queue gets the last one.
    held: list[str] = []
    while len(held) < len(contents):
        held += [each.receipt for each in client.receive(DEAD, max_messages=100)]
    client.release(DEAD, held)
    return sent


def test_list_and_show(forq: Forq, client: ForqClient) -> None:
    first, second = fail(client, "one\tsofa", "two \x1b[31msofas", attributes={"tenant": "acme"})
    listed = forq("dead", "list", DEAD, "-n", "1")
    assert (listed.code, listed.err) == (0, "1 message found; searched 1 of 2, go on with --before 2\n")
    head, row = listed.out.splitlines()
    assert head.split("\t") == [
        "sequence",
        "id",
        "age",
        "from",
        "attempts",
        "reason",
        "last error",
        "content",
    ]
    cells = row.split("\t")
    assert [cells[0], cells[1], *cells[3:]] == [
        "2",
        second,
        "orders",
        "1",
        "max_attempts_reached",
        "no stock",
        "two \x1b[31msofas",
    ]
    found = forq(
        "dead", "list", DEAD, "--text", "one", "--attribute", "tenant=acme", "--max-age", "1h", "--json"
    )
    assert [json.loads(line)["id"] for line in found.out.splitlines()] == [first]
    same_error = forq("dead", "list", DEAD, "--error", "no stock", "--json")
    assert [json.loads(line)["id"] for line in same_error.out.splitlines()] == [second, first]
    assert forq("dead", "list", DEAD, "--error", "").code == 5
    nothing = forq("dead", "list", DEAD, "--reason", "message_expired", "--min-age", "0")
    assert (nothing.code, nothing.out) == (5, "")
    assert nothing.err == "0 messages found; searched 2 of 2\n"

    shown = forq("dead", "show", DEAD, second, terminal=True)
    assert shown.code == 0
    assert "came from        orders\n" in shown.out
    assert "no stock\n" in shown.out
    assert "attribute tenant acme\n" in shown.out
    assert shown.out.endswith("\ntwo \\x1b[31msofas\n")
    assert json.loads(forq("dead", "show", DEAD, second, "--json").out)["failures"][0]["reason"] == "no stock"
    assert forq("dead", "show", DEAD, UNKNOWN).code == 5


def test_a_queue_that_takes_none(forq: Forq) -> None:
    refused = forq("dead", "list", "orders")
    assert (refused.code, refused.out) == (1, "")
    assert "dead-letter queue" in refused.err


def test_redrive_by_id(forq: Forq, client: ForqClient) -> None:
    first, second = fail(client, "a", "b")
    moved = forq("dead", "redrive", DEAD, first, UNKNOWN)
    assert (moved.code, moved.out) == (5, "1 message moved\n")
    why = "it is not there, is processing, or has no queue to go to (not_found.message)"
    assert moved.err == f"forq: {UNKNOWN}: {why}\n"
    moved = forq("dead", "redrive", DEAD, second, "nonsense", "--target", "repair", "--json")
    assert moved.code == 1
    assert [json.loads(line)["ok"] for line in moved.out.splitlines()] == [True, False]
    assert client.message("repair", second).content == "b"


def test_redrive_all_that_match(forq: Forq, client: ForqClient) -> None:
    fail(client, "red 1", "blue", "red 2")
    dry = forq("dead", "redrive", DEAD, "--text", "red", "--dry-run")
    assert (dry.code, dry.out) == (0, f"{DRY}: 2 messages would be moved; searched 3 of 3\n")
    assert client.queue_stats("orders").ready == 0
    done = forq("dead", "redrive", DEAD, "--text", "red", "--rate", "1000", terminal=True)
    assert (done.code, done.out) == (0, "2 messages moved; searched 3 of 3\n")
    everything = json.loads(forq("dead", "redrive", DEAD, "--all", "--target", "repair", "--json").out)
    assert (everything["state"], everything["moved"], everything["target"]) == ("done", 1, "repair")
    assert forq("dead", "redrive", DEAD, "--all").code == 5
    tasks = forq("dead", "redrives", DEAD).out.splitlines()
    assert [line.split("\t")[2] for line in tasks] == ["state", "done", "done", "done", "done (dry run)"]
    assert forq("dead", "redrives", "other-dlq").code == 5


def test_delete_all_that_match(forq: Forq, client: ForqClient) -> None:
    fail(client, "red 1", "blue", "red 2")
    dry = forq("dead", "delete", DEAD, "--text", "red", "--dry-run")
    assert (dry.code, dry.out) == (0, f"{DRY}: 2 messages would be removed; searched 3 of 3\n")
    assert forq("dead", "delete", DEAD, "--text", "red").code == 2  # there is nobody to ask
    done = forq("dead", "delete", DEAD, "--text", "red", "--yes", "--rate", "1000")
    assert (done.code, done.out) == (0, "2 messages removed; searched 3 of 3\n")
    assert [message.content for message in client.search_dead_letters(DEAD).messages] == ["blue"]
    assert forq("dead", "delete", DEAD, UNKNOWN, "--all", "--yes").code == 2


def test_a_redrive_is_paused_resumed_cancelled_and_dismissed(forq: Forq, client: ForqClient) -> None:
    many_dead_letters(client, "orders")
    task = client.start_redrive(DEAD, rate_per_second=1)
    for option, state in [("--pause", "paused"), ("--resume", "running"), ("--cancel", "cancelled")]:
        changed = forq("dead", "redrives", DEAD, option, task.id, "--json")
        assert (changed.code, json.loads(changed.out)["state"]) == (0, state)
    assert forq("dead", "redrives", DEAD, "--resume", task.id).code == 1
    assert forq("dead", "redrives", DEAD, "--cancel", UNKNOWN).code == 5
    assert forq("dead", "redrives", DEAD, "--pause", task.id, "--cancel", task.id).code == 2
    assert forq("dead", "redrives", DEAD, "--dismiss", task.id).code == 0
    assert client.redrives(DEAD) == []


def test_redrives_that_make_no_sense(forq: Forq) -> None:
    for arguments in [
        (),
        (UNKNOWN, "--all"),
        (UNKNOWN, "--text", "x"),
        ("--all", "--text", "x"),
        (UNKNOWN, "--dry-run"),
        (UNKNOWN, "--rate", "1"),
        ("--all", "--rate", "0"),
        ("--all", "--rate", "10001"),
        ("--attribute", "x"),
        ("--attribute", "x=1", "--attribute", "x=2"),
    ]:
        assert forq("dead", "redrive", DEAD, *arguments).code == 2, arguments


@pytest.mark.process
def test_ctrl_c_cancels(forq: Forq, client: ForqClient, url: str) -> None:
    many_dead_letters(client, "orders")
    command = [sys.executable, "-m", "forq_trio.cli", "dead", "redrive", DEAD, "--all", "--rate", "1"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment(FORQ_URL=url), stdout=pipe, text=True) as process:
        # The second message comes a second after the first: by then the command knows which redrive is its own.
        for _ in range(2):
            assert client.receive("orders", wait_ms=30_000)
        os.kill(process.pid, signal.SIGINT)
        out, _ = process.communicate(timeout=120)
    assert process.returncode == 130
    assert out.startswith("cancelled: ")
    (task,) = client.redrives(DEAD)
    assert (task.state, task.moved) == ("cancelled", client.queue_stats("orders").ready + 2)


def test_edit(forq: Forq, client: ForqClient) -> None:
    (message_id,) = fail(client, "typo", attributes={"tenant": "acme", "trace": "7"})
    copied = forq("dead", "edit", DEAD, message_id, "--content", "-", stdin=b"fixed\n")
    copy = client.message("orders", copied.out.split()[-1])
    assert (copy.content, copy.attributes) == ("fixed\n", {"tenant": "acme", "trace": "7"})
    edited = forq(
        "dead", "edit", DEAD, message_id, "--attribute", "tenant=other", "--drop-attribute", "trace", "--remove",
        "--target", "repair", "--json",
    )  # fmt: skip
    copy = client.message("repair", json.loads(edited.out)["id"])
    assert (copy.content, copy.attributes) == ("typo", {"tenant": "other"})
    assert forq("dead", "edit", DEAD, message_id, "--content", "x").code == 5


def test_delete_asks_first(forq: Forq, client: ForqClient) -> None:
    first, second = fail(client, "a", "b")
    assert forq("dead", "delete", DEAD, first).code == 2
    kept = forq("dead", "delete", DEAD, first, stdin=b"n\n", terminal=True)
    assert (kept.code, kept.out) == (1, "")
    gone = forq("dead", "delete", DEAD, first, stdin=b"y\n", terminal=True)
    assert (gone.code, gone.out) == (0, "1 message removed\n")
    assert forq("dead", "delete", DEAD, first, second, "--yes").code == 5
    assert client.search_dead_letters(DEAD).total == 0
