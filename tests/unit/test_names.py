"""What the package is called by: its version, its names, and as a program."""

import ast
import runpy
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import forq_trio
from forq_trio.model import errors


def is_error(each: object) -> bool:
    return isinstance(each, type) and issubclass(each, errors.ForqError)


def test_the_version_is_that_of_the_installed_package() -> None:
    assert forq_trio.__version__ == metadata.version("forq-trio")


def test_the_package_is_a_program(monkeypatch, capsys) -> None:
    monkeypatch.setattr(sys, "argv", ["forq", "--version"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("forq_trio", run_name="__main__")
    assert ended.value.code in (None, 0)
    assert forq_trio.__version__ in capsys.readouterr().out


def test_editors_and_type_checkers_see_every_name() -> None:
    tree = ast.parse(Path(forq_trio.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level == 0]
    seen = {
        alias.asname: (node.module, alias.name)
        for node in imports
        for alias in node.names
        if (node.module or "").startswith("forq_trio.") and alias.asname
    }
    everything = [node.module for node in imports if node.names[0].name == "*"]
    assert everything == ["forq_trio.model.errors"]
    seen |= {name: ("forq_trio.model.errors", name) for name in vars(errors) if is_error(vars(errors)[name])}
    assert seen == {name: (f"forq_trio.{home}", name) for name, home in forq_trio._homes().items()}
    assert sorted(seen) == forq_trio.__all__
    assert set(seen) <= set(dir(forq_trio))
    for name in forq_trio.__all__:
        assert getattr(forq_trio, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = forq_trio.nothing


@pytest.mark.parametrize(
    ("program", "not_loaded"),
    [
        ("import forq_trio", {"trio", "apsw", "httpx", "anyio", "msgspec"}),
        ("from forq_trio import ForqClient", {"trio", "apsw", "forq_trio.broker", "forq_trio.storage"}),
        ("from forq_trio import open_broker", {"httpx", "anyio", "forq_trio.client", "forq_trio.http"}),
    ],
)
def test_a_name_loads_only_what_it_needs(program: str, not_loaded: set[str]) -> None:
    shown = "import sys; print(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", f"{program}; {shown}"], capture_output=True, text=True, check=True
    )
    assert set(run.stdout.split()) & not_loaded == set()
