"""What the page of workers says: groups, the verdict in words, by queue, and only what the viewer may see."""

from uuid import UUID

import pytest

from forq_trio.model import limits
from forq_trio.model.access.types import AccessToken, Scope
from forq_trio.model.workers.types import HeldMessage, WorkerInfo, WorkerQueue, WorkerReport
from forq_trio.ui.pages.workers import ROWS_A_PAGE, WantedWorkers, listed, read_wanted, unnamed
from forq_trio.ui.viewer import Viewer
from forq_trio.ui.worker_directory import SeenWorkers, within
from forq_trio.ui.worker_views import BUSY_MS, QueueLine, WorkerTotals, busiest, held_words, row_of, verdict

NOW = 1_800_000_000_000
SECOND = limits.SECOND_MS
OWNER = Viewer("s", "d", None)


def held(since_ms=0, lease_ms=60_000):
    return HeldMessage(str(UUID(int=7)), 7, NOW - since_ms, 1, NOW + lease_ms)


def worker(number=1, *queues, name="w", host="h", silent=False, busy_ms=None, heard_ms=0, minute=0):
    parts = queues or (WorkerQueue("q", 4),)
    report = WorkerReport(str(UUID(int=number)), name, host, "1", 1, NOW - 60_000, parts)
    return WorkerInfo(
        report=report,
        heard_at=NOW - heard_ms,
        handled_per_minute=minute * len(parts),
        silent=silent,
        all_busy_since=None if busy_ms is None else NOW - busy_ms,
        made_by="",
        queue_per_minute=dict.fromkeys((part.queue for part in parts), minute),
        queue_busy_since={}
        if busy_ms is None
        else dict.fromkeys((part.queue for part in parts), NOW - busy_ms),
    )


def seen(*infos, viewer=OWNER):
    rows, lines, totals = {}, {}, WorkerTotals()
    for info in infos:
        part_of_it = within(info, viewer)
        if part_of_it is None:
            continue
        row = rows[info.report.id] = row_of(part_of_it, NOW)
        totals.add(row)
        for part in part_of_it.report.queues:
            lines.setdefault(part.queue, QueueLine(part.queue)).add(row, part, part_of_it)
    return SeenWorkers(NOW, rows, lines, totals, verdict(totals, lines.values(), NOW))


FULL = WorkerQueue("q", 4, 4, 9, 0, (held(),))


@pytest.mark.parametrize(
    ("info", "group"),
    [
        (worker(1, FULL, silent=True, busy_ms=BUSY_MS), "Silent"),
        (worker(1, FULL, busy_ms=BUSY_MS), "All slots busy"),
        (worker(1, FULL, busy_ms=BUSY_MS - 1), "Working"),
        (worker(1, WorkerQueue("q", 4, 1)), "Working"),
        (worker(1, WorkerQueue("q", 4, 0, 99), minute=5), "Idle"),
    ],
)
def test_the_group_of_a_worker(info, group):
    assert row_of(info, NOW).group == group


@pytest.mark.parametrize(
    ("infos", "text", "level"),
    [
        ([worker()], "The worker answers", "fine"),
        ([worker(1), worker(2)], "All 2 workers answer", "fine"),
        ([worker(1), worker(2, silent=True)], "1 of 2 workers is silent", "attention"),
        ([worker(1, silent=True), worker(2, silent=True)], "2 of 2 workers are silent", "attention"),
        ([worker(n, FULL, busy_ms=BUSY_MS) for n in (1, 2)], "All 8 slots of q are busy", "attention"),
        ([worker(1, FULL, busy_ms=BUSY_MS), worker(2)], "All 2 workers answer", "fine"),
    ],
)
def test_the_first_line_is_the_answer(infos, text, level):
    found = seen(*infos).verdict
    assert (found.text, found.level) == (text, level)


def test_a_queue_is_busy_since_the_last_of_its_workers_was():
    (line,) = busiest(
        seen(worker(1, FULL, busy_ms=BUSY_MS + SECOND), worker(2, FULL, busy_ms=BUSY_MS)).lines.values(), NOW
    )
    assert line.busy_for(NOW) == BUSY_MS
    silent = seen(worker(1, FULL, busy_ms=BUSY_MS), worker(2, WorkerQueue("q", 4), silent=True))
    assert [line.queue for line in busiest(silent.lines.values(), NOW)] == ["q"], "only who answers counts"


def test_what_silent_workers_hold_is_said_with_the_end_of_the_last_lease():
    two = WorkerQueue("q", 4, 2, 0, 0, (held(9_000, 5_000), held(1_000, 31_000)))
    assert held_words(seen(worker(1, two)).totals, NOW) == ""
    words = held_words(seen(worker(1, two, silent=True)).totals, NOW)
    assert words == "It holds 2 messages; the last of their leases ends in 31 s, then others get them."
    assert held_words(seen(worker(1, two, silent=True)).totals, NOW + 31_000).endswith("leases has ended.")
    idle = [worker(n, silent=True) for n in (1, 2)]
    assert held_words(seen(*idle).totals, NOW) == "They hold no message."


def test_totals_and_lines_add_up():
    a = WorkerQueue("a", 4, 1, 0, 0, (held(2_000),))
    b = WorkerQueue("b", 8, 2, 0, 0, (held(9_000),))
    found = seen(worker(1, a, b, name="x", minute=3), worker(2, b, name="y", minute=1))
    totals = found.totals
    assert (totals.workers, totals.busy, totals.slots, totals.handled) == (2, 5, 20, 7)
    assert (NOW - (totals.oldest_at or 0), totals.oldest_name) == (9_000, "x")
    line = found.lines["b"]
    assert (line.workers, line.busy, line.slots, line.handled, line.oldest_at) == (2, 4, 16, 4, NOW - 9_000)
    assert unnamed(5, found.lines.values()) == 2, "one of each worker and queue"
    assert unnamed(1, found.lines.values()) == 0


def test_a_token_sees_the_part_of_a_worker_in_its_queues():
    token = AccessToken(
        name="t",
        scopes=(Scope.BROWSE,),
        queues="a*",
        created_at=0,
        expires_at=None,
        last_used_at=None,
        digest=UUID(int=1).bytes,
    )
    viewer = Viewer("s", "d", token)
    both = worker(1, WorkerQueue("a", 4, 1), WorkerQueue("b", 8, 8), minute=2)
    found = seen(both, worker(2, WorkerQueue("b", 1)), viewer=viewer)
    (row,) = found.rows.values()
    assert (row.queues, row.busy, row.slots, row.handled) == (("a",), 1, 4, 2)
    assert [*found.lines] == ["a"]


def test_the_list_is_filtered_ordered_and_cut_into_pages():
    infos = [worker(n, name=f"w{n:04}") for n in range(1, ROWS_A_PAGE + 3)]
    late = worker(5_000, name="late", silent=True, heard_ms=20_000)
    later = worker(5_001, name="earlier-name", silent=True, heard_ms=90_000, host="Render-7")
    found = seen(*infos, late, later)
    first = listed(found, WantedWorkers())
    assert [row.name for row in first.rows[:3]] == ["earlier-name", "late", "w0001"]
    assert (len(first.rows), first.found) == (ROWS_A_PAGE, ROWS_A_PAGE + 4)
    assert [row.name for row in listed(found, WantedWorkers(page=2)).rows][-1] == "w0052"
    assert [row.name for row in listed(found, WantedWorkers("rENDER")).rows] == ["earlier-name"]
    assert listed(found, WantedWorkers("q")).found == ROWS_A_PAGE + 4, "by its queue"
    by_queue = listed(found, WantedWorkers(by="queue"))
    assert ([line.queue for line in by_queue.lines], by_queue.keys) == (["q"], ["q"])


@pytest.mark.parametrize("page", ["", "0", "-1", "x", "²", "9" * 99])
def test_a_page_that_is_none_is_the_first(page):
    assert read_wanted({"page": page, "by": "x"}) == WantedWorkers()
