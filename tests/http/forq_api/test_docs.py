"""The reference in docs says what there is, and nothing that is not there (contract F9)."""

import re
from pathlib import Path

from forq_trio.http.forq_api.examples import ANSWERS
from forq_trio.http.forq_api.refusals import TRANSPORT_CODES
from forq_trio.model.errors import InvalidSetting
from forq_trio.model.forq_error import REASONS, Reason
from support.forq_api import Api, json_of

DOCS = Path(__file__).parents[3] / "docs"
REFERENCE = DOCS / "reference"
PAGES = {path.name: path.read_text(encoding="utf-8") for path in sorted(REFERENCE.glob("http*.md"))}


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
    assert list(ANSWERS["showMessage"]) == list(message)


async def test_f9_every_route_is_documented(api: Api):
    headings = re.findall(r"^### ([A-Z]+ /\S+)$", "".join(PAGES.values()), re.MULTILINE)
    assert sorted(headings) == sorted(f"{route.method} {route.path}" for route in api.routes)


def test_f9_every_code_is_documented():
    of_endpoints, of_http = PAGES["http-errors.md"].split("## Before a request")
    reasons = {SETTINGS, *REASONS.values()} - {*InvalidSetting.members.values()}
    assert table_rows(of_endpoints) == [
        [f"`{code}`", str(status), meaning] for code, status, meaning in sorted(reasons, key=by_status)
    ]
    documented = {(code.strip("`"), int(status)) for code, status, _ in table_rows(of_http)}
    codes = {(code, status) for status, (code, _) in TRANSPORT_CODES.items()}
    assert documented == codes - {("internal", 500)}


def test_f9_no_code_is_made_up():
    text = (DOCS / "api.md").read_text(encoding="utf-8") + "".join(PAGES.values())
    known = {"bad_request.settings", *REASONS, *(code for code, _ in TRANSPORT_CODES.values())}
    assert set(re.findall(r"(?<!/)(?:bad_request|not_found|forq)\.[\w.]*\w", text)) <= known
