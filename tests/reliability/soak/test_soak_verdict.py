"""The verdict of a soak on made-up seconds: what is flat passes, what grows fails, and is named."""

import json
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from bench.__main__ import main
from bench.soak import record
from bench.soak.verdict import LOG_MIB_MAX, RULES, judge

from .seconds import MINUTE, growing, steady

HALF_HOUR = 30 * MINUTE
# From the middle of the second quarter to that of the last it is half of what it is from first to last.
GROWS_BY_SHARE = {"rss_mib": 0.2, "log_mib": 0.3, "database_mib": 2.0, "p50_ms": 0.3, "stored": 4.0}


@pytest.fixture
def columns(seed):
    return steady(HALF_HOUR, seed)


def failed(columns) -> list[str]:
    return [judgement.series for judgement in judge(columns) if not judgement.flat]


def results(columns) -> dict:
    """What `run` returns, as far as it is looked at."""
    return {
        "about": {
            "commit": "0123456789ab",
            "date": "2026-11-21T10:00:00+00:00",
            "durability": "fsync=full",
            "machine": {"cpu": "a processor", "cores": 2, "kernel": "6.1"},
            "storage": {"filesystem": "ext4", "fdatasync_p50_ms": 0.3},
            "versions": {"python": "3.13.0"},
        },
        "requests": 900_000,
        "errors": {},
        "verdict": [],
        "columns": columns,
    }


def test_noise_and_the_saw_of_the_log_are_flat(columns):
    assert failed(columns) == []


@pytest.mark.parametrize(("series", "share"), GROWS_BY_SHARE.items())
def test_what_grows_fails_and_nothing_else_does(columns, series, share):
    assert failed(growing(columns, series, share)) == [series]


@pytest.mark.parametrize("series", GROWS_BY_SHARE)
def test_what_shrinks_is_flat(columns, series):
    assert failed(growing(columns, series, -0.5)) == []


def test_a_few_file_descriptors_that_stay_open_fail(columns):
    leaking = [value + second // 300 for second, value in enumerate(columns["file_descriptors"])]
    assert failed({**columns, "file_descriptors": leaking}) == ["file_descriptors"]


def test_a_load_that_fades_fails(columns):
    assert failed(growing(columns, "requests_per_second", -0.3)) == ["requests_per_second"]
    assert failed(growing(columns, "requests_per_second", 0.3)) == []


def test_a_log_beyond_its_limit_fails_however_flat(columns):
    assert failed({**columns, "log_mib": [LOG_MIB_MAX] * HALF_HOUR}) == []
    assert failed({**columns, "log_mib": [LOG_MIB_MAX + 1] * HALF_HOUR}) == ["log_mib"]


def test_one_error_fails_wherever_it_is(columns):
    columns["errors"][10] = 1
    (judgement,) = (judgement for judgement in judge(columns) if not judgement.flat)
    assert (judgement.series, judgement.why) == ("errors", "1 in all")


def test_latency_that_grows_with_the_yardstick_is_the_machines(columns):
    slower = growing(growing(columns, "p50_ms", 0.5), "yardstick_p50_ms", 0.5)
    (judgement,) = (judgement for judgement in judge(slower) if judgement.series == "p50_ms")
    assert judgement.flat
    assert "the machine became slower" in judgement.why


def test_a_yardstick_excuses_no_more_than_its_own_growth(columns):
    assert failed(growing(growing(columns, "p50_ms", 1.0), "yardstick_p50_ms", 0.3)) == ["p50_ms"]


def test_warming_up_in_the_first_quarter_does_not_count(columns):
    warming = [
        (value or 0) / (2 if second < HALF_HOUR // 4 else 1)
        for second, value in enumerate(columns["rss_mib"])
    ]
    assert failed({**columns, "rss_mib": warming}) == []


def test_seconds_without_a_value_are_left_out(columns):
    gaps = [None if second % 3 else value for second, value in enumerate(columns["p50_ms"])]
    assert failed({**columns, "p50_ms": gaps}) == []


def test_a_series_that_nobody_measured_fails(columns):
    assert failed({**columns, "p50_ms": [None] * HALF_HOUR}) == ["p50_ms"]


def test_what_comes_from_nothing_fails(columns):
    nothing = [0.0] * (HALF_HOUR // 2) + [300.0] * (HALF_HOUR // 2)
    assert failed({**columns, "stored": nothing}) == ["stored"]


def test_the_slope_is_told_per_hour(columns):
    straight = {**columns, "rss_mib": [60 + second / 3_600 for second in range(HALF_HOUR)]}
    (judgement,) = (judgement for judgement in judge(straight) if judgement.series == "rss_mib")
    assert judgement.per_hour == pytest.approx(1)


@pytest.mark.parametrize("seconds", [0, 3])
def test_too_short_a_soak_has_no_verdict(columns, seconds):
    with pytest.raises(ValueError, match="four seconds"):
        judge({series: values[:seconds] for series, values in columns.items()})


def test_every_series_of_a_rule_is_recorded(columns):
    assert {rule.series for rule in RULES} < columns.keys()


def test_the_command_ends_with_the_verdict(columns, tmp_path):
    """A record judged again: 0 when it is flat, 1 when it is not, and then which series is named."""
    flat, leaking = tmp_path / "flat.json", tmp_path / "leaking.json"
    record.save(results(columns), flat)
    record.save(results(growing(columns, "rss_mib", 0.2)), leaking)
    good = CliRunner().invoke(main, ["soak-verdict", str(flat)])
    assert (good.exit_code, good.stderr) == (0, "")
    assert "memory" in good.stdout
    bad = CliRunner().invoke(main, ["soak-verdict", str(leaking)])
    assert bad.exit_code == 1
    assert bad.stderr.startswith("not flat: memory (RSS), MiB: grew from 6")


def test_a_record_survives_a_round_trip(columns, tmp_path):
    path = tmp_path / "new" / "soak.json"
    record.save(results(columns), path)
    assert record.load(path) == results(columns)
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_other_json_is_not_taken_for_a_record(tmp_path):
    path = tmp_path / "other.json"
    path.write_text(json.dumps({"about": {}}))
    done = CliRunner().invoke(main, ["soak-verdict", str(path)])
    assert done.exit_code == 1
    assert "is not the record of a soak" in done.stderr


@pytest.mark.tier2
def test_the_plot_says_what_was_compared_and_is_the_same_each_time(columns, tmp_path):
    pytest.importorskip("matplotlib", reason="the extra bench is not installed: no plot drawn")
    from bench.soak.plot import PANELS, draw

    columns["p50_ms"][:20] = [None] * 20
    leaking = results(growing(columns, "rss_mib", 0.2))
    for name in ("one.svg", "two.svg"):
        draw(leaking, tmp_path / name)
    first, second = ((tmp_path / name).read_text() for name in ("one.svg", "two.svg"))
    assert first == second
    text = "".join(ElementTree.fromstring(first).itertext())
    for part in (
        "rss_mib: mean",
        "NOT FLAT",
        "fsync=full",
        "900,000 requests",
        *(panel.title for panel in PANELS),
    ):
        assert part in text


@pytest.mark.tier2
def test_the_plot_has_a_panel_for_each_judged_series():
    pytest.importorskip("matplotlib", reason="the extra bench is not installed: no plot drawn")
    from bench.soak.plot import PANELS

    judged = [series for panel in PANELS for series in panel.judged]
    assert sorted(judged) == sorted([*(rule.series for rule in RULES), "errors"])
    assert all(one is not other for one, other in pairwise(PANELS))
