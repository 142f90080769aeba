"""Values of single settings: addresses, secrets, URLs of databases, booleans and numbers."""

import json
import os
from pathlib import Path

import pytest

from forq_trio.config.load import load
from forq_trio.model import limits
from support.config_problems import MINIMAL, OTHER_SECRET, SECRET, file_with, problems


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("localhost:8080", ("localhost", 8080)),
        (":9000", ("", 9000)),
        ("0.0.0.0:0", ("0.0.0.0", 0)),
        ("[::1]:65535", ("::1", 65535)),
        ("queue.example.org:80", ("queue.example.org", 80)),
    ],
)
def test_addresses(text: str, address: tuple[str, int]):
    parsed = load(environ=MINIMAL | {"FORQ_API_ADDR": text}).config.api_addr
    assert parsed == address
    assert str(parsed) == text


@pytest.mark.parametrize("text", ["8080", "0", "65535"])
def test_a_port_alone_is_one_of_localhost(text: str, tmp_path: Path):
    address = ("localhost", int(text))
    assert load(environ=MINIMAL | {"FORQ_API_ADDR": text}).config.api_addr == address
    assert load({"ui_addr": text, "api_addr": ":1"}, MINIMAL).config.ui_addr == address
    for value in (text, f'"{text}"'):
        toml = file_with(tmp_path, f"[server]\napi_addr = {value}\nui_addr = 8082\n")
        assert load(environ=MINIMAL | {"FORQ_CONFIG": str(toml)}).config.api_addr == address


@pytest.mark.parametrize(
    "text",
    [
        "localhost",
        "65536",
        "٣",
        "localhost:",
        "localhost:http",
        "a:65536",
        "a:-1",
        "::1:80",
        "[::1:80",
        "[x]:80",
        "a b:80",
        "256.1.1.1:80",
        "http://a:80",
        "a..b:80",
        "a:٣",
        ":9999999999999",
    ],
)
def test_what_is_no_address(text: str):
    (problem,) = problems(MINIMAL | {"FORQ_API_ADDR": text})
    assert problem.startswith(f"FORQ_API_ADDR: {text!r} ")
    assert problem.endswith(
        "; allowed: port (of localhost), host:port, :port or [IPv6]:port, with port 0 for any free one"
    )


@pytest.mark.parametrize(
    ("secret", "reason"),
    [
        ("short", "has only 5 characters"),
        ("s" * 31, "has only 31 characters"),
        ("s" * 31 + "é", "has characters that are not ASCII"),
        (" " + "s" * 32, "has blanks at an end"),
        ("s" * 32 + "\n", "ends with a line end"),
        ("s\x00" * 32, "has control characters"),
        (f'"{"s" * 32}"', "has quotes around it"),
        (f"'{'s' * 32}'", "has quotes around it"),
    ],
)
def test_what_is_no_secret(secret: str, reason: str, tmp_path: Path):
    (problem,) = problems({"FORQ_AUTH_SECRET": secret})
    assert problem.startswith(f"FORQ_AUTH_SECRET: {reason}")
    assert secret.strip() not in problem
    toml = file_with(tmp_path, f"[server]\nauth_secret = {json.dumps(secret)}\n")
    (problem,) = problems({"FORQ_CONFIG": str(toml)})
    told = problem.removeprefix(f"{toml} [server] auth_secret: ")
    assert told.startswith(reason)
    assert secret.strip() not in told


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ('"postgresql://u:geheim@h/d"', "does not begin with postgresql://, but with a quote"),
        ("postgresql://u:geheim@h/d\n", "has blanks at an end, or control characters"),
        ("postgresql://u:geheim@h/d ", "has blanks at an end, or control characters"),
    ],
)
def test_what_is_no_url_of_a_database(url: str, reason: str):
    (problem,) = problems(MINIMAL | {"FORQ_DB_URL": url})
    assert problem.startswith(f"FORQ_DB_URL: {reason}")
    assert "geheim" not in problem


@pytest.mark.parametrize(
    ("text", "value"), [("true", True), ("TRUE", True), ("1", True), ("false", False), ("0", False)]
)
def test_booleans(text: str, value: bool):
    assert load(environ=MINIMAL | {"FORQ_REQUIRE_RECEIPT": text}).config.require_receipt is value


@pytest.mark.parametrize("hours", ["0", "-1", str(limits.TTL_HOURS_MAX + 1), "x", "1e3", "9" * 40])
def test_hours_out_of_range(hours: str):
    (problem,) = problems(MINIMAL | {"FORQ_DLQ_TTL_HOURS": hours})
    assert problem.startswith("FORQ_DLQ_TTL_HOURS: ")


def test_hours_at_both_bounds():
    environ = MINIMAL | {"FORQ_DLQ_TTL_HOURS": str(limits.TTL_HOURS_MAX), "FORQ_QUEUE_TTL_HOURS": "1"}
    config = load(environ=environ).config
    assert (config.queue_ttl_hours, config.dlq_ttl_hours) == (1, limits.TTL_HOURS_MAX)


def test_the_secret_may_be_in_a_file_of_its_own(tmp_path: Path):
    (tmp_path / "secret").write_text(f"{SECRET}\n", encoding="utf-8")
    toml = file_with(tmp_path, f"[server]\nauth_secret_file = '{tmp_path}/secret'\n")
    loaded = load({}, {}, toml)
    assert loaded.config.auth_secret == SECRET
    assert loaded.sources["auth_secret"] == f"{toml} [server] auth_secret_file"
    assert load({}, {"FORQ_AUTH_SECRET": OTHER_SECRET}, toml).config.auth_secret == OTHER_SECRET


def test_what_is_wrong_with_the_file_of_a_secret(tmp_path: Path):
    (tmp_path / "short").write_text("geheim\n", encoding="utf-8")
    os.mkfifo(tmp_path / "fifo")
    for name, reason in (
        ("none", f"'{tmp_path}/none' cannot be read (No such file or directory)"),
        ("fifo", f"'{tmp_path}/fifo' is not a file"),
        ("short", "has only 6 characters"),
    ):
        (problem,) = problems({"FORQ_AUTH_SECRET_FILE": f"{tmp_path}/{name}"})
        assert problem.startswith(f"FORQ_AUTH_SECRET_FILE: {reason}")
        toml = file_with(tmp_path, f"[server]\nauth_secret_file = '{tmp_path}/{name}'\n")
        (problem,) = problems({"FORQ_CONFIG": str(toml)})
        assert problem.startswith(f"{toml} [server] auth_secret_file: {reason}")
        assert "geheim" not in problem


@pytest.mark.parametrize(
    "keys",
    [
        "auth_secret = '{secret}'\nauth_secret_file = '{path}'",
        "auth_secret_file = '{path}'\nauth_secret = '{secret}'",
    ],
)
def test_a_secret_and_its_file_are_one_too_many(tmp_path: Path, keys: str):
    (tmp_path / "secret").write_text(SECRET, encoding="utf-8")
    toml = file_with(tmp_path, "[server]\n" + keys.format(secret=SECRET, path=tmp_path / "secret"))
    (problem,) = problems({"FORQ_CONFIG": str(toml)})
    assert "is set beside" in problem
    assert problem.endswith("allowed: one of the two")


@pytest.mark.parametrize("value", ["true", "5", "['x']"])
def test_the_file_of_a_secret_is_a_text(tmp_path: Path, value: str):
    toml = file_with(tmp_path, f"[server]\nauth_secret_file = {value}\n")
    (problem, _) = problems({"FORQ_CONFIG": str(toml)})
    assert problem == f"{toml} [server] auth_secret_file: is no text; allowed: the path of a readable file"
