"""The sources of settings: command line options, environment variables, one TOML file.

Each becomes a `SettingsSource`, which pydantic-settings merges by precedence. We read them ourselves for better error
messages: pydantic-settings' own sources ignore unknown variables and a missing file, read only this process's
environment, and do not say which key of which section a value came from.
"""

import difflib
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic_settings import InitSettingsSource

from forq_trio.config.settings import SETTINGS, Config
from forq_trio.model.access.secret_files import SecretFileError, file_variable, find_secret, read_secret_file

PREFIX = "FORQ_"
NOT_SETTINGS = ("FORQ_CONFIG", "FORQ_URL", "FORQ_PG_URL", "FORQ_SIGNING_KEY", "FORQ_TOKEN")
"""Our variables that are not settings: the path of the TOML file, and what commands and clients read."""

# Not for us: the variables that Kubernetes sets in every pod for a service called "forq", and those of our tests.
_FOREIGN = re.compile(
    r"FORQ_(?=\w+\Z)(TEST_\w+|(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?))"
)
_ADDRESSES = tuple(
    f"FORQ_{word}" for word in ("PORT", "HOST", "ADDR", "ADDRESS", "BIND", "LISTEN", "API_PORT", "API_HOST")
)
"""What other servers call the address to listen on, or a part of it."""
_NUMBER_BITS_MAX = 1_000
_SECTIONS = sorted({setting.section for setting in SETTINGS.values()})
SECRET_FILES = {file_variable(each.variable): name for name, each in SETTINGS.items() if each.secret}
"""The variables that name the files of secrets, and whose these are."""
SECRET_FILE_KEYS = {f"{name}_file": name for name, each in SETTINGS.items() if each.secret}
"""The keys that name the files of secrets in a TOML file, and whose these are."""
_SECRETS = {each.variable: name for name, each in SETTINGS.items() if each.secret} | SECRET_FILES


class SettingsSource(InitSettingsSource):
    """The values of one source: setting name -> value, always as text.

    origins: setting name -> option, variable or key, for error lines. problems: a line for each unknown key, or for a
    file that cannot be read. warnings: a line for each unknown variable: build systems and containers bring variables
    of their own, which must not keep a server from starting.
    """

    def __init__(self) -> None:
        super().__init__(Config, {})
        self.origins: dict[str, str] = {}
        self.problems: list[str] = []
        self.warnings: list[str] = []

    def give(self, name: str, origin: str, text: str) -> None:
        self.init_kwargs[name] = text
        self.origins[name] = origin

    def take_out(self, name: str) -> None:
        """Remove the value, but remember its origin."""
        del self.init_kwargs[name]


def read_options(options: Mapping[str, str]) -> SettingsSource:
    """The options of the command line, setting name -> text; all names are known."""
    source = SettingsSource()
    for name, text in options.items():
        source.give(name, f"--{name.replace('_', '-')}", text)
    return source


def read_environment(environ: Mapping[str, str]) -> SettingsSource:
    """The FORQ_* variables, and the files of secrets that they name. An empty one counts as not set."""
    source = SettingsSource()
    for variable in sorted(environ):
        name = variable.removeprefix(PREFIX).lower()
        is_port = variable == "FORQ_PORT" and environ[variable].isdecimal()
        if not variable.startswith(PREFIX) or variable in NOT_SETTINGS:
            continue
        if _FOREIGN.fullmatch(variable) and not is_port:
            continue
        if variable in _SECRETS:
            _take_secret(source, _SECRETS[variable], environ)
            continue
        if name not in SETTINGS or variable != variable.upper():
            source.warnings.append(
                f"{variable}: is not a known variable and has no effect; {_meant(variable)}"
            )
        elif environ[variable]:
            source.give(name, variable, environ[variable])
    return source


def _take_secret(source: SettingsSource, name: str, environ: Mapping[str, str]) -> None:
    if name in source.origins:  # of the other of its two variables
        return
    variable = SETTINGS[name].variable
    try:
        found = find_secret(variable, environ)
    except SecretFileError as problem:
        source.origins[name] = file_variable(variable)  # so that it does not count as missing, too
        source.problems.append(f"{source.origins[name]}: {problem}")
    else:
        if found is not None:
            text, origin = found
            source.give(name, origin, text)


def read_file(path: Path) -> SettingsSource:
    """The TOML file at `path`."""
    source = SettingsSource()
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as problem:
        reason = problem.strerror or type(problem).__name__
        source.problems = [f"{path}: cannot be read ({reason}); allowed: the path of a readable TOML file"]
    except UnicodeDecodeError:
        source.problems = [f"{path}: is not UTF-8; allowed: a TOML file in UTF-8"]
    except tomllib.TOMLDecodeError as problem:
        source.problems = [f"{path}: is not valid TOML: {_plain(problem)}"]
    except (ValueError, RecursionError):  # a number of thousands of digits, or as many brackets
        source.problems = [f"{path}: cannot be read (too long a number, or nested too deeply)"]
    else:
        for name, table in document.items():
            _read_table(source, path, name, table)
    return source


def _read_table(source: SettingsSource, path: Path, section: str, table: Any) -> None:
    if isinstance(table, dict) and section in _SECTIONS:
        for key, value in table.items():
            _read_key(source, f"{path} [{section}] {key}", section, key, value)
    elif section in SETTINGS and not isinstance(table, dict):
        home = SETTINGS[section].section
        source.problems.append(f"{path}: {section} stands outside a section; it belongs in [{home}]")
    elif section in _SECTIONS:
        source.problems.append(f"{path}: {section} is not a section; allowed: [{section}] with keys below it")
    else:
        source.problems.append(f"{path}: [{section}] is not a known section; {_nearest(section, _SECTIONS)}")


def _read_key(source: SettingsSource, origin: str, section: str, key: str, value: Any) -> None:
    name = SECRET_FILE_KEYS.get(key, key)
    if name not in SETTINGS:
        here = [name for name, setting in SETTINGS.items() if setting.section == section]
        # It may be a misspelt key of another section: suggest that one, too.
        source.problems.append(f"{origin}: is not a known key; {_nearest(key, here, list(SETTINGS))}")
    elif SETTINGS[name].section != section:
        home = SETTINGS[name].section
        source.problems.append(f"{origin}: is in the wrong section; it belongs in [{home}]")
    elif name in source.origins:
        source.problems.append(f"{origin}: is set beside {source.origins[name]}; allowed: one of the two")
    elif key in SECRET_FILE_KEYS and isinstance(value, str):
        _read_secret_of(source, name, origin, value)
    elif key in SECRET_FILE_KEYS:
        source.problems.append(f"{origin}: is no text; allowed: the path of a readable file")
    elif isinstance(value, bool):
        source.give(key, origin, str(value).lower())
    elif isinstance(value, str):
        source.give(key, origin, value)
    elif isinstance(value, int):
        # As decimal digits Python writes no number of thousands of them; whoever reads the text refuses either form.
        source.give(key, origin, str(value) if value.bit_length() <= _NUMBER_BITS_MAX else hex(value))
    else:
        source.problems.append(f"{origin}: is neither text, whole number nor boolean")


def _read_secret_of(source: SettingsSource, name: str, origin: str, path: str) -> None:
    try:
        source.give(name, origin, read_secret_file(os.path.expanduser(path)))
    except SecretFileError as problem:
        source.origins[name] = origin  # so that it does not count as missing, too
        source.problems.append(f"{origin}: {problem}")


def _meant(variable: str) -> str:
    """A hint what a variable that is not known was probably meant to be."""
    if variable.upper() in _ADDRESSES:
        return "the address to listen on is FORQ_API_ADDR, as host:port or :port"
    known = [*(setting.variable for setting in SETTINGS.values()), *NOT_SETTINGS, *SECRET_FILES]
    return _nearest(variable.upper(), known)


def _nearest(name: str, *choices: list[str]) -> str:
    """A hint: the nearest name of the choices, else all of the first choices."""
    for each in choices:
        close = difflib.get_close_matches(name, each, n=1)
        if close:
            return f"nearest: {close[0]}"
    return f"known: {', '.join(choices[0])}"


def _plain(problem: tomllib.TOMLDecodeError) -> str:
    """tomllib's message, in plain words for a key or section that is given twice."""
    text = str(problem)
    if text.startswith("Cannot overwrite a value"):
        return text.replace("Cannot overwrite a value", "a key is given twice", 1)
    return re.sub(r"Cannot declare \('(.*?)',\) twice", r"the section [\1] is given twice", text)
