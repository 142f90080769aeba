"""`forq schedule …`, but for files of schedules."""

import json
from uuid import uuid4

import pytest
from rich.cells import cell_len

from forq_trio import ForqClient, NewSchedule, ScheduleNotFound
from forq_trio.cli.schedule import schedule
from forq_trio.cli.schedule_words import latest
from forq_trio.model.schedules.types import COUNTED_IN_PART, SavedRun, Schedule

from .conftest import NOWHERE, Forq

FIRST = 1_893_456_000_000
"""2030-01-01: the start of schedules that are not to run meanwhile."""


@pytest.fixture
def name() -> str:
    """A schedule that no other test uses."""
    return f"s-{uuid4().hex}"


@pytest.fixture
def made(client: ForqClient, name: str, queue: str) -> str:
    """A schedule for `queue` that runs for the first time in 2030."""
    client.save_schedule(name, NewSchedule(queue=queue, content="m", every="1h", start=FIRST))
    return name


def test_one_is_made_with_all_of_its_options(connected: Forq, client: ForqClient, name: str, queue: str):
    outcome = connected(
        *("schedule", "add", name, queue, "m", "--daily", "08:00", "--daily", "20:00", "--json"),
        *(
            "--time-zone",
            "Europe/Paris",
            "--jitter",
            "90",
            "--start",
            "2030-01-01T00:00Z",
            "--end",
            "1999999999999",
        ),
        *("--missed", "skip", "--while-pending", "skip", "--paused", "--priority", "3", "--ttl", "5m"),
        *("--attribute", "a=b", "--group", "g", "--max-attempts", "2", "--dead-letter-queue", ""),
    )
    assert (outcome.code, outcome.err) == (0, "")
    stored = client.schedule(name).schedule
    assert json.loads(outcome.out)["madeAt"] == stored.made_at
    assert (
        stored.timing
        == NewSchedule(
            queue=queue,
            content="m",
            daily=("08:00", "20:00"),
            time_zone="Europe/Paris",
            jitter="90s",
            start=FIRST,
            end=1_999_999_999_999,
        ).timing
    )
    assert (stored.missed, stored.while_pending, stored.paused) == ("skip", "skip", True)
    assert (stored.priority, stored.ttl_ms, stored.group, stored.max_attempts) == (3, 300_000, "g", 2)
    assert (stored.attributes, stored.dead_letter_queue) == ({"a": "b"}, "")


def test_one_that_is_there_is_changed_only_where_that_is_said(
    connected: Forq, client: ForqClient, made: str, queue: str
):
    again = ("schedule", "add", made, queue, "-", "--every", "1h30m")
    outcome = connected(*again, stdin="nü".encode())
    assert outcome.code == 1
    assert "(conflict.schedule_exists); --replace changes it" in outcome.err
    assert client.schedule(made).schedule.content == "m"
    outcome = connected(*again, "--replace", stdin="nü".encode())
    assert (outcome.code, outcome.out) == (0, f"{made} is saved, every 1h30m: in 1 h\n")
    assert client.schedule(made).schedule.content == "nü"
    assert connected(*again, "--replace", stdin=b"\xff").code == 1


@pytest.mark.parametrize(
    "timing",
    [(), ("--every", "1h", "--cron", "@daily"), ("--every", "x"), ("--missed", "some", "--every", "1h")],
)
def test_a_command_line_without_one_timing_is_refused(forq: Forq, name: str, timing: tuple[str, ...]):
    outcome = forq("schedule", "add", name, "q", "m", *timing, "--url", NOWHERE)
    assert outcome.code == 2
    if "some" not in timing:
        assert forq("schedule", "next", *timing, "--url", NOWHERE).code == 2


def test_an_error_in_a_cron_expression_is_shown_where_it_is(connected: Forq, name: str, queue: str):
    for command in (("add", name, queue, "m"), ("next",)):
        outcome = connected("schedule", *command, "--cron", "0 25 * * *")
        shown, carets, told = outcome.err.splitlines()
        assert (outcome.code, outcome.out) == (1, "")
        assert shown == "  0 25 * * *"
        assert carets == "    ^^"
        assert told.startswith("forq: ")
        assert "(bad_request.cron.invalid at cron)" in told


def test_next_shows_times_in_the_zone_and_what_the_clocks_do(connected: Forq):
    arguments = (
        "--cron",
        "30 2 31 3 *",
        "--time-zone",
        "Europe/Paris",
        "--start",
        "2030-01-01T00:00Z",
        "-n",
        "2",
    )
    head, first, second = connected("schedule", "next", *arguments).out.splitlines()
    assert head == "in\ttime\tnote"
    assert first.split("\t")[1] == "2030-03-31T03:00:00+02:00"
    assert "02:30" in first.split("\t")[2]
    assert second.split("\t")[1:] == ["2031-03-31T02:30:00+02:00", ""]
    told = connected("schedule", "next", *arguments, terminal=True).out.splitlines()[-1]
    assert told == f"2030-03-31T03:00:00+02:00: {first.split(chr(9))[2]}"
    lines = connected("schedule", "next", *arguments, "--json").out.splitlines()
    assert [json.loads(line)["local"] for line in lines] == [
        "2030-03-31T03:00:00+02:00",
        "2031-03-31T02:30:00+02:00",
    ]
    over = connected("schedule", "next", "--every", "1h", "--end", "5")
    assert (over.code, over.out, over.err) == (5, "", "It has no run any more.\n")


def test_schedules_are_listed(alone: Forq):
    outcome = alone("schedule", "list")
    assert (outcome.code, outcome.out) == (0, "")
    assert "There is no schedule" in outcome.err
    for name, more in (("b", ("--paused",)), ("a", ("--jitter", "5s"))):
        added = alone(
            "schedule", "add", name, "q", "m", "--cron", "0 8 * * *", "--time-zone", "Europe/Paris", *more
        )
        assert added.code == 0
    alone("schedule", "run", "a")
    head, first, second = alone("schedule", "list").out.splitlines()
    assert head == "schedule\tqueue\twhen\tnext\tlast"
    name, queue, when, planned, latest = first.split("\t")
    assert (name, queue, when) == ("a", "q", "0 8 * * * in Europe/Paris, jitter 5s")
    assert planned.startswith("in ")
    assert latest.startswith("by hand ")
    assert second == "b\tq\t0 8 * * * in Europe/Paris\tpaused\tnever"
    lines = alone("schedule", "list", "--json").out.splitlines()
    assert [json.loads(line)["name"] for line in lines] == ["a", "b"]


def test_more_schedules_than_a_page_has_are_listed(alone: Forq, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("forq_trio.cli.schedule_apply.SCHEDULES_PAGE_MAX", 2)
    for number in range(5):
        assert alone("schedule", "add", f"s{number}", "q", "m", "--every", "1h").code == 0
    assert len(alone("schedule", "list", "--json").out.splitlines()) == 5


def test_a_list_fits_a_terminal_of_80_columns(
    connected: Forq, client: ForqClient, name: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", "80")
    long = NewSchedule(
        queue="reports-of-all-customers", content="m", daily=tuple(f"{n:02}:00" for n in range(24))
    )
    client.save_schedule(name[:20], long)
    lines = connected("schedule", "list", terminal=True).out.splitlines()
    assert lines
    assert max(map(cell_len, lines)) <= 80 + len("\x1b[1m\x1b[0m")
    client.delete_schedule(name[:20])


def test_one_is_shown_with_its_runs(connected: Forq, made: str, queue: str):
    ran = json.loads(connected("schedule", "run", made, "--json").out)
    outcome = connected("schedule", "show", made)
    assert (outcome.code, outcome.err) == (0, "")
    above, coming, runs = outcome.out.split("\n\n")
    lines = dict(line.split(maxsplit=1) for line in above.splitlines() if not line.startswith("while"))
    assert (lines["schedule"], lines["queue"], lines["when"]) == (made, queue, "every 1h")
    assert (lines["content"], lines["missed"], lines["priority"]) == ("m", "last", "100")
    assert coming.splitlines()[2].split("\t")[1] == "2030-01-01T00:00:00+00:00"
    assert len(coming.splitlines()) == 7
    assert runs.splitlines()[2].split("\t")[1:4] == ["by hand", "-", ran["id"]]
    details = json.loads(connected("schedule", "show", made, "--json", "-n", "0").out)
    assert (details["schedule"]["name"], len(details["nextRuns"]), details["runs"]) == (made, 5, [])


@pytest.mark.parametrize(
    ("reason", "said"),
    [(None, "missed (500 runs)"), (f"late; {COUNTED_IN_PART}", "missed (more than 500 runs)")],
)
def test_a_number_of_missed_runs_that_is_not_all_is_said_to_be_more(reason: str | None, said: str):
    run = SavedRun(nominal=1, result="missed", runs=500, at=1, reason=reason)
    shown = Schedule(name="s", queue="q", content="c", every="1h", made_at=1, updated_at=1, last_run=run)
    assert latest(shown).startswith(f"{said} ")


def test_content_cannot_command_the_terminal(connected: Forq, client: ForqClient, made: str, queue: str):
    client.save_schedule(made, NewSchedule(queue=queue, content="a\x1b[2Jb", every="1h", group="\x1b"))
    out = connected("schedule", "show", made, terminal=True).out
    assert "a\\x1b[2Jb" in out
    assert "\x1b[2J" not in out


def test_a_pause_a_resume_a_run_and_a_removal(connected: Forq, client: ForqClient, made: str, queue: str):
    assert connected("schedule", "pause", made).out == f"{made} is paused\n"
    assert client.schedule(made).schedule.paused
    assert connected("schedule", "list").out.count("\tpaused\t") >= 1
    outcome = connected("schedule", "run", made)
    (delivery,) = client.receive(queue, wait_ms=0)
    assert outcome.out == f"{made} sent {delivery.id}, sequence {delivery.sequence}\n"
    assert connected("schedule", "resume", made).out.startswith(f"{made} goes on: in ")
    assert connected("schedule", "remove", made).code == 2  # there is nobody to ask
    assert client.schedule(made).schedule.name == made
    refused = connected("schedule", "remove", made, stdin=b"n\n", terminal=True)
    assert refused.code == 1
    assert connected("schedule", "remove", made, "--yes").out == f"{made} is deleted\n"
    with pytest.raises(ScheduleNotFound):
        client.schedule(made)


@pytest.mark.parametrize("command", ["show", "pause", "resume", "run"])
def test_one_that_is_not_there_is_said(connected: Forq, name: str, command: str):
    outcome = connected("schedule", command, name)
    assert (outcome.code, outcome.out) == (5, "")
    assert "not_found.schedule" in outcome.err
    assert connected("schedule", "remove", name, "--yes").code == 5
    assert connected("schedule", command, "a/b").code == 1


def test_the_others_are_done_when_one_is_refused(connected: Forq, client: ForqClient, made: str):
    outcome = connected("schedule", "pause", "nobody", made)
    assert (outcome.code, outcome.out) == (5, f"{made} is paused\n")
    assert outcome.err == "forq: nobody: there is no schedule of that name (not_found.schedule)\n"
    assert connected("schedule", "resume", "a/b", made).code == 1
    assert not client.schedule(made).schedule.paused
    assert connected("schedule", "remove", made, "nobody", "--yes").code == 5
    with pytest.raises(ScheduleNotFound):
        client.schedule(made)


def test_without_a_server(forq: Forq):
    assert forq("schedule", "list", "--url", NOWHERE).code == 3


def test_each_member_of_a_schedule_can_be_given():
    given = {parameter.name for parameter in schedule.commands["add"].params}
    assert given >= set(NewSchedule.__struct_fields__)
