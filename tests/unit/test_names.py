"""What the package is called by: its version, and as a program."""

import runpy
import sys
from importlib import metadata

import pytest

import forq_trio


def test_the_version_is_that_of_the_installed_package() -> None:
    assert forq_trio.__version__ == metadata.version("forq-trio")


def test_the_package_is_a_program(monkeypatch, capsys) -> None:
    monkeypatch.setattr(sys, "argv", ["forq", "--version"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("forq_trio", run_name="__main__")
    assert ended.value.code in (None, 0)
    assert forq_trio.__version__ in capsys.readouterr().out
