"""docs/api.md says what there is, and nothing that is not there (contract F9)."""

import json
import re
from pathlib import Path

from forq_trio.http.forq_api.refusals import TRANSPORT_CODES
from forq_trio.model.errors import InvalidSetting
from forq_trio.model.forq_error import REASONS, Reason
from support.forq_api import Api, json_of

DOCS = Path(__file__).parents[3] / "docs"


def table_rows(text: str) -> list[list[str]]:
    """The cells of all table rows that begin with something in backquotes."""
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("| `")
    ]


SETTINGS = Reason(
    "bad_request.settings.…", 400, "The setting that the code ends in is not valid; `message` says why."
)
"""One row for all of them."""


def by_status(reason: Reason) -> tuple[int, str]:
    """The order of the table."""
    return reason.status, reason.code


async def test_the_example_of_a_message_has_the_members_of_one(api: Api):
    await api.send("one sofa")
    (message,) = json_of(await api.call("GET", "q/peek"))["messages"]
    section = (DOCS / "api.md").read_text().split("### GET /api/v1/queues/{queue}/messages/{messageId}\n")[1]
    example = json.loads(section.split("```json\n")[1].split("```")[0])
    assert list(example) == list(message)


async def test_f9_every_route_is_documented(api: Api):
    headings = re.findall(r"^### ([A-Z]+ /\S+)$", (DOCS / "api.md").read_text(), re.MULTILINE)
    assert sorted(headings) == sorted(f"{route.method} {route.path}" for route in api.routes)


def test_f9_every_code_is_documented():
    text = (DOCS / "api.md").read_text()
    of_endpoints, of_http = text.split("## Error codes")[1].split("Before a request")
    reasons = {SETTINGS, *REASONS.values()} - {*InvalidSetting.members.values()}
    assert table_rows(of_endpoints) == [
        [f"`{code}`", str(status), meaning] for code, status, meaning in sorted(reasons, key=by_status)
    ]
    documented = {(code.strip("`"), int(status)) for code, status, _ in table_rows(of_http)}
    codes = {(code, status) for status, (code, _) in TRANSPORT_CODES.items()}
    assert documented == codes - {("internal", 500)}


def test_f9_no_code_is_made_up():
    text = (DOCS / "api.md").read_text()
    known = {"bad_request.settings", *REASONS, *(code for code, _ in TRANSPORT_CODES.values())}
    assert set(re.findall(r"(?:bad_request|not_found|forq)\.[\w.]*\w", text)) <= known
