"""The named statements in PostgreSQL's dialect: the shared ones, translated, and those that have a text of their own.

A statement that can be translated word by word is. Every other one has its own text, under the same name, in
`sql/dialect.sql` or in a file of `sql` with the name of the shared file. What a statement does (begins, changes, adds,
returns rows) is derived from its text, so that no list has to repeat it.
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
    # The number at the end of an id; NULL if there is none.
    (re.compile(r"\bsubstr\((\$\d+|id), 25\)"), r"substring(\1::text FROM '^.{24}(\\d{12})$')"),
    (re.compile(r"\bAS INTEGER\)"), "AS bigint)"),
    (re.compile(r"\bjson_array\("), "json_build_array("),
    (re.compile(r"\bIS (\$\d+)"), r"IS NOT DISTINCT FROM \1"),
    # A binding gets its type where it is first used, and IS NULL alone gives it none.
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
"""Statements that a cursor reads, because only the first rows may be wanted, or only up to so many bytes."""


ANEW = {
    name: statement
    for file in names_of(_PACKAGE)
    if file == "dialect" or file in connection.FILES
    for name, statement in load(file, _PACKAGE).items()
}
"""The statements that have a text of their own here."""


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
"""Those of MANY that change each row only once, so their last bindings, which name the rows, have to differ."""
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
"""Those of CHANGING that change no message that is already stored."""
NAMING = frozenset({"find_by_sequence", "find_one_by_sequence"})
"""Statements that read messages by sequence number: their rows stay the same when others are added."""
NAMED = connection.NAMED | load_named("connection", _PACKAGE)
"""Statements whose rows depend on one thing that their bindings name."""
SILENT = frozenset(name for name in CHANGING if not _GIVES_ROWS.search(SQL[name]))
"""Statements that change something and return no rows: nobody has to wait for them."""
_CHANGED = re.compile(r"\b(?:INSERT INTO|UPDATE|DELETE FROM) +([a-z_]+)")
_WORD = re.compile(r"\w+")
WRITTEN_TABLES = {name: frozenset(_CHANGED.findall(statement)) for name, statement in SQL.items()}
"""The tables that each statement changes."""
_ALL_TABLES = frozenset[str]().union(*WRITTEN_TABLES.values())
NAMED_TABLES = {name: _ALL_TABLES & {*_WORD.findall(statement)} for name, statement in SQL.items()}
"""The tables that each statement names, as far as any statement changes them."""
