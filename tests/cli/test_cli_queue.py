"""`forq queue …`."""

import json
import re
from pathlib import Path

import msgspec
import pytest

from forq_trio import ExponentialBackOff, ForqClient, QueueSettings
from forq_trio.cli.declared_options import back_off, size_bytes
from forq_trio.model import durations
from forq_trio.model.queues.setting_values import Rate
from forq_trio.model.queues.settings import SETTINGS
from support.settings import EXAMPLES

from .conftest import NOWHERE, Forq

DEFAULTS = "setting\tvalue\tsource\n" + "".join(
    f"{SETTINGS[name].option}\t{example.default}\tdefault\n" for name, example in EXAMPLES.items()
)


def rows(text: str) -> dict[str, tuple[str, str]]:
    """Value and source by setting."""
    lines = [line.split("\t") for line in text.splitlines()[1:]]
    return {name: (value, source) for name, value, source in lines}


def test_the_defaults_of_a_queue_without_settings(connected: Forq, client: ForqClient, queue: str):
    client.produce(queue, "a")
    outcome = connected("queue", "show", queue)
    assert (outcome.code, outcome.out, outcome.err) == (0, DEFAULTS.format(queue=queue), "")


def test_every_setting_is_set_and_shown_in_the_same_words(connected: Forq, client: ForqClient, queue: str):
    options = [
        word for name, example in EXAMPLES.items() for word in (f"--{SETTINGS[name].option}", example.typed)
    ]
    outcome = connected("queue", "set", queue, *options)
    made = f"{queue} is a new queue, with {len(EXAMPLES)} settings\n"
    assert (outcome.code, outcome.out, outcome.err) == (0, made, "")
    *values, paused, table, sqs = map(
        msgspec.to_builtins, msgspec.structs.astuple(client.settings(queue).settings)
    )
    assert values == [msgspec.to_builtins(example.value) for example in EXAMPLES.values()]
    assert (paused, table, sqs) == (False, None, None)
    assert rows(connected("queue", "show", queue).out) == {
        SETTINGS[name].option: (example.typed, "set") for name, example in EXAMPLES.items()
    }


def test_only_what_is_named_is_changed(connected: Forq, client: ForqClient, queue: str):
    connected("queue", "set", queue, "--lease", "1s", "--dead-letter-queue", "")
    outcome = connected("queue", "set", queue, "--unset", "lease", "--order", "lifo")
    assert outcome.out == f"2 settings of {queue} changed\n"
    assert client.settings(queue).settings == QueueSettings(dead_letter_queue="", order="lifo")
    shown = rows(connected("queue", "show", queue).out)
    assert {name: shown[name] for name in ("lease", "dead-letter-queue", "order")} == {
        "lease": ("5m", "default"),
        "dead-letter-queue": ("(none)", "set"),
        "order": ("lifo", "set"),
    }


def test_a_back_off_by_formula(connected: Forq, client: ForqClient, queue: str):
    text = "initial=1s,factor=1.5,max=1h,jitter=0.2"
    connected("queue", "set", queue, "--back-off", text)
    assert client.settings(queue).settings.back_off == ExponentialBackOff(1_000, 1.5, 3_600_000, 0.2)
    assert rows(connected("queue", "show", queue).out)["back-off"] == (text, "set")
    assert back_off("initial=5") == ExponentialBackOff(5_000)


def test_settings_as_json(connected: Forq, queue: str):
    connected("queue", "set", queue, "--max-attempts", "7")
    connected("queue", "pause", queue)
    shown = json.loads(connected("queue", "show", queue, "--json").out)
    assert (shown["queue"], shown["settings"]["maxAttempts"], shown["settings"]["paused"]) == (queue, 7, True)
    assert (shown["effective"]["maxAttempts"], shown["effective"]["leaseMs"]) == (7, 300_000)


@pytest.mark.parametrize("command", ["show", "reset", "pause", "resume", "purge --yes", "delete"])
def test_a_queue_nobody_used_is_not_found(connected: Forq, queue: str, command: str):
    name, *options = command.split()
    outcome = connected("queue", name, queue, *options)
    assert (outcome.code, outcome.out) == (5, "")
    assert outcome.err == f"forq: there is no queue called {queue} (not_found.queue at queue)\n"


def test_what_is_set_for_a_queue_that_is_there(connected: Forq, client: ForqClient, queue: str):
    client.produce(queue, "a")
    assert connected("queue", "set", queue, "--lease", "7").out == f"1 setting of {queue} changed\n"


def test_settings_on_a_terminal(connected: Forq, client: ForqClient, queue: str):
    client.produce(queue, "a")
    outcome = connected("queue", "show", queue, terminal=True)
    assert "\t" not in outcome.out
    assert "group-in-flight-max" in outcome.out


def test_reset(connected: Forq, client: ForqClient, queue: str):
    client.produce(queue, "a")
    connected("queue", "set", queue, "--max-attempts", "7")
    outcome = connected("queue", "reset", queue)
    assert (outcome.code, outcome.out) == (0, f"{queue} has the default settings\n")
    assert connected("queue", "show", queue).out == DEFAULTS.format(queue=queue)


def test_pause_and_resume(connected: Forq, queue: str):
    connected("send", queue, "a")
    assert connected("queue", "pause", queue).out == f"{queue} is paused\n"
    outcome = connected("queue", "show", queue)
    assert (outcome.out, outcome.err) == (
        DEFAULTS.format(queue=queue),
        f"{queue} is paused: `forq queue resume {queue}` goes on.\n",
    )
    assert connected("receive", queue).code == 5
    assert connected("queue", "resume", queue).out == f"{queue} goes on\n"
    assert connected("receive", queue, "--ack").out == "a\n"


@pytest.mark.parametrize("answer", [b"y\n", b"YES\n"])
def test_purging_asks_first(connected: Forq, client: ForqClient, queue: str, answer: bytes):
    client.produce(queue, "a")
    outcome = connected("queue", "purge", queue, stdin=answer, terminal=True)
    assert (outcome.code, outcome.out) == (0, f"1 message of {queue} removed\n")
    assert f"Permanently delete 1 message of {queue}? This cannot be undone. [y/N]" in outcome.err
    assert client.queue_stats(queue).total == 0


@pytest.mark.parametrize(("answer", "code"), [(b"n\n", 1), (b"\n", 1), (b"", 130)])
def test_what_is_not_confirmed_is_not_purged(
    connected: Forq, client: ForqClient, queue: str, answer: bytes, code: int
):
    client.produce(queue, "a")
    outcome = connected("queue", "purge", queue, stdin=answer, terminal=True)
    assert (outcome.code, outcome.out) == (code, "")
    assert ("forq: nothing was removed\n" in outcome.err) is (code == 1)
    assert client.queue_stats(queue).total == 1


def test_purging_without_a_terminal(connected: Forq, client: ForqClient, queue: str):
    client.produce(queue, "a")
    outcome = connected("queue", "purge", queue, stdin=b"y\n")
    assert outcome.code == 2
    assert "forq: without a terminal to ask on, purging needs --yes\n" in outcome.err
    assert json.loads(connected("queue", "purge", queue, "--yes", "--json").out) == {
        "queue": queue,
        "purged": 1,
    }


def test_delete(connected: Forq, client: ForqClient, queue: str):
    client.produce(queue, "a")
    outcome = connected("queue", "delete", queue)
    assert (outcome.code, outcome.out, outcome.err) == (
        1,
        "",
        "forq: the queue still holds messages; purge it first (conflict.queue_not_empty)\n",
    )
    client.purge(queue)
    outcome = connected("queue", "delete", queue)
    assert (outcome.code, outcome.out) == (0, f"{queue} is removed\n")
    assert queue not in {each.queue for each in client.queues()}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "there is nothing to set"),
        (("--lease", "1s", "--unset", "lease"), "--lease and --unset lease exclude each other"),
        (("--unset", "colour"), "Invalid value for '--unset'"),
        (("--lease", "soon"), "'soon' is not a duration"),
        (("--max-attempts", "0"), "0 is not in the range 1<=x<=1000"),
        (("--max-bytes", "10MB"), "'10MB' is not a size such as 5000, 64KiB, 10MiB or 2GiB"),
        (("--overflow", "explode"), "'explode' is not one of 'reject', 'drop-oldest', 'dead-letter'"),
        (("--back-off", "1s,,5s"), "'' is not a duration"),
        (("--back-off", "initial=soon"), "'soon' is not a duration"),
        (("--back-off", "factor=2"), "'factor=2' is not of the form initial=1s,factor=2,max=1h,jitter=0.2"),
        (("--back-off", "initial=1s,initial=2s"), "is not of the form"),
        (("--back-off", "initial=1s,colour=red"), "is not of the form"),
        (("--back-off", "initial=1s,factor=-1"), "'-1' is not a number such as 2 or 0.25"),
    ],
)
def test_wrong_use_is_told_before_any_server_is_asked(forq: Forq, arguments: tuple[str, ...], sentence: str):
    outcome = forq("queue", "set", "orders", *arguments, "--url", NOWHERE)
    assert (outcome.code, outcome.out) == (2, "")
    assert sentence in outcome.err


def test_a_misspelt_command(forq: Forq):
    outcome = forq("queue", "pauze", "orders")
    assert outcome.code == 2
    assert outcome.err.startswith("forq: No such command 'pauze'. Did you mean 'pause'?\n")
    outcome = forq("queue", "--colour")
    assert outcome.code == 2
    assert outcome.err.startswith("forq: No such option")
    assert "such command" not in outcome.err


def test_lengths_are_told_exactly():
    lengths = [0, 1, 999, 1_000, 1_500, 60_000, 90_000, 3_600_000, 86_400_000, 90_000_000]
    assert [durations.as_option(ms) for ms in lengths] == [
        *("0s", "1ms", "999ms", "1s", "1500ms", "1m", "90s", "1h", "1d", "25h")
    ]


def test_sizes():
    assert [size_bytes(text) for text in ("0", "5000", "64KiB", "2GiB")] == [0, 5_000, 65_536, 2**31]


def test_the_commands_of_the_page_on_rates_work(connected: Forq, client: ForqClient, queue: str):
    page = (Path(__file__).parents[2] / "docs" / "rates.md").read_text(encoding="utf-8")
    commands = re.findall(r"(?:^|`)forq ([^#`\n]+)", page, re.MULTILINE)
    assert len(commands) >= 7
    for command in commands:
        done = connected(*(queue if word == "orders" else word for word in command.split()))
        assert done.code == 0, f"{command}: {done.err}"
    assert client.settings(queue).settings.rate == Rate(1, 100)
