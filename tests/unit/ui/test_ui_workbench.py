"""The workbench's filter is all in the URL, its search is bounded, and its tasks are told in words."""

import pytest
from werkzeug.datastructures import MultiDict

from forq_trio.model.dead_letters.bodies import MoveResult
from forq_trio.model.dead_letters.redrives import RedriveInfo
from forq_trio.model.dead_letters.searches import AppliedFilter, ErrorGroup, ErrorGroups
from forq_trio.ui.pages.dead import headline
from forq_trio.ui.pages.workbench_actions import outcome, read_rate
from forq_trio.ui.rendering import encode_query
from forq_trio.ui.workbench.filter import Filter, read_filter, splits, task_words
from forq_trio.ui.workbench.groups import GROUPS_SECONDS, Group, Groups
from forq_trio.ui.workbench.search import Search, is_near, read_search
from forq_trio.ui.workbench.tasks import band, remaining, to_go_ms

NOW = 1_700_000_000_000
ANY = AppliedFilter(None, None, None, {}, None, None, None)


def given(*pairs):
    return MultiDict(pairs)


@pytest.mark.parametrize(
    "wanted",
    [
        Filter(NOW),
        Filter(NOW, q='{"a": "ü&='),
        Filter(NOW, reason="message_expired", error="503: no answer"),
        Filter(NOW, error=""),
        Filter(NOW, attributes={"tenant": "acme: one", "x": ""}, age="24h"),
    ],
)
def test_a_filter_is_read_back_from_its_url_and_from_its_form(wanted):
    query = wanted.query()
    pairs = [
        (name, each)
        for name, value in query.items()
        for each in (value if isinstance(value, list) else [value])
    ]
    sent = [(name, str(value)) for name, value in pairs if value not in (None, "")]
    assert read_filter(given(*sent), NOW) == wanted
    assert read_filter(given(*((name, str(value)) for name, value in wanted.fields())), NOW + 5) == wanted
    assert (encode_query(query) == "") is wanted.is_empty


def test_what_is_not_valid_in_a_url_is_left_out():
    bad = given(("age", "1y"), ("as_of", "-1"), ("attr", "no colon"), ("attr", ":x"), ("q", "x" * 5_000))
    wanted = read_filter(bad, NOW)
    assert (wanted.age, wanted.as_of, wanted.attributes, len(wanted.q)) == ("", NOW, {}, 1_024)
    assert read_filter(given(("as_of", str(NOW + 1))), NOW).as_of == NOW
    assert len(read_filter(given(*(("attr", f"a{n}:b") for n in range(50))), NOW).attributes) == 10


def test_a_filter_asks_for_what_was_there_at_its_moment():
    wanted = Filter(NOW, q="x", error="", age="1h", attributes={"a": "b"})
    question = wanted.question(above_sequence=7)
    assert (question.since, question.until) == (NOW - 3_600_000, NOW)
    assert (question.text, question.error, question.above_sequence) == ("x", "", 7)


def test_each_chip_leads_to_the_filter_without_it():
    wanted = Filter(NOW, reason="queue_full", error="e", age="7d", attributes={"a": "b"})
    assert [(chip.name, chip.value) for chip in wanted.chips()] == [
        ("Reason", "Queue was full"), ("Error", "e"), ("Dead for", "less than 7 d"), ("a", "b")
    ]  # fmt: skip
    assert wanted.chips()[1].query == wanted.query() | {"error": None}


def test_hits_are_found_in_a_preview():
    assert splits("a-ab-b", "ab") == [("a-", False), ("ab", True), ("-b", False)]
    assert splits("abab", "ab") == [("ab", True), ("ab", True)]
    assert splits("<b>", "") == [("<b>", False)]


def test_the_state_of_a_search_travels_in_the_url():
    search = Search(200_000, 12, 3, 30_000, 90_000, 456, NOW, True)
    fields = [(name, str(value)) for name, value in search.query().items()]
    assert read_search(given(*fields)) == search
    assert (search.searching, search.movable, search.above) == (True, 9, 455)
    assert not Search(down=None, begun=True).searching
    assert read_search(given(("depth", "x"), ("down", "-4"))) == Search()


@pytest.mark.parametrize(
    ("count", "shown", "near"), [(99, 100, True), (98, 100, False), (1, 0, False), (0, 0, True)]
)
def test_a_count_is_near_within_one_percent(count, shown, near):
    assert is_near(count, shown) is near


def task(**members):
    defaults = {
        "id": "t", "queue": "a-dlq", "action": "redrive", "state": "running", "dry_run": False, "filter": ANY,
        "target": None, "rate_per_second": None, "searched": 40, "total": 100, "matched": 40, "skipped": 0, "moved": 40,
        "started_at": NOW, "started_by": None, "paused_at": None, "finished_at": None, "error": None,
    }  # fmt: skip
    return RedriveInfo(**defaults | members)


def test_a_band_says_what_is_moved_where_to_how_fast_and_for_how_long():
    made = band(task(rate_per_second=10, skipped=2), NOW + 9_000)
    assert (
        f"{made.verb} {made.what}" == "Redriving all dead letters back to where they came from, 10 a second"
    )
    assert made.notes == [
        "40 of 98 moved",
        "2 left where they are, a consumer holds them or nothing says where they came from",
        "about 6 s to go",
    ]
    wanted = AppliedFilter("message_expired", None, None, {"tenant": "acme"}, "x", "410 Gone", 7)
    assert task_words(wanted) == "“410 Gone”, expired, those with “x”, tenant “acme”"
    made = band(task(action="delete", state="failed", filter=wanted, error="disk full"), NOW)
    assert (made.verb, made.notes, made.task.error) == (
        "Failed: deleting", ["40 deleted", "searched 40 of 100"], "disk full"
    )  # fmt: skip
    done = band(task(state="done", searched=70), NOW)
    assert (done.value, done.top) == (100, 100)


@pytest.mark.parametrize(
    ("state", "verb"),
    [
        ("running", "Dry run:"),
        ("paused", "Dry run, paused:"),
        ("done", "Dry run, nothing was changed:"),
        ("cancelled", "Dry run, cancelled, nothing was changed:"),
        ("failed", "Dry run, failed, nothing was changed:"),
    ],
)
def test_a_dry_run_says_that_nothing_was_changed_and_what_would_be(state, verb):
    dry = task(dry_run=True, state=state, moved=0, rate_per_second=10, skipped=2)
    made = band(dry, NOW + 10_000)
    assert (made.verb, made.what) == (
        verb, "would redrive all dead letters back to where they came from, 10 a second"
    )  # fmt: skip
    assert made.notes[0] == "40 of 98 would be moved"
    assert remaining(dry) == "Dry run: redrive of all dead letters, 40 counted so far"
    wanted = AppliedFilter("message_expired", None, None, {}, None, None, None)
    made = band(task(dry_run=True, state=state, moved=0, action="delete", filter=wanted), NOW)
    assert (made.verb, made.what, made.notes[0]) == (verb, "would delete expired", "40 would be deleted")


@pytest.mark.parametrize(
    ("members", "left"),
    [
        ({}, 15_000),
        ({"dry_run": True, "rate_per_second": 1}, 15_000),
        ({"state": "paused"}, None),
        ({"searched": 0}, None),
        ({"total": 40}, None),
    ],
)
def test_how_long_a_task_goes_on_is_said_where_it_can_be_known(members, left):
    assert to_go_ms(task(**members), NOW + 10_000) == left


def test_what_was_left_is_said():
    done, left = MoveResult("a", True), MoveResult("b", False, "not_found", "")
    assert outcome([done], "Redrove") == "Redrove 1 message"
    assert outcome([done, left], "Deleted") == "Deleted 1 message; 1 was left: in process or gone"


@pytest.mark.parametrize("text", ["0", "10001", "-1", "1.5", "ten", "1" * 400])
def test_a_rate_that_cannot_be_is_explained(text):
    with pytest.raises(ValueError, match="A whole number from 1 to 10,000"):
        read_rate(text)


def test_a_rate_may_be_left_out():
    assert (read_rate(" "), read_rate("1,000")) == (None, 1_000)
    assert {read_rate(text) for text in ("5", "5/s", "5 / s", "5 a second", "5 per second")} == {5}


def test_the_list_says_how_many_there_are_and_how_many_came():
    assert headline(3, 1_659) == "1,659 dead letters in 3 queues"
    assert headline(1, 1) == "1 dead letter in one queue"
    assert headline(0, 0) == "There are no dead letters"


class Errors:
    """Answers like a broker with 25,000 messages: three pages of 10,000 at most."""

    def __init__(self):
        self.asked = 0
        self.lists = self

    async def error_groups(self, queue, *, before_sequence):
        self.asked += 1
        left = 25_000 if before_sequence is None else before_sequence
        size = min(10_000, left)
        groups = [ErrorGroup("r", "e" + "abcdefghijkl"[n], 10 + n, NOW, 1) for n in range(12)]
        groups.append(ErrorGroup(None, None, 5, NOW, 0))
        return ErrorGroups(groups, size, 25_000, left - size or None, [ErrorGroup("r", None, 7, NOW, 2)])


async def test_groups_are_counted_in_steps_and_kept_for_a_while():
    seconds = [0.0]
    broker = Errors()
    groups = Groups(broker, lambda: seconds[0])
    searched = [(await groups.next("q")).searched for _ in range(5)]
    assert (searched, broker.asked) == ([10_000, 20_000, 25_000, 25_000, 25_000], 3)
    count = await groups.next("q")
    reason, direct = count.reasons()
    assert (reason.words, direct.words) == ("r", "Sent here directly")
    assert [(each.error, each.count) for each in reason.groups[:2]] == [("el", 63), ("ek", 60)]
    summed = reason.groups[-1]
    assert (summed.link, summed.count) == (False, 21 + 3 * sum(10 + n for n in range(4)))
    shown = [each.error for each in count.reasons(("r", "ea"))[0].groups]
    assert "ea" in shown
    seconds[0] += GROUPS_SECONDS + 1
    await groups.next("q")
    assert broker.asked == 4


def test_a_long_rate_is_refused_without_a_search_in_it():
    with pytest.raises(ValueError, match="A whole number from 1"):
        read_rate("1" + " " * 1_000_000 + "x")  # a search would look at each blank once for every blank


def test_how_many_errors_a_group_has_is_told_as_far_as_it_is_known():
    group = Group("after 1 s", 3, 10, 1)
    assert (group.title, group.several) == ("after 1 s", False)
    group.add(ErrorGroup("r", "after 1 s", 2, 20, 1))
    assert (group.count, group.last_at, group.errors, group.is_exact) == (5, 20, 1, True)
    group.add(ErrorGroup("r", "after 2 s", 1, 5, 1))
    assert (group.title, group.errors, group.is_exact) == ("after ‹n› s", 2, False)
    group.add(ErrorGroup("r", "after 2 s", 9, 5, 7))
    assert (group.errors, group.is_exact) == (7, False)
    exact = Group("after 1 s", 3, 10, 3)
    assert (exact.title, exact.is_exact) == ("after ‹n› s", True)


def test_a_group_with_several_errors_is_a_filter_for_what_they_have_in_common():
    wanted = Filter(NOW).of_group("r", "after ‹n› s", several=True)
    assert wanted.question().error_like == "after ‹n› s"
    assert not wanted.is_empty
    assert [(chip.name, chip.value) for chip in wanted.chips()][-1] == ("Error like", "after ‹n› s")
    one = wanted.of_error("after 2 s")
    assert (one.question().error, one.question().error_like) == ("after 2 s", None)
    assert one.of_group("r", "x", several=False).error == "x"
    assert one.without_group() == Filter(NOW)
