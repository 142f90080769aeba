"""Charts are drawn from what is known, and say nothing about what is not."""

import json
import re
from typing import NamedTuple

import pytest
from markupsafe import Markup

from forq_trio.drawing import charts
from forq_trio.drawing.chart_views import ChartLine, make_chart


class Series(NamedTuple):
    start_ms: int
    step_ms: int
    values: tuple[float | None, ...]


@pytest.mark.parametrize(
    ("highest", "top"),
    [
        (0, 1),
        (0.4, 1),
        (1, 1),
        (1.01, 1.5),
        (7, 8),
        (99, 100),
        (100, 100),
        (101, 150),
        (2_305, 3_000),
        (6e9, 6e9),
    ],
)
def test_the_top_of_an_axis_is_a_round_number_above(highest, top):
    assert charts.nice_top(highest) == top


def test_a_line_is_interrupted_where_nothing_is_known():
    assert charts.path([0, 10, None, 5, 10], 400, 100, 10) == "M0 100L100 0M300 50L400 0"
    assert charts.path([None, None], 400, 100, 10) == ""
    assert charts.path([None, 10, None], 400, 100, 10) == "M200 0h0"  # a dot, where line ends are round
    assert charts.area([None, 5, None], 200, 100, 10) == "M100 50L100 100L100 100Z"


@pytest.mark.parametrize("values", [[], [None], [0], [0.0] * 60, [1], [1e12, None, 0.001] * 40])
def test_every_drawing_is_well_formed(values):
    for drawing in (
        charts.sparkline(values, 'a "label" <b>'),
        charts.chart([("ln-a", values)], 10, filled=True, limit=5),
        charts.histogram([value or 0 for value in values], 1),
    ):
        assert isinstance(drawing, Markup)
        assert "<b>" not in drawing
        assert not re.search(r"nan|inf|style=", drawing)


@pytest.mark.parametrize(
    ("share", "drawn"), [(-1, "0.0"), (0, "0.0"), (0.5, "15.7"), (1, "31.4"), (9, "31.4")]
)
def test_a_ring_shows_the_share_that_is_left(share, drawn):
    assert f'stroke-dasharray="{drawn} 31.4"' in charts.ring(share)


def test_a_chart_has_its_values_for_the_readout():
    series = Series(1_000, 5_000, (None,) * 60 + (1.23456, 7.0) * 30)
    view = make_chart("k", "Messages", "rate", [ChartLine("ln-a", "Sent", series, "7.0")])
    values = json.loads(view.values)
    assert values["start"] == 1_000
    assert values["lines"][0][1][60:62] == [1.23, 7.0]
    assert view.axis == ("8", "4", "0")
    assert view.since == 1_000 + 60 * 5_000


@pytest.mark.parametrize(
    ("highest", "axis"),
    [
        (0.1, ("2 s", "1 s", "0")),
        (33, ("40 s", "20 s", "0")),
        (4_342, ("80 min", "40 min", "0")),
        (20_000, ("6 h", "3 h", "0")),
        (600_000, ("8 d", "4 d", "0")),
    ],
)
def test_an_axis_of_times_has_round_labels_in_one_unit(highest, axis):
    series = Series(0, 1, (float(highest),) * 120)
    assert make_chart("k", "Oldest", "seconds", [ChartLine("ln-a", "a", series, "")]).axis == axis
