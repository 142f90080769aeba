"""Tasks over dead letters: stored whole, and their steps with the messages that are moved."""

from uuid import UUID

import pytest

from forq_trio.model import limits
from forq_trio.model.commands import ChangeRedrive, Delete, ForgetRedrive, Redrive, SaveRedrive
from forq_trio.model.dead_letters.redrives import RedriveStep
from forq_trio.model.dead_letters.searches import AppliedFilter, MessageFilter
from forq_trio.model.errors import RedriveStateConflict, TooManyRedrives
from forq_trio.model.values import seen
from forq_trio.storage.engine import Batch
from support.redrives import redrive_task

from .script import T0, do, run, send, send_dead_letter


def task(number=1, **members):
    values = {
        "filter": seen(AppliedFilter, MessageFilter(text="ö", attributes={"k": "v"}, above_sequence=3)),
        "rate_per_second": 5,
        "started_at": T0,
        "total": 9,
        **members,
    }
    return redrive_task(str(UUID(int=number)), **values)


def stored(engine):
    return list(engine.snapshot().redrives.values())


@pytest.mark.parametrize(
    "whole",
    [
        task(),
        task(
            action="delete",
            started_by="ann",
            state="failed",
            finished_at=T0 + 5,
            error="why",
            before_sequence=7,
        ),
    ],
)
def test_a_task_is_kept_as_it_is(engine, whole):
    assert do(engine, SaveRedrive(whole)) is None
    assert stored(engine) == [whole]


def test_it_is_changed_in_its_place_and_forgotten(engine):
    run(engine, SaveRedrive(task(1)), SaveRedrive(task(2)))
    do(engine, SaveRedrive(task(1, state="paused", paused_at=T0)))
    assert [each.state for each in stored(engine)] == ["paused", "running"]
    assert do(engine, ForgetRedrive(task(1).id)) is True
    assert do(engine, ForgetRedrive(task(1).id)) is False
    assert stored(engine) == [task(2)]


@pytest.mark.parametrize("deletes", [False, True])
def test_a_step_is_stored_with_what_it_changed(engine, deletes):
    dead = send_dead_letter(engine)
    do(engine, SaveRedrive(task(moved=2)))
    step = RedriveStep(task().id, 5, 10, 4, 1)
    ids = (dead.id, "00000000-0000-7000-8000-000000000000")
    command = Delete("q-dlq", ids, step) if deletes else Redrive("q-dlq", ids, None, step)
    assert do(engine, command) == (True, False)
    assert stored(engine) == [
        task(before_sequence=5, searched=10, matched=4, skipped=1, moved=3, walked_at=T0)
    ]


@pytest.mark.parametrize("deletes", [False, True])
@pytest.mark.parametrize(
    "members", [None, {"walker": "other"}, {"state": "paused", "walker": "w"}, {"state": "done"}]
)
def test_a_step_of_a_walk_that_has_not_its_task_moves_nothing(engine, members, deletes):
    dead = send_dead_letter(engine)
    tasks = [] if members is None else [task(**members)]
    run(engine, *map(SaveRedrive, tasks))
    step = RedriveStep(task().id, 5, 1, 1, 0, "w")
    command = Delete("q-dlq", (dead.id,), step) if deletes else Redrive("q-dlq", (dead.id,), None, step)
    assert isinstance(do(engine, command), RedriveStateConflict)
    assert stored(engine) == tasks
    assert engine.snapshot().counts["q-dlq"].total == 1


SILENT = T0 - limits.REDRIVE_SILENT_MS
STEP = RedriveStep(task().id, 5, 4, 3, 1, "w")
STEPPED = {"before_sequence": 5, "searched": 4, "matched": 3, "skipped": 1}


@pytest.mark.parametrize(
    ("before", "change", "after"),
    [
        # By callers.
        ({"walker": "w"}, {"state": "paused"}, {"state": "paused", "paused_at": T0}),
        ({"state": "paused"}, {"state": "cancelled"}, {"state": "cancelled", "finished_at": T0}),
        ({"state": "failed", "error": "e"}, {"state": "running", "walker": "v"}, {"walker": "v"}),
        ({"state": "paused", "paused_at": 1}, {"state": "running", "walker": "v"}, {"walker": "v"}),
        ({"state": "failed", "error": "e"}, {"state": "paused"}, None),
        ({"state": "done"}, {"state": "cancelled"}, None),
        ({"state": "cancelled"}, {"state": "running", "walker": "v"}, None),
        # By walks that take over.
        ({}, {"state": "running", "walker": "v"}, {"walker": "v"}),
        ({"walker": "w", "walked_at": SILENT}, {"state": "running", "walker": "v"}, {"walker": "v"}),
        ({"walker": "w", "walked_at": SILENT + 1}, {"state": "running", "walker": "v"}, None),
        # By the walk that has the task.
        ({"walker": "w"}, {"state": "done", "step": STEP}, {"state": "done", "finished_at": T0, **STEPPED}),
        (
            {"walker": "w"},
            {"state": "failed", "error": "e", "step": STEP},
            {"state": "failed", "error": "e", "finished_at": T0, **STEPPED},
        ),
        ({"walker": "w"}, {"state": "running", "walker": "w", "step": STEP}, {"walker": "w", **STEPPED}),
        ({"walker": "w"}, {"state": "running", "step": STEP}, STEPPED),
        (
            {"walker": "w", "before_sequence": 4},
            {"state": "running", "walker": "w", "step": STEP},
            {"walker": "w", "before_sequence": 4},
        ),
        ({"walker": "w"}, {"state": "paused", "step": STEP}, {"state": "paused", "paused_at": T0, **STEPPED}),
        # By a walk that has it no longer.
        ({"walker": "x"}, {"state": "paused", "step": STEP}, {"state": "paused", "paused_at": T0}),
        ({"walker": "x"}, {"state": "done", "step": STEP}, None),
        ({"state": "paused"}, {"state": "running", "walker": "w", "step": STEP}, None),
    ],
)
def test_what_changes_a_task(engine, before, change, after):
    """after: None where nothing changes."""
    was = task(**before)
    do(engine, SaveRedrive(was))
    expected = was if after is None else task(**{"walked_at": T0, **after})
    assert do(engine, ChangeRedrive(was.id, **change)) == expected
    assert stored(engine) == [expected]


def test_a_task_that_is_not_there_is_not_changed(engine):
    assert do(engine, ChangeRedrive("gone", "paused")) is None
    assert stored(engine) == []


def test_neither_the_move_nor_the_step_is_there_without_the_commit(engine):
    dead = send(engine, queue="q-dlq")
    do(engine, SaveRedrive(task()))
    engine.execute_batch(Batch([Redrive("q-dlq", (dead.id,), "q", RedriveStep(task().id, 5, 1, 1, 0))], T0))
    assert stored(engine) == [task()]
    engine.commit()
    assert stored(engine)[0].moved == 1


def test_there_is_a_bound_and_the_first_that_ended_goes(engine, monkeypatch):
    monkeypatch.setattr(limits, "REDRIVES_REMEMBERED_MAX", 3)
    states = ("paused", "done", "cancelled")
    for number, state in enumerate(states):
        do(engine, SaveRedrive(task(number, state=state)))
    do(engine, SaveRedrive(task(3)))
    assert [each.id for each in stored(engine)] == [task(number).id for number in (0, 2, 3)]
    do(engine, SaveRedrive(task(4)))
    assert isinstance(do(engine, SaveRedrive(task(5))), TooManyRedrives)
    assert do(engine, SaveRedrive(task(4, moved=1))) is None
    assert [each.id for each in stored(engine)] == [task(number).id for number in (0, 3, 4)]


def test_a_key_has_a_share_of_those_that_have_not_ended(engine, monkeypatch):
    monkeypatch.setattr(limits, "REDRIVES_A_KEY_MAX", 2)
    states = ("paused", "done", "running")
    for number, state in enumerate(states):
        do(engine, SaveRedrive(task(number, state=state, started_by="t")))
    assert isinstance(do(engine, SaveRedrive(task(3, started_by="t"))), TooManyRedrives)
    assert do(engine, SaveRedrive(task(3, started_by="u"))) is None
    assert do(engine, SaveRedrive(task(4))) is None
    assert do(engine, SaveRedrive(task(2, state="done", started_by="t"))) is None
    assert do(engine, SaveRedrive(task(5, started_by="t"))) is None
