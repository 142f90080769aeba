"""How long tests wait for what has to come: so long that it comes on a busy machine, too."""

import ast
import re
from collections.abc import Iterator

import pytest

from support.processes import WAIT_SECONDS_MAX
from support.source import parsed

SIMULATED = ("actors/dead_letters/", "delayed/", "faces/", "worker/")
"""Below tests, folders whose time passes when a test tells it to (support/simulated_time.py)."""
CLOCKS = {"autojump_clock", "mock_clock"}
"""Arguments of a test that is in simulated time."""
BOUNDED = {"fail_after", "join", "settimeout", "wait", "result"}
"""What is called with the seconds after which it gives up; others have a `timeout`, support.transport has `seconds`."""
MENTIONED = re.compile(rf"(?:{'|'.join(sorted(BOUNDED))})\([A-Z\d]|(?:timeout|seconds)=[A-Z\d]")
"""In the text of every file with such a call: most have none and are not parsed."""
PAUSE_SECONDS_MAX = 0.5
"""A shorter one is no such bound: it leaves time for what must not happen."""
SHORTER = {
    "client/test_client_close.py": "an end that comes later than 25.6 s comes by itself",
    "spark/exact/round_trips.py": "looks once a second whether a query has come to its end",
    "spark/test_consume.py": "looks once a second",
}
"""Files that wait less, each with its reason."""


def short_waits(tree: ast.Module) -> Iterator[tuple[int, float]]:
    """Line and seconds of each wait in real time that ends before WAIT_SECONDS_MAX."""
    constants = {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if CLOCKS & {each.arg for each in node.args.args}:
                continue
        elif isinstance(node, ast.Call):
            for each in _bounds(node):
                seconds = constants.get(each.id) if isinstance(each, ast.Name) else getattr(each, "value", 0)
                if isinstance(seconds, int | float) and PAUSE_SECONDS_MAX < seconds < WAIT_SECONDS_MAX:
                    yield node.lineno, seconds
        pending += ast.iter_child_nodes(node)


def _bounds(call: ast.Call) -> list[ast.expr]:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    keyword = "seconds" if name == "running" else "timeout"
    return [each.value for each in call.keywords if each.arg == keyword] + (
        call.args[:1] if name in BOUNDED else []
    )


def test_what_has_to_come_is_waited_for_as_long_as_on_a_busy_machine(root) -> None:
    """Where a test shows that something comes early, it is another end that is put off, not this one."""
    folder = root / "tests"
    found = {
        name: list(short_waits(parsed(path)))
        for path in sorted(folder.rglob("*.py"))
        if not (name := path.relative_to(folder).as_posix()).startswith(SIMULATED)
        and MENTIONED.search(path.read_text(encoding="utf-8"))
    }
    short = {name: waits for name, waits in found.items() if waits}
    assert {name: waits for name, waits in short.items() if name not in SHORTER} == {}
    assert SHORTER.keys() <= short.keys()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("with trio.fail_after(10): pass", [10]),
        ("SECONDS_MAX = 4.0\nwith fail_after(SECONDS_MAX): pass", [4.0]),
        ("process.wait(10)", [10]),
        ("subprocess.run(command, timeout=5)", [5]),
        ("def test(broker):\n    thread.join(20)", [20]),
        ("def test(autojump_clock):\n    fail_after(1)", []),
        ("fail_after(WAIT_SECONDS_MAX); fail_after(60); event.wait(); event.wait(0.2)", []),
        ('app.on("q", timeout="3s"); " ".join(words)', []),
    ],
)
def test_a_wait_that_is_too_short_is_found(text: str, seconds: list[float]) -> None:
    assert [found for _, found in short_waits(ast.parse(text))] == seconds
    assert not seconds or MENTIONED.search(text)
