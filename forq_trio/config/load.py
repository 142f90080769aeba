"""From sources to one frozen, fully validated `Config`.

A value comes from the first of: the command line option, the environment variable, the key of the TOML file, the
default. pydantic-settings merges the sources and builds the `Config`. Each source is also validated alone, so that an
invalid value is reported with its source, even if another source overrides it. All mistakes, in all sources and between
settings, are reported at once, by one `ConfigError`.
"""

import os
import secrets
from collections import ChainMap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import InitSettingsSource

from forq_trio.config.conflicts import conflicts
from forq_trio.config.errors import ConfigError
from forq_trio.config.settings import SETTINGS, Config
from forq_trio.config.sources import Source, read_environment, read_file, read_options
from forq_trio.config.values import shown
from forq_trio.model import limits

DEFAULT = "default"
_BOUNDS = ("greater_than_equal", "less_than_equal")

# Without a valid secret, this one lets the rest be built and checked; such a Config is never returned.
_STAND_IN = InitSettingsSource(Config, {"auth_secret": secrets.token_hex(limits.AUTH_SECRET_LENGTH_MIN)})


@dataclass(frozen=True, slots=True)
class Loaded:
    """A configuration, and where each value came from: an option, a variable, a TOML key, or DEFAULT.

    warnings: a line for each variable that looks like a setting and is none.
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
            problems.append(f"{where}: is not set; allowed: {setting.form.allowed}")
    config = Config(*sources, _STAND_IN)
    problems += conflicts(config, origins)
    warnings = tuple(warning for source in sources for warning in source.warnings)
    if problems:
        raise ConfigError([*warnings, *problems])
    return Loaded(config, {name: origins.get(name, DEFAULT) for name in SETTINGS}, warnings)


def load_db_path(option: str | None = None, environ: Mapping[str, str] | None = None) -> Path:
    """The database file alone, for work on a file without a server. Raises ConfigError like `load`."""
    sources, problems = _read({"db_path": option} if option else None, environ, None)
    if problems:
        raise ConfigError(problems)
    return Config(*sources, _STAND_IN).db_path


def _read(
    options: Mapping[str, str] | None, environ: Mapping[str, str] | None, file: Path | None
) -> tuple[list[Source], list[str]]:
    """The sources, highest precedence first and with valid values only, and the problems of the others."""
    environ = os.environ if environ is None else environ
    sources = [read_options(options or {}), read_environment(environ)]
    if file is not None or environ.get("FORQ_CONFIG"):
        sources.append(read_file(file or Path(environ["FORQ_CONFIG"])))
    problems = [problem for source in sources for problem in source.problems]
    for source in sources:
        problems += _take_out_wrong_values(source)
    return sources, problems


def _take_out_wrong_values(source: Source) -> list[str]:
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


def _reason(error: ErrorDetails) -> str:
    """The problem of a value, worded to follow its origin."""
    if error["type"] in _BOUNDS:
        return f"{int(error['input'])} is out of range"
    if error["type"] == "literal_error":
        return f"{shown(error['input'])} is not known"
    return str(error["ctx"]["error"])
