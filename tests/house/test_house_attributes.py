"""How much state a class has: one can hold a class in the head if its attributes are few.

The attributes of a class are what its own methods set on `self`, what its `__slots__` name, and the fields that its
body declares; what it inherits is counted where it is declared. Where a class would have more than ATTRIBUTES_MAX, some
of them are one idea: a part, with a name and methods of its own. `forq_trio/storage/relational/parts` is the pattern.

A plain record may have any number: its attributes are fields, and none of its methods but `__post_init__` sets one.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

from support.source import parsed, statements

ATTRIBUTES_MAX = 15

# A request is parsed in 9.0 µs of processor time; an object for its head would cost the parser 0.5 µs more.
ABOVE = {
    "forq_trio/http/transport/h1.py RequestParser": 26,
    "tests/reliability/whole_app/books.py Books": 19,
    "tests/reliability/whole_app/deeds.py Deeds": 19,
}
"""The classes with more, and how many: a number may only fall."""


def own_nodes(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """All nodes of the body of a class or function, without those of the classes inside it."""
    pending: list[ast.AST] = [*body]
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, ast.ClassDef):
            pending += ast.iter_child_nodes(node)


def set_on_self(body: list[ast.stmt]) -> set[str]:
    return {
        node.attr
        for node in own_nodes(body)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    }


def declared_fields(body: list[ast.stmt]) -> set[str]:
    return {
        node.target.id
        for node in body
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and not ast.unparse(node.annotation).startswith("ClassVar")
    }


def slots(body: list[ast.stmt]) -> set[str]:
    found: set[str] = set()
    for node in body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__slots__":
            names = ast.literal_eval(node.value)
            found |= {names} if isinstance(names, str) else set(names)
    return found


def attributes_of(node: ast.ClassDef) -> set[str]:
    """The attributes of a class; none of a plain record."""
    fields, by_slots = declared_fields(node.body), slots(node.body)
    working = [each for each in node.body if getattr(each, "name", "") != "__post_init__"]
    if fields and not by_slots and not set_on_self(working):
        return set()
    return fields | by_slots | set_on_self(node.body)


def classes_above(root: Path, files: list[Path]) -> dict[str, int]:
    return {
        f"{path.relative_to(root)} {node.name}": len(attributes)
        for path in files
        for node in statements(parsed(path))
        if isinstance(node, ast.ClassDef) and len(attributes := attributes_of(node)) > ATTRIBUTES_MAX
    }


def test_a_class_has_few_attributes(root, python_files) -> None:
    assert classes_above(root, python_files) == ABOVE


def test_attributes_are_counted(tmp_path) -> None:
    fields = "".join(f"    f{number}: int = 0\n" for number in range(16))
    settings = "".join(f"        self.a{number}, x = 0, 0\n" for number in range(16))
    names = [f"s{number}" for number in range(16)]
    path = tmp_path / "shapes.py"
    path.write_text(
        f"class Record:\n{fields}    def total(self):\n        return self.f0\n"
        f"class Made:\n{fields}    def __post_init__(self):\n        self.more = 0\n"
        f"class Changing:\n{fields}    def grow(self):\n        self.f0 += 1\n"
        f"class Setting:\n    def __init__(self):\n{settings}        self.of.another = 0\n"
        f"class Slotted:\n    __slots__ = {names}\n"
        f"class Outer:\n    def grow(self):\n        self.one = 1\n    class Inner:\n        def __init__(self):\n"
        + settings.replace("        self", "            self")
    )
    assert classes_above(tmp_path, [path]) == {
        "shapes.py Changing": 16,
        "shapes.py Setting": 16,
        "shapes.py Slotted": 16,
        "shapes.py Inner": 16,
    }
