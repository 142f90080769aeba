"""Where settings are given: command line options, environment variables, one TOML file.

Each reader yields what was given, still as text, and appends a line to `problems` for a name it does not
know, with the nearest one it does.
"""

import difflib
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

PREFIX = "FORQ_"
NOT_SETTINGS = ("FORQ_CONFIG", "FORQ_URL")
"""Ours, but no settings: the TOML file's path, and where the client commands find a server."""

# Not meant for us: what Kubernetes gives every pod for a service that is called "forq", and what steers our tests.
_FOREIGN = re.compile(
    r"FORQ_(TEST_\w+|(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?))"
)


class Given(NamedTuple):
    """A setting's text and the place it was given, as an error line names it."""

    name: str
    origin: str
    text: str


def read_options(options: Mapping[str, str]) -> Iterator[Given]:
    """Setting name -> text, as the command line has it; names are known to be right."""
    for name, text in options.items():
        yield Given(name, f"--{name.replace('_', '-')}", text)


def read_environment(
    environ: Mapping[str, str], sections: Mapping[str, str], problems: list[str]
) -> Iterator[Given]:
    """The FORQ_* variables. An empty one counts as not set."""
    for variable in sorted(environ):
        name = variable.removeprefix(PREFIX).lower()
        if not variable.startswith(PREFIX) or variable in NOT_SETTINGS or _FOREIGN.fullmatch(variable):
            continue
        if name not in sections or variable != variable.upper():
            known = [f"{PREFIX}{each.upper()}" for each in sections] + list(NOT_SETTINGS)
            problems.append(f"{variable}: is not a known variable; {_nearest(variable.upper(), known)}")
        elif environ[variable]:
            yield Given(name, variable, environ[variable])


def read_file(path: Path, sections: Mapping[str, str], problems: list[str]) -> Iterator[Given]:
    """The TOML file at `path`; `sections` says which key belongs in which section."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        reason = problem.strerror or type(problem).__name__
        problems.append(f"{path}: cannot be read ({reason}); allowed: the path of a readable TOML file")
        return
    except UnicodeDecodeError:
        problems.append(f"{path}: is not UTF-8; allowed: a TOML file in UTF-8")
        return
    except tomllib.TOMLDecodeError as problem:
        problems.append(f"{path}: is not valid TOML: {_plain(problem)}")
        return
    names = sorted(set(sections.values()))
    for section, table in document.items():
        if isinstance(table, dict) and section in names:
            yield from _read_section(f"{path} [{section}]", section, table, sections, problems)
        elif section in sections and not isinstance(table, dict):
            problems.append(
                f"{path}: {section} stands outside a section; it belongs in [{sections[section]}]"
            )
        elif section in names:
            problems.append(f"{path}: {section} is not a section; allowed: [{section}] with keys below it")
        else:
            problems.append(f"{path}: [{section}] is not a known section; {_nearest(section, names)}")


def _read_section(
    where: str, section: str, table: Mapping[str, Any], sections: Mapping[str, str], problems: list[str]
) -> Iterator[Given]:
    for key, value in table.items():
        if key not in sections:
            here = [name for name, home in sections.items() if home == section]
            # A key of another section, misspelt here, is still best explained by its own name.
            problems.append(f"{where} {key}: is not a known key; {_nearest(key, here, list(sections))}")
        elif sections[key] != section:
            problems.append(f"{where} {key}: is in the wrong section; it belongs in [{sections[key]}]")
        elif isinstance(value, bool):
            yield Given(key, f"{where} {key}", str(value).lower())
        elif isinstance(value, str | int):
            yield Given(key, f"{where} {key}", str(value))
        else:
            problems.append(f"{where} {key}: is neither text, whole number nor boolean")


def _nearest(name: str, *choices: Iterable[str]) -> str:
    """A hint: the name that was probably meant, else all of the first choices."""
    first = list(choices[0])
    for each in choices:
        close = difflib.get_close_matches(name, list(each), n=1)
        if close:
            return f"nearest: {close[0]}"
    return f"known: {', '.join(first)}"


def _plain(problem: tomllib.TOMLDecodeError) -> str:
    """tomllib's message, in plain words where it means a key that is there twice."""
    text = str(problem)
    if text.startswith("Cannot overwrite a value"):
        return text.replace("Cannot overwrite a value", "a key is given twice", 1)
    return re.sub(r"Cannot declare \('(.*?)',\) twice", r"the section [\1] is given twice", text)
