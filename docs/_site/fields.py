"""The fields of records, with their types and what is said of them.

A field says what it is in a comment on its line, or above it, in a string below it, or in the description of its type.
"""

import ast
import inspect
import textwrap
from collections.abc import Iterator
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

RECORDS = ("__struct_fields__", "__dataclass_fields__", "_fields", "__total__")
"""An attribute of each kind of record: msgspec's, dataclasses, named tuples, typed dicts."""
DEFAULT_LENGTH_MAX = 40


class Field(NamedTuple):
    """A field of a record."""

    name: str
    type: str
    default: str
    says: str


def fields_of(kind: type) -> Iterator[Field]:
    """The public fields of a record, those of the classes above it first; none of any other class."""
    if not any(hasattr(kind, each) for each in RECORDS):
        return
    try:
        hints = get_type_hints(kind, include_extras=True)
    except (NameError, TypeError):  # a type that is imported for type checkers alone
        hints = {}
    seen = set()
    bases = getattr(kind, "__orig_bases__", ()) if hasattr(kind, "__total__") else reversed(kind.__mro__)
    for each in (*bases, kind):
        for field in _fields_here(each, hints):
            if field.name not in seen:
                seen.add(field.name)
                yield field


def type_text(hint: Any) -> str:
    """A type as one writes it, without what is annotated."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return type_text(arguments[0])
    if origin in (Union, UnionType):
        return " | ".join(map(type_text, arguments))
    if origin is Literal:
        return " | ".join(map(repr, arguments))
    if origin is not None:
        return f"{getattr(origin, '__name__', origin)}[{', '.join(map(type_text, arguments))}]"
    if hint is NoneType:
        return "None"
    return "..." if hint is ... else getattr(hint, "__name__", str(hint))


def declared_in(hint: Any) -> Any:
    """The declaration in the annotation of a type, for the command line; None without one."""
    for each in getattr(hint, "__metadata__", ()):
        declared = (getattr(each, "extra", None) or {}).get("declared")
        if declared is not None:
            return declared
    return next((found for each in get_args(hint) if (found := declared_in(each)) is not None), None)


def _description(hint: Any) -> str:
    """What the annotation of a type says of it; if it is declared for the command line, too, what is said there."""
    annotations = reversed(getattr(hint, "__metadata__", ()))  # a later one says more
    said = next((each.description for each in annotations if getattr(each, "description", None)), "")
    if said:
        return str(said)
    declared = declared_in(hint) if hasattr(hint, "__metadata__") else None
    if declared is not None:
        return str(declared.says(lambda name: f"`{name}`"))
    return next(filter(None, map(_description, get_args(hint))), "")


def _fields_here(kind: Any, hints: dict[str, Any]) -> Iterator[Field]:
    if not getattr(kind, "__module__", "").startswith(("forq_trio", "pyspark_forq")):
        return
    try:
        source = textwrap.dedent(inspect.getsource(kind))
    except (OSError, TypeError):
        return
    tree = ast.parse(source).body[0]
    if not isinstance(tree, ast.ClassDef):
        return
    lines = source.split("\n")
    for node, below in zip(tree.body, [*tree.body[1:], None], strict=True):
        if (
            isinstance(node, ast.AnnAssign)
            and isinstance(node.target, ast.Name)
            and not node.target.id.startswith("_")
            and "ClassVar" not in ast.unparse(node.annotation)
        ):
            hint = hints.get(node.target.id)
            written = ast.unparse(node.annotation)
            shown = written if hint is None else type_text(hint)
            said = _said(node, below, lines) or _description(hint)
            yield Field(node.target.id, shown, _default(node), " ".join(said.split()))


def _default(node: ast.AnnAssign) -> str:
    text = "" if node.value is None else ast.unparse(node.value)
    return text if len(text) <= DEFAULT_LENGTH_MAX else "…"


def _said(node: ast.AnnAssign, below: ast.stmt | None, lines: list[str]) -> str:
    if (
        isinstance(below, ast.Expr)
        and isinstance(below.value, ast.Constant)
        and isinstance(below.value.value, str)
    ):
        return below.value.value
    return _comment(lines[(node.end_lineno or 1) - 1][node.end_col_offset :]) or " ".join(_above(node, lines))


def _above(node: ast.AnnAssign, lines: list[str]) -> list[str]:
    found: list[str] = []
    for line in reversed(lines[: node.lineno - 1]):
        if not line.strip().startswith("#"):
            break
        found.insert(0, _comment(line))
    return found


def _comment(text: str) -> str:
    _, mark, said = text.partition("#")
    return said.strip() if mark else ""
