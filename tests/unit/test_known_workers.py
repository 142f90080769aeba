"""What a server knows of workers: from their reports, bounded, and gone when silent and their leases have ended."""

import msgspec
import pytest
from msgspec.structs import replace

from forq_trio.broker.known_workers import KnownWorkers
from forq_trio.model import limits
from forq_trio.model.access.types import Key
from forq_trio.model.errors import (
    CallerError,
    Forbidden,
    InvalidRequest,
    MalformedMessageId,
    OutOfRange,
    TooManyWorkers,
)
from forq_trio.model.workers.bodies import WorkerList
from forq_trio.model.workers.types import HeldMessage, JobProgress, QueueWorkers, WorkerReport
from forq_trio.telemetry.families import QUEUE_TEXTS
from support.forq_api import SetClock
from support.workers import held, part, report, worker_id

NOW = 10_000_000
ONE, OTHER = Key("one"), Key("other")


@pytest.fixture
def clock() -> SetClock:
    clock = SetClock()
    clock.ms = NOW
    return clock


@pytest.fixture
def known(clock: SetClock) -> KnownWorkers:
    return KnownWorkers(clock)


def test_a_worker_is_found_by_its_id_and_by_its_queues(known: KnownWorkers):
    known.report(report(1, part("a"), part("b")), key=ONE)
    known.report(report(2, part("b")))
    assert known.count == len(known.all()) == 2
    assert [info.report.id for info in known.of("b")] == [worker_id(1), worker_id(2)]
    assert [info.made_by for info in known.of("a")] == ["one"]
    known.report(report(1, part("c")), key=ONE)
    assert known.of("a") == []
    assert known.queues() == ["b", "c"]
    found = known.find(worker_id(1).upper())
    assert found is not None
    assert (found.heard_at, found.silent, found.part_of("a")) == (NOW, False, None)
    known.forget(worker_id(1))
    assert (known.find(worker_id(1)), known.count, known.queues()) == (None, 1, ["b"])


def test_a_silent_one_is_listed_until_its_leases_have_ended(known: KnownWorkers, clock: SetClock):
    known.report(report(1, part(holds=(held(since=NOW, lease_until=NOW + 90_000),))))
    known.report(report(2))
    clock.ms = NOW + 14_999
    assert [info.silent for info in known.all()] == [False, False]
    clock.ms = NOW + 15_000
    assert [info.silent for info in known.all()] == [True, True]
    clock.ms = NOW + 60_000
    assert [info.report.id for info in known.all()] == [worker_id(1)]
    clock.ms = NOW + 90_000
    assert (known.count, known.bytes) == (0, 0)


def test_no_lease_counts_for_longer_than_one_may_last(known: KnownWorkers, clock: SetClock):
    known.report(report(1, part(holds=(held(lease_until=limits.WORKER_TIME_MS_MAX),))))
    clock.ms = NOW + limits.LEASE_MS_MAX
    assert known.count == 0


def test_what_was_handled_in_the_last_minute_is_the_difference_of_the_counts(
    known: KnownWorkers, clock: SetClock
):
    counts = []
    for second in range(0, 150, 5):
        clock.ms = NOW + second * 1_000
        known.report(report(1, part("a", handled=1_000 + 2 * second), part("b", handled=second)))
        counts.append(known.all()[0].handled_per_minute)
    assert counts[:3] == [0, 15, 30]
    assert set(counts[12:]) == {180}
    assert known.all()[0].queue_per_minute == {"a": 120, "b": 60}
    clock.ms += limits.WORKER_SILENT_MS
    assert known.all()[0].handled_per_minute == 0


def test_a_worker_that_started_within_the_minute_has_handled_all_in_it(known: KnownWorkers):
    known.report(report(1, part(handled=7), started_at=NOW - 30_000))
    assert known.all()[0].handled_per_minute == 7
    known.report(report(2, part(handled=7), started_at=NOW - 90_000))
    assert known.of("q")[1].handled_per_minute == 0


def test_it_is_known_since_when_all_slots_are_busy(known: KnownWorkers, clock: SetClock):
    for second, busy in ((0, 1), (5, 4), (10, 6)):
        clock.ms = NOW + second * 1_000
        known.report(report(1, part("a", busy=busy), part("b", busy=max(0, busy - 2))))
    (info,) = known.all()
    assert info.queue_busy_since == {"a": NOW + 5_000, "b": NOW + 10_000}
    assert info.all_busy_since == NOW + 10_000
    known.report(report(1, part("a", busy=4), part("b")))
    (info,) = known.all()
    assert (info.queue_busy_since, info.all_busy_since) == ({"a": NOW + 5_000}, None)


def test_a_viewer_of_some_queues_sees_those_alone(known: KnownWorkers):
    known.report(report(1, part("a", busy=4), part("b")))
    (info,) = known.all()
    seen = info.within("a".__eq__)
    assert seen is not None
    assert ([each.queue for each in seen.report.queues], seen.all_busy_since) == (["a"], NOW)
    assert info.within("c".__eq__) is None


def test_another_key_neither_overwrites_nor_forgets(known: KnownWorkers):
    known.report(report(1), key=ONE)
    for key in (OTHER, Key()):
        with pytest.raises(Forbidden):
            known.report(report(1, name="mine"), key=key)
    with pytest.raises(Forbidden):
        known.forget(worker_id(1), key=OTHER)
    known.report(report(1), key=Key("one", queues="q*"))
    known.forget(worker_id(1), key=Key())
    assert known.count == 0


def test_a_key_has_a_share_and_its_silent_workers_make_place(
    known: KnownWorkers, clock: SetClock, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(limits, "WORKERS_MAX", 4)
    monkeypatch.setattr(limits, "WORKERS_PER_KEY_MAX", 2)
    for number in (1, 2):
        known.report(report(number), key=ONE)
    with pytest.raises(TooManyWorkers):
        known.report(report(3), key=ONE)
    for number in (4, 5):
        known.report(report(number))
    with pytest.raises(TooManyWorkers):
        known.report(report(6))
    clock.ms += limits.WORKER_SILENT_MS
    known.report(report(3), key=ONE)
    assert known.find(worker_id(1)) is None
    assert known.count == 4


def test_where_all_places_are_taken_the_worker_that_was_silent_for_longest_leaves_whoever_made_it_known(
    known: KnownWorkers, clock: SetClock, monkeypatch: pytest.MonkeyPatch
):
    """Those of a revoked token would be listed until the leases that they named end, up to twelve hours."""
    monkeypatch.setattr(limits, "WORKERS_MAX", 4)
    monkeypatch.setattr(limits, "WORKERS_PER_KEY_MAX", 3)
    ends = NOW + limits.LEASE_MS_MAX
    holding = part(busy=4, holds=(replace(held(), lease_until=ends),))
    for number in (1, 2, 3):
        known.report(report(number, holding), key=ONE)
        clock.ms += 1_000
    known.report(report(1, holding), key=ONE)
    known.report(report(4, holding), key=OTHER)
    with pytest.raises(TooManyWorkers):
        known.report(report(5), key=OTHER)
    clock.ms += limits.WORKER_GONE_MS
    known.report(report(5), key=OTHER)
    assert known.find(worker_id(4)) is None, "its own silent one comes first"
    known.report(report(6), key=OTHER)
    assert known.find(worker_id(2)) is None
    assert [info.report.id for info in known.all()] == [worker_id(number) for number in (3, 1, 5, 6)]
    known.report(report(7))
    known.report(report(8))
    with pytest.raises(TooManyWorkers):
        known.report(report(9))


@pytest.mark.parametrize("bound", ["WORKERS_BYTES_PER_KEY_MAX", "WORKERS_BYTES_MAX"])
def test_silent_workers_make_place_for_what_one_that_answers_holds(
    known: KnownWorkers, clock: SetClock, monkeypatch: pytest.MonkeyPatch, bound: str
):
    """Where the share is used up those of the same key, else those of any."""
    monkeypatch.setattr(limits, bound, 22_000)
    holding = part(busy=4, holds=tuple(map(held, range(20))))
    key = ONE if bound == "WORKERS_BYTES_PER_KEY_MAX" else OTHER
    known.report(report(1, holding), key=ONE)
    known.report(report(2, holding), key=ONE)
    clock.ms += limits.WORKER_SILENT_MS
    known.report(report(3, holding), key=key)
    assert [(info.report.id, len(info.report.queues[0].holds)) for info in known.all()] == [
        (worker_id(2), 20),
        (worker_id(3), 20),
    ]
    known.report(report(2, holding), key=ONE)
    known.report(report(4, holding), key=key)
    assert [len(info.report.queues[0].holds) for info in known.all()] == [20, 20, 0]


def test_where_the_bytes_do_not_suffice_the_held_messages_are_left_out(
    known: KnownWorkers, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(limits, "WORKERS_BYTES_PER_KEY_MAX", 6_000)
    holding = part(busy=4, holds=tuple(map(held, range(20))))
    known.report(report(1, holding), key=ONE)
    (info,) = known.all()
    assert (info.report.queues[0].busy, info.report.queues[0].holds) == (4, ())
    known.report(report(2), key=ONE)
    with pytest.raises(TooManyWorkers):
        known.report(report(3), key=ONE)
    known.forget(worker_id(1), key=ONE)
    known.report(report(3), key=ONE)


def test_an_answer_that_lists_all_is_bounded(known: KnownWorkers):
    """Many messages held, or many queues with the longest names: no answer is larger than what is kept."""
    holds = tuple(held(number) for number in range(limits.WORKER_QUEUE_HOLDS_MAX))
    long = "\x01" * limits.WORKER_NAME_LENGTH_MAX
    for number in range(limits.WORKERS_MAX):
        parts = [part(f"q{index}", holds=holds) for index in range(5)]
        if number % 2:
            parts = [
                part(f"{index:064}", busy=4, handled=10**15) for index in range(limits.WORKER_QUEUES_MAX)
            ]
        try:
            known.report(replace(report(number, *parts), name=long))
        except TooManyWorkers:
            break
    assert known.bytes > 0.9 * limits.WORKERS_BYTES_MAX
    answer = msgspec.json.encode(WorkerList(known.all()))
    assert len(answer) <= known.bytes <= limits.WORKERS_BYTES_MAX <= 2 * limits.BROWSE_PAGE_BYTES_MAX


def test_the_oldest_of_the_held_messages_are_kept(known: KnownWorkers):
    holds = tuple(held(number, since=100 - number) for number in range(100))
    known.report(report(1, *[part(f"q{index}", holds=holds) for index in range(7)]))
    kept = known.all()[0].report.queues
    assert [each.since for each in kept[0].holds[:3]] == [1, 2, 3]
    assert sum(len(each.holds) for each in kept) == limits.WORKER_HOLDS_MAX


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        (report(1, part(), part()), InvalidRequest),
        (report(1, name=""), OutOfRange),
        (report(1, part(slots=-1)), OutOfRange),
        (report(1, part("no such/name")), CallerError),
        (report(1, part(holds=(HeldMessage("x", 1, 0, 1, 0),))), MalformedMessageId),
        (report(1, part(holds=(held(),) * 101)), OutOfRange),
        (report(1, *[part(f"q{index}") for index in range(65)]), OutOfRange),
        (WorkerReport("x", "w", "", "", 1, 0, (part(),)), InvalidRequest),
        (WorkerReport(worker_id(), "w", "", "", 1, 0, ()), OutOfRange),
    ],
)
def test_a_report_that_is_wrong_is_refused(known: KnownWorkers, wrong: WorkerReport, error: type[Exception]):
    with pytest.raises(error):
        known.report(wrong)
    assert known.count == 0


def test_gauges_and_the_numbers_of_a_queue(known: KnownWorkers, clock: SetClock):
    known.report(report(1, part("a", busy=4, holds=(held(lease_until=NOW + 90_000),)), part("b")))
    clock.ms += limits.WORKER_SILENT_MS
    known.report(report(2, part("a", busy=6)))
    known.report(report(3, part("b")))
    states, slots, busy = (dict(family.series) for family in known.families(lambda queue: (queue, False)))
    assert states == {'state="busy"': 1, 'state="idle"': 1, 'state="silent"': 1}
    assert slots == {QUEUE_TEXTS["a", False]: 4, QUEUE_TEXTS["b", False]: 4}
    assert busy == {QUEUE_TEXTS["a", False]: 4, QUEUE_TEXTS["b", False]: 0}
    assert known.in_queue("a") == QueueWorkers(2, silent=1, held=1, slots=4, busy_since=clock.ms)
    assert known.in_queue("b") == QueueWorkers(2, silent=1, slots=4)
    known.report(report(3, part("a")))
    assert known.in_queue("a").busy_since is None


def test_progress_is_bounded_and_counts_in_bytes(known: KnownWorkers):
    one = held(lease_until=NOW + 1)
    known.report(report(1, part(holds=(one,))))
    before = known.bytes
    told = JobProgress(100, "ö" * limits.PROGRESS_TEXT_LENGTH_MAX)
    known.report(report(1, part(holds=(replace(one, progress=told),))))
    assert known.bytes > before + 4 * limits.PROGRESS_TEXT_LENGTH_MAX
    found = known.holder_of("q", worker_id(1), 1)
    assert found is not None
    assert (found.worker, found.held.progress) == ("w", told)
    for odd in (
        JobProgress(101),
        JobProgress(-1),
        JobProgress(1, "x" * (limits.PROGRESS_TEXT_LENGTH_MAX + 1)),
    ):
        with pytest.raises(OutOfRange):
            known.report(report(1, part(holds=(replace(one, progress=odd),))))


def test_what_a_silent_worker_said_of_a_message_is_old(known: KnownWorkers, clock: SetClock):
    known.report(report(1, part(holds=(held(lease_until=NOW + 90_000),))))
    assert known.holder_of("q", worker_id(1), 1) is not None
    clock.ms = NOW + limits.WORKER_SILENT_MS
    assert known.holder_of("q", worker_id(1), 1) is None
