"""Tokens as people use them: the command line against a real server process. Over a restart: test_access_storage.py."""

import json
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from cli.conftest import Forq, Outcome
from forq_trio.cli.exits import Exit
from support.real_server import SECRET, RealServer, real_server

pytestmark = pytest.mark.process

Run = Callable[..., Outcome]


@pytest.fixture
def forq(monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command: call it with a server, a command line, and the key if it is not the server's secret."""
    command = Forq(monkeypatch)
    for name in ("FORQ_CONFIG", "FORQ_DB_PATH"):
        monkeypatch.delenv(name, raising=False)

    def run(server: RealServer, *arguments: str, key: str = SECRET) -> Outcome:
        monkeypatch.setenv("FORQ_URL", server.url)
        monkeypatch.setenv("FORQ_AUTH_SECRET", key)
        return command(*arguments)

    return run


def tokens(forq: Run, server: RealServer) -> dict[str, dict]:
    lines = forq(server, "token", "list", "--json").out.splitlines()
    return {token["name"]: token for token in map(json.loads, lines)}


def test_a_token_from_its_making_to_its_end(forq: Run, tmp_path: Path):
    with real_server(tmp_path / "forq.db") as server:
        assert forq(server, "token", "list").err.startswith("There is no token")
        scopes = ("--scope", "consume", "--scope", "browse")
        made = forq(server, "token", "create", "billing", *scopes, "--queues", "orders*", "--expires", "90d")
        assert (made.code, made.err) == (Exit.OK, "Keep it now: it is not shown again.\n")
        text = made.out.removesuffix("\n")
        assert text.startswith("forq_")

        assert forq(server, "send", "orders", "a sofa").code == Exit.OK
        assert forq(server, "send", "secrets", "a sum").code == Exit.OK
        assert forq(server, "receive", "orders", "--ack", key=text).out == "a sofa\n"
        shown = forq(server, "queues", key=text).out.splitlines()[1:]
        assert [row.split("\t")[0] for row in shown] == ["orders"]
        refused = forq(server, "send", "orders", "another", key=text)
        assert refused.code == Exit.NOT_AUTHORISED
        assert "produce" in refused.err
        assert forq(server, "receive", "secrets", key=text).code == Exit.NOT_AUTHORISED
        assert forq(server, "token", "list", key=text).code == Exit.NOT_AUTHORISED
        bearer = {"Authorization": f"Bearer {text}"}
        assert (
            httpx.get(f"{server.url}/api/v1/queues/orders", headers=bearer, verify=False).status_code == 200
        )

        before = tokens(forq, server)["billing"]
        assert (before["scopes"], before["queues"]) == (["consume", "browse"], "orders*")
        assert before["expiresAt"] - before["createdAt"] == pytest.approx(90 * 86_400_000, abs=60_000)
        assert before["createdAt"] <= before["lastUsedAt"]
        assert forq(server, "peek", "orders", key=text).code == Exit.NOTHING
        header, row = forq(server, "token", "list").out.splitlines()
        assert header.split("\t") == ["name", "scopes", "queues", "created", "expires", "last used"]
        assert row.startswith("billing\tconsume,browse\torders*\t")
        assert "\tin 89 d\t" in row
        assert forq(server, "token", "revoke", "billing").out == "billing is revoked\n"
        assert forq(server, "peek", "orders", key=text).code == Exit.NOT_AUTHORISED
        for gone in ("billing", ".."):
            assert forq(server, "token", "revoke", gone).code == Exit.NOTHING
        assert server.stop() == 0
        assert server.process.stderr is not None
        assert text not in server.process.stderr.read()
    assert not any(text.encode() in path.read_bytes() for path in tmp_path.iterdir())


@pytest.mark.tier2
def test_what_is_wrong_with_a_new_token_is_said(forq: Run, tmp_path: Path):
    with real_server(tmp_path / "forq.db") as server:
        made = forq(server, "token", "create", "a", "--scope", "admin", "--json")
        assert json.loads(made.out).keys() == {"name", "token", "accessKeyId", "secretAccessKey"}
        assert made.err == ""
        again = forq(server, "token", "create", "a", "--scope", "admin")
        assert (again.code, again.out) == (Exit.FAILED, "")
        assert again.err == "forq: there is a token of that name already (conflict.token_exists)\n"
        glob = forq(server, "token", "create", "b", "--scope", "admin", "--queues", "a b")
        assert "queues: 1 to 256 characters" in glob.err
        ended = forq(server, "token", "create", "b", "--scope", "admin", "--expires", "0")
        assert (ended.code, ended.out) == (Exit.FAILED, "")
        for usage in (
            ["b"],
            ["b", "--scope", "all"],
            ["--scope", "admin"],
            ["b", "--scope", "admin", "--expires", "soon"],
        ):
            assert forq(server, "token", "create", *usage).code == Exit.USAGE
        assert tokens(forq, server).keys() == {"a"}
