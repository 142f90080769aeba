"""Reads the named statements of `.sql` files.

A file is a list of statements, each opened by `-- name: x` and one line with its purpose:

    -- name: ping
    -- A read that proves the connection works.
    SELECT 1;

A third line `-- rows of: one thing` marks a statement whose rows depend on one thing that its bindings name: a queue, a
group, a key, a message, and so on (rehearsal.py). `-- rows: the first may be enough` marks a statement that may have
more rows than are wanted, so they are read one by one.

A list of columns, or a condition, that several statements of a file share begins with `-- columns: x` or
`-- condition: x` instead, and those statements use it as $x. Comments before the first name are about the whole file. A
file that breaks these rules is a mistake in the program, and importing the module that uses it fails.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

Query = Callable[..., list[Any]]
"""Runs a statement by its name, with these bindings, and returns its rows."""

_NAME = re.compile(r"^-- (name|columns|condition): *(.*)$", re.MULTILINE)
_PART = re.compile(r"\$([a-z]\w*)")
_INSERT = re.compile(r"[A-Z]+ INTO \w+ \(([^()]*)\)\s+VALUES \(([^()]*)\)")
_OF_ONE_THING = "-- rows of: one thing\n"
_FIRST_ENOUGH = "-- rows: the first may be enough\n"
_IDENTIFIER = re.compile(r"[a-z][a-z0-9_]*")


def load(name: str, package: str = __package__) -> dict[str, str]:
    """The statements of a package's `sql/<name>.sql` by name, without name line, description and closing semicolon.

    Raises FileNotFoundError for a missing file and ValueError for one that breaks the rules above.
    """
    try:
        return parse(_text(name, package))
    except ValueError as error:
        raise ValueError(f"{name}.sql: {error}") from None


def names_of(package: str = __package__) -> list[str]:
    """The names of the files in a package's `sql`."""
    found = files(package).joinpath("sql").iterdir()
    return sorted(each.name.removesuffix(".sql") for each in found if each.name.endswith(".sql"))


def load_named(name: str, package: str = __package__) -> frozenset[str]:
    """The statements of a file whose rows depend on one thing that their bindings name."""
    return _marked(_OF_ONE_THING, name, package)


def load_unbounded(name: str, package: str = __package__) -> frozenset[str]:
    """The statements of a file of which only the first rows may be wanted."""
    return _marked(_FIRST_ENOUGH, name, package)


def _marked(mark: str, name: str, package: str) -> frozenset[str]:
    return frozenset(statement for _, statement, part in _split(_text(name, package))[1] if mark in part)


def parse(text: str) -> dict[str, str]:
    """The statements of a text, by name. Raises ValueError, which names the statement that breaks the rules."""
    note, found = _split(text)
    if any(line.strip() and not line.startswith("--") for line in note.splitlines()):
        raise ValueError("SQL before the first name")
    statements: dict[str, str] = {}
    parts: dict[str, str] = {}
    for kind, name, part in found:
        if _IDENTIFIER.fullmatch(name) is None:
            raise ValueError(f"{name!r} is not a name of a statement")
        if name in statements or name in parts:
            raise ValueError(f"{name} is named twice")
        description, _, statement = part.lstrip("\n").partition("\n")
        statement = (
            statement.removeprefix(_OF_ONE_THING)
            .removeprefix(_FIRST_ENOUGH)
            .strip()
            .removesuffix(";")
            .rstrip()
        )
        if not description.startswith("-- ") or not statement or statement.startswith("--"):
            raise ValueError(f"{name} needs one line of description, then its SQL")
        if kind == "name":
            statements[name] = _with_parts(name, statement, parts)
        else:
            parts[name] = statement
    return statements


def columns(name: str, part: str, package: str = __package__) -> tuple[str, ...]:
    """The names of the columns `-- columns: <part>` of a package's `sql/<name>.sql`, in their order.

    An expression among them has its name after `AS`.
    """
    found = {each: text for _, each, text in _split(_text(name, package))[1]}
    _, _, listed = found[part].lstrip("\n").partition("\n")
    return tuple(column.split()[-1] for column in listed.strip().removesuffix(";").split(","))


def bound_columns(insert: str) -> tuple[str, ...]:
    """The columns that the bindings of an INSERT of one row fill, in the order of the bindings.

    A binding that fills several columns is listed with the first of them.
    """
    named, values = _INSERT.fullmatch(insert).groups()  # type: ignore[union-attr]
    bound: dict[int, str] = {}
    for number, (column, value) in enumerate(zip(named.split(","), values.split(","), strict=True), 1):
        if value.strip().startswith("?"):
            bound.setdefault(int(value.strip()[1:] or number), column.strip())
    return tuple(bound[number] for number in sorted(bound))


def check_order(found: Sequence[str], names: str) -> None:
    """Raise ValueError if these columns are not those that the calling module reads or writes, in its order."""
    if list(found) != names.split():
        raise ValueError(f"the columns are {' '.join(found)}, the code has {names}")


@cache
def _text(name: str, package: str) -> str:
    return files(package).joinpath("sql", f"{name}.sql").read_text(encoding="utf-8")


def _split(text: str) -> tuple[str, list[tuple[str, str, str]]]:
    """The text before the first name, and for each named item its kind, its name, and the text up to the next one."""
    note, *found = _NAME.split(text)
    return note, list(zip(found[::3], found[1::3], found[2::3], strict=True))


def _with_parts(name: str, statement: str, parts: Mapping[str, str]) -> str:
    def listed(found: re.Match[str]) -> str:
        if found[1] not in parts:
            raise ValueError(f"{name} names {found[0]}, which nothing above it declares")
        return parts[found[1]]

    return _PART.sub(listed, statement)
