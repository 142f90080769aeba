"""A bound queue over HTTP: who may bind it, what the routes answer, what its page and the dialogs that bind it say."""

from collections.abc import Iterator

import httpx
import pytest
import trio
from botocore.exceptions import ClientError

from forq_trio import AckResult, ForqClient, Scope
from forq_trio.model.errors import (
    Forbidden,
    NoTable,
    QueueBound,
    QueueNotBound,
    StorageUnavailable,
    WrongTable,
)
from forq_trio.model.queues.settings import QueueTable
from forq_trio.pgq import drop_table
from forq_trio.worker import Job, Worker, WorkerSetupError
from pgq.conftest import locked
from support.processes import WAIT_SECONDS_MAX
from support.real_server import SECRET, RealServer, real_server
from support.sqs_messages import receive_all, sqs_client
from support.ui_http import Markup, logged_in, until

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def server(pgq_url) -> Iterator[RealServer]:
    with real_server(pgq_url, ui=True, FORQ_ENV="local") as server:
        yield server


@pytest.fixture
def client(server) -> Iterator[ForqClient]:
    with ForqClient(server.url, SECRET) as client:
        yield client


@pytest.fixture
def browser(server) -> Iterator[httpx.Client]:
    with logged_in(server.ui_url) as browser:
        browser.headers["Origin"] = server.ui_url
        yield browser


def filled(browser: httpx.Client, path: str, **fields: str) -> httpx.Response:
    """The answer to the form of a dialog."""
    hidden = Markup(browser.get(path).text).hidden
    return browser.post(path, data=hidden | fields)


def test_the_client_binds_and_what_it_sends_is_a_row(client, table, rows) -> None:
    assert client.bind("http", table) == client.bound_table("http") == QueueTable("pgq", table)
    produced = client.produce("http", '{"n": 1}', attributes={"a": "b"})
    assert str(rows.one()["id"]) == produced.id
    assert client.queue_stats("http").ready == 1
    assert client.queue_stats("http").table == QueueTable("pgq", table)
    (delivery,) = client.receive("http")
    client.extend("http", delivery, 60_000)
    with pytest.raises(QueueBound, match="an ack with a result is not possible"):
        client.ack("http", delivery, result=AckResult("r"))
    client.ack("http", delivery)
    assert rows.one()["processed_at"] is not None
    with pytest.raises(QueueBound, match="a purge is not possible"):
        client.purge("http")
    with pytest.raises(QueueBound):
        client.offer("http", "key", "{}")
    client.unbind("http")
    with pytest.raises(QueueNotBound):
        client.bound_table("http")


def test_clients_of_amazon_sqs_use_it_like_any_queue(server, client, table, rows) -> None:
    client.bind("amazon", table)
    number = {"n": {"DataType": "Number", "StringValue": "1"}}
    with sqs_client(server.url) as sqs:
        url = sqs.get_queue_url(QueueName="amazon")["QueueUrl"]
        sent = [
            sqs.send_message(QueueUrl=url, MessageBody='{"n": 1}', MessageAttributes=number)["MessageId"]
            for _ in range(2)
        ]
        received = receive_all(sqs, url)
        assert [each["MessageId"] for each in received] == sent
        assert [each["MessageAttributes"] for each in received] == [number] * 2
        entries = [
            {"Id": str(seconds), "ReceiptHandle": each["ReceiptHandle"], "VisibilityTimeout": seconds}
            for each, seconds in zip(received, (0, 60), strict=True)
        ]
        changed = sqs.change_message_visibility_batch(QueueUrl=url, Entries=entries)
        assert [each["Id"] for each in changed["Successful"]] == ["0", "60"]
        (again,) = receive_all(sqs, url)
        assert again["MessageId"] == sent[0]
        for each in (again, received[1]):
            sqs.delete_message(QueueUrl=url, ReceiptHandle=each["ReceiptHandle"])
        with pytest.raises(sqs.exceptions.ReceiptHandleIsInvalid):
            sqs.delete_message(QueueUrl=url, ReceiptHandle="no receipt")
        with pytest.raises(ClientError, match="a table of pgq has no group"):
            sqs.send_message(QueueUrl=url, MessageBody="{}", MessageGroupId="g")
    assert [row["processed_at"] is not None for row in rows.all()] == [True, True]


def test_what_is_wrong_with_a_table_is_told_over_http(client, table, rows) -> None:
    with pytest.raises(NoTable):
        client.bind("wrong", "No/Such")
    rows.run("ALTER TABLE {} DROP COLUMN error_detail")
    with pytest.raises(WrongTable, match="error_detail"):
        client.bind("wrong", table)


def test_a_token_of_some_queues_binds_none(server, client, table) -> None:
    made = client.create_token("some", scopes=[Scope.ADMIN], queues="own*")
    with ForqClient(server.url, made.token) as some, pytest.raises(Forbidden):
        some.bind("own", table)
    client.revoke_token("some")


def test_its_page_says_so_and_counts_the_rows(server, client, connection, table, rows) -> None:
    client.bind("paged", table)
    rows.add({})
    rows.add({}, consumed_count="9")
    with logged_in(server.ui_url) as browser:
        page = browser.get("/queue/paged").text
        assert "Bound to the table" in page
        assert "EU" in page
        assert "its rows that are not finished" in page
        assert "Lease 5 min, 5 attempts: defaults." in page
        assert "Purge…" not in page
        drop_table(connection, table)
        # A table rests after a slow count.
        until(lambda: "does not exist" in browser.get("/queue/paged").text)
    client.unbind("paged")


def test_sasquatchs_endpoints_refuse_it_by_name(server, client, table, rows) -> None:
    client.bind("lots", table)
    client.produce("other", "x")
    rows.add({})
    asked = {"queue_name": "lots"}
    with httpx.Client(base_url=server.url, headers={"X-API-Key": SECRET}, verify=False) as sasquatch:
        for path, body in (
            ("/send", asked | {"message_body": "{}"}),
            ("/receive", asked),
            ("/receive", asked | {"peek": True, "shuffle": True}),
            ("/delete_all", asked),
        ):
            answer = sasquatch.post(path, json=body)
            assert (answer.status_code, answer.json()["error"]["code"]) == (400, "ValidationError"), path
            assert "bound to" in answer.json()["error"]["message"]
        sent = sasquatch.post("/send_batch", json={"messages": [asked | {"message_body": "{}"}]}).json()
        assert "bound to" in sent["failed"][0]["error"]["message"]
        peeked = sasquatch.post("/receive", json=asked | {"peek": True}).json()["messages"]
        assert [each["message_body"] for each in peeked] == ["{}"]
        until(lambda: client.queue_stats("lots").ready == 1)
        length = sasquatch.post("/queue_length", json=asked).json()
        assert list(length.values()) == ["lots", 1, 0]
        assert sasquatch.post("/delete_all", json={"queue_name": "*"}).status_code == 200
        assert client.queue_stats("other").total == 0
    (row,) = rows.all()
    assert row["consumed_count"] == 0
    client.unbind("lots")


def test_clients_of_sqs_receive_and_delete_rows(server, client, table, rows) -> None:
    client.bind("emails", table)
    for _ in range(2):
        rows.add({})
    with sqs_client(server.url) as sqs:
        messages = sqs.receive_message(QueueUrl="emails", MaxNumberOfMessages=2)["Messages"]
        entries = [
            {"Id": str(number), "ReceiptHandle": each["ReceiptHandle"]}
            for number, each in enumerate(messages)
        ]
        hidden = [{**each, "VisibilityTimeout": 60 + number} for number, each in enumerate(entries)]
        changed = sqs.change_message_visibility_batch(QueueUrl="emails", Entries=hidden)
        assert len(changed["Successful"]) == 2
        sqs.delete_message(QueueUrl="emails", ReceiptHandle=entries[0]["ReceiptHandle"])
        assert [row["processed_at"] is None for row in rows.all()].count(True) == 1
        again = sqs.change_message_visibility_batch(QueueUrl="emails", Entries=hidden)
        assert [each["Id"] for each in again["Failed"]] == ["0"]
        assert len(sqs.delete_message_batch(QueueUrl="emails", Entries=entries)["Successful"]) == 2
        with pytest.raises(sqs.exceptions.ReceiptHandleIsInvalid):
            sqs.delete_message(QueueUrl="emails", ReceiptHandle="garbage")
    assert [row["processed_at"] is None for row in rows.all()] == [False, False]
    client.unbind("emails")


def test_an_old_receipt_of_sqs_deletes_no_row_and_says_so(server, client, table, rows) -> None:
    client.bind("late", table)
    rows.add({})
    with sqs_client(server.url) as sqs:
        (old,) = sqs.receive_message(QueueUrl="late", VisibilityTimeout=0)["Messages"]
        (new,) = receive_all(sqs, "late")
        with pytest.raises(ClientError, match="The receipt handle has expired"):
            sqs.delete_message(QueueUrl="late", ReceiptHandle=old["ReceiptHandle"])
        with pytest.raises(ClientError, match="The receipt handle has expired"):
            sqs.change_message_visibility(
                QueueUrl="late", ReceiptHandle=old["ReceiptHandle"], VisibilityTimeout=60
            )
        entries = [{"Id": "0", "ReceiptHandle": old["ReceiptHandle"]}]
        assert len(sqs.delete_message_batch(QueueUrl="late", Entries=entries)["Failed"]) == 1
        assert rows.one()["processed_at"] is None
        for each in (new, new, old):  # also once it is gone
            sqs.delete_message(QueueUrl="late", ReceiptHandle=each["ReceiptHandle"])
    assert rows.one()["processed_at"] is not None
    client.unbind("late")


async def test_a_worker_has_handlers_on_a_bound_queue_and_another(server, client, table, rows) -> None:
    client.bind("to-table", table)
    rows.add({"from": "table"}, metadata={"a": "b"})
    client.produce("plain", '{"from": "queue"}')
    app = Worker(server.url, secret=SECRET)
    handled: list[tuple[str, str, dict[str, str]]] = []

    @app.on("to-table", where={"a": "b"})
    async def of_table(content: str, job: Job) -> None:
        handled.append((job.queue, content, dict(job.attributes)))
        await app.send("to-table", "{}")

    @app.on("plain")
    async def of_queue(content: str, job: Job) -> None:
        handled.append((job.queue, content, dict(job.attributes)))

    with trio.fail_after(WAIT_SECONDS_MAX):
        await app.serve(stop_when_empty=True)
    assert sorted(handled) == [
        ("plain", '{"from": "queue"}', {}),
        ("to-table", '{"from": "table"}', {"a": "b"}),
    ]
    first, sent = rows.all()
    assert first["processed_at"] is not None
    assert (sent["consumed_count"], sent["processed_at"]) == (0, None)
    client.unbind("to-table")


async def test_a_worker_whose_results_a_table_cannot_store_does_not_start(
    server, client, table, rows
) -> None:
    """It handled each message as often as it may, and none of them ended well."""
    client.bind("no-results", table)
    rows.add({})
    app = Worker(server.url, secret=SECRET)

    @app.on("no-results", keep_result="1h")
    async def handle(content: str) -> str:
        raise AssertionError

    with (
        trio.fail_after(WAIT_SECONDS_MAX),
        pytest.raises(WorkerSetupError, match="bound to a table") as refused,
    ):
        await app.serve(stop_when_empty=True)
    assert str(refused.value).startswith(f"{__file__}:")
    assert rows.one()["consumed_count"] == 0
    client.unbind("no-results")


def test_who_sends_to_a_locked_table_is_told(server, client, table, pgq_url) -> None:
    client.bind("shut", table)
    with (
        ForqClient(server.url, SECRET, retry_seconds=0) as impatient,
        locked(pgq_url, table),
        pytest.raises(StorageUnavailable, match="somebody has locked"),
    ):
        impatient.produce("shut", "{}")
    client.unbind("shut")


def test_a_queue_is_bound_and_unbound(browser, client, table, rows) -> None:
    client.produce("ledger", "x")
    client.purge("ledger")
    assert "Bind to a table…" in browser.get("/queue/ledger").text
    assert filled(browser, "/queue/ledger/bind", table=table).status_code == 303
    assert client.bound_table("ledger").table == table
    page = browser.get("/queue/ledger").text
    assert "Bind to a table…" not in page
    assert "Unbind from the table…" in page
    assert "not known of a table" in page
    assert "<code>forq peek ledger</code>" in page
    rows.add({})
    until(lambda: client.queue_stats("ledger").ready == 1)
    asked = browser.get("/queue/ledger/unbind").text
    assert "Unbind ledger?" in asked
    assert "EU" in asked
    assert filled(browser, "/queue/ledger/unbind").status_code == 303
    assert client.queue_stats("ledger").table is None
    assert len(rows.all()) == 1
    assert browser.get("/queue/ledger/unbind").status_code == 404


def test_a_queue_that_nobody_knows_is_bound(browser, client, table) -> None:
    assert "Bind it to a table…" in browser.get("/queue/newcomer").text
    assert filled(browser, "/queue/newcomer/bind", table=table).status_code == 303
    assert client.bound_table("newcomer").table == table
    client.delete_queue("newcomer")


def test_what_is_wrong_is_said_in_the_dialog(browser, client, table, rows) -> None:
    rows.run("ALTER TABLE {} DROP COLUMN error_detail, DROP COLUMN metadata")
    client.produce("filled", "x")
    for queue, typed, said in (
        ("fine", table, "lacks columns: error_detail, metadata; indexes on: metadata."),
        ("fine", "No/Such<b>", "There is no table &#39;No/Such&lt;b&gt;&#39; in the database."),
        ("fine", "x" * 64, "The name of a table is 1 to 63 bytes"),
        ("fine", "", "The name of a table is 1 to 63 bytes"),
    ):
        answer = filled(browser, f"/queue/{queue}/bind", table=typed)
        assert answer.status_code == 400
        assert said in answer.text, answer.text
        assert 'aria-invalid="true"' in answer.text
    assert client.queue_stats("filled").table is None


def test_settings_are_those_that_a_table_has(browser, client, table) -> None:
    client.bind("narrow", table)
    form = browser.get("/queue/narrow/settings").text
    assert 'name="lease_ms"' in form
    assert 'name="max_attempts"' in form
    assert 'name="delay_ms"' not in form
    assert 'name="back_off"' not in form
    assert filled(browser, "/queue/narrow/settings", lease_ms="9 s", max_attempts="4").status_code == 303
    assert client.settings("narrow").settings.lease_ms == 9_000
    assert client.bound_table("narrow").table == table
    client.unbind("narrow")


def test_a_token_of_some_queues_binds_none_in_the_ui(server, client, table) -> None:
    made = client.create_token("few", scopes=[Scope.ADMIN, Scope.BROWSE], queues="own*")
    client.produce("own1", "x")
    with logged_in(server.ui_url, made.token) as browser:
        browser.headers["Origin"] = server.ui_url
        assert "Bind to a table…" not in browser.get("/queue/own1").text
        assert browser.get("/queue/own1/bind").status_code == 403
        hidden = Markup(browser.get("/queue/own1/purge").text).hidden
        assert browser.post("/queue/own1/bind", data=hidden | {"table": table}).status_code == 403
    client.revoke_token("few")
