"""A few seconds of the soak against a real server: every client works, and everything is recorded."""

import json

import pytest
from click.testing import CliRunner

from bench.__main__ import main
from bench.soak.verdict import RULES

pytestmark = [pytest.mark.process, pytest.mark.tier2]

SECONDS = 6
# Whatever the machine does meanwhile, some of each must have been seen; a message is in process for too short a time.
SEEN = ("ready", "delayed", "dead", "waiting", "stored", "log_mib", "database_mib", "rss_mib")


def test_some_seconds_of_every_client_without_an_error(tmp_path):
    pytest.importorskip("matplotlib", reason="the extra bench is not installed: no plot drawn")
    output, plot = tmp_path / "soak.json", tmp_path / "soak.svg"
    command = ["soak", "--minutes", str(SECONDS / 60), "--rate", "100", "--data-dir", str(tmp_path)]
    done = CliRunner().invoke(main, [*command, "--output", str(output), "--plot", str(plot)])
    # How flat a few seconds are is for the machine to say; errors, a leak of files, or nothing to judge are not.
    assert done.exit_code in (0, 1), done.output
    measured = json.loads(output.read_text())
    assert measured["errors"] == {}
    assert measured["requests"] > SECONDS * 100
    columns = measured["columns"]
    assert {len(values) for values in columns.values()} == {SECONDS}
    assert {
        series: max(value or 0 for value in columns[series]) for series in SEEN if not any(columns[series])
    } == {}
    verdict = {judgement["series"]: judgement for judgement in measured["verdict"]}
    assert verdict.keys() == {rule.series for rule in RULES} | {"errors"}
    assert verdict["file_descriptors"]["flat"]
    assert all(judgement["why"] != "nothing was measured" for judgement in verdict.values())
    assert plot.read_text().startswith("<?xml")
    assert [entry.name for entry in tmp_path.iterdir() if entry.name not in (output.name, plot.name)] == []
