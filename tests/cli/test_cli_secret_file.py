"""The secret of a client command, in the file that FORQ_AUTH_SECRET_FILE names."""

from pathlib import Path

import pytest

from support.real_server import SECRET

from .conftest import Forq


def test_a_command_reads_its_secret_from_a_file(
    connected: Forq, queue: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """As the server in a container does, so that `docker exec` needs no secret."""
    (tmp_path / "secret").write_text(f"{SECRET}\n")
    monkeypatch.setenv("FORQ_AUTH_SECRET_FILE", str(tmp_path / "secret"))
    outcome = connected("peek", queue)
    both = "forq: FORQ_AUTH_SECRET_FILE is set beside FORQ_AUTH_SECRET; allowed: one of the two\n"
    assert (outcome.code, outcome.err) == (2, both)
    monkeypatch.delenv("FORQ_AUTH_SECRET")
    assert connected("peek", queue).code == 5
    (tmp_path / "secret").write_text('"quoted"')
    assert connected("peek", queue).err.startswith("forq: FORQ_AUTH_SECRET_FILE has quotes around it")
    (tmp_path / "secret").unlink()
    outcome = connected("peek", queue)
    assert outcome.code == 2
    assert outcome.err.endswith("cannot be read (No such file or directory); allowed: a readable file\n")
