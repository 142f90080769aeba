"""What a batch waits for does not grow with it: every wait is a round trip to the database, with the gate held."""

from collections.abc import Sequence
from contextlib import closing

import pytest

from forq_trio.model import limits
from forq_trio.model.commands import COMMANDS
from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.postgres.engine import PostgresEngine
from support import waits_of_batches, waits_of_messages, waits_of_results, waits_of_work
from support.effort import count, many_trials
from support.postgres import empty
from support.waits_of import CASES, World, cases

MANY = 64
LOGGED = {"discards", "purges_the_history", "trims_the_history", "trims_events"}
"""Cases that need the history and events, which others count without."""
assert waits_of_batches, waits_of_results
assert waits_of_messages, waits_of_work


def waits(url: str, names: Sequence[str], n: int) -> int:
    """How often the batch of n of each waited."""
    empty(url)
    logged = not LOGGED.isdisjoint(names)
    with closing(PostgresEngine(url, EngineSettings(history=logged, events=logged), "normal")) as engine:
        world = World(engine)
        commands = [command for name in names for command in CASES[name][1](world, n)]
        kinds = {type(command) for command in commands}
        assert {kind for name in names if (kind := CASES[name][0]) is not None} <= kinds
        engine.connection.waits = 0
        world.run_counted(commands)
        return engine.connection.waits


GROWING = {
    # Each goes on where the one before it has stopped, or changes what the next one reads.
    "adds_to_batches",
    "claims_by_attributes",
    "claims_of_many_queues_under_a_limit_of_groups",
    "claims_of_many_queues_under_a_rate_of_groups",
    "claims_that_find_exhausted_messages",
    "claims_under_a_rate_of_groups",
    "closes_batches",
    "offers_of_one_key",
    "offers_that_change",
    "opens_batches",
    "publications_that_enter_their_queues",
    "runs_that_are_due",
    "shows_batches",
    "sends_that_evict",
    "sends_that_evict_into_dead_letters",
    # What it reads is drawn at random.
    "shuffled_claims_of_many_queues",
    # A statement returns what it changed, or gives a number: one command of a job or an administrator.
    "ends_stages",
    "stages_that_are_new",
    "takes_what_was_set_aside",
    "trims_the_history",
    # Long work, of which a batch has four or five.
    "leases_messages",
    "purges_of_moved_messages",
    "puts_pages_back",
    "releases_leases",
}
"""They wait more often, but no more than WAITS_OF_A_STEP_MAX times: the next batch goes on with the others."""
NOT_MIXED = {
    "acks_in_many_queues_with_groups",
    "groups_that_are_freed",
    "last_nacks",
    "limits_that_are_lifted",
    "pauses_schedules",
    "sends_due_first",
    "sends_to_a_queue_that_refuses",
}
"""With some others, prepared before or behind them, these or the others have nothing to do."""


@pytest.mark.parametrize("name", cases())
def test_a_batch_of_many_waits_as_often_as_one(empty_tables, name):
    kind = CASES[name][0]
    weight = 1 if kind is None or not isinstance(kind.traits.weighs, int) else kind.traits.weighs
    few, many = (waits(empty_tables, [name], n) for n in (1, min(MANY, limits.COMMIT_MESSAGES_MAX // weight)))
    if name in GROWING:
        assert few + 1 < many <= limits.WAITS_OF_A_STEP_MAX + few
    else:
        assert many <= few + 1


@pytest.mark.parametrize(
    "names",
    [
        # Of each queue the first message with a group comes behind one without, in one batch.
        ("claims_of_what_is_sent_at_once", "sends_with_the_first_groups_of_queues", "acks")
    ],
)
def test_sends_that_read_for_each_queue_leave_the_others_to_the_next_batch(empty_tables, names):
    """The first group of each of 256 queues, beside a message without one: 772 waits in one batch."""
    few, many = (waits(empty_tables, names, n) for n in (1, 4 * limits.WAITS_OF_A_STEP_MAX))
    assert few + 4 < many <= few + 2 * limits.WAITS_OF_A_STEP_MAX


def test_leases_of_many_lengths_wait_as_often_as_one(empty_tables):
    """Under a limit of groups each length was read by itself: 256 waits in one claim of a queue."""
    kinds = ["claims_with_their_own_leases", "claims_under_a_limit_of_groups"]
    assert waits(empty_tables, kinds, MANY) <= waits(empty_tables, kinds, 1) + 1


@many_trials
def test_random_batches_of_several_kinds_wait_no_longer_than_their_steps_may(empty_tables, rng):
    """Where one kind changes what another one reads, the other reads anew for each command, up to that bound."""
    names = sorted(set(CASES) - GROWING - LOGGED - NOT_MIXED)
    for _ in range(count("mixed_batches")):
        chosen = rng.sample(names, 3)
        few, many = (waits(empty_tables, chosen, n) for n in (1, 4 * limits.WAITS_OF_A_STEP_MAX))
        assert many <= few + 2 * limits.WAITS_OF_A_STEP_MAX, chosen


def test_every_command_is_counted():
    kinds = {kind for kind, _ in CASES.values()}
    assert {
        kind.__name__ for kind in COMMANDS if kind.traits.order is not None and kind not in kinds
    } == set()
