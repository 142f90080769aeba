"""What `forq config` prints, and that the pages on settings and log events say the same as the code."""

import json
import re
import tomllib
from pathlib import Path

from forq_trio.config import report as config_report
from forq_trio.config.load import load
from forq_trio.config.settings import SETTINGS
from forq_trio.config.sources import read_environment
from forq_trio.telemetry.log import LogEvent

REFERENCE = Path(__file__).parents[3] / "docs" / "reference"
SECRET = "correct-horse-battery-staple-0123456789"


def cells(line: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def plain(text: str) -> str:
    """A text without the marks of code and of stars."""
    return text.replace("`", "").replace("\\*", "*")


def test_every_setting_is_documented_as_it_is():
    page = (REFERENCE / "settings.md").read_text(encoding="utf-8")
    parts = re.split(r"^##(#?) (.+)\n", page, flags=re.MULTILINE)[1:]
    documented = []
    section = ""
    for deep, heading, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        if not deep:
            section = heading
            continue
        doc, key, allowed, default = (
            plain(text).strip().splitlines()[0:1] + plain(text).strip().splitlines()[2:5]
        )
        documented.append((section, heading, doc, key, allowed, default))
    assert documented == [
        (
            f"[{setting.section}]",
            setting.variable,
            plain(setting.doc),
            f"- key {setting.name} of [{setting.section}], "
            + (f"option {setting.option}" if setting.option else "no option, because it is a secret"),
            f"- allowed: {setting.form.allowed}",
            "- required" if setting.default_text == "(required)" else f"- default: {setting.default_words}",
        )
        for setting in SETTINGS.values()
    ]


def test_what_else_is_to_know_of_a_setting_is_on_its_page_and_not_in_the_help():
    page = " ".join(plain((REFERENCE / "settings.md").read_text(encoding="utf-8")).split())
    with_details = [setting for setting in SETTINGS.values() if setting.details]
    assert len(with_details) >= 5
    for setting in with_details:
        assert "\n\n" not in setting.doc
        assert plain(setting.details).split("(docs/")[0].split("\n")[0] in page


def test_every_log_event_is_documented_as_it_is():
    page = (REFERENCE / "events.md").read_text(encoding="utf-8")
    rows = [cells(line) for line in page.splitlines() if re.match(r"\| `\w+\.\w+` \|", line)]
    assert [[plain(cell) for cell in row] for row in rows] == [
        [event.value, event.level, event.doc] for event in LogEvent
    ]


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
    root = REFERENCE.parents[1]
    read = re.compile(r'(?:environ(?:\.get\(|\[)|envvar=)"(FORQ_\w+)"')
    sources = [*(root / "forq_trio").rglob("*.py"), *(root / "pyspark_forq").rglob("*.py")]
    names = {name for path in sources for name in read.findall(path.read_text(encoding="utf-8"))}
    assert {"FORQ_URL", "FORQ_PG_URL", "FORQ_TOKEN"} <= names
    assert read_environment(dict.fromkeys(names, "x")).warnings == []
