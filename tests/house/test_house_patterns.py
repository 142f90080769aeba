"""No regular expression of ours takes long, whatever text it is given: each is tried with texts made for it."""

import ast
import re
from fnmatch import translate

import pytest

from forq_trio.model import limits
from house.conftest import ROOT
from support.patterns import patterns, slow_text
from support.source import nodes, parsed, statements

EXAMPLES = {
    "forq_trio.jobs.backup_files": {"name": r"forq-\d{8}-\d{6}\.db"},
    "forq_trio.ui.content": {"text": "a&b"},
}
"""By module: values for the names in its patterns that only exist while it runs."""
OUR_OWN_TEXTS = {"forq_trio.storage.postgres.dialect": "translates our own SQL, when it is imported"}
"""Modules whose patterns read nothing from outside, and why."""

FILES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for package in ("forq_trio", "pyspark_forq")
    for path in sorted((ROOT / package).rglob("*.py"))
    if re.search(r"^\s*import re$", path.read_text(encoding="utf-8"), re.MULTILINE)
}
"""The modules with patterns: as the formatter writes it, an import has its line. Nothing is parsed while tests are
collected, which each process does."""
QUICK = re.compile(r"forq_trio\.(?:http|model|wire)\.")
"""What tier 1 looks at: what requests are read with."""
READS_OTHERS_TEXTS = [module for module in FILES if module not in OUR_OWN_TEXTS]


def slow_patterns(module, modules, *, thorough: bool) -> dict[str, str | None]:
    found = list(patterns(module, parsed(FILES[module]), modules.values(), EXAMPLES.get(module, {})))
    assert found, f"{module} imports re and makes no pattern"
    return {
        each.where: text
        for each in found
        if (text := slow_text(each.pattern, each.methods, thorough=thorough)) is not None
    }


@pytest.mark.parametrize(
    "module",
    [
        each if QUICK.match(each) else pytest.param(each, marks=pytest.mark.tier2)
        for each in READS_OTHERS_TEXTS
    ],
)
def test_every_pattern_takes_time_that_grows_with_its_text_alone(module, modules) -> None:
    assert slow_patterns(module, modules, thorough=False) == {}


@pytest.mark.tier2
@pytest.mark.parametrize("module", READS_OTHERS_TEXTS)
def test_every_pattern_does_so_for_texts_of_two_kinds_of_parts(module, modules) -> None:
    assert slow_patterns(module, modules, thorough=True) == {}


def test_a_glob_of_a_token_takes_such_time_too() -> None:
    for part in ("*a", "?*"):
        glob = (part * limits.TOKEN_QUEUES_LENGTH_MAX)[: limits.TOKEN_QUEUES_LENGTH_MAX]
        assert slow_text(re.compile(translate(glob)), ("match",), thorough=False) is None


@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        (r"[!-~]+/[!-~]+(?: ?[!-~]+)*", "fullmatch"),
        (r"(.{1,30}?)(?:/| in )\s*(.{1,30}?)(?:[,\s]+(whole queue|each group)|\s*/\s*(group))?", "fullmatch"),
        (r'"[^"\\\x00-\x1f]*+(?:\\[^\x00-\x1f]?[^"\\\x00-\x1f]*+)*\Z', "match"),
        (r"\s+$", "search"),
        (r"(a+)+$", "match"),
        (r"a*a*b", "match"),
        (r"(?:a|b|ab)*c", "match"),
        (r"x.*y.*z", "match"),
        (r"(.*?)(?: - at `\$(.*)`)?", "fullmatch"),
        (r"(\w+_)?PORT(_\w+)?", "fullmatch"),
        (rb"[ \t]*[ \r]*x", "sub"),
        (r"(?:[a-z]+[0-9]?)*!", "split"),
        (r"[a-z]+[0-9]+", "search"),
    ],
)
def test_a_pattern_that_can_match_in_many_ways_is_found(pattern, method) -> None:
    assert slow_text(re.compile(pattern), (method,), thorough=False) is not None


@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        (r"[a-z]+[0-9]+", "match"),
        (r"(?:\w+ )*!", "match"),
        (r"(?<!\s)\s+$", "search"),
        (rb"a*b", "fullmatch"),
    ],
)
def test_a_plain_pattern_is_not(pattern, method) -> None:
    assert slow_text(re.compile(pattern), (method,)) is None


def test_patterns_are_made_where_this_file_finds_them(modules) -> None:
    elsewhere = []
    for name, tree in modules.items():
        for node in statements(tree):
            if isinstance(node, ast.ImportFrom) and node.module in ("re", "regex"):
                elsewhere.append(f"{name}: from {node.module} import")
            elif isinstance(node, ast.Import):
                elsewhere += [
                    f"{name}: {ast.unparse(node)}"
                    for each in node.names
                    if each.name == "re" and ast.unparse(node) != "import re"
                ]
        elsewhere += [f"{name}: pattern=" for node in nodes(tree, ast.keyword) if node.arg == "pattern"]
    assert elsewhere == []
    assert set(OUR_OWN_TEXTS) | set(EXAMPLES) <= set(FILES)
