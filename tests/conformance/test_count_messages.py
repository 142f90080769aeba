"""How many messages match is what a search without a limit would find."""

import pytest

from forq_trio.model.dead_letters.searches import MatchCount, MessageFilter

from .script import T0, receive, send


def count(reader, queue="q", before=None, scan_max=100, **wanted):
    return reader.count_messages(queue, MessageFilter(**wanted), before, scan_max)


def test_nothing_matches_in_a_queue_that_is_not_there(reader):
    assert count(reader) == MatchCount(0, 0, 0, 0, None, None)


@pytest.mark.parametrize(
    "wanted",
    [
        {},
        {"text": "odd"},
        {"text": "none"},
        {"attributes": {"n": "1"}},
        {"since": T0 + 2, "until": T0 + 5},
        {"above_sequence": 4},
        {"error": ""},
        {"reason": "x"},
    ],
)
def test_it_counts_page_by_page_what_a_search_finds(engine, reader, wanted):
    for number in range(9):
        name = "odd" if number % 2 else "even"
        send(engine, f"{name} {number}", now=T0 + number, attributes={"n": str(number % 3)})
    before = None
    for _ in range(4):
        counted = count(reader, before=before, scan_max=4, **wanted)
        found = reader.find_messages("q", MessageFilter(**wanted), before, 100, 4)
        assert counted == MatchCount(
            len(found.rows), 0, found.searched, found.total, found.next_before, found.oldest_at
        )
        before = counted.next_before
        if before is None:
            break
    assert before is None


def test_those_in_process_are_told_apart(engine, reader):
    for number in range(5):
        send(engine, str(number))
    receive(engine, most=2)
    counted = count(reader)
    assert (counted.count, counted.processing) == (5, 2)
