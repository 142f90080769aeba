"""The rows of a page are found again by their digest, as long as not too many pages were opened since."""

from forq_trio.model.limits import ROW_LISTS_MAX
from forq_trio.ui.row_lists import RowLists


def test_names_are_found_by_their_digest():
    lists = RowLists()
    one, other = lists.keep(["a", "b"]), lists.keep(["b", "a"])
    assert one != other == lists.keep(["b", "a"])
    assert lists.find(one) == ["a", "b"]
    assert lists.find(other) == ["b", "a"]
    assert lists.find("") is None


def test_the_list_that_was_used_longest_ago_is_forgotten():
    lists = RowLists()
    first = lists.keep(["first"])
    used = lists.keep(["used"])
    for number in range(ROW_LISTS_MAX - 1):
        assert lists.find(used) == ["used"]
        lists.keep([str(number)])
    assert lists.find(first) is None
    assert lists.find(used) == ["used"]
