"""Other versions of Spark: what pyspark_forq/versions.py says of them is so, and all else works in each.

FORQ_TEST_SPARK_MORE names the Pythons of environments that have them, separated by colons.
"""

import os
import subprocess
import sys

import pyspark
import pytest

from pyspark_forq.errors import ForqDataSourceError
from pyspark_forq.versions import SETTINGS, STREAM_READS, STREAM_WRITES, Feature
from spark.processes import ROOT, check_all, everything
from support.needs import lacks

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


def test_a_version_without_data_sources_of_python_is_told_at_once() -> None:
    program = """
import sys, pyspark
pyspark.__version__, sys.modules["pyspark.sql.datasource"] = "3.5.8", None
from pyspark_forq import session
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == (
        "pyspark_forq.errors.ForqDataSourceError: format('forq') needs Spark 4.0 or newer, and this is 3.5.8:"
        " earlier ones know no data sources of Python"
    )


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
            assert words in row or (
                version == "4.0" and feature in lacking["4.1"] and "| What 4.1 lacks;" in row
            )


@pytest.mark.tier2
@pytest.mark.process
@pytest.mark.parametrize("python", [sys.executable, *(MORE or [None])])
def test_everything_once_in_another_version(java, shared, queue, tmp_path, python) -> None:
    if python is None:
        lacks("Spark", "other versions of it (FORQ_TEST_SPARK_MORE: docs/testing.md)", installed=False)
    found = everything(shared, queue, tmp_path, python=python, PYSPARK_PYTHON=python)
    version = found.pop("version")
    if python == sys.executable:
        assert version == pyspark.__version__
    for name, feature in NEEDS.items():
        if not feature.is_in(version):
            assert found.pop(name) == told(feature, version)
    if version.startswith("4.0."):
        assert "Cannot find data for the output column" in found.pop("insert")
    check_all(found)


def told(feature: Feature, version: str) -> str:
    with pytest.raises(ForqDataSourceError) as raised:
        feature.need(version)
    return str(raised.value)
