"""`forq schedule apply FILE`: what differs is shown first, and done with --yes; what is wrong is told at once."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from forq_trio import ForqClient, NewSchedule, Scope
from support.real_server import SECRET

from .conftest import NOWHERE, Forq

TWO = """
[schedules.daily]
queue = "reports"
content = '{"report": 1}'
daily = ["20:00", "08:00"]
timeZone = "Europe/Paris"
start = 2030-01-01T00:00:00+01:00

[schedules."a.b-c"]
queue = "feeds"
content = "poll"
every = "90s"
jitter = "10s"
missed = "skip"
whilePending = "skip"
priority = 3
ttlMs = 60000
attributes = {a = "b"}
"""

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(text: str | bytes, name: str = "schedules.toml") -> Path:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


@pytest.fixture
def client(alone: Forq) -> Iterator[ForqClient]:
    """A look behind the command, at its own server."""
    with ForqClient(os.environ["FORQ_URL"], SECRET) as client:
        yield client


def apply(forq: Forq, path: Path, *options: str) -> list[dict]:
    """What was done, as JSON."""
    outcome = forq("schedule", "apply", str(path), "--json", *options)
    assert (outcome.code, outcome.err) == (0, "")
    return [json.loads(line) for line in outcome.out.splitlines()]


def test_nothing_is_done_until_somebody_says_yes(alone: Forq, client: ForqClient, write: Write):
    path = write(TWO)
    outcome = alone("schedule", "apply", str(path))
    assert outcome.code == 0
    assert outcome.out.splitlines() == [
        "+ daily: daily at 20:00, 08:00 in Europe/Paris, to reports",
        "+ a.b-c: every 90s, jitter 10s, to feeds",
    ]
    assert outcome.err.splitlines() == [
        "2 to make, 0 to change, 0 to delete; 0 as they are",
        "Nothing is changed yet: --yes does it.",
    ]
    assert client.schedules().schedules == []
    outcome = alone("schedule", "apply", str(path), "--yes")
    assert (outcome.code, outcome.out.splitlines()[-1]) == (0, "2 schedules done")
    first, second = client.schedules().schedules
    assert (first.name, first.every, first.jitter, first.attributes) == ("a.b-c", "90s", "10s", {"a": "b"})
    assert (first.missed, first.while_pending, first.priority, first.ttl_ms) == ("skip", "skip", 3, 60_000)
    assert (second.name, second.daily, second.start) == ("daily", ("20:00", "08:00"), 1_893_452_400_000)


def test_applied_again_it_changes_nothing_however_it_is_written(
    alone: Forq, client: ForqClient, write: Write
):
    assert [each["done"] for each in apply(alone, write(TWO), "--yes")] == [True, True]
    before = client.schedules().schedules
    same = {
        "schedules": {
            "a.b-c": {
                **{
                    "queue": "feeds",
                    "content": "poll",
                    "every": "1min 30s",
                    "jitter": "10 s",
                    "missed": "skip",
                },
                **{"whilePending": "skip", "priority": 3, "ttlMs": 60_000, "attributes": {"a": "b"}},
            },
            "daily": {
                **{"queue": "reports", "content": '{"report": 1}', "daily": ["08:00", "20:00"]},
                **{"timeZone": "Europe/Paris", "start": "2029-12-31T23:00Z"},
            },
        }
    }
    for path in (write(TWO), write(json.dumps(same), "s.json")):
        for options in ((), ("--yes",), ("--yes", "--prune")):
            assert apply(alone, path, *options) == []
    assert client.schedules().schedules == before


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("s.toml", '[schedules.s]\nqueue = "q"\ncontent = "m"\nevery = "1h"\n'),
        ("s.json", '{"schedules": {"s": {"queue": "q", "content": "m", "every": "1h"}}}'),
    ],
)
def test_a_file_may_begin_with_a_byte_order_mark(alone: Forq, write: Write, name: str, text: str):
    done = apply(alone, write("\ufeff" + text, name), "--yes")
    assert [(each["schedule"], each["done"]) for each in done] == [("s", True)]


def test_each_member_that_differs_is_shown(alone: Forq, client: ForqClient, write: Write):
    apply(alone, write(TWO), "--yes")
    path = write(TWO.replace("90s", "2m").replace('"poll"', '"x"').replace("priority = 3\n", "group = 'g'\n"))
    outcome = alone("schedule", "apply", str(path))
    assert outcome.out.splitlines() == [
        "~ a.b-c",
        "    every: 90s → 2m",
        "    content: poll → x",
        "    priority: 3 → 100",
        "    group: (none) → g",
    ]
    (done,) = apply(alone, path, "--yes")
    assert done == {
        "schedule": "a.b-c",
        "change": "change",
        "members": {
            "every": ["90s", "2m"],
            "content": ["poll", "x"],
            "priority": [3, 100],
            "group": [None, "g"],
        },
        "done": True,
        "code": None,
        "message": None,
    }
    assert client.schedule("a.b-c").schedule.group == "g"


def test_a_pause_by_hand_stays_unless_the_file_says_otherwise(alone: Forq, client: ForqClient, write: Write):
    apply(alone, write(TWO), "--yes")
    client.pause_schedule("daily")
    assert apply(alone, write(TWO), "--yes") == []
    assert client.schedule("daily").schedule.paused
    told = TWO.replace("timeZone", "paused = false\ntimeZone")
    (change,) = apply(alone, write(told), "--yes")
    assert change["members"] == {"paused": [True, False]}
    assert not client.schedule("daily").schedule.paused


def test_what_the_file_does_not_name_goes_with_prune_alone(alone: Forq, client: ForqClient, write: Write):
    client.save_schedule("other", NewSchedule(queue="q", content="m", every="1h"))
    apply(alone, write(TWO), "--yes")
    assert len(client.schedules().schedules) == 3
    assert [each["change"] for each in apply(alone, write(TWO), "--prune")] == ["delete"]
    assert len(client.schedules().schedules) == 3
    outcome = alone("schedule", "apply", str(write(TWO)), "--prune", "--yes")
    assert outcome.out.splitlines() == ["- other: not in the file", "1 schedule done"]
    assert [each.name for each in client.schedules().schedules] == ["a.b-c", "daily"]
    assert len(apply(alone, write("[schedules]"), "--prune", "--yes")) == 2
    assert client.schedules().schedules == []


ONE = '[schedules.s]\nqueue = "q"\ncontent = "m"\nevery = "1h"\n'
WRONG = [
    ("[schedules.s\n", "line 1"),
    (ONE + ONE, "line 5"),
    (b"a = 1\nb = '\xff'\n", "line 2: it is not UTF-8"),
    ("", "the member 'schedules' is missing"),
    (ONE + "[other]\n", "there is no member 'other' here"),
    ("[schedules]\ns = 1\n", "s: Expected `object`, got `int`"),
    (ONE + "x = 1\n", "s: Object contains unknown field `x`"),
    (ONE + "delayMs = 1\n", "s: Object contains unknown field `delayMs`"),
    (ONE + "priority = 'x'\n", "s: Expected `int`, got `str` - at `priority`"),
    (ONE + "priority = 1001\n", "s: priority must be between 0 and 1000, not 1001"),
    (ONE + "cron = '@daily'\n", "s: it takes exactly one of cron, every and daily"),
    (ONE.replace("1h", "1 parsec"), "s: every: "),
    (ONE + "start = 2030-01-01T00:00:00\n", "s: start needs an offset"),
    (ONE + "end = 'tomorrow'\n", "s: end is neither ISO 8601 nor epoch ms"),
    (ONE + "end = 1.5\n", "s: Expected `int | null`, got `float` - at `end`"),
    (ONE.replace('"q"', '"q-dlq"'), "s: "),
    (ONE.replace("schedules.s", "schedules.'a b'"), "a b: the name of a schedule"),
    (ONE.replace('"m"', f'"{"x" * 262_145}"'), "s: the content has 262145 bytes"),
]


@pytest.mark.parametrize(("text", "told"), WRONG, ids=range(len(WRONG)))
def test_what_is_wrong_is_told_before_a_server_is_asked(
    forq: Forq, write: Write, text: str | bytes, told: str
):
    path = write(text)
    outcome = forq("schedule", "apply", str(path), "--yes", "--url", NOWHERE)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith(f"forq: {path}: ")
    assert told in outcome.err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"schedules": {\n"a": }}', "line 2: "),
        ('{"schedules": {"a": {}, "a": {}}}', "'a' is there twice"),
        ("[]", "it is no object"),
        ("[" * 99_999, "it is nested too deeply"),
        ('{"schedules": {"s": {"queue": "q", "content": "\\ud800", "every": "1h"}}}', "s: "),
        ('{"schedules": {"s": {"queue": "q", "content": "m", "every": "1h", "priority": NaN}}}', "s: "),
    ],
    ids=range(6),
)
def test_what_is_wrong_with_json_is_told(forq: Forq, write: Write, text: str, told: str):
    outcome = forq("schedule", "apply", str(write(text, "s.JSON")), "--url", NOWHERE)
    assert (outcome.code, outcome.out) == (2, "")
    assert told in outcome.err


def test_every_problem_of_a_file_is_told_at_once_and_nothing_is_done(
    alone: Forq, client: ForqClient, write: Write
):
    good = ONE.replace("schedules.s", "schedules.good")
    bad = "".join(ONE.replace("schedules.s", f"schedules.s{n}").replace('"1h"', '"-"') for n in range(3))
    outcome = alone("schedule", "apply", str(write(good + bad)), "--yes")
    assert (outcome.code, len(outcome.err.splitlines())) == (2, 3)
    zones = good + ONE.replace("schedules.s", "schedules.mars").replace("every", "timeZone = 'Mars'\nevery")
    crons = zones + ONE.replace("schedules.s", "schedules.cron").replace(
        'every = "1h"', "cron = '0 25 * * *'"
    )
    outcome = alone("schedule", "apply", str(write(crons)), "--yes")
    assert outcome.code == 2
    mars, cron, expression, carets = outcome.err.splitlines()
    assert ": mars: timeZone: " in mars
    assert ": cron: cron, field 2, characters 3 to 4: " in cron
    assert (expression, carets) == ("  0 25 * * *", "    ^^")
    assert client.schedules().schedules == []


def test_what_the_server_refuses_is_named_and_the_others_are_done(
    alone: Forq, client: ForqClient, write: Write, monkeypatch: pytest.MonkeyPatch
):
    every = [Scope.SCHEDULE, Scope.PRODUCE, Scope.BROWSE]
    token = client.create_token("t", every, "a*").token
    monkeypatch.setenv("FORQ_AUTH_SECRET", token)
    text = "".join(
        ONE.replace("schedules.s", f"schedules.{q}").replace('"q"', f'"{q}"') for q in ("b1", "a1")
    )
    outcome = alone("schedule", "apply", str(write(text)), "--yes")
    assert outcome.code == 1
    assert outcome.err.splitlines()[-1].startswith("forq: b1: the token has not the scope schedule")
    lines = alone("schedule", "apply", str(write(text)), "--yes", "--json")
    assert lines.code == 1
    assert json.loads(lines.out)["code"] == "forbidden"
    assert [each.name for each in client.schedules().schedules] == ["a1"]
    client.save_schedule("b1", NewSchedule(queue="b1", content="m", every="1h"))
    hidden = alone("schedule", "apply", str(write(text)))
    assert hidden.code == 4
    assert "b1: the token has not the scope browse" in hidden.err


def test_without_a_file_or_a_server(forq: Forq, write: Write, tmp_path: Path):
    assert forq("schedule", "apply", str(tmp_path / "none.toml")).code == 2
    assert forq("schedule", "apply", str(tmp_path)).code == 2
    assert forq("schedule", "apply", str(write(ONE)), "--url", NOWHERE).code == 3
