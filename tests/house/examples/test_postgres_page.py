"""docs/postgres.md: a role needs the rights that it names and no others, and each weaker promise has its tests."""

import re
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from forq_trio.model import limits
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.open import open_engine
from forq_trio.storage.postgres.server_clock import CLOCK_SECONDS
from support.batches import do
from support.words import claim, contents, send

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "postgres.md").read_text(encoding="utf-8")

TESTS = {
    "a message whose send was answered is on disk": "test_a_batch_that_a_crash_took_back_was_not_answered"
    " test_without_a_flush_commits_may_be_lost_and_no_cache_has_them",
    "what is read is on disk": "test_what_is_answered_on_the_ground_of_another_batch_is_durable",
    "who waits first gets the message first": "test_a_server_gives_what_it_stores_to_those_who_wait_there",
    "a revoked token is refused at once": "test_a_revoked_token_is_refused_by_the_other"
    " test_settings_and_tokens_reach_the_other_with_its_next_batch",
    "counts and settings that are shown": "test_settings_and_tokens_reach_the_other_with_its_next_batch",
    "any text is stored": "test_a_zero_character_is_refused_alone",
    "sends never fill the disk, and what is stored can be acknowledged": (
        "test_changes_are_refused_by_name_and_all_goes_on_by_itself"
    ),
    "the outcome of each change is known": (
        "test_the_outcome_of_a_batch_that_was_forgotten_meanwhile_is_not_known"
        " test_what_is_told_after_a_cut_is_true"
    ),
    '"an idle server runs no queries"': "test_an_idle_server_asks_as_often_as_the_page_says"
    " test_a_batch_without_changes_stores_nothing",
    "`FORQ_EVENTS`, `FORQ_HISTORY` and defaults of queues hold for every message": (
        "test_what_is_recorded_is_each_process_s_own_setting"
    ),
    "metrics and charts": (
        "test_two_know_each_other_until_one_ends test_servers_on_one_database_and_one_that_was_killed"
    ),
}
"""The tests of each row of "What is different"."""


def row(promise: str) -> str:
    """What the page says of it."""
    (text,) = re.findall(rf"^\| {re.escape(promise)} \| (.*) \|$", PAGE, re.MULTILINE)
    return text


def test_each_promise_that_is_weaker_has_its_tests() -> None:
    (table,) = re.findall(r"^## What is different\n\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    promises = [line.split(" | ")[0].removeprefix("| ") for line in table.splitlines()[2:]]
    assert promises == list(TESTS)
    written = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^(?:async )?def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert {name for names in TESTS.values() for name in names.split()} <= written


def test_an_idle_server_asks_as_often_as_the_page_says() -> None:
    assert limits.PEERS_LOOK_SECONDS == 1
    assert limits.PROCESS_REPORT_SECONDS == 5
    assert CLOCK_SECONDS == 60
    assert row('"an idle server runs no queries"') == (
        "one short query a second, every five seconds one row is written, and every"
        f" {limits.DATABASE_LOOK_SECONDS} seconds the database is asked about itself;"
        " its clock is read once a minute, and Forq's clean-ups run every few minutes"
    )


@pytest.fixture
def owner(database: str):
    """Who may do everything in the database, in which a role `queue_server` may only connect."""
    with psycopg.connect(database, autocommit=True) as owner:
        owner.execute("DROP ROLE IF EXISTS queue_server")
        owner.execute("CREATE ROLE queue_server LOGIN")
        yield owner
        owner.execute("DROP OWNED BY queue_server; DROP ROLE queue_server")


def test_a_role_needs_the_rights_that_the_page_names(database: str, owner: psycopg.Connection) -> None:
    (makes_schema,) = re.findall(r"^psql queue -c '(.*)'$", PAGE, re.MULTILINE)
    (shows_others,) = re.findall(r"`(GRANT pg_monitor .*?)`", PAGE)
    url = database.replace("postgres@", "queue_server@", 1)
    owner.execute(makes_schema)
    with (
        closing(open_engine(url, EngineSettings(), "full")) as engine,
        closing(engine.open_reader()) as reader,
    ):
        do(engine, send("x"))
        assert contents(do(engine, claim())) == ["x"]
        assert reader.database().hidden == 1  # the owner's
        owner.execute(shows_others)
    with (
        closing(open_engine(url, EngineSettings(), "full")) as engine,
        closing(engine.open_reader()) as reader,
    ):
        assert reader.database().hidden == 0
