"""Other versions of Spark: what pyspark_forq/versions.py says of them is so, and all else works in each.

FORQ_TEST_SPARK_MORE names the Pythons of environments that have them, separated by colons.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from pyspark_forq.errors import ForqDataSourceError
from pyspark_forq.versions import SETTINGS, STREAM_READS, STREAM_WRITES, Feature
from support.needs import lacks
from support.real_server import SECRET

ROOT = Path(__file__).parents[2]
MORE = [each for each in os.environ.get("FORQ_TEST_SPARK_MORE", "").split(os.pathsep) if each]
NEEDS = {"drain": STREAM_READS, "follow": STREAM_READS, "load": STREAM_WRITES, "setting": SETTINGS}


def test_a_version_that_lacks_something_is_told_with_the_one_that_has_it() -> None:
    with pytest.raises(ForqDataSourceError) as raised:
        STREAM_READS.need("4.1.4")
    assert str(raised.value) == (
        "spark.readStream needs Spark 4.2 or newer, and this is 4.1.4: spark.read works here"
    )
    for enough in ("4.2.0", "4.10.1", "4.3.0.dev1", "5.0.0-preview"):
        STREAM_READS.need(enough)
    assert all(feature.is_in() for feature in NEEDS.values())


def test_the_page_says_what_each_version_lacks() -> None:
    page = (ROOT / "docs" / "spark.md").read_text(encoding="utf-8")
    section = page.split("\n### Versions of Spark\n")[1]
    lacking = {
        version: [feature for feature in set(NEEDS.values()) if not feature.is_in(version)]
        for version in ("4.0", "4.1")
    }
    for version, features in lacking.items():
        (row,) = [line for line in section.splitlines() if line.startswith(f"| {version} |")]
        for feature in features:
            words = f"`{feature.use.removeprefix('a setting ')}`"
            assert words in row or (version == "4.0" and feature in lacking["4.1"] and "| That;" in row)


@pytest.mark.tier2
@pytest.mark.process
@pytest.mark.parametrize("python", [sys.executable, *(MORE or [None])])
def test_everything_once_in_another_version(java, shared, queue, tmp_path, python) -> None:
    if python is None:
        lacks("Spark", "other versions of it (FORQ_TEST_SPARK_MORE: docs/testing.md)", installed=False)
    shared.send(queue, ["gone"])
    (message,) = shared.client.receive(queue)
    shared.client.ack(queue, [message.receipt])
    done = subprocess.run(
        [python, Path(__file__).with_name("versions_job.py"), shared.url, queue, tmp_path],
        input=SECRET,
        cwd=tmp_path,
        env=without_secrets() | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    version = found.pop("version")
    if python == sys.executable:
        assert version == pyspark.__version__
    for name, feature in NEEDS.items():
        if not feature.is_in(version):
            assert found.pop(name) == told(feature, version)
    if version.startswith("4.0."):
        assert "Cannot find data for the output column" in found.pop("insert")
    assert {name: each for name, each in found.items() if type(each) is str} == {}
    assert [found[name] for name in ("snapshot", "events", "history", "table")] == [1, 4, 1, 3]
    assert found.get("insert", 4) == found.get("setting", 4) == found.get("drain", 4) == 4
    assert found["archived"] == found["archive"]["events"] == found["report"] > 4
    assert found["replay"] == found["archive"]["history"]


def told(feature: Feature, version: str) -> str:
    with pytest.raises(ForqDataSourceError) as raised:
        feature.need(version)
    return str(raised.value)


def without_secrets() -> dict[str, str]:
    """The environment of a program to which nobody has told a secret, nor another Spark."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("FORQ_", "PYSPARK_", "SPARK_"))
    }
