"""What a content has that another one has not."""

import json

import pytest

from forq_trio.ui import content
from forq_trio.ui.differences import UNITS_MAX, differing_members, marked


def marks(old: str, new: str) -> list[str]:
    """What is marked of the new content."""
    html = marked(content.show(old), content.show(new))
    return [part.partition("</mark>")[0] for part in html.split("<mark>")[1:]]


def test_values_of_json_that_are_new_are_marked():
    old, new = '{"a": [1, "x"], "b": 2}', '{"a": [1, "<y>"], "b": 2, "c": null}'
    assert marks(old, new) == [
        '<span class="s">"&lt;y&gt;"</span>',
        '<span class="k">"c"</span>',
        '<span class="n">null</span>',
    ]
    assert marks(old, old) == []
    assert marks('{"b":2,"a":1}', '{"a":1}') == []


def test_lines_of_text_that_are_new_are_marked():
    assert marks("one\ntwo", "one\n<b>\ntwo\nthree") == ["&lt;b&gt;", "three"]
    assert marks('{"a": 1}', "text") == ["text"]
    assert marks("", "") == []


def test_what_is_very_long_is_shown_without_marks():
    old, new = json.dumps([0] * (UNITS_MAX + 1)), json.dumps([1] * (UNITS_MAX + 1))
    assert marks(old, new) == []
    assert len(marks(json.dumps([0] * UNITS_MAX), json.dumps([1] * UNITS_MAX))) == UNITS_MAX


def test_the_whole_text_stays_as_it_was():
    for old, new in (('{"a":1}', '{"a":2,"b":"<&>"}'), ("x", "<x>\r\ny\u202e")):
        shown = content.show(new)
        assert marked(content.show(old), shown).replace("<mark>", "").replace("</mark>", "") == shown.html


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        ('{"a": 1, "b": 2}', '{"b": 2, "a": 1}', []),
        ('{"a": 1, "gone": 2}', '{"a": "1", "new": 3}', ["a", "new", "gone"]),
        ("[1]", "[2]", None),
        ("{", "{}", None),
        ("[" * 100_000, "{}", None),
    ],
)
def test_members_of_objects_that_differ(old, new, names):
    assert differing_members(old, new) == names
