"""`forq export`."""

import json

from forq_trio import ForqClient, NewMessage

from .conftest import Forq


def test_all_messages_are_written(connected: Forq, client: ForqClient, queue: str, tmp_path):
    client.produce_many(queue, [NewMessage("ö\n"), NewMessage("b", delay_ms=60_000)])
    client.receive(queue)
    outcome = connected("export", queue)
    assert (outcome.code, outcome.err) == (0, "")
    found = [json.loads(line) for line in outcome.out.splitlines()]
    assert [(each["content"], each["state"]) for each in found] == [("ö\n", "processing"), ("b", "delayed")]
    path = tmp_path / "lines"
    path.write_text("what was there before")
    told = connected("export", queue, "--file", str(path))
    assert (told.code, told.out, told.err) == (0, "", f"2 messages of {queue} written to {path}\n")
    assert path.read_text() == outcome.out


def test_a_queue_without_messages(connected: Forq, queue: str):
    assert connected("export", queue).code == 5
