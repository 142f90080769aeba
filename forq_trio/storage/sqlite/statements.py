"""Reads the named statements of the `.sql` files beside this module.

A file is a list of statements, each opened by `-- name: x` and one line that says what it is for:

    -- name: ping
    -- A read that proves the connection works.
    SELECT 1;

Comments before the first name are about the whole file. A file that breaks these rules is a programming
error, refused when it is loaded, which is when the module that uses it is imported.
"""

import re
from importlib.resources import files

_NAME = re.compile(r"^-- name: *(.*)$", re.MULTILINE)
_IDENTIFIER = re.compile(r"[a-z][a-z0-9_]*")


def load(name: str) -> dict[str, str]:
    """The statements of `sql/<name>.sql` by name, without name line, description and closing semicolon.

    Raises FileNotFoundError for a file that is not there and ValueError for one that breaks the rules above.
    """
    text = files(__package__).joinpath("sql", f"{name}.sql").read_text(encoding="utf-8")
    try:
        return parse(text)
    except ValueError as error:
        raise ValueError(f"{name}.sql: {error}") from None


def parse(text: str) -> dict[str, str]:
    """The statements of a text, by name. Raises ValueError, naming the one that breaks the rules."""
    note, *parts = _NAME.split(text)
    if any(line.strip() and not line.startswith("--") for line in note.splitlines()):
        raise ValueError("SQL before the first name")
    statements: dict[str, str] = {}
    for name, part in zip(parts[::2], parts[1::2], strict=True):
        if _IDENTIFIER.fullmatch(name) is None:
            raise ValueError(f"{name!r} is not a name of a statement")
        if name in statements:
            raise ValueError(f"{name} is named twice")
        description, _, statement = part.lstrip("\n").partition("\n")
        statement = statement.strip().removesuffix(";").rstrip()
        if not description.startswith("-- ") or not statement or statement.startswith("--"):
            raise ValueError(f"{name} needs one line of description, then its SQL")
        statements[name] = statement
    return statements
