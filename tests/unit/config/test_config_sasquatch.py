"""Sasquatch's settings (S10): ranges, what does not go together, unknown and doubled keys, all problems at once."""

from pathlib import Path

import pytest

from forq_trio import app
from forq_trio.config.load import load
from forq_trio.config.settings import SETTINGS
from forq_trio.http.sasquatch_api import SasquatchOptions
from support.config_problems import MINIMAL, file_with, problems

# Of the README's table, with its ranges; where it names no highest value ours is beyond any use.
RANGES = {
    "max_queue_length": (1, 1_000_000_000),
    "max_message_size_kb": (1, 10_240),
    "max_request_body_size_kb": (1, 102_400),
    "default_visibility_timeout": (0, 43_200),
    "default_max_receives": (1, 1_000),
    "poison_max_receives": (1, 1_000),
    "default_retention_period": (60, 1_209_600),
    "default_wait_time_seconds": (0, 20),
    "default_dedup_time_period": (1, 43_200),
    "default_priority": (0, 1_000),
    "poison_cleanup_interval": (1, 86_400),
    "retention_cleanup_interval": (1, 86_400),
    "dedup_cleanup_interval": (1, 86_400),
}
DEFAULTS = {
    "max_queue_length": 5_000,
    "max_message_size_kb": 256,
    "max_request_body_size_kb": 1_024,
    "default_visibility_timeout": 30,
    "default_max_receives": 4,
    "poison_max_receives": 100,
    "default_retention_period": 345_600,
    "default_wait_time_seconds": 20,
    "default_dedup_time_period": 300,
    "default_priority": 100,
    "poison_cleanup_interval": 60,
    "retention_cleanup_interval": 600,
    "dedup_cleanup_interval": 60,
}


def test_the_defaults_are_those_of_the_readme():
    config = load(environ=MINIMAL).config
    assert {name: getattr(config, f"sasquatch_{name}") for name in DEFAULTS} == DEFAULTS
    assert (config.sasquatch_enabled, config.sasquatch_auth, config.memory) == (True, True, False)
    options = SasquatchOptions()
    assert app._sasquatch_options(config) == options
    assert {name: getattr(options, name) for name in options.__struct_fields__}.items() <= DEFAULTS.items()


def test_there_is_a_setting_for_every_key_of_the_readme():
    ours = {name.removeprefix("sasquatch_") for name in SETTINGS if name.startswith("sasquatch_")}
    assert ours - {"enabled", "auth"} == set(DEFAULTS)
    assert {"memory", "reader_pool_size", "api_addr"} <= set(SETTINGS)


@pytest.mark.parametrize("name", [*RANGES, "reader_pool_size"])
def test_every_number_has_its_range(name: str):
    low, high = RANGES.get(name, (1, 64))
    prefix = "" if name == "reader_pool_size" else "SASQUATCH_"
    variable = f"FORQ_{prefix}{name.upper()}"
    others = {"FORQ_SASQUATCH_POISON_MAX_RECEIVES": "1000", "FORQ_SASQUATCH_DEFAULT_MAX_RECEIVES": "1"}
    for value in (low, high):
        config = load(environ=MINIMAL | others | {variable: str(value)}).config
        assert getattr(config, variable.removeprefix("FORQ_").lower()) == value
    for value in (low - 1, high + 1, 10**17):
        assert problems(MINIMAL | {variable: str(value)}) == [
            f"{variable}: {value} is out of range; allowed: a whole number from {low} to {high}"
        ]
    for text in ("x", "1.5", "1 "):
        assert problems(MINIMAL | {variable: text}) == [
            f"{variable}: {text!r} is not a whole number; allowed: a whole number from {low} to {high}"
        ]


def test_poison_is_at_least_the_default_number_of_receives():
    name = "FORQ_SASQUATCH_DEFAULT_MAX_RECEIVES"
    assert load(environ=MINIMAL | {name: "100"}).config.sasquatch_default_max_receives == 100
    assert problems(MINIMAL | {name: "101"}) == [
        "FORQ_SASQUATCH_POISON_MAX_RECEIVES: 100 is less than sasquatch_default_max_receives; "
        "allowed: at least 101"
    ]


@pytest.mark.parametrize(
    "address", ["localhost:8080", "127.0.0.1:0", "127.9.9.9:1", "[::1]:1", "LOCALHOST:1"]
)
def test_no_keys_where_only_this_machine_can_come(address: str):
    environ = MINIMAL | {"FORQ_SASQUATCH_AUTH": "false", "FORQ_API_ADDR": address}
    assert load(environ=environ).config.sasquatch_auth is False


@pytest.mark.parametrize(
    "address", [":8080", "0.0.0.0:1", "[::]:1", "192.0.2.1:1", "localhost.example.com:1"]
)
def test_no_keys_where_others_can_come_is_refused(address: str):
    environ = {"FORQ_SASQUATCH_AUTH": "false", "FORQ_API_ADDR": address}
    (problem,) = problems(MINIMAL | environ)
    assert problem.startswith(f"FORQ_SASQUATCH_AUTH: is false, but {address} can be reached")
    assert load(environ=MINIMAL | environ | {"FORQ_SASQUATCH_ENABLED": "false"}).config.env == "pro"


def test_all_errors_at_once_and_unknown_keys(tmp_path: Path):
    toml = file_with(
        tmp_path,
        "[sasquatch]\nsasquatch_max_queue_lenght = 1\nsasquatch_default_priority = 1001\nsasquatch_auth = 'no'\n",
    )
    environ = {"FORQ_SASQUATCH_DEFAULT_WAIT_TIME_SECONDS": "21", "FORQ_READER_POOL_SIZE": "0"}
    assert [problem.partition(";")[0] for problem in problems(MINIMAL | environ, toml)] == [
        f"{toml} [sasquatch] sasquatch_max_queue_lenght: is not a known key",
        "FORQ_READER_POOL_SIZE: 0 is out of range",
        "FORQ_SASQUATCH_DEFAULT_WAIT_TIME_SECONDS: 21 is out of range",
        f"{toml} [sasquatch] sasquatch_default_priority: 1001 is out of range",
        f"{toml} [sasquatch] sasquatch_auth: 'no' is neither true nor false",
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[sasquatch]\nsasquatch_auth = true\nsasquatch_auth = true\n", "a key is given twice"),
        ("[sasquatch]\n[log]\n[sasquatch]\n", "the section [sasquatch] is given twice"),
    ],
)
def test_what_is_there_twice_is_refused_in_plain_words(tmp_path: Path, text: str, problem: str):
    (found,) = problems(MINIMAL | {}, file_with(tmp_path, text))
    assert problem in found
