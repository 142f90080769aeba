"""Queues and messages of Amazon's clients: types, tags and policies are shown, and copies keep them."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import expect

from forq_trio import ForqClient
from forq_trio.model.limits import CONTENT_BYTES_MAX
from support.browser import PHONE, axe, sideways_pixels
from support.real_server import SECRET, RealServer, real_server
from support.sqs_messages import (
    ATTRIBUTES,
    POLICY,
    STORED,
    TRACE,
    fifo_queue,
    receive_all,
    send_typed,
    sqs_client,
)
from support.ui_http import Markup, flat, logged_in

HX = {"HX-Request": "true"}


@pytest.fixture(scope="module")
def shop(tmp_path_factory) -> Iterator[RealServer]:
    """Each test has queues of its own."""
    database = tmp_path_factory.mktemp("sqs") / "forq.db"
    with real_server(database, ui=True, FORQ_ENV="local", FORQ_HISTORY="on", FORQ_EVENTS="on") as server:
        yield server


@pytest.fixture(scope="module")
def sqs(shop: RealServer) -> Iterator[Any]:
    with sqs_client(shop.url) as client:
        yield client


@pytest.fixture
def browser(shop: RealServer) -> Iterator[httpx.Client]:
    with logged_in(shop.ui_url) as browser:
        yield browser


def post(browser: httpx.Client, path: str, **fields: str) -> httpx.Response:
    """Send a form as our scripts do."""
    headers = HX | {
        "Origin": str(browser.base_url).rstrip("/"),
        "X-CSRF-Token": Markup(browser.get("/").text).hidden["csrf"],
    }
    return browser.post(path, data=fields, headers=headers)


def delete_all(sqs: Any, url: str) -> None:
    for message in receive_all(sqs, url):
        sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])


def test_attributes_are_shown_with_their_types_wherever_the_message_is(shop, sqs, browser) -> None:
    with ForqClient(shop.url, SECRET) as client:
        token = client.create_token("web", ["produce"])
    url = fifo_queue(sqs, "shown.fifo")
    with sqs_client(shop.url, (token.access_key_id, token.secret_access_key)) as web:
        sent = send_typed(web, url, MessageGroupId="g1", MessageDeduplicationId="order-7")
    path = f"/queue/shown.fifo/message/{sent}"
    page, part = browser.get(path).text, browser.get(path, params={"part": "1"}, headers=HX).text
    delete_all(sqs, url)
    finished = browser.get(f"/queue/shown.fifo/history/message/{sent}").text
    for text in map(flat, (page, part, finished)):
        assert "AWS.SQS" not in text
        assert text.count(STORED["picture"]) <= 1  # what the button copies
        assert "grün" in text
        assert "Number.int</span>" in text
        assert ">00 ff 10</span>" in text
        assert "Binary, 3 bytes" in text
        assert "Binary.png, first 256 bytes of 1.0 KiB" in text or "Binary.png, 1.0 KiB" in text
        for label, words in (
            ("Deduplication id", "order-7"),
            ("Noted sender", "web"),
            ("Trace header", TRACE),
        ):
            assert f'<dt>{label}</dt><dd class="mono">{words}</dd>' in text
        assert "g1" in text
    assert "000000 00 01 02" in flat(page)
    assert "000000 00 01 02" in flat(finished)


def test_a_copy_has_the_types_of_the_original(sqs, browser) -> None:
    url = fifo_queue(sqs, "copied.fifo")
    sent = send_typed(sqs, url, MessageGroupId="g1")
    base = f"/queue/copied.fifo/message/{sent}/copy"
    dialog = browser.get(base, headers=HX).text
    assert "AWS.SQS" not in dialog
    assert "price: -12" in dialog
    assert "A type stays where the value fits it." in dialog
    lines = "colour: red\nprice: 13\nweight: heavy\nseal: AAAA\nnew: 1"
    assert post(browser, base, target="copied.fifo", attributes=lines).status_code == 204
    delete_first, copy = receive_all(sqs, url)
    assert delete_first["MessageId"] == sent
    assert copy["MessageAttributes"] == {
        "colour": {"DataType": "String", "StringValue": "red"},
        "price": {"DataType": "Number.int", "StringValue": "13"},
        "weight": {"DataType": "String", "StringValue": "heavy"},
        "seal": {"DataType": "Binary", "BinaryValue": b"\0\0\0"},
        "new": {"DataType": "String", "StringValue": "1"},
    }
    assert (copy["Attributes"]["MessageGroupId"], copy["Attributes"]["AWSTraceHeader"]) == ("g1", TRACE)


LARGE = {f"a{number}": {"DataType": "Binary", "BinaryValue": b"x" * 2_000} for number in range(10)}


def test_what_is_larger_than_the_api_takes_is_copied_and_sent_again(sqs, browser) -> None:
    url = sqs.create_queue(QueueName="large")["QueueUrl"]
    body = "x" * (CONTENT_BYTES_MAX + 1)
    sent = sqs.send_message(QueueUrl=url, MessageBody=body, MessageAttributes=LARGE)["MessageId"]
    base = f"/queue/large/message/{sent}/copy"
    assert post(browser, base, target="large", content=body[1:]).status_code == 204
    assert "at most 262144 are allowed" in post(browser, base, target="large", content=f"y{body}").text
    first, copy = receive_all(sqs, url)
    assert (first["Body"], copy["Body"]) == (body, body[1:])
    assert copy["MessageAttributes"] == LARGE
    for message in (first, copy):
        sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    assert post(browser, f"/queue/large/history/message/{sent}/requeue").status_code == 204
    (again,) = receive_all(sqs, url)
    assert (again["Body"], again["MessageAttributes"]) == (body, LARGE)


def test_a_dead_letter_goes_back_with_its_types_and_group(sqs, browser) -> None:
    dead = fifo_queue(sqs, "failed.fifo")
    arn = sqs.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    policy = f'{{"deadLetterTargetArn": "{arn}", "maxReceiveCount": 1}}'
    url = fifo_queue(sqs, "failing.fifo", RedrivePolicy=policy)
    for number in range(2):
        send_typed(sqs, url, f"m{number}", MessageGroupId="g1")
        (message,) = receive_all(sqs, url)
        handle = message["ReceiptHandle"]
        sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=handle, VisibilityTimeout=0)
    assert sqs.receive_message(QueueUrl=url).get("Messages") is None
    letters = browser.get("/queue/failed.fifo").text
    first, second = (
        link.rpartition("/")[2].partition("?")[0] for link in Markup(letters).links if "part=1" in link
    )
    for letter in (first, second):
        page = flat(browser.get(f"/queue/failed.fifo/message/{letter}").text)
        assert '<dt>Source queue</dt><dd><a class="link" href="/queue/failing.fifo">' in page
        assert "Number.int</span>" in page
    base = "/queue/failed.fifo/message"
    assert post(browser, f"{base}/{first}/redrive").status_code == 204
    lines = "\n".join(f"{name}: {text}" for name, text in STORED.items() if name != "picture")
    fields = {"target": "failing.fifo", "attributes": f"{lines}\nmore: x"}
    assert post(browser, f"{base}/{second}/edit", **fields).status_code == 204
    redriven, edited = receive_all(sqs, url)
    assert redriven["MessageAttributes"] == ATTRIBUTES
    kept = {name: value for name, value in ATTRIBUTES.items() if name != "picture"}
    assert edited["MessageAttributes"] == {**kept, "more": {"DataType": "String", "StringValue": "x"}}
    assert {each["Attributes"]["MessageGroupId"] for each in (redriven, edited)} == {"g1"}


def test_a_queue_says_what_its_clients_set(sqs, browser) -> None:
    attributes = {"Policy": POLICY, "MaximumMessageSize": "1024", "DeduplicationScope": "messageGroup"}
    url = fifo_queue(sqs, "named.fifo", **attributes)
    sqs.tag_queue(QueueUrl=url, Tags={"team": "mail", "cost <centre>": "4711"})
    page = flat(browser.get("/queue/named.fifo").text)
    assert "<h2>SQS</h2>" in page
    for label, words in (
        ("Type", "FIFO"),
        ("Deduplication", "by content, in each group"),
        ("Largest message", "1 KiB"),
        ("team", "mail"),
        ("cost &lt;centre&gt;", "4711"),
        ("Attempts", "unbounded"),
    ):
        assert f"<dt>{label}</dt><dd>{words}</dd>" in page
    assert '<span class="s">"mail"</span>' in page  # of the policy


def test_a_queue_of_another_region_has_a_page(shop, browser) -> None:
    with sqs_client(shop.url, region="eu-west-1") as sqs:
        sent = send_typed(sqs, sqs.create_queue(QueueName="emails")["QueueUrl"])
    assert "<h1>eu-west-1.emails</h1>" in browser.get("/queue/eu-west-1.emails").text
    assert browser.get(f"/queue/eu-west-1.emails/message/{sent}").status_code == 200


def test_a_queue_without_clients_of_sqs_says_nothing_of_it(shop, browser) -> None:
    with ForqClient(shop.url, SECRET) as client:
        client.produce("plain", "x")
    assert "<h2>SQS</h2>" not in browser.get("/queue/plain").text


@pytest.mark.parametrize(
    "options", [pytest.param({}, marks=pytest.mark.tier2, id="desktop"), pytest.param(PHONE, id="phone")]
)
def test_bytes_scroll_within_themselves(shop, sqs, open_page, options) -> None:
    url = sqs.create_queue(
        QueueName=f"wide-{len(options)}", Attributes={"Policy": POLICY}, tags={"team": "mail"}
    )
    sent = send_typed(sqs, url["QueueUrl"])
    page = open_page(shop, **options)
    page.goto(f"/queue/wide-{len(options)}/message/{sent}")
    expect(page.get_by_label("Bytes of picture")).to_contain_text("000010")
    assert sideways_pixels(page) == 0
    axe(page)
    page.goto(f"/queue/wide-{len(options)}")
    page.locator("[data-row] .mr").click()
    expect(page.locator(".open-g")).to_contain_text("Binary, 3 bytes")
    page.get_by_text("Policy", exact=True).click()
    expect(page.get_by_label("Policy")).to_contain_text('"Allow"')
    assert sideways_pixels(page) == 0
    axe(page)
