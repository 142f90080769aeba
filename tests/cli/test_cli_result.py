"""`forq result`."""

from forq_trio import AckResult, ForqClient

from .conftest import Forq


def test_the_result_of_a_message_is_printed(connected: Forq, client: ForqClient, queue: str):
    sent = client.produce(queue, "x")
    waiting = connected("result", queue, sent.id)
    assert (waiting.code, waiting.out, waiting.err) == (5, "", f"{sent.id} has not ended\n")
    (delivery,) = client.receive(queue, wait_ms=0)
    client.ack(queue, delivery, result=AckResult("größe: 4\n5"))
    shown = connected("result", queue, sent.id, "--wait", "30s")
    assert (shown.code, shown.out) == (0, "größe: 4\n5\n")
    assert "result           größe: 4" in connected("history", "show", queue, sent.id).out


def test_a_failure_is_told_with_its_last_error(connected: Forq, client: ForqClient, queue: str):
    sent = client.produce(queue, "x")
    (delivery,) = client.receive(queue, wait_ms=0)
    client.nack(queue, delivery, reason="no line", final=True)
    result = connected("result", queue, sent.id)
    assert (result.code, result.out) == (1, "")
    assert result.err == f"{sent.id} is a dead letter in {queue}-dlq: no line\n"
    as_json = connected("result", queue, sent.id, "--json")
    assert (as_json.code, as_json.err) == (1, "")
    assert '"state":"dead"' in as_json.out.replace(" ", "")
