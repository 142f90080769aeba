"""Sasquatch's README walked example by example, in its order, against a running server (S1-S8)."""

import re
import socket
from collections.abc import Iterator
from hashlib import md5
from pathlib import Path

import httpx
import pytest

from forq_trio.model.messages.types import check_message_id

from .harness import SECRET
from .server import Server, running

pytestmark = pytest.mark.process

ATTRIBUTES = {"content_type": "application/json", "correlation_id": "req-12345"}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running("--memory") as server:
        yield server


@pytest.fixture(autouse=True)
def emptied(server: Server) -> None:
    server.ok("delete_all", {"queue_name": "*"})


def digest(text: str) -> str:
    return md5(text.encode(), usedforsecurity=False).hexdigest()


def receive(server: Server, queue: str, **members: object) -> list[dict[str, object]]:
    body = {"queue_name": queue, "wait_time_seconds": 0, **members}
    found = server.ask("receive", body).json()
    assert list(found) == ["messages"]
    return found["messages"]


def until_waiting(server: Server, queue: str, count: int) -> None:
    """Ask until so many receivers wait on a queue."""
    for _ in range(2_000):
        if server.client.get(f"/api/v1/queues/{queue}").json().get("waiting", 0) == count:
            return
    pytest.fail(f"there were never {count} receivers waiting")


def test_post_send(server: Server):
    response = server.ask(
        "send",
        {
            "queue_name": "my-queue",
            "message_body": "Hello, world!",
            "priority": 100,
            "delay_seconds": 0,
            "message_retention_period": 345600,
            "message_deduplication_id": "abc123",
            "message_deduplication_time_period": 300,
            "message_attributes": ATTRIBUTES,
        },
    )
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/json"
    answer = response.json()
    assert list(answer) == ["message_id", "md5_of_message_body", "sequence_number"]
    check_message_id(answer["message_id"])
    assert answer["md5_of_message_body"] == digest("Hello, world!")
    assert re.fullmatch(
        rf'{{"message_id":"{answer["message_id"]}","md5_of_message_body":"{digest("Hello, world!")}",'
        rf'"sequence_number":{answer["sequence_number"]}}}',
        response.text,
    )
    again = server.ask(
        "send", {"queue_name": "my-queue", "message_body": "x", "message_deduplication_id": "abc123"}
    )
    assert (again.status_code, again.json()["error"]["code"]) == (409, "DuplicateMessage")


def test_post_send_batch(server: Server):
    body = {
        "messages": [
            {"queue_name": "orders", "message_body": "order-1", "priority": 100},
            {
                "queue_name": "orders",
                "message_body": "order-2",
                "priority": 50,
                "message_attributes": {"source": "web"},
            },
            {"queue_name": "alerts", "message_body": "disk-full", "priority": 200},
        ]
    }
    answer = server.ask("send_batch", body).json()
    assert list(answer) == ["successful", "failed"]
    assert [each["index"] for each in answer["successful"]] == [0, 1, 2]
    assert answer["failed"] == []
    body["messages"][1]["message_deduplication_id"] = "known"
    server.ok("send_batch", body)
    answer = server.ask("send_batch", body).json()
    assert [each["index"] for each in answer["successful"]] == [0, 2]
    assert [(each["index"], each["error"]["code"]) for each in answer["failed"]] == [(1, "DuplicateMessage")]
    (first,) = receive(server, "alerts")
    assert (first["message_body"], first["priority"]) == ("disk-full", 200)


def test_post_receive(server: Server):
    sent = server.ask(
        "send", {"queue_name": "my-queue", "message_body": "Hello, world!", "message_attributes": ATTRIBUTES}
    ).json()
    response = server.ask(
        "receive",
        {
            "queue_name": "my-queue",
            "visibility_timeout": 30,
            "wait_time_seconds": 20,
            "max_number_of_messages": 1,
            "max_receives": 4,
            "dead_letter_queue_name": "my-queue-dlq",
            "peek": False,
            "shuffle": False,
        },
    )
    (message,) = response.json()["messages"]
    assert list(message) == [
        "message_id",
        "receipt_handle",
        "message_body",
        "md5_of_message_body",
        "priority",
        "approximate_receive_count",
        "approximate_first_receive_timestamp",
        "sent_timestamp",
        "sequence_number",
        "message_attributes",
    ]
    assert {name: message[name] for name in sent} == sent
    assert (message["priority"], message["approximate_receive_count"]) == (100, 1)
    assert 0 <= message["approximate_first_receive_timestamp"] - message["sent_timestamp"] <= 60
    assert message["message_attributes"] == ATTRIBUTES
    nothing = server.ask("receive", {"queue_name": "my-queue", "wait_time_seconds": 0})
    assert nothing.text == '{"messages":[]}'


def test_peek_and_shuffle_mode(server: Server):
    for number in range(3):
        server.ok("send", {"queue_name": "my-queue", "message_body": str(number)})
    peeks = [receive(server, "my-queue", peek=True) for _ in range(2)]
    assert peeks[0] == peeks[1]
    assert "receipt_handle" not in peeks[0][0]
    assert {receive(server, "my-queue", peek=True, shuffle=True)[0]["message_body"]} <= {"0", "1", "2"}
    got = [receive(server, "my-queue", shuffle=True)[0]["message_body"] for _ in range(3)]
    assert sorted(got) == ["0", "1", "2"]
    refused = server.ask(
        "receive", {"queue_name": "my-queue", "peek": True, "dead_letter_queue_name": "my-queue-dlq"}
    )
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "ValidationError")


def test_post_delete(server: Server):
    server.ok("send", {"queue_name": "my-queue", "message_body": "m"})
    (message,) = receive(server, "my-queue")
    body = {"receipt_handles": [message["receipt_handle"]]}
    assert server.ask("delete", body).text == '{"deleted":1}'
    gone = server.ask("delete", body)
    assert (gone.status_code, gone.json()["error"]["code"]) == (404, "NotFound")


def test_post_change_visibility(server: Server):
    server.ok("send", {"queue_name": "my-queue", "message_body": "m"})
    (message,) = receive(server, "my-queue", visibility_timeout=43_200)
    body = {"receipt_handles": [message["receipt_handle"]]}
    assert server.ask("change_visibility", body | {"visibility_timeout": 60}).text == '{"result":"ok"}'
    assert receive(server, "my-queue") == []
    server.ok("change_visibility", body | {"visibility_timeout": -1})
    assert [each["approximate_receive_count"] for each in receive(server, "my-queue")] == [2]


def test_post_delete_all(server: Server):
    for queue in ("my-queue", "my-queue", "other"):
        server.ok("send", {"queue_name": queue, "message_body": "m"})
    server.ok("delete_all", {"queue_name": "my-queue"})
    assert [queue for queue in server.client.get("/queues").json() if queue["count"]] == [
        {"queue_name": "other", "count": 1, "in_flight": 0}
    ]
    server.ok("delete_all", {"queue_name": "*"})
    assert not [queue for queue in server.client.get("/queues").json() if queue["count"]]


def test_post_queue_length_and_get_queues(server: Server):
    messages = [{"queue_name": "my-queue", "message_body": "m"}] * 5
    server.ok("send_batch", {"messages": messages})
    receive(server, "my-queue", max_number_of_messages=3)
    expected = '{"queue_name":"my-queue","count":2,"in_flight":3}'
    assert server.ask("queue_length", {"queue_name": "my-queue"}).text == expected
    listed = server.client.get("/queues").text
    assert listed.startswith("[")
    assert expected in listed


def test_get_health_and_stats(server: Server):
    with httpx.Client(base_url=server.client.base_url, verify=False) as without_key:
        assert without_key.get("/health").text == f'{{"status":"ok","version":"{server.started["version"]}"}}'
        assert without_key.get("/stats").status_code == 401
    page = server.client.get("/stats")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "/send_batch" in page.text


def test_legacy_endpoints(server: Server):
    server.ok("enqueue?queue_name=jobs&priority=7", b"raw \xc3\xa9")
    (message,) = server.ask("dequeue", {"queue_name": "jobs"}).json()["messages"]
    assert (message["message_body"], message["priority"]) == ("raw é", 7)


def test_lifo_queues(server: Server):
    for number in range(3):
        server.ok("send", {"queue_name": "jobs_lifo", "message_body": str(number)})
    found = receive(server, "jobs_lifo", max_number_of_messages=10)
    assert [each["message_body"] for each in found] == ["2", "1", "0"]


def test_dead_letter_queue(server: Server):
    sent = server.ask("send", {"queue_name": "my-queue", "message_body": "m"}).json()
    body = {"max_receives": 2, "dead_letter_queue_name": "my-queue-dlq", "visibility_timeout": 0}
    for _ in range(2):
        assert len(receive(server, "my-queue", **body)) == 1
    assert receive(server, "my-queue", **body) == []
    (dead,) = receive(server, "my-queue-dlq")
    assert dead["sequence_number"] == sent["sequence_number"]
    assert dead["approximate_receive_count"] == 1


def test_every_wrong_method_is_405(server: Server):
    for path in ("send", "receive", "delete_all", "queue_length"):
        refused = server.client.get(f"/{path}")
        assert (refused.status_code, refused.json()["error"]["code"]) == (405, "MethodNotAllowed")
    for path in ("queues", "health", "stats"):
        refused = server.client.post(f"/{path}")
        assert (refused.status_code, refused.json()["error"]["code"]) == (405, "MethodNotAllowed")


def test_client_disconnect_detection(server: Server):
    """S9: a client that leaves during its poll loses nothing, and nobody waits for it."""
    address = httpx.URL(server.client.base_url)
    body = b'{"queue_name":"left","wait_time_seconds":20}'
    head = b"POST /receive HTTP/1.1\r\nHost: x\r\nX-API-Key: %b\r\nContent-Length: %d\r\n\r\n"
    with socket.create_connection((address.host, address.port)) as left:
        left.sendall(head % (SECRET.encode(), len(body)) + body)
        until_waiting(server, "left", 1)
    until_waiting(server, "left", 0)
    server.ok("send", {"queue_name": "left", "message_body": "m"})
    assert [each["approximate_receive_count"] for each in receive(server, "left")] == [1]


def test_other_dialects_see_the_same_messages(server: Server):
    server.ok("send", {"queue_name": "shared", "message_body": "m", "message_attributes": {"a": "b"}})
    (seen,) = server.client.get("/api/v1/queues/shared/peek").json()["messages"]
    assert (seen["content"], seen["attributes"]) == ("m", {"a": "b"})


@pytest.mark.tier2
def test_sequence_numbers_and_deduplication_outlive_a_restart(tmp_path: Path):
    """S7, S8: a drained queue, a new process: numbers go on, tombstones hold, handles are current."""
    body = {"queue_name": "q", "message_body": "m", "message_deduplication_id": "once"}
    with running("--db", str(tmp_path / "forq.db")) as server:
        first = server.ask("send", body).json()
        (message,) = receive(server, "q")
        server.ok("delete", {"receipt_handles": [message["receipt_handle"]]})
        held = server.ask("send", {"queue_name": "q", "message_body": "held"}).json()
        (message,) = receive(server, "q")
        assert server.stop() == 0
    with running("--db", str(tmp_path / "forq.db")) as server:
        assert server.ask("send", body).status_code == 409
        assert server.ask("queue_length", {"queue_name": "q"}).json() == {
            "queue_name": "q",
            "count": 0,
            "in_flight": 1,
        }
        assert server.ok("delete", {"receipt_handles": [message["receipt_handle"]]}) == {"deleted": 1}
        later = server.ask("send", {"queue_name": "q", "message_body": "m"}).json()
        assert first["sequence_number"] < held["sequence_number"] < later["sequence_number"]


@pytest.mark.tier2
def test_messages_of_10_megabytes(tmp_path: Path):
    """S10: max_message_size_kb up to 10240, also ten of them in a batch; one byte more is refused."""
    full = "x" * (10_240 * 1_024)
    with running("--memory", FORQ_SASQUATCH_MAX_MESSAGE_SIZE_KB="10240") as server:
        sent = server.ask("send", {"queue_name": "q", "message_body": full}).json()
        assert sent["md5_of_message_body"] == digest(full)
        batch = {"messages": [{"queue_name": "b", "message_body": full}] * 10}
        assert len(server.ask("send_batch", batch).json()["successful"]) == 10
        assert receive(server, "q")[0]["message_body"] == full
        refused = server.ask("send", {"queue_name": "q", "message_body": full + "x"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (413, "MessageSizeExceeded")


@pytest.mark.tier2
def test_turned_off_or_open_to_all(tmp_path: Path):
    with running("--memory", "--sasquatch-enabled", "false") as server:
        assert server.ask("send", {"queue_name": "q", "message_body": "m"}).status_code == 404
    with running("--memory", "--sasquatch-auth", "false") as server:
        server.client.headers.pop("x-api-key")
        server.ok("send", {"queue_name": "q", "message_body": "m"})
        assert server.client.get("/stats").status_code == 200
        assert server.client.get("/api/v1/queues").status_code == 401
