"""What `forq config` prints, and that docs/configuration.md says the same as the code."""

import json
import re
import tomllib
from pathlib import Path

from forq_trio.config import report as config_report
from forq_trio.config.load import load
from forq_trio.config.settings import SETTINGS
from forq_trio.config.sources import read_environment
from forq_trio.telemetry.log import LogEvent

DOCS = Path(__file__).parents[3] / "docs" / "configuration.md"
SECRET = "correct-horse-battery-staple-0123456789"


def cells(line: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def table_rows(start: str) -> list[list[str]]:
    """Rows of the tables in the documentation whose first cell begins so."""
    return [cells(line) for line in DOCS.read_text().splitlines() if line.startswith(start)]


def test_every_setting_is_documented_as_it_is():
    expected = [
        [
            f"`{setting.variable}`",
            f"`[{setting.section}] {setting.name}`",
            f"`{setting.option}`" if setting.option else "",
            setting.form.allowed,
            setting.default_text,
            setting.doc,
        ]
        for setting in SETTINGS.values()
    ]
    assert table_rows("| `FORQ_") == expected


def test_every_log_event_is_documented_as_it_is():
    documented = [row for row in table_rows("| `") if "." in row[0]]
    assert documented == [[f"`{event.value}`", event.level, event.doc] for event in LogEvent]


def test_json_has_every_setting_with_its_source_and_no_secret():
    text = config_report.as_json(load({"log_level": "debug"}, {"FORQ_AUTH_SECRET": SECRET}))
    document = json.loads(text)
    assert {(section, key) for section, keys in document.items() for key in keys} == {
        (setting.section, name) for name, setting in SETTINGS.items()
    }
    assert document["log"]["log_level"] == {"value": "debug", "source": "--log-level"}
    assert document["server"]["auth_secret"] == {"value": config_report.MASK, "source": "FORQ_AUTH_SECRET"}
    assert document["metrics"]["metrics_auth_secret"] == {"value": None, "source": "default"}
    assert SECRET not in text


def test_the_example_is_valid_and_holds_the_defaults(tmp_path: Path):
    example = config_report.example()
    assert load(environ={"FORQ_AUTH_SECRET": SECRET}, file=_written(tmp_path, example)).config.env == "pro"

    uncommented = re.sub(r"^# (?=\w+ = )", "", example, flags=re.MULTILINE)
    document = tomllib.loads(uncommented)
    assert {(section, key) for section, keys in document.items() for key in keys} == {
        (setting.section, key)
        for name, setting in SETTINGS.items()
        for key in ((name, f"{name}_file") if setting.secret else (name,))
    }
    places = (
        r"\w+_secret_file|db_(listen_|replica_)?url_file|db_path|db_(listen_|replica_)?url|backup_dir|tls_\w+"
    )
    without_places = re.sub(rf"^({places}) = .*$", "", uncommented, flags=re.MULTILINE)
    without_places = without_places.replace('secret = ""', f'secret = "{SECRET}"')
    assert (
        load(environ={}, file=_written(tmp_path, without_places)).config
        == load(environ={"FORQ_AUTH_SECRET": SECRET, "FORQ_METRICS_AUTH_SECRET": SECRET}).config
    )


def _written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "forq.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_variables_that_our_commands_and_clients_read_are_known():
    root = DOCS.parents[1]
    read = re.compile(r'(?:environ(?:\.get\(|\[)|envvar=)"(FORQ_\w+)"')
    sources = [*(root / "forq_trio").rglob("*.py"), *(root / "pyspark_forq").rglob("*.py")]
    names = {name for path in sources for name in read.findall(path.read_text(encoding="utf-8"))}
    assert {"FORQ_URL", "FORQ_PG_URL", "FORQ_TOKEN"} <= names
    assert read_environment(dict.fromkeys(names, "x")).warnings == []
