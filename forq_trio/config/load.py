"""From sources to one frozen, fully validated `Config`.

A value comes from the first of: the command line option, the environment variable, the key of the TOML file, the
default. pydantic-settings merges the sources and builds the `Config`. Each source is also validated alone, so that an
invalid value is reported with its source, even if another source overrides it. All mistakes, in all sources and between
settings, are reported at once, by one `ConfigError`.
"""

import os
import secrets
import ssl
from collections import ChainMap
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError
from pydantic_settings import InitSettingsSource

from forq_trio.config.errors import ConfigError
from forq_trio.config.settings import SETTINGS, Config
from forq_trio.config.sources import SettingsSource, read_environment, read_file, read_options
from forq_trio.config.values import shown
from forq_trio.model import limits

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

DEFAULT = "default"
_BOUNDS = ("greater_than_equal", "less_than_equal")

# If there is no valid secret, this one allows the rest to be built and checked; such a Config is never returned.
_STAND_IN = InitSettingsSource(Config, {"auth_secret": secrets.token_hex(limits.AUTH_SECRET_LENGTH_MIN)})


@dataclass(frozen=True, slots=True)
class Loaded:
    """A configuration, and where each value came from: an option, a variable, a TOML key, or DEFAULT.

    warnings: a line for each variable that looks like a setting but is not one.
    """

    config: Config
    sources: Mapping[str, str]
    warnings: tuple[str, ...] = ()


def load(
    options: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
    file: Path | None = None,
) -> Loaded:
    """Read and validate all settings.

    options: setting name -> text, from the command line. environ: None means the process's own. file: the
    TOML file; None means the one that FORQ_CONFIG names, if any. Raises ConfigError with every problem
    found.
    """
    sources, problems = _read(options, environ, file)
    origins = ChainMap(*(source.origins for source in sources))
    for name, setting in SETTINGS.items():
        if setting.field.is_required() and name not in origins:
            where = f"{setting.variable} (or {name} in [{setting.section}] of the TOML file)"
            problems.append(f"{where}: is not set; allowed: {setting.form.allowed}; `forq init` makes one")
    config = Config(*sources, _STAND_IN)
    problems += _conflicts(config, origins)
    warnings = tuple(warning for source in sources for warning in source.warnings)
    if problems:
        raise ConfigError([*warnings, *problems])
    return Loaded(config, {name: origins.get(name, DEFAULT) for name in SETTINGS}, warnings)


def load_db_path(option: str | None = None, environ: Mapping[str, str] | None = None) -> Path:
    """Only the path of the database file, for work on it without a server.

    Raises ConfigError like `load`, and also if FORQ_DB_URL is set and no file is named: then the default file is not
    the database.
    """
    return _load_without_secret(option, environ, None, _file_conflicts).db_path


def load_database(option: str | None, file: Path | None) -> Config:
    """The settings that name the database, for work on it without a server; the secret may be missing.

    Raises ConfigError.
    """
    return _load_without_secret(option, None, file, _database_conflicts)


def _load_without_secret(
    db_path: str | None,
    environ: Mapping[str, str] | None,
    file: Path | None,
    conflicts: Callable[[Config, Container[str]], Iterable[str]],
) -> Config:
    sources, problems = _read({"db_path": db_path} if db_path else None, environ, file)
    config = Config(*sources, _STAND_IN)
    problems += conflicts(config, ChainMap(*(source.origins for source in sources)))
    if problems:
        raise ConfigError(problems)
    return config


def _read(
    options: Mapping[str, str] | None, environ: Mapping[str, str] | None, file: Path | None
) -> tuple[list[SettingsSource], list[str]]:
    """The sources, highest precedence first and with valid values only, and the problems of the others."""
    environ = os.environ if environ is None else environ
    sources = [read_options(options or {}), read_environment(environ)]
    if file is not None or environ.get("FORQ_CONFIG"):
        sources.append(read_file(file or Path(environ["FORQ_CONFIG"])))
    problems = [problem for source in sources for problem in source.problems]
    for source in sources:
        problems += _take_out_wrong_values(source)
    return sources, problems


def _take_out_wrong_values(source: SettingsSource) -> list[str]:
    problems = {}
    try:
        Config(source, _STAND_IN)
    except ValidationError as invalid:
        for error in invalid.errors(include_url=False):
            name = str(error["loc"][0])
            problems[name] = (
                f"{source.origins[name]}: {_reason(error)}; allowed: {SETTINGS[name].form.allowed}"
            )
            source.take_out(name)
    return [problems[name] for name in source.origins if name in problems]


def _reason(error: "ErrorDetails") -> str:
    """The problem of a value, in words that follow its origin in a line."""
    if error["type"] in _BOUNDS:
        return f"{int(error['input'])} is out of range"
    if error["type"] == "literal_error":
        return f"{shown(error['input'])} is not known"
    return str(error["ctx"]["error"])


def _conflicts(config: Config, given: Container[str]) -> Iterator[str]:
    """A line for each conflict between settings that are each valid alone.

    These are not validators of pydantic, because those run only if every single value is valid.

    config: instead of an invalid value it has that of another source, or the default. given: the names of the settings
    that any source has, valid or not.
    """
    if config.metrics_enabled and "metrics_auth_secret" not in given:
        allowed = SETTINGS["metrics_auth_secret"].form.allowed
        yield f"FORQ_METRICS_AUTH_SECRET: is needed when metrics are enabled; allowed: {allowed}"
    for name, other in (("tls_cert", "tls_key"), ("tls_key", "tls_cert")):
        if name in given and other not in given:
            yield f"{SETTINGS[other].variable}: is needed, for {name} is set; allowed: both or neither"
    if config.tls_cert and config.tls_key and (reason := _why_unusable(config.tls_cert, config.tls_key)):
        yield f"FORQ_TLS_CERT: cannot be used with FORQ_TLS_KEY ({reason}); allowed: a PEM pair, not encrypted"
    yield from _database_conflicts(config, given)
    if config.ui_enabled and config.api_addr == config.ui_addr and config.api_addr.port != 0:
        yield f"FORQ_UI_ADDR: {config.ui_addr} is the API's address too; allowed: an address of its own"
    for name in ("sasquatch", "sqs"):
        is_open = getattr(config, f"{name}_enabled") and not getattr(config, f"{name}_auth")
        if is_open and not config.api_addr.is_loopback:
            yield (
                f"FORQ_{name.upper()}_AUTH: is false, but {config.api_addr} can be reached from other machines; "
                "allowed: true, or an api_addr such as localhost:8080"
            )
    if 0 < config.disk_reserve_mb < limits.DISK_RESERVE_MIB_MIN:
        yield (
            f"FORQ_DISK_RESERVE_MB: {config.disk_reserve_mb} is less than one commit may need; "
            f"allowed: 0, or at least {limits.DISK_RESERVE_MIB_MIN}"
        )
    elif config.history == "on" and 0 < config.disk_reserve_mb < limits.DISK_RESERVE_MIB_MIN_WITH_HISTORY:
        yield (
            f"FORQ_DISK_RESERVE_MB: {config.disk_reserve_mb} is too small while FORQ_HISTORY is on, "
            "for a full disk would stop acks; "
            f"allowed: 0, or at least {limits.DISK_RESERVE_MIB_MIN_WITH_HISTORY}; any from "
            f"{limits.DISK_RESERVE_MIB_MIN} with the history off"
        )
    least, most = config.sasquatch_default_max_receives, config.sasquatch_poison_max_receives
    if most < least:
        yield (
            f"FORQ_SASQUATCH_POISON_MAX_RECEIVES: {most} is less than sasquatch_default_max_receives; "
            f"allowed: at least {least}"
        )


def _file_conflicts(config: Config, given: Container[str]) -> Iterator[str]:
    if "db_url" in given and "db_path" not in given:
        yield "FORQ_DB_URL: names PostgreSQL, and this command works on a file; allowed: one that is named beside it"


def _database_conflicts(config: Config, given: Container[str]) -> Iterator[str]:
    if "db_url" not in given:
        for other in filter(given.__contains__, ("db_listen_url", "db_replica_url")):
            yield f"FORQ_DB_URL: is needed, for {other} is set; allowed: {SETTINGS['db_url'].form.allowed}"
        return
    for other in ("db_path", "memory"):
        if other in given:
            yield f"FORQ_DB_URL: names another database than {SETTINGS[other].variable}; allowed: one of them"
    for other in ("disk_reserve_mb", "backup_dir", "backup_every_hours", "backup_keep"):
        if other in given and getattr(config, other):
            yield (
                f"{SETTINGS[other].variable}: is for the database file, and FORQ_DB_URL names PostgreSQL; "
                "allowed: one of the two"
            )


def _why_unusable(cert: Path, key: Path) -> str | None:
    try:
        # The password keeps OpenSSL from asking for one at the terminal.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key, password="")
    except (ssl.SSLError, OSError, ValueError) as problem:
        return getattr(problem, "reason", None) or str(problem)
    return None
