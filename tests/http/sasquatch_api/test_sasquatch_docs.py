"""The pages on Sasquatch say what there is: endpoints, codes, ranges, and each difference from Sasquatch is one."""

import logging
import re
from pathlib import Path

import pytest
import trio

from forq_trio.config import report as config_report
from forq_trio.config.settings import SETTINGS
from forq_trio.http.sasquatch_api.errors import CODES
from forq_trio.http.sasquatch_api.options import SasquatchOptions
from forq_trio.http.sasquatch_api.routes import ENDPOINTS

from .harness import Api, json_of
from .test_sasquatch_ranges import RANGES

PAGES = ("sasquatch.md", "compatibility/sasquatch.md")
DOCS = "".join((Path(__file__).parents[3] / "docs" / page).read_text(encoding="utf-8") for page in PAGES)
DEFAULTS = SasquatchOptions()
DEFAULT_OF = {
    "priority": DEFAULTS.default_priority,
    "delay_seconds": 0,
    "message_retention_period": DEFAULTS.default_retention_period,
    "message_deduplication_time_period": DEFAULTS.default_dedup_time_period,
    "visibility_timeout": DEFAULTS.default_visibility_timeout,
    "wait_time_seconds": DEFAULTS.default_wait_time_seconds,
    "max_number_of_messages": 1,
    "max_receives": f"what the message was sent with: {DEFAULTS.default_max_receives} through `/send`, else none",
}


def rows(section: str) -> list[list[str]]:
    """The cells of the table below a heading, without the table's own heading."""
    text = DOCS.split(f" {section}\n")[1]
    table = re.search(r"^\|.*?\n\|[-|]+\n((?:\|.*\n)+)", text, re.MULTILINE)
    assert table is not None
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[1].splitlines()]


def test_endpoints_are_documented_as_they_are():
    assert rows("Endpoints") == [
        [f"`{name}`", summary, f"`{scope.value}`" if scope else ""]
        for name, (summary, scope) in ENDPOINTS.items()
    ]


def test_codes_are_documented_as_they_are():
    assert rows("Error codes") == [
        [f"`{code}`", str(status), meaning] for code, (status, meaning) in CODES.items()
    ]


def test_ranges_and_defaults_are_documented_as_they_are():
    for endpoint, _, member, low, high in RANGES[:8]:
        section = "/send and /send_batch" if endpoint == "send" else "/receive"
        documented = {name.strip("`"): (span, default) for name, span, default in rows(section)}
        span, default = documented[member]
        assert re.split(r"[,;]", span)[0] == f"{low} to {high}", member
        assert default == str(DEFAULT_OF[member])


async def keys(api: Api) -> bool:
    return (await api.call("queues", method="GET", headers={})).status == 401


async def access_rights(api: Api) -> bool:
    return CODES["Forbidden"].status == 403


async def queue_level_settings(api: Api) -> bool:
    await api.broker.configure("set", delay_ms=60_000)
    await api.send(queue="set")
    return await api.receive("set") == []


async def exactly_once(api: Api) -> bool:
    await api.send(message_deduplication_id="once")
    body = {"queue_name": "q", "message_body": "m", "message_deduplication_id": "once"}
    return await api.error("send", body) == (409, "DuplicateMessage")


async def sequence_numbers(api: Api) -> bool:
    numbers = [(await api.send(queue=queue))["sequence_number"] for queue in ("a", "b", "a")]
    return numbers == sorted(set(numbers))


async def queue_names(api: Api) -> bool:
    await api.broker.produce("with.dots", "m")
    long = {"queue_name": "x" * 65, "message_body": "m"}
    return await api.texts("with.dots") == ["m"] and (await api.call("send", long)).status == 400


async def retention(api: Api) -> bool:
    await api.send(delay_seconds=100, message_retention_period=60)
    api.clock.pass_seconds(159)
    return await api.texts() == ["m"]


async def retention_of_dead_letters(api: Api) -> bool:
    await api.send(message_retention_period=60)
    await api.receive(visibility_timeout=0)
    await api.receive(max_receives=1, dead_letter_queue_name="dead")
    api.clock.pass_seconds(3_600)
    return await api.texts("dead") == ["m"]


async def cleaning_up(api: Api) -> bool:
    await api.send(message_retention_period=60)
    api.clock.pass_seconds(60)
    return await api.length() == (0, 0) and (await api.broker.lists.search("q")).messages == []


async def a_client_that_leaves(api: Api) -> bool:
    await api.send()
    response = await api.call("receive", {"queue_name": "q"})
    assert response.on_unsent is not None
    response.on_unsent()
    return [message["approximate_receive_count"] for message in await api.receive()] == [1]


async def never_received(api: Api) -> bool:
    await api.send()
    return (await api.receive(peek=True))[0]["approximate_first_receive_timestamp"] == 0


async def a_list_of_all_queues(api: Api) -> bool:
    names = [f"queue-{number:04}" for number in range(1_001)]
    async with trio.open_nursery() as nursery:
        for name in names:
            nursery.start_soon(api.broker.produce, name, "m")
    first = await api.call("queues", method="GET")
    assert first.headers == ((b"link", b'</queues?after=queue-0999>; rel="next"'),)
    last = await api.call("queues?after=queue-0999", method="GET")
    assert last.headers == ()
    return [each["queue_name"] for page in (first, last) for each in json_of(page)] == names


async def head(api: Api) -> bool:
    return json_of(await api.call("health", method="HEAD"))["status"] == "ok"


async def durability(api: Api) -> bool:
    return SETTINGS["durability"].default == "full"


class Lines(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.levelname} {record.getMessage()}")


async def request_log(api: Api) -> bool:
    logger, kept = logging.getLogger("forq_trio"), Lines()
    logger.addHandler(kept)
    try:
        await api.send()
        logger.setLevel(logging.DEBUG)
        await api.send()
    finally:
        logger.setLevel(logging.NOTSET)
        logger.removeHandler(kept)
    (line,) = kept.lines
    told = (
        "DEBUG event='request.answered' method='POST' path='/send' client='192.0.2.1' status=200 duration_ms="
    )
    return line.startswith(told)


async def configuration(api: Api) -> bool:
    return "# sasquatch_max_queue_length = 5000\n" in config_report.example()


DIFFERENCES = {
    "Keys": keys,
    "Access rights": access_rights,
    "Queue-level settings": queue_level_settings,
    "Exactly once": exactly_once,
    "Sequence numbers": sequence_numbers,
    "Queue names": queue_names,
    "Retention": retention,
    "Retention in a dead-letter queue": retention_of_dead_letters,
    "Cleaning up": cleaning_up,
    "A client that leaves": a_client_that_leaves,
    "A first receive that never was": never_received,
    "A list of all queues": a_list_of_all_queues,
    "HEAD": head,
    "Durability": durability,
    "Request log": request_log,
    "Configuration": configuration,
}


@pytest.mark.parametrize("difference", DIFFERENCES)
async def test_a_difference_is_one(api: Api, difference: str):
    """Each row of the table of differences, as it is here."""
    assert await DIFFERENCES[difference](api)


def test_all_differences_are_tested():
    assert [row[0] for row in rows("Differences")] == list(DIFFERENCES)
