"""The metrics of a real server: that the parts which count are put together."""

import re

import httpx
import pytest
import trio

from forq_trio.model import limits
from support.exposition import all_families, of_queue, samples_of
from support.real_server import SECRET, real_server

pytestmark = pytest.mark.process

METRICS_SECRET = "m" * 32


def key(secret: str) -> dict[str, str]:
    return {"X-API-Key": secret}


async def scrape(client: httpx.AsyncClient) -> bytes:
    response = await client.get("/metrics", headers=key(METRICS_SECRET))
    assert response.status_code == 200
    return response.content


async def one_message_and_some_rejections(url: str) -> bytes:
    """Send, receive and acknowledge one message; a wrong key, a content, headers that are too large; then scrape."""
    messages = "/api/v1/queues/q/messages"
    async with httpx.AsyncClient(base_url=url, timeout=120, verify=False) as client:
        right = key(SECRET)
        sent = await client.post(messages, headers=right, json={"content": "x"})
        message = (await client.get(messages, headers=right)).json()
        acked = await client.post(f"{messages}/{message['id']}/ack", headers=right)
        wrong = await client.post(messages, headers=key("wrong"), json={"content": "x"})
        content = "x" * (limits.CONTENT_BYTES_MAX + 1)
        large = await client.post(messages, headers=right, json={"content": content})
        headers = right | {"X-Large": "x" * limits.HEADER_BYTES_MAX}
        refused = await client.get(messages, headers=headers)
        answers = [answer.status_code for answer in (sent, acked, wrong, large, refused)]
        assert answers == [204, 204, 401, 400, 431]
        return await scrape(client)


def test_f11_a_real_server_counts_times_and_refusals(tmp_path) -> None:
    settings = {"FORQ_METRICS_ENABLED": "true", "FORQ_METRICS_AUTH_SECRET": METRICS_SECRET}
    with real_server(tmp_path / "forq.db", ui=True, **settings) as server:
        exposition = trio.run(one_message_and_some_rejections, server.url)
        assert server.stop() == 0
    shown = re.findall(r"^# TYPE (forq_\w+) ", exposition.decode(), re.MULTILINE)
    assert shown == [family.name for family in all_families()]
    samples = samples_of(exposition)
    assert ("forq_budget_used", (("budget", "bodies"),)) in samples
    assert ("forq_ui_loop_seconds_total", (("share", "arrivals"),)) in samples
    for name in ("forq_message_wait_seconds_count", "forq_message_end_to_end_seconds_count"):
        assert samples[name, of_queue("q")] == 1
    assert samples["forq_messages_acked_total", of_queue("q")] == 1
    assert samples["forq_commit_batch_calls_count", ()] >= 3
    assert samples["forq_commit_duration_seconds_sum", ()] > 0
    assert samples["forq_inbox_calls", ()] == 0
    assert samples["forq_rejections_total", (("cause", "unauthorized"),)] == 1
    assert samples["forq_rejections_total", (("cause", "too_large"),)] == 2
