"""A server whose database is moved away while it runs, and put back, over HTTP in both dialects."""

import httpx

from forq_trio.model import limits
from support.in_process import in_process_server
from support.real_server import SECRET

MESSAGES = "/api/v1/queues/q/messages"


def test_sends_are_refused_and_readiness_says_so_until_the_file_is_back(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(limits, "FILES_LOOK_SECONDS", 0.01)
    database = tmp_path / "forq.db"
    with (
        in_process_server(database=database) as url,
        httpx.Client(base_url=url, headers={"X-API-Key": SECRET}, timeout=60, verify=False) as client,
    ):

        def until_healthy(expected: bool) -> None:
            while client.get("/healthcheck").is_success is not expected:
                pass

        for content in ("one", "two"):
            assert client.post(MESSAGES, json={"content": content}).status_code == 204
        moved = database.rename(tmp_path / "moved.db")
        until_healthy(expected=False)
        assert client.get("/livez").status_code == 204  # a restart would end the only process with the file
        refused = client.post(MESSAGES, json={"content": "lost"})
        assert (refused.status_code, refused.json()) == (503, {"code": "forq.storage_lost"})
        assert client.put("/api/v1/queues/q/settings", json={"ttlMs": 60_000}).status_code == 503
        received = client.get(MESSAGES).json()
        ack = client.post(f"{MESSAGES}/{received['id']}/ack", headers={"X-Forq-Receipt": received["receipt"]})
        assert (received["content"], ack.status_code) == ("one", 204)
        moved.rename(database)
        until_healthy(expected=True)
        assert client.post(MESSAGES, json={"content": "three"}).status_code == 204
        assert [client.get(MESSAGES).json()["content"] for _ in range(2)] == ["two", "three"]
