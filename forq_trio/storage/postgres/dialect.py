"""The named statements in PostgreSQL's dialect: the shared ones, translated, and those that are written anew.

What can be translated word by word is; every other statement has its own text, of the same name, in `sql/dialect.sql`,
or in a file of `sql` that is named as the shared file is.
What a statement does (begins, changes, adds, returns rows) is read from its text, so no list of names says it again.
"""

import re
from collections.abc import Mapping

from forq_trio.model import limits
from forq_trio.storage.relational import connection
from forq_trio.storage.relational.connection import STATEMENTS
from forq_trio.storage.relational.statements import load, load_named, load_unbounded, names_of

_PACKAGE = "forq_trio.storage.postgres"
_BINDING = re.compile(r"\?(\d*)")
_WORDS = (
    (
        re.compile(r"\bNOT IN \(SELECT value FROM json_each\((\$\d+)\)\)"),
        r"<> ALL (translate(\1, '[]', '{}')::bigint[])",
    ),
    (
        re.compile(r"\bIN \(SELECT value FROM json_each\((\$\d+)\)\)"),
        r"= ANY (translate(\1, '[]', '{}')::bigint[])",
    ),
    (re.compile(r"\s+INDEXED BY \w+"), ""),
    (re.compile(r"\bCROSS JOIN\b"), "JOIN"),
    (re.compile(r"\bAS INTEGER\)"), "AS bigint)"),
    (re.compile(r"\bjson_array\("), "json_build_array("),
    (re.compile(r"\bIS (\$\d+)"), r"IS NOT DISTINCT FROM \1"),
    # What first names a binding gives it its type.
    (re.compile(r"(WHEN|\() ?(\$\d+) IS NULL( THEN| OR NOT EXISTS)"), r"\1 \2::text IS NULL\3"),
    (re.compile(r"\((\$\d+) IS NULL OR ([^()]*(?:\([^()]*\))?[^()]*)\)"), r"(\2 OR \1 IS NULL)"),
)
_STEP_BYTES = re.compile(r":step_bytes\b")


def translated(statement: str) -> str:
    """A statement of SQLite's dialect in PostgreSQL's."""
    numbers = iter(range(1, statement.count("?") + 1))
    statement = _BINDING.sub(lambda found: f"${found[1] or next(numbers)}", statement)
    for words, others in _WORDS:
        statement = words.sub(others, statement)
    return statement


UNBOUNDED = frozenset[str]().union(*map(load_unbounded, connection.FILES))
"""Statements of which only the first rows may be wanted, or as many as have so many bytes: a cursor reads them."""


ANEW = {
    name: statement
    for file in names_of(_PACKAGE)
    if file == "dialect" or file in connection.FILES
    for name, statement in load(file, _PACKAGE).items()
}
"""Those that are written anew."""


def _in_dialect() -> Mapping[str, str]:
    shared = {name: translated(statement) for name, statement in STATEMENTS.items()}
    assert ANEW.keys() <= shared.keys(), ANEW.keys() - shared.keys()
    for name in UNBOUNDED:
        shared[name] = f"DECLARE unbounded NO SCROLL CURSOR FOR {shared[name]}"
    statements = shared | ANEW
    for name in ("connection", "sent", "watch"):
        statements |= load(name, _PACKAGE)
    most = str(limits.STEP_BYTES_MAX)
    return {name: _STEP_BYTES.sub(most, statement) for name, statement in statements.items()}


MANY_SUFFIX = "_many"
_MANY = {
    name: _STEP_BYTES.sub(str(limits.STEP_BYTES_MAX), statement)
    for name, statement in load("many", _PACKAGE).items()
}
MANY = frozenset(_MANY)
"""Statements that can run once for many tuples of bindings, under their names with MANY_SUFFIX."""
UPDATES_MANY = frozenset(name for name, statement in _MANY.items() if statement.startswith("UPDATE"))
"""Those of them that change each row once: the last bindings, which name the rows, have to differ."""
SQL = {**_in_dialect(), **{name + MANY_SUFFIX: statement for name, statement in _MANY.items()}}
BEGINNING = frozenset(name for name, statement in SQL.items() if statement.startswith("BEGIN"))
"""Statements that begin a transaction."""
_CHANGES = re.compile(r"^ *(INSERT INTO|UPDATE|DELETE FROM)\b", re.MULTILINE)
_GIVES_ROWS = re.compile(r"\bRETURNING\b")
CHANGING = frozenset(
    name for name, statement in SQL.items() if _CHANGES.search(statement) or _GIVES_ROWS.search(statement)
)
"""Statements that change something."""
ADDING = frozenset(name for name in CHANGING if SQL[name].lstrip().startswith("INSERT"))
"""Those of them that change no message that is there."""
NAMING = frozenset({"find_by_sequence", "find_one_by_sequence"})
"""Statements that read messages which are named: what others add changes nothing of it."""
NAMED = connection.NAMED | load_named("connection", _PACKAGE)
"""Those whose rows depend on one thing that their bindings name."""
SILENT = frozenset(name for name in CHANGING if not _GIVES_ROWS.search(SQL[name]))
"""Statements that change something and return no rows: nobody has to wait for them."""
_CHANGED = re.compile(r"\b(?:INSERT INTO|UPDATE|DELETE FROM) +([a-z_]+)")
_WORD = re.compile(r"\w+")
WRITTEN_TABLES = {name: frozenset(_CHANGED.findall(statement)) for name, statement in SQL.items()}
"""The tables that each statement changes."""
_ALL_TABLES = frozenset[str]().union(*WRITTEN_TABLES.values())
NAMED_TABLES = {name: _ALL_TABLES & {*_WORD.findall(statement)} for name, statement in SQL.items()}
"""The tables that each statement names, of those that any changes."""
