"""Secrets in files that variables name: FORQ_AUTH_SECRET_FILE and its like."""

import os
from pathlib import Path

import pytest

from forq_trio.config.load import load
from forq_trio.config.settings import SETTINGS
from forq_trio.config.sources import SECRET_FILES, read_environment
from support.config_problems import MINIMAL, OTHER_SECRET, SECRET, problems

DOCS = Path(__file__).parents[3] / "docs" / "configuration.md"
URL = "postgresql://queue_server:hunter2@db/queue"


def written(place: Path, text: str) -> str:
    path = place / "secret"
    path.write_text(text, encoding="utf-8", newline="")
    return str(path)


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_secret_comes_from_its_file(tmp_path: Path, end: str):
    loaded = load(environ={"FORQ_AUTH_SECRET_FILE": written(tmp_path, SECRET + end)})
    assert loaded.config.auth_secret == SECRET
    assert loaded.sources["auth_secret"] == "FORQ_AUTH_SECRET_FILE"
    assert loaded.warnings == ()


def test_every_secret_may(tmp_path: Path):
    (tmp_path / "metrics").mkdir()
    metrics, url = written(tmp_path / "metrics", OTHER_SECRET), written(tmp_path, f"{URL}\n")
    environ = {"FORQ_METRICS_ENABLED": "true", "FORQ_METRICS_AUTH_SECRET_FILE": metrics}
    urls = {f"FORQ_DB_{name}URL_FILE": url for name in ("", "LISTEN_", "REPLICA_")}
    config = load(environ=MINIMAL | environ | urls).config
    assert config.metrics_auth_secret == OTHER_SECRET
    assert (config.db_url, config.db_listen_url, config.db_replica_url) == (URL, URL, URL)
    assert {f"{each.variable}_FILE" for each in SETTINGS.values() if each.secret} == SECRET_FILES.keys()
    assert SECRET_FILES.keys() == {*environ, *urls, "FORQ_AUTH_SECRET_FILE"} - {"FORQ_METRICS_ENABLED"}


def test_the_documentation_names_them():
    text = DOCS.read_text(encoding="utf-8")
    assert {name for name in SECRET_FILES if f"`{name}" not in text} == set()


def test_an_empty_variable_counts_as_not_set(tmp_path: Path):
    assert load(environ=MINIMAL | {"FORQ_AUTH_SECRET_FILE": ""}).config.auth_secret == SECRET
    file = written(tmp_path, OTHER_SECRET)
    loaded = load(environ={"FORQ_AUTH_SECRET": "", "FORQ_AUTH_SECRET_FILE": file})
    assert loaded.config.auth_secret == OTHER_SECRET


def test_what_is_wrong_is_one_line_that_shows_no_secret(tmp_path: Path):
    short, missing = written(tmp_path, "short\n"), str(tmp_path / "missing")
    allowed = "allowed: at least 32 visible ASCII characters"

    def problem(path: str, **more: str) -> str:
        (line,) = problems({"FORQ_AUTH_SECRET_FILE": path} | more)
        return line.removeprefix("FORQ_AUTH_SECRET_FILE: ")

    assert problem(short) == f"has only 5 characters; {allowed}"
    assert (
        problem(short, FORQ_AUTH_SECRET=SECRET) == "is set beside FORQ_AUTH_SECRET; allowed: one of the two"
    )
    no_such_file = "cannot be read (No such file or directory); allowed: a readable file"
    assert problem(missing) == f"{missing!r} {no_such_file}"
    (tmp_path / "bytes").write_bytes(b"\xff" * 40)
    assert problem(str(tmp_path / "bytes")).startswith("names no file of text; ")
    (tmp_path / "long").write_text("s" * 70_000)
    assert problem(str(tmp_path / "long")).startswith("names a file of more than 65536 characters; ")
    os.mkfifo(tmp_path / "pipe")
    for path in ("/dev/zero", str(tmp_path), str(tmp_path / "pipe")):
        assert problem(path) == f"{path!r} is not a file; allowed: a readable file"
    assert problem("a\0b").startswith("names no file of text; ")


def test_a_misspelt_one_is_told_of():
    (warning,) = read_environment({"FORQ_AUTH_SECRET_FIL": "x"}).warnings
    assert warning.endswith("; nearest: FORQ_AUTH_SECRET_FILE")


def test_only_secrets_have_files():
    (warning,) = read_environment({"FORQ_API_ADDR_FILE": "x"}).warnings
    assert warning.startswith("FORQ_API_ADDR_FILE: is not a known variable")
