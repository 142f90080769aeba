"""The public names of Python: what each is for, and the methods of classes. On the site autodoc says the rest."""

import ast
import enum
import inspect
import re
import textwrap
from collections.abc import Iterator, Sequence
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import forq_trio
from docs._generate.markdown import page

SOURCE = "the docstrings of the names that are imported from here"
MODULES = {
    "worker": ("Python: workers", "forq_trio.worker", "workers.md"),
    "delayed": ("Python: delayed messages", "forq_trio.delayed", "delayed.md"),
    "outbox": ("Python: outbox", "forq_trio.outbox", "outbox.md"),
    "pgq": ("Python: pgq", "forq_trio.pgq", "pgq.md"),
}
SPARK = Path(forq_trio.__file__).parents[1] / "pyspark_forq"


def pages() -> Iterator[tuple[str, str]]:
    homes = {name: f"forq_trio.{home}" for name, home in forq_trio._homes().items()}
    topics: dict[str, list[str]] = {"clients": [], "broker": [], "values": [], "errors": []}
    for name in sorted(homes):
        topics[_topic(name, homes[name])].append(name)
    titles = {
        "clients": "Python: clients",
        "broker": "Python: the embedded broker",
        "values": "Python: values",
        "errors": "Python: errors",
    }
    for topic, names in topics.items():
        yield _page(topic, titles[topic], "forq_trio", "python.md", {name: homes[name] for name in names})
    for topic, (title, module, guide) in MODULES.items():
        found = homes_of(module)
        ours = import_module(module)
        shared = sorted(name for name in found if getattr(forq_trio, name, None) is getattr(ours, name))
        others = {name: home for name, home in found.items() if name not in shared}
        yield _page(topic, title, module, guide, others, shared)
    yield (
        "python-spark.md",
        page("Python: Apache Spark", SOURCE, _intro("pyspark_forq", "spark.md"), *_of_spark()),
    )


def _topic(name: str, home: str) -> str:
    if name in forq_trio._EMBEDDED:
        return "broker"
    if home == "forq_trio.model.errors":
        return "errors"
    return "clients" if home.startswith("forq_trio.client.") else "values"


def homes_of(module: str) -> dict[str, str]:
    """What a module has for others, `from home import Name as Name`: the home of each name."""
    source = inspect.getsource(import_module(module))
    return {name: home for home, name in re.findall(r"from (\S+) import (\w+) as \2$", source, re.MULTILINE)}


def _page(
    topic: str, title: str, module: str, guide: str, homes: dict[str, str], elsewhere: Sequence[str] = ()
) -> tuple[str, str]:
    """A page of names by their homes. elsewhere: those that are explained among the names of the whole package."""
    blocks = [block for name, home in homes.items() for block in _section(module, name, home)]
    named = ", ".join(f"`{name}`" for name in elsewhere)
    also = named and f"It also has {named}: see [errors](python-errors.md) and [values](python-values.md)."
    return f"python-{topic}.md", page(title, SOURCE, _intro(module, guide), also, *blocks)


def _intro(module: str, guide: str) -> str:
    return f"Import these names from `{module}`. [The guide](../{guide}) has examples."


def _section(module: str, name: str, home: str) -> Iterator[str]:
    thing = getattr(import_module(module), name)
    yield f"## {name}"
    yield f"<!-- {_kind(thing)} {module}.{name} -->"
    yield _first_paragraph(text_below(home, name) if _is_alias(thing) else inspect.getdoc(thing) or "")
    if inspect.isclass(thing) and not issubclass(thing, BaseException | enum.Enum):
        yield "\n".join(_methods(thing))


def _is_alias(thing: Any) -> bool:
    return not (inspect.isclass(thing) or inspect.isroutine(thing))


def text_below(home: str, name: str) -> str:
    """What the string below the assignment of a name says: an alias has no docstring of its own."""
    for node, below in pairwise(ast.parse(inspect.getsource(import_module(home))).body):
        if (
            isinstance(node, ast.Assign)
            and isinstance(below, ast.Expr)
            and ast.unparse(node.targets[0]) == name
        ):
            return str(ast.literal_eval(below.value))
    raise AssertionError(f"nothing is said of {name}")


def _kind(thing: Any) -> str:
    if inspect.isclass(thing):
        return "exception" if issubclass(thing, BaseException) else "class"
    return "function" if inspect.isroutine(thing) else "data"


def _first_paragraph(text: str) -> str:
    return " ".join(text.split("\n\n")[0].split())


def _methods(kind: type) -> Iterator[str]:
    for name, method in inspect.getmembers_static(kind):
        method = getattr(method, "__func__", method)
        if name.startswith("_") or not inspect.isfunction(method):
            continue
        if method.__module__.startswith(("forq_trio", "pyspark_forq")):
            said = _first_paragraph(inspect.getdoc(getattr(kind, name)) or "")
            yield f"- `{name}({', '.join(_parameters(method))})`" + (f": {said}" if said else "")


def _parameters(method: Any) -> Iterator[str]:
    parameters = list(inspect.signature(method).parameters.values())
    starred = False
    for each in parameters:
        if each.name in ("self", "cls"):
            continue
        if each.kind is each.KEYWORD_ONLY and not starred:
            starred = True
            yield "*"
        starred = starred or each.kind is each.VAR_POSITIONAL
        yield {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "") + each.name


def _of_spark() -> Iterator[str]:
    """Read from the source, whole, so that Spark need not be there, neither here nor for the site."""
    package = ast.parse((SPARK / "__init__.py").read_text(encoding="utf-8"))
    values = {
        target.id: ast.literal_eval(node.value)
        for node in package.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name) and target.id in ("_HOMES", "__all__")
    }
    for name in values["__all__"]:
        module, attribute = values["_HOMES"][name]
        if name != attribute:  # by which Spark finds the source
            continue
        tree = ast.parse((SPARK / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8"))
        node = next(each for each in tree.body if getattr(each, "name", "") == name)
        assert isinstance(node, ast.ClassDef | ast.FunctionDef)
        yield f"## {name}"
        if isinstance(node, ast.FunctionDef):
            returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
            signature = f"def {name}({ast.unparse(node.args)}){returns}: ..."
            yield f"```\n{textwrap.fill(signature, 100, subsequent_indent='    ')}\n```"
        yield ast.get_docstring(node) or ""
