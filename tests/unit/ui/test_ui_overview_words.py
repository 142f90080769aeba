"""What the list of queues says above its table, and which time its charts show without asking."""

import pytest

from forq_trio.drawing.chart_views import YOUNG_MS, range_default
from forq_trio.ui.pages.overview import headline, levels_in_words
from forq_trio.ui.summary import Summary


@pytest.mark.parametrize(
    ("levels", "title", "sentence"),
    [
        ({"fine": 8}, "All 8 queues are healthy", ""),
        ({"fine": 1}, "The queue is healthy", ""),
        ({"fine": 6, "paused": 2}, "No queue needs attention", "6 are healthy, 2 are paused."),
        ({"paused": 1}, "No queue needs attention", "0 are healthy, 1 is paused."),
        ({"fine": 1, "attention": 1}, "1 of 2 queues needs attention", "1 is healthy."),
        ({"broken": 1, "attention": 2}, "3 of 3 queues need attention", "0 are healthy."),
        (
            {"fine": 4, "paused": 1, "broken": 1},
            "1 of 6 queues needs attention",
            "4 are healthy, 1 is paused.",
        ),
    ],
)
def test_how_well_the_queues_are_is_said_once(levels, title, sentence) -> None:
    summary = Summary(queues=sum(levels.values()), levels=levels)
    assert headline(summary) == title
    assert levels_in_words(summary) == sentence
    assert not sentence or "healthy" not in title


def test_a_young_server_shows_ten_minutes() -> None:
    assert [range_default(age_ms) for age_ms in (0, YOUNG_MS - 1, YOUNG_MS)] == ["10m", "10m", "1h"]
