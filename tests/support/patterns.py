"""Regular expressions of the package, and texts that make an ambiguous one slow.

A pattern is slow if there is more than one way to match the same text: after a mismatch the matcher tries them all. So
a text is a beginning that the pattern takes, what one of its repeats takes, many times, and an end that does not fit.
"""

import ast
import re
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from itertools import islice, product
from typing import Any, NamedTuple

from support.source import nodes

METHODS = {"match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer"}
TEXT_LENGTH = 8_192
"""No text but a content is longer; a linear pattern takes about 0.1 ms for so much, a quadratic one 30 ms and more."""
SECONDS_MAX = 0.005
_SHORTER_LENGTH = 256
_SUSPECT_LENGTH = 1_024
_SUSPECT_SECONDS = 0.000_1
_SUSPECT_GROWTH = 5
"""Between these two lengths a linear pattern takes 4 times as long, a quadratic one up to 16 times."""
_LENGTHS = (*range(16, 64, 4), 64, 128, _SHORTER_LENGTH, 512, _SUSPECT_LENGTH, 2_048, 4_096, TEXT_LENGTH)
"""They grow so slowly that a pattern that takes 16 times as long for four more characters is soon found out, also by a
fast machine: a text of 32 may take it 2 ms, one of 64 minutes."""
_GROWTH_MAX = 2
_TEXTS_MAX = 600
"""Of a pattern, unless thorough."""
_FLAGS_THIRD = ("match", "fullmatch", "search", "findall", "finditer")
_END_REPEATS = 64
"""More than a bounded repeat beside an unbounded one takes."""
_VARIANTS_MAX = 6
_CANDIDATES = [chr(each) for each in range(0x80)] + ["\x85", "é", "²", "\xff", "\u2028", "İ", "٣"]

_parser: Any = re._parser  # type: ignore[attr-defined]
_REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")


class Found(NamedTuple):
    """A pattern of the package. where: "module:line"; methods: those of `re` that it is used with."""

    where: str
    pattern: re.Pattern[Any]
    methods: frozenset[str]


class Text(NamedTuple):
    """A text of any length: start, then `part` many times, then end."""

    start: str
    part: str
    end: str

    def of_length(self, length: int) -> str:
        return self.start + self.part * max(1, length // len(self.part)) + self.end


def patterns(
    module: str, tree: ast.Module, trees: Iterable[ast.Module], values: Mapping[str, Any]
) -> Iterator[Found]:
    """Every pattern that a module makes. trees: of all modules, which may use it, too.

    values: of the names in its patterns that only exist while it runs.
    """
    here = _methods_by_name(tree)
    scope = {**vars(import_module(module)), **values}
    targets = {
        id(node.value): ast.unparse(node.targets[0]).rpartition(".")[2]
        for node in nodes(tree, ast.Assign)
        if isinstance(node.value, ast.Call)
    }
    for node in nodes(tree, ast.Call):
        if not _makes_pattern(node):
            continue
        method = node.func.attr
        methods = {method}
        if method == "compile":
            target = targets.get(id(node), "")
            used = [here] if target.startswith("_") or not target else map(_methods_by_name, trees)
            methods = set().union(*(each.get(target, ()) for each in used)) or METHODS
        flags = node.args[1:2] if method == "compile" else node.args[2:3] if method in _FLAGS_THIRD else []
        flags += [each.value for each in node.keywords if each.arg == "flags"]
        pattern = re.compile(_value(node.args[0], scope), *(_value(each, scope) for each in flags))
        yield Found(f"{module}:{node.lineno}", pattern, frozenset(methods))


@cache
def _methods_by_name(tree: ast.Module) -> dict[str, set[str]]:
    """The methods of patterns that a module calls, by the last name of what they are called on."""
    used: dict[str, set[str]] = {}
    for node in nodes(tree, ast.Attribute):
        if node.attr in METHODS:
            of = node.value
            for each in (of.body, of.orelse) if isinstance(of, ast.IfExp) else (of,):
                used.setdefault(ast.unparse(each).rpartition(".")[2], set()).add(node.attr)
    return used


def _makes_pattern(node: Any) -> bool:
    return (
        isinstance(node.func, ast.Attribute)
        and node.func.attr in METHODS | {"compile"}
        and ast.unparse(node.func.value) == "re"
    )


def _value(node: ast.expr, scope: dict[str, Any]) -> Any:
    return eval(compile(ast.Expression(node), "<pattern>", "eval"), scope)


def slow_text(
    pattern: re.Pattern[Any], methods: Iterable[str] = METHODS, *, thorough: bool = True
) -> str | None:
    """A text for which the pattern takes more than SECONDS_MAX of processor time; None without one.

    Of a text past _SUSPECT_LENGTH, a character has to take longer than in shorter ones, too: so the speed of the
    machine does not decide. thorough: tries all texts, and those with two kinds of parts in turns, too.
    """
    tried = list(texts(pattern, thorough=thorough))
    for text in tried if thorough else tried[:: max(1, len(tried) // _TEXTS_MAX)]:
        shorter = short = 0.0
        for length in _LENGTHS:
            if length > _SUSPECT_LENGTH and (short < _SUSPECT_SECONDS or short < _SUSPECT_GROWTH * shorter):
                break
            whole = text.of_length(length)
            seconds = _seconds(pattern, methods, whole)
            if seconds > SECONDS_MAX:
                seconds = min(seconds, *(_seconds(pattern, methods, whole) for _ in range(2)))
            if seconds > SECONDS_MAX and seconds > _GROWTH_MAX * short * length / _SUSPECT_LENGTH:
                return f"{text.start!r}, {text.part!r} to {length:,} characters, {text.end[:1]!r}: {seconds:.3f} s"
            if length == _SHORTER_LENGTH:
                shorter = seconds
            elif length == _SUSPECT_LENGTH:
                short = seconds
    return None


def _seconds(pattern: re.Pattern[Any], methods: Iterable[str], text: str) -> float:
    """Processor time of the slowest method."""
    whole: Any = text.encode("latin-1", "replace") if isinstance(pattern.pattern, bytes) else text
    slowest = 0.0
    for method in methods:
        call = getattr(pattern, method)
        arguments = (whole[:0], whole) if method in ("sub", "subn") else (whole,)
        began = time.thread_time()
        found = call(*arguments)
        if method == "finditer":
            deque(found, 0)
        slowest = max(slowest, time.thread_time() - began)
    return slowest


def texts(pattern: re.Pattern[Any], *, thorough: bool) -> Iterator[Text]:
    """The texts to try, without repetition."""
    source = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    tree = _parser.parse(
        source, pattern.flags & ~re.UNICODE if isinstance(pattern.pattern, bytes) else pattern.flags
    )
    alphabet = _alphabet(list(_sets(tree)), pattern.flags)
    ends = ["", *(each * _END_REPEATS for each in alphabet)]
    seen = set()
    for start, body, behind in _repeats(tree, "", (), alphabet):
        bodies = list(dict.fromkeys(islice(_samples(body, alphabet), _VARIANTS_MAX)))
        nexts = list(dict.fromkeys(islice(_samples(behind, alphabet), 2)))
        parts = [*bodies, *nexts, *alphabet]
        if thorough:
            parts += (one + other for one, other in product(bodies, [*bodies, *nexts]) if one != other)
        for begin in dict.fromkeys(("", start)):
            for part, end in product(parts, ends):
                text = Text(begin, part, end)
                if part and text not in seen:
                    seen.add(text)
                    yield text


def _repeats(items: Any, start: str, behind: Any, alphabet: list[str]) -> Iterator[tuple[str, Any, Any]]:
    """Each repeat: what comes before it as a text, what it repeats, and what comes behind it."""
    items = list(items)
    for place, (kind, value) in enumerate(items):
        rest = [*items[place + 1 :], *behind]
        name = str(kind)
        if name in _REPEATS:
            _, high, body = value
            if high > 8:
                yield start, body, rest
            yield from _repeats(body, start, rest, alphabet)
        else:
            for each in _inside(name, value):
                yield from _repeats(each, start, rest, alphabet)
        start += next(_samples([(kind, value)], alphabet), "")


def _inside(name: str, value: Any) -> Iterator[Any]:
    if name == "SUBPATTERN":
        yield value[3]
    elif name == "BRANCH":
        yield from value[1]
    elif name == "ATOMIC_GROUP":
        yield value
    elif name in ("ASSERT", "ASSERT_NOT"):
        yield value[1]


def _samples(items: Any, alphabet: list[str]) -> Iterator[str]:
    """Texts that the items take, short ones, one for each choice of a character or branch."""
    for choice in range(_VARIANTS_MAX):
        yield "".join(_sample(str(kind), value, alphabet, choice) for kind, value in items)


def _sample(name: str, value: Any, alphabet: list[str], choice: int) -> str:
    if name == "BRANCH":
        branches = value[1]
        return next(islice(_samples(branches[choice % len(branches)], alphabet), choice, None))
    if name in _REPEATS:
        low, _, body = value
        return next(islice(_samples(body, alphabet), choice, None)) * max(low, 1 if choice else 0)
    if name in ("SUBPATTERN", "ATOMIC_GROUP"):
        return next(islice(_samples(value[3] if name == "SUBPATTERN" else value, alphabet), choice, None))
    fitting = [each for each in alphabet if _takes(name, value, each)]
    return fitting[choice % len(fitting)] if fitting else chr(value) if name == "LITERAL" else ""


def _sets(items: Any) -> Iterator[tuple[str, Any]]:
    """Every item that takes one character."""
    for kind, value in items:
        name = str(kind)
        if name in ("LITERAL", "NOT_LITERAL", "ANY", "IN"):
            yield name, value
        elif name in _REPEATS:
            yield from _sets(value[2])
        else:
            for each in _inside(name, value):
                yield from _sets(each)


def _alphabet(sets: list[tuple[str, Any]], flags: int) -> list[str]:
    """One character of each kind that the pattern can tell apart."""
    kinds: dict[tuple[bool, ...], str] = {}
    candidates = _CANDIDATES + [chr(value) for name, value in sets if name == "LITERAL"]
    for each in sorted(candidates, key=lambda each: (not each.isalnum(), each)):
        kinds.setdefault(tuple(_takes(name, value, each) for name, value in sets), each)
    return list(kinds.values())


def _takes(name: str, value: Any, character: str) -> bool:
    if name == "LITERAL":
        return chr(value) == character
    if name == "NOT_LITERAL":
        return chr(value) != character
    if name == "ANY":
        return character != "\n"
    if name != "IN":
        return False
    negated = bool(value) and str(value[0][0]) == "NEGATE"
    return negated != any(_in_set(str(kind), each, character) for kind, each in value)


_CATEGORIES = {
    "CATEGORY_DIGIT": r"\d",
    "CATEGORY_NOT_DIGIT": r"\D",
    "CATEGORY_SPACE": r"\s",
    "CATEGORY_NOT_SPACE": r"\S",
    "CATEGORY_WORD": r"\w",
    "CATEGORY_NOT_WORD": r"\W",
}


def _in_set(kind: str, value: Any, character: str) -> bool:
    if kind == "LITERAL":
        return chr(value) == character
    if kind == "RANGE":
        return value[0] <= ord(character) <= value[1]
    return kind == "CATEGORY" and re.match(_CATEGORIES[str(value)], character) is not None
