"""Configuration (F16): precedence, forms of values, and that every problem is named at once."""

import stat
import traceback
from pathlib import Path

import pydantic
import pytest

from forq_trio.config.errors import ConfigError
from forq_trio.config.load import DEFAULT, load, load_db_path
from forq_trio.config.settings import SETTINGS, default_db_path
from forq_trio.config.values import HostPort
from support.config_problems import MINIMAL, OTHER_SECRET, SECRET, file_with, problems


def test_defaults_need_nothing_but_the_secret():
    loaded = load(environ=MINIMAL)
    config = loaded.config
    assert config.auth_secret == SECRET
    assert (config.api_addr, config.ui_addr) == (HostPort("localhost", 8080), HostPort("localhost", 8081))
    assert (config.queue_ttl_hours, config.dlq_ttl_hours) == (24, 168)
    assert (config.env, config.durability, config.metrics_enabled) == ("pro", "full", False)
    assert config.db_path == default_db_path()
    assert loaded.sources["auth_secret"] == "FORQ_AUTH_SECRET"
    assert {source for name, source in loaded.sources.items() if name != "auth_secret"} == {DEFAULT}


def test_without_the_secret_nothing_starts():
    assert problems({}) == [
        "FORQ_AUTH_SECRET (or auth_secret in [server] of the TOML file): is not set;"
        " allowed: at least 32 visible ASCII characters; `forq init` makes one"
    ]


def test_the_configuration_cannot_be_changed():
    config = load(environ=MINIMAL).config
    with pytest.raises(pydantic.ValidationError, match="frozen"):
        config.env = "local"


def test_no_secret_in_the_text_form():
    environ = MINIMAL | {"FORQ_METRICS_ENABLED": "true", "FORQ_METRICS_AUTH_SECRET": OTHER_SECRET}
    text = repr(load(environ=environ))
    assert SECRET not in text
    assert OTHER_SECRET not in text


def test_no_secret_in_the_traceback_of_an_error():
    too_short = SECRET[1:]
    with pytest.raises(ConfigError) as caught:
        load(environ={"FORQ_AUTH_SECRET": too_short, "FORQ_ENV": "production"})
    text = "".join(traceback.format_exception(caught.value))
    assert "'production' is not known" in text
    assert too_short not in text


def test_option_before_variable_before_file_before_default(tmp_path: Path):
    toml = file_with(
        tmp_path,
        "[queue]\nqueue_ttl_hours = 1\ndlq_ttl_hours = 2\n[server]\nenv = 'local'\n[log]\nlog_level='debug'",
    )
    environ = MINIMAL | {"FORQ_QUEUE_TTL_HOURS": "3", "FORQ_ENV": "pro"}
    loaded = load({"queue_ttl_hours": "4"}, environ, toml)
    config, sources = loaded.config, loaded.sources
    assert (config.queue_ttl_hours, sources["queue_ttl_hours"]) == (4, "--queue-ttl-hours")
    assert (config.env, sources["env"]) == ("pro", "FORQ_ENV")
    assert (config.dlq_ttl_hours, sources["dlq_ttl_hours"]) == (2, f"{toml} [queue] dlq_ttl_hours")
    assert config.log_level == "debug"
    assert (config.log_format, sources["log_format"]) == ("auto", DEFAULT)


def test_a_bad_value_is_named_even_if_a_better_one_overrides_it(tmp_path: Path):
    toml = file_with(tmp_path, "[queue]\nqueue_ttl_hours = 0\n")
    assert problems(MINIMAL | {"FORQ_QUEUE_TTL_HOURS": "3"}, toml) == [
        f"{toml} [queue] queue_ttl_hours: 0 is out of range; allowed: a whole number from 1 to 8784"
    ]


def test_forq_config_names_the_file_which_may_begin_with_a_byte_order_mark(tmp_path: Path):
    toml = file_with(tmp_path, f"\ufeff[server]\nauth_secret = '{SECRET}'\ntrust_proxy_headers = true\n")
    config = load(environ={"FORQ_CONFIG": str(toml)}).config
    assert config.auth_secret == SECRET
    assert config.trust_proxy_headers is True


def test_every_setting_can_be_given_in_the_file(tmp_path: Path):
    values = {
        "auth_secret": SECRET,
        "metrics_auth_secret": OTHER_SECRET,
        "env": "local",
        "api_addr": ":0",
        "ui_addr": "[::1]:0",
        "trust_proxy_headers": True,
        "require_receipt": True,
        "h2c": "off",
        "ui_enabled": False,
        "ui_base_path": "/forq",
        "ui_hosts": "queue.example.com",
        "queue_ttl_hours": 1,
        "dlq_ttl_hours": 2,
        "db_path": str(tmp_path / "a.db"),
        "durability": "normal",
        "memory": True,
        "disk_reserve_mb": 0,
        "backup_dir": str(tmp_path / "backups"),
        "backup_every_hours": 24,
        "backup_keep": 2,
        "history": "on",
        "history_hours": 3,
        "history_max_mib": 4,
        "reader_pool_size": 3,
        "events": "on",
        "events_hours": 24,
        "events_max_mib": 10,
        "sasquatch_enabled": False,
        "sasquatch_auth": False,
        "sasquatch_max_queue_length": 1,
        "sasquatch_max_message_size_kb": 2,
        "sasquatch_max_request_body_size_kb": 3,
        "sasquatch_default_visibility_timeout": 4,
        "sasquatch_default_max_receives": 5,
        "sasquatch_poison_max_receives": 6,
        "sasquatch_default_retention_period": 70,
        "sasquatch_default_wait_time_seconds": 8,
        "sasquatch_default_dedup_time_period": 9,
        "sasquatch_default_priority": 10,
        "sasquatch_poison_cleanup_interval": 11,
        "sasquatch_retention_cleanup_interval": 12,
        "sasquatch_dedup_cleanup_interval": 13,
        "sqs_enabled": False,
        "sqs_auth": False,
        "sqs_account": "123456789012",
        "sqs_region": "eu-west-1",
        "metrics_enabled": True,
        "log_level": "error",
        "log_format": "json",
    }
    left_out = {"tls_cert", "tls_key", "db_url", "db_listen_url", "db_replica_url"}
    assert values.keys() | left_out == SETTINGS.keys()
    text = "".join(
        f"{SETTINGS[name].section}.{name} = {str(value).lower() if isinstance(value, bool) else repr(value)}\n"
        for name, value in values.items()
    )
    config = load(environ={}, file=file_with(tmp_path, text)).config
    for name, value in values.items():
        assert str(getattr(config, name)) == str(value)


def test_a_database_url_excludes_a_file_and_memory(tmp_path: Path):
    url = "postgresql://forq:hunter2@db/queue"
    toml = file_with(tmp_path, f"database.db_url = {url!r}\n")
    config = load(environ=MINIMAL, file=toml).config
    assert config.db_url == url
    assert "hunter2" not in repr(config)
    for variable, value in (("FORQ_DB_PATH", str(tmp_path / "q.db")), ("FORQ_MEMORY", "true")):
        with pytest.raises(ConfigError, match=f"FORQ_DB_URL: names another database than {variable}"):
            load(environ=MINIMAL | {variable: value}, file=toml)


@pytest.mark.parametrize("name", ["db_listen_url", "db_replica_url"])
def test_a_further_url_needs_the_database_url(name: str):
    url = "postgresql://forq:hunter2@db/queue"
    variable = SETTINGS[name].variable
    with pytest.raises(ConfigError, match=f"FORQ_DB_URL: is needed, for {name} is set"):
        load(environ=MINIMAL | {variable: url})
    config = load(environ=MINIMAL | {variable: url, "FORQ_DB_URL": url}).config
    assert getattr(config, name) == url
    assert "hunter2" not in repr(config)


@pytest.mark.parametrize(
    "variable", ["FORQ_DISK_RESERVE_MB", "FORQ_BACKUP_DIR", "FORQ_BACKUP_EVERY_HOURS", "FORQ_BACKUP_KEEP"]
)
def test_what_is_for_the_database_file_is_refused_by_name_with_postgresql(variable: str):
    environ = MINIMAL | {variable: "64"}
    (problem,) = problems(environ | {"FORQ_DB_URL": "postgresql:///queue"})
    assert problem.startswith(f"{variable}: is for the database file, and FORQ_DB_URL names PostgreSQL")
    assert load(environ=environ).config.db_url is None


def test_no_reserve_and_no_backups_go_with_postgresql():
    nothing = {"FORQ_DISK_RESERVE_MB": "0", "FORQ_BACKUP_EVERY_HOURS": "0"}
    assert load(environ=MINIMAL | nothing | {"FORQ_DB_URL": "postgresql:///queue"}).config.db_url


def test_an_empty_variable_counts_as_not_set():
    assert load(environ=MINIMAL | {"FORQ_ENV": "", "FORQ_CONFIG": ""}).config.env == "pro"


def test_everything_that_is_wrong_is_named_at_once(tmp_path: Path):
    toml = file_with(
        tmp_path, "[server]\nauth_secert = 'x'\napi_addr = 80800\n[quue]\n[log]\nlog_level = ['info']\n"
    )
    environ = {
        "FORQ_AUTH_SECRET": "hunter2",
        "FORQ_ENV": "production",
        "FORQ_METRICS_ENABLED": "yes",
        "FORQ_DLQ_TTL_HOUR": "1",
        "FORQ_QUEUE_TTL_HOURS": "1.5",
        "FORQ_TLS_KEY": str(tmp_path / "missing.pem"),
        "FORQ_DB_PATH": str(tmp_path),
    }
    found = problems(environ, toml, durability="half")
    assert [problem.partition(": ")[0] for problem in found] == [
        "FORQ_DLQ_TTL_HOUR",
        f"{toml} [server] auth_secert",
        f"{toml}",
        f"{toml} [log] log_level",
        "--durability",
        "FORQ_AUTH_SECRET",
        "FORQ_DB_PATH",
        "FORQ_ENV",
        "FORQ_METRICS_ENABLED",
        "FORQ_QUEUE_TTL_HOURS",
        "FORQ_TLS_KEY",
        f"{toml} [server] api_addr",
        "FORQ_TLS_CERT",
    ]
    assert all("\n" not in problem for problem in found)
    assert not any("hunter2" in problem for problem in found)


@pytest.mark.parametrize(
    ("variable", "nearest"),
    [
        ("FORQ_AUTH_SECRT", "FORQ_AUTH_SECRET"),
        ("FORQ_API_ADDRESS", "FORQ_API_ADDR"),
        ("FORQ_env", "FORQ_ENV"),
    ],
)
def test_an_unknown_variable_is_told_its_nearest(variable: str, nearest: str):
    (warning,) = load(environ=MINIMAL | {variable: "x"}).warnings
    assert warning == f"{variable}: is not a known variable and has no effect; nearest: {nearest}"


def test_an_unknown_variable_without_a_near_one_is_told_all():
    (warning,) = load(environ=MINIMAL | {"FORQ_QQQQQQQQ": "x"}).warnings
    assert "known: FORQ_AUTH_SECRET, FORQ_ENV, " in warning


@pytest.mark.parametrize(
    ("variable", "value"), [("FORQ_PORT", "9000"), ("FORQ_HOST", "0.0.0.0"), ("FORQ_LISTEN", ":9000")]
)
def test_what_others_call_the_address_is_pointed_to_ours(variable: str, value: str):
    (warning,) = load(environ=MINIMAL | {variable: value}).warnings
    assert warning.endswith("the address to listen on is FORQ_API_ADDR, as host:port or :port")


def test_variables_that_are_not_meant_for_us_are_left_alone():
    foreign = (
        "FORQ_SERVICE_HOST",
        "FORQ_SERVICE_PORT_API",
        "FORQ_PORT",
        "FORQ_PORT_8080_TCP_ADDR",
        "FORQ_URL",
    )
    loaded = load(environ=MINIMAL | dict.fromkeys(foreign, "x"))
    assert (loaded.config.env, loaded.warnings) == ("pro", ())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = [1\n", "is not valid TOML: Unclosed array (at end of document)"),
        ("[log]\n[log]\n", "is not valid TOML: the section [log] is given twice (at line 2, column 5)"),
        (
            "[log]\nlog_level='info'\nlog_level='info'\n",
            "is not valid TOML: a key is given twice (at line 3, column 17)",
        ),
        (
            f"[queue]\nqueue_ttl_hours = {'9' * 5_000}\n",
            "cannot be read (too long a number, or nested too deeply)",
        ),
        (f"a = {'[' * 3_000}{']' * 3_000}\n", "cannot be read (too long a number, or nested too deeply)"),
        ("[logs]\n", "[logs] is not a known section; nearest: log"),
        ("env = 'local'\n", "env stands outside a section; it belongs in [server]"),
        ("server = 'x'\n", "server is not a section; allowed: [server] with keys below it"),
    ],
)
def test_a_file_that_is_not_as_it_should_be(tmp_path: Path, text: str, expected: str):
    toml = file_with(tmp_path, text)
    assert problems(MINIMAL, toml) == [f"{toml}: {expected}"]


def test_a_hexadecimal_number_of_thousands_of_digits_is_out_of_form(tmp_path: Path):
    toml = file_with(tmp_path, f"[queue]\nqueue_ttl_hours = 0x{'f' * 5_000}\n")
    (problem,) = problems(MINIMAL, toml)
    assert problem.startswith(f"{toml} [queue] queue_ttl_hours: '0xfff")
    assert problem.endswith("is not a whole number; allowed: a whole number from 1 to 8784")


@pytest.mark.parametrize("name", ["db_path", "tls_cert"])
def test_a_path_with_a_nul_character(tmp_path: Path, name: str):
    section = "database" if name == "db_path" else "tls"
    toml = file_with(tmp_path, f'[{section}]\n{name} = "a\\u0000b"\n')
    first = problems(MINIMAL, toml)[0]
    assert first.startswith(
        f"{toml} [{section}] {name}: 'a\\x00b' has a NUL character, which no path can have; "
    )


def test_a_key_in_the_wrong_section(tmp_path: Path):
    toml = file_with(tmp_path, "[queue]\nlog_level = 'info'\n")
    assert problems(MINIMAL, toml) == [
        f"{toml} [queue] log_level: is in the wrong section; it belongs in [log]"
    ]


def test_a_misspelt_key_is_told_its_nearest_of_the_section(tmp_path: Path):
    toml = file_with(tmp_path, "[queue]\nttl_hours = 1\n")
    assert problems(MINIMAL, toml) == [
        f"{toml} [queue] ttl_hours: is not a known key; nearest: dlq_ttl_hours"
    ]


def test_a_file_that_cannot_be_read(tmp_path: Path):
    missing = tmp_path / "none.toml"
    (problem,) = problems(MINIMAL, missing)
    assert (
        problem
        == f"{missing}: cannot be read (No such file or directory); allowed: the path of a readable TOML file"
    )
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff")
    assert problems(MINIMAL, binary) == [f"{binary}: is not UTF-8; allowed: a TOML file in UTF-8"]


def test_metrics_need_their_secret():
    (problem,) = problems(MINIMAL | {"FORQ_METRICS_ENABLED": "true"})
    assert problem.startswith("FORQ_METRICS_AUTH_SECRET: is needed when metrics are enabled")
    (problem,) = problems(MINIMAL | {"FORQ_METRICS_ENABLED": "true", "FORQ_METRICS_AUTH_SECRET": "short"})
    assert problem.startswith("FORQ_METRICS_AUTH_SECRET: has only 5 characters")


def test_both_servers_cannot_have_one_address():
    (problem,) = problems(MINIMAL | {"FORQ_UI_ADDR": "localhost:8080"})
    assert problem.startswith("FORQ_UI_ADDR: localhost:8080 is the API's address too")
    both_free = MINIMAL | {"FORQ_API_ADDR": "localhost:0", "FORQ_UI_ADDR": "localhost:0"}
    assert load(environ=both_free).config.api_addr.port == 0


def test_a_database_path_that_cannot_be_one(tmp_path: Path):
    (problem,) = problems(MINIMAL | {"FORQ_DB_PATH": str(tmp_path)})
    assert problem.startswith(f"FORQ_DB_PATH: {str(tmp_path)!r} is a directory")
    missing = tmp_path / "a" / "b"
    assert load(environ=MINIMAL | {"FORQ_DB_PATH": str(missing)}).config.db_path == missing


@pytest.mark.parametrize("path", ["~nobody-of-that-name/forq.db", "a" * 300])
def test_a_path_that_the_operating_system_refuses_to_look_at(path: str):
    (problem,) = problems(MINIMAL | {"FORQ_TLS_CERT": path, "FORQ_TLS_KEY": __file__})
    assert problem.startswith(f"FORQ_TLS_CERT: {path!r} cannot be looked at: ")
    assert problem.endswith("; allowed: the path of a readable file")


def test_the_database_path_alone(tmp_path: Path):
    assert load_db_path(str(tmp_path / "a"), {"FORQ_DB_PATH": str(tmp_path / "b")}) == tmp_path / "a"
    assert load_db_path(None, {"FORQ_DB_PATH": str(tmp_path / "b")}) == tmp_path / "b"
    assert load_db_path(None, {}) == default_db_path()
    postgres = {"FORQ_DB_URL": "postgresql://db/queue"}
    assert load_db_path(str(tmp_path / "a"), postgres) == tmp_path / "a"
    with pytest.raises(ConfigError, match="FORQ_DB_URL: names PostgreSQL"):
        load_db_path(None, postgres)
    with pytest.raises(ConfigError, match=r"^--db-path: .* is a directory"):
        load_db_path(str(tmp_path), {})


def test_the_default_database_lies_in_the_users_data_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_db_path() == tmp_path / "forq" / "forq.db"


def test_the_default_database_of_a_user_without_a_home_directory(monkeypatch: pytest.MonkeyPatch):
    """As in a container that runs with a number that no user has."""
    for variable in ("HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr("os.getuid", lambda: 2**31 - 2)
    assert default_db_path() == Path("/.local/share/forq/forq.db")


def test_an_unreadable_certificate(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    # The superuser may read everything, so the answer of the operating system is what is varied here.
    monkeypatch.setattr("os.access", lambda path, mode: False)
    cert = tmp_path / "cert.pem"
    cert.touch(mode=stat.S_IWUSR)
    found = problems(MINIMAL | {"FORQ_TLS_CERT": str(cert), "FORQ_TLS_KEY": str(cert)})
    assert len(found) == 2
    assert all(
        "cannot be read: permission denied; allowed: the path of a readable file" in each for each in found
    )


@pytest.mark.parametrize(("mib", "is_valid"), [(0, True), (1, False), (7, False), (8, True)])
def test_a_reserve_holds_at_least_what_one_commit_may_need(mib, is_valid):
    """With 1 MiB one commit of sends filled the disk, and claims had no space left."""
    environ = MINIMAL | {"FORQ_DISK_RESERVE_MB": str(mib)}
    if is_valid:
        assert load(environ=environ).config.disk_reserve_mb == mib
        return
    with pytest.raises(ConfigError) as raised:
        load(environ=environ)
    assert "allowed: 0, or at least 8" in str(raised.value)


@pytest.mark.parametrize(("mib", "is_valid"), [(0, True), (8, False), (31, False), (32, True)])
def test_a_reserve_holds_what_acks_need_while_there_is_a_history(mib, is_valid):
    """With 8 and 16 MiB, acks of messages of 200 KB were refused once the disk was full."""
    environ = MINIMAL | {"FORQ_DISK_RESERVE_MB": str(mib), "FORQ_HISTORY": "on"}
    if is_valid:
        assert load(environ=environ).config.disk_reserve_mb == mib
        return
    assert problems(environ) == [
        f"FORQ_DISK_RESERVE_MB: {mib} is too small while FORQ_HISTORY is on, for a full disk would stop acks; "
        "allowed: 0, or at least 32; any from 8 with the history off"
    ]


@pytest.mark.parametrize(
    ("environ", "needed"),
    [
        ({}, False),
        ({"FORQ_UI_ADDR": "127.0.0.2:1"}, False),
        ({"FORQ_UI_ADDR": ":1"}, True),
        ({"FORQ_UI_ADDR": "[::]:1"}, True),
        ({"FORQ_UI_ADDR": "10.1.2.3:1"}, True),
        ({"FORQ_UI_ADDR": ":1", "FORQ_ENV": "local"}, False),
        ({"FORQ_UI_ADDR": ":1", "FORQ_TRUST_PROXY_HEADERS": "true"}, False),
        ({"FORQ_UI_ADDR": ":1", "FORQ_UI_ENABLED": "false"}, False),
    ],
)
def test_whether_the_ui_needs_a_proxy(environ: dict[str, str], needed: bool):
    assert load(environ=MINIMAL | environ).config.ui_needs_a_proxy is needed
