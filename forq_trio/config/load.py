"""From settings to one frozen, fully validated `Config`.

What counts is the first of: the command line option, the environment variable, the key of the TOML file, the default.
An environment variable that is empty counts as not set. Whatever is wrong, in all sources, is reported at once, by one
`ConfigError`. The settings themselves are declared in `config_settings`.
"""

import ipaddress
import os
import ssl
from collections.abc import Mapping
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Any

from forq_trio.config.settings import SETTINGS, Config, Setting, default_db_path
from forq_trio.config.sources import Given, read_environment, read_file, read_options
from forq_trio.config.values import SECRET, Address
from forq_trio.model.errors import ForqError

__all__ = [
    "DEFAULT",
    "SETTINGS",
    "Address",
    "Config",
    "ConfigError",
    "Loaded",
    "Setting",
    "default_db_path",
    "load",
    "load_db_path",
]

DEFAULT = "default"


class ConfigError(ForqError):
    """The configuration is not valid. problems: one line for each wrong thing, naming where it was set."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A configuration, and where each value came from: an option, a variable, a TOML key, or DEFAULT."""

    config: Config
    sources: Mapping[str, str]


def load(
    options: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
    file: Path | None = None,
) -> Loaded:
    """Gather and validate all settings.

    options: setting name -> text, from the command line. environ: None means the process's own. file: the
    TOML file; None means the one that FORQ_CONFIG names, if any. Raises ConfigError with every problem
    found.
    """
    values, sources, problems = _gather(options, environ, file)
    for name, setting in SETTINGS.items():
        if setting.default is MISSING and name not in sources:
            where = f"{setting.variable} (or {name} in [{setting.section}] of the TOML file)"
            problems.append(f"{where}: is not set; allowed: {setting.kind.allowed}")
    problems += _conflicts(values, sources)
    if problems:
        raise ConfigError(problems)
    config = Config(**values)
    return Loaded(config, {name: sources.get(name, DEFAULT) for name in SETTINGS})


def load_db_path(option: str | None = None, environ: Mapping[str, str] | None = None) -> Path:
    """The database file alone, for work on a file without a server. Raises ConfigError like `load`."""
    values, _, problems = _gather({"db_path": option} if option else None, environ, None)
    if problems:
        raise ConfigError(problems)
    path: Path = values.get("db_path", default_db_path())
    return path


def _gather(
    options: Mapping[str, str] | None, environ: Mapping[str, str] | None, file: Path | None
) -> tuple[dict[str, Any], dict[str, str], list[str]]:
    """Values, where they came from, and problems. A setting whose value is bad has a source but no value."""
    environ = os.environ if environ is None else environ
    if file is None and environ.get("FORQ_CONFIG"):
        file = Path(environ["FORQ_CONFIG"])
    sections = {name: setting.section for name, setting in SETTINGS.items()}
    given: list[Given] = []
    problems: list[str] = []
    given += read_options(options or {})
    given += read_environment(environ, sections, problems)
    if file is not None:
        given += read_file(file, sections, problems)

    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for name, origin, text in given:
        kind = SETTINGS[name].kind
        first = sources.setdefault(name, origin) == origin
        try:
            value = kind.parse(text)
        except (ValueError, OSError) as problem:
            problems.append(f"{origin}: {problem}; allowed: {kind.allowed}")
        else:
            if first:
                values[name] = value
    return values, sources, problems


def _conflicts(values: Mapping[str, Any], sources: Mapping[str, str]) -> list[str]:
    """What is wrong between settings that are each fine alone."""
    problems = []
    if values.get("metrics_enabled") and "metrics_auth_secret" not in sources:
        problems.append(
            f"FORQ_METRICS_AUTH_SECRET: is needed when metrics are enabled; allowed: {SECRET.allowed}"
        )
    for name, other in (("tls_cert", "tls_key"), ("tls_key", "tls_cert")):
        if name in sources and other not in sources:
            variable = SETTINGS[other].variable
            problems.append(f"{variable}: is needed, for {name} is set; allowed: both or neither")
    if "tls_cert" in values and "tls_key" in values:
        problems += _tls_problems(values["tls_cert"], values["tls_key"])
    api, ui = (values.get(name, SETTINGS[name].default) for name in ("api_addr", "ui_addr"))
    if api == ui and api.port != 0:
        problems.append(f"FORQ_UI_ADDR: {ui} is the API's address too; allowed: an address of its own")
    return problems + _sasquatch_problems(values)


def _sasquatch_problems(values: Mapping[str, Any]) -> list[str]:
    def value(name: str) -> Any:
        return values.get(name, SETTINGS[name].default)

    problems = []
    open_to_all = value("sasquatch_enabled") and not value("sasquatch_auth")
    if open_to_all and not _is_loopback(value("api_addr")):
        problems.append(
            f"FORQ_SASQUATCH_AUTH: is false, but {value('api_addr')} can be reached from other machines; "
            "allowed: true, or an api_addr such as localhost:8080"
        )
    least, most = value("sasquatch_default_max_receives"), value("sasquatch_poison_max_receives")
    if most < least:
        problems.append(
            f"FORQ_SASQUATCH_POISON_MAX_RECEIVES: {most} is less than sasquatch_default_max_receives; "
            f"allowed: at least {least}"
        )
    return problems


def _is_loopback(address: Address) -> bool:
    try:
        return ipaddress.ip_address(address.host).is_loopback
    except ValueError:
        return address.host.lower().rstrip(".") == "localhost"


def _tls_problems(cert: Path, key: Path) -> list[str]:
    try:
        # The password keeps OpenSSL from asking for one at the terminal.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key, password="")
    except (ssl.SSLError, OSError, ValueError) as problem:
        reason = getattr(problem, "reason", None) or str(problem)
        return [
            f"FORQ_TLS_CERT: cannot be used with FORQ_TLS_KEY ({reason}); allowed: a PEM pair, not encrypted"
        ]
    return []
