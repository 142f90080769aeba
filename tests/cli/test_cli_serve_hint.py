"""`forq serve` beside a forq.toml that nobody named says that it is not used."""

from pathlib import Path

import pytest

from forq_trio import app

from .conftest import Forq


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No server starts, in a folder that `forq init` has filled."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(app, "run", lambda *_: 0)
    monkeypatch.setenv("FORQ_AUTH_SECRET", "x" * 32)


HINT = "forq: forq.toml is here, and not used: --config forq.toml uses it\n"


def test_a_file_that_nobody_named_is_told_of(
    starts: None, forq: Forq, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert HINT not in forq("serve", "--memory").err
    assert forq("init").code == 0
    assert HINT in forq("serve", "--memory").err
    assert HINT not in forq("serve", "--config", "forq.toml", "--memory").err
    monkeypatch.setenv("FORQ_CONFIG", "forq.toml")
    assert HINT not in forq("serve", "--memory").err
