"""The admin UI as a client without a browser sees it: its headers, and every page that links lead to."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from time import monotonic
from urllib.parse import urljoin, urlsplit

import httpx

from forq_trio.drawing.unseen import visible
from support.processes import WAIT_SECONDS_MAX
from support.real_server import SECRET

WAIT_SECONDS = 30
LINKS = ("href", "src", "hx-get", "action", "data-live-path")
ENEMYS = r"guestbook(?:-dlq|\.keys)?"
TEXTS = ("value", "title", "alt", "placeholder", "aria-label")
"""Attributes that a browser shows and never follows, whatever an enemy's text in them begins with."""
EXACT = ("value",)
"""Of these, those that are sent back and so have to be exact, as does what is in a textarea."""
EDGES = re.compile(r" ?(</?(?:dd|dl|dt|div|h[1-4]|li|p|section|td|tr|ul)\b[^>]*>) ?")
MESSAGE_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")

OTHER_QUEUE = re.compile(rf"^(/(?:live/)?(?:queue|dead)/)(?!{ENEMYS}(?:/|$))[^/]+")
"""The name in the path of any queue but those that an enemy writes to."""
OTHER_SCHEDULE = re.compile(r"^(/schedules/)(?!enemy(?:/|$))[^/]+")
"""The name in the path of any schedule but the enemy's."""


class Markup(HTMLParser):
    """What one page has: the paths it links to, its forms' hidden fields, and what nobody may see in one.

    refused: what the policy would refuse to run, and characters that cannot be seen.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.hidden: dict[str, str] = {}
        self.refused: list[str] = []
        self._tag = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._tag = tag
        named = {name: value or "" for name, value in attrs}
        self._see(tag, *(value for name, value in named.items() if name in TEXTS and name not in EXACT))
        self.links += [value for name, value in named.items() if name in LINKS and not value.startswith("#")]
        if tag == "form" and named.get("method", "get").lower() == "post" and "action" in named:
            self.links.remove(named["action"])
        if tag == "input" and named.get("type") == "hidden" and "name" in named:
            self.hidden[named["name"]] = named.get("value", "")
        executed = [name for name in named if name.startswith(("on", "hx-on")) or name == "style"]
        executed += [
            name
            for name, value in named.items()
            if name not in TEXTS and value.strip().lower().startswith(("javascript:", "js:"))
        ]
        if (
            tag == "style"
            or (tag == "script" and "src" not in named)
            or tag in ("base", "iframe", "object", "embed")
        ):
            executed.append(tag)
        self.refused += [f"<{tag}>: {name}" for name in executed]

    def handle_endtag(self, tag: str) -> None:
        self._tag = ""

    def handle_data(self, data: str) -> None:
        if self._tag != "textarea":
            self._see(self._tag, data)

    def _see(self, tag: str, *texts: str) -> None:
        self.refused += [f"<{tag}>: unseen: {text!r:.60}" for text in texts if visible(text) != text]


def flat(page: str) -> str:
    """A page in one line. HTML sees every run of spaces as one, and none at the edges of these elements."""
    return EDGES.sub(r"\1", " ".join(page.split())).replace("> <", "><")


def until(holds: Callable[[], bool]) -> None:
    """Ask again and again until it holds: for what the server does by itself, and tells only who asks."""
    deadline = monotonic() + WAIT_SECONDS
    while not holds():
        assert monotonic() < deadline


@contextmanager
def logged_in(url: str, key: str = SECRET) -> Iterator[httpx.Client]:
    """A client with a session, which does not follow redirects."""
    with httpx.Client(
        base_url=url, timeout=WAIT_SECONDS_MAX, verify=False
    ) as client:  # reads no certificates
        fields = Markup(client.get("/login").text).hidden
        answer = client.post("/login", data=fields | {"key": key}, headers={"Origin": url})
        if answer.status_code != 303:
            raise AssertionError(f"the login was answered {answer.status_code}: {answer.text}")
        yield client


def kind_of(link: str) -> str:
    """What a link leads to, whatever the queue, the schedule and the message: of each kind one is enough.

    But each of the enemy's.
    """
    parts = urlsplit(link)
    path = OTHER_SCHEDULE.sub(r"\1*", OTHER_QUEUE.sub(r"\1*", MESSAGE_ID.sub("ID", parts.path)))
    parameters = sorted({pair.partition("=")[0] for pair in parts.query.split("&") if pair})
    return f"{path}?{'&'.join(parameters)}"


def is_stream(answer: httpx.Response) -> bool:
    return answer.headers.get("Content-Type", "").startswith("text/event-stream")


def crawl(
    client: httpx.Client, start: str = "/", pages_max: int = 400
) -> Iterator[tuple[str, httpx.Response]]:
    """Every path that links of our pages lead to, one of each kind, with its answer; of streams only the head."""
    pending, seen = [start], {kind_of(start)}
    for _ in range(pages_max):
        if not pending:
            return
        path = pending.pop(0)
        with client.stream("GET", path) as answer:
            is_page = answer.headers.get("Content-Type", "").startswith("text/html")
            if not is_stream(answer):
                answer.read()
        yield path, answer
        found = Markup(answer.text).links if is_page else []
        found += [answer.headers["Location"]] if answer.is_redirect else []
        for link in found:
            target = urlsplit(urljoin(str(answer.url), link))
            local = target._replace(scheme="", netloc="", fragment="").geturl()
            if target.netloc == client.base_url.netloc.decode() and kind_of(local) not in seen:
                seen.add(kind_of(local))
                pending.append(local)
    raise AssertionError(f"there are more than {pages_max} kinds of pages: {pending[:10]}")
