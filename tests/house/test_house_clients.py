"""Clients of httpx in tests: to servers without TLS, for which they would load roots of certificates all the same."""

import ast
from collections.abc import Iterator

from support.source import parsed

ASKING = {"Client", "AsyncClient", "HTTPTransport", "AsyncHTTPTransport"}
ASKING |= {"get", "post", "put", "delete", "patch", "head", "options", "request", "stream"}
SAID = {"verify", "transport"}


def loading_roots(tree: ast.Module) -> Iterator[int]:
    """The line of each client, or request without one, that does not say which certificates it takes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ASKING:
            of = node.func.value
            if (
                isinstance(of, ast.Name)
                and of.id == "httpx"
                and not SAID & {each.arg for each in node.keywords}
            ):
                yield node.lineno


def test_clients_of_tests_say_which_certificates_they_take(root) -> None:
    """To load the roots takes 60 ms of the processor, fifty times what a client takes without."""
    wrong = [
        f"{path.relative_to(root)}:{line}"
        for path in sorted((root / "tests").rglob("*.py"))
        if "httpx." in path.read_text(encoding="utf-8")
        for line in loading_roots(parsed(path))
    ]
    assert wrong == []


def test_the_checker_finds_them() -> None:
    assert list(
        loading_roots(ast.parse("httpx.Client()\nhttpx.get(url)\nhttpx.AsyncClient(base_url=url)"))
    ) == [1, 2, 3]
    assert (
        list(
            loading_roots(ast.parse("httpx.Client(verify=False)\nclient.get(url)\nhttpx.Client(transport=t)"))
        )
        == []
    )
