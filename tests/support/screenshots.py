"""Takes the pictures of the admin UI that the documents show: a server with the showcase, traffic, and a browser.

They have few colours, so a palette halves their size; none may be larger than PICTURE_BYTES_MAX.
"""

import argparse
import io
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, Page

from support.browser import DESKTOP, PHONE, guarded_page, log_in, sideways_pixels
from support.chromium import Chromium
from support.real_server import SECRET, RealServer, real_server
from support.showcase import fill
from support.traffic import live_producer

IMAGES = Path(__file__).parents[2] / "docs" / "images"
PICTURE_BYTES_MAX = 150_000
COLOURS = 256
LIVE_QUEUES = ("events.ingest", "search.index", "emails", "ledger.post")
HISTORY_MS = 20_000
"""For how long there is traffic before the first picture, so that charts have something to draw."""
MESSAGE_LINK = re.compile(r"/[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f-]{22}$")


def at(path: str) -> Callable[[Page], None]:
    """Go to a path."""

    def go(page: Page) -> None:
        page.goto(path)

    return go


def at_message(page: Page) -> None:
    """The page of a message that has failed before, with its history."""
    page.goto("/queue/orders.charge-dlq")
    links = page.locator("a[href]").evaluate_all("links => links.map(link => link.getAttribute('href'))")
    found = [link for link in links if MESSAGE_LINK.search(link)]
    if not found:
        raise AssertionError("the page of a queue has no link to a message")
    page.goto(found[0])


def at_purge(page: Page) -> None:
    """The dialog that asks before a queue is purged."""
    page.goto("/queue/webhooks.out")
    button = page.get_by_role("button", name=re.compile("^Purge"))
    if not button.first.is_visible():
        page.locator("summary").filter(has_text="…").click()
    button.first.click()
    page.get_by_role("dialog").wait_for()


@dataclass(frozen=True)
class Picture:
    """server: "world", or "empty" for one without queues. options: of the browser's context."""

    name: str
    arrange: Callable[[Page], None]
    server: str = "world"
    key: str | None = SECRET
    options: tuple[dict[str, Any], ...] = ()


DARK = {"color_scheme": "dark"}
PICTURES = (
    Picture("login", at("/login"), key=None),
    Picture("empty", at("/"), server="empty"),
    Picture("overview", at("/")),
    Picture("overview-dark", at("/"), options=(DARK,)),
    Picture("overview-phone", at("/"), options=(PHONE,)),
    Picture("queue", at("/queue/orders.charge")),
    Picture("queue-phone", at("/queue/orders.charge"), options=(PHONE, DARK)),
    Picture("message", at_message),
    Picture("dead-letters", at("/dead/orders.charge-dlq")),
    Picture("dead-letters-dark", at("/dead/orders.charge-dlq"), options=(DARK,)),
    Picture("dead-letter-queue", at("/queue/orders.charge-dlq")),
    Picture("confirm", at_purge),
    Picture("confirm-phone", at_purge, options=(PHONE,)),
    Picture("system", at("/system")),
)


def take(browser: Browser, url: str, picture: Picture) -> bytes:
    """The picture as PNG."""
    options = DESKTOP.copy()
    for more in picture.options:
        options |= more
    with guarded_page(browser, url, reduced_motion="reduce", **options) as (page, _):
        if picture.key is not None:
            log_in(page, picture.key)
        picture.arrange(page)
        page.evaluate("document.fonts.ready")
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


@contextmanager
def servers(wanted: set[str], folder: Path) -> Iterator[dict[str, RealServer]]:
    """Those of the servers that a picture is wanted of."""
    with ExitStack() as stack:
        running = {
            name: stack.enter_context(real_server(folder / f"{name}.db", FORQ_ENV="local"))
            for name in sorted(wanted)
        }
        if "world" in running:
            url = running["world"].url
            fill(url, SECRET)
            for queue in LIVE_QUEUES:
                stack.enter_context(live_producer(url, SECRET, queue, per_second=20, consumers=2))
        yield running


def main() -> None:
    names = [picture.name for picture in PICTURES]
    parser = argparse.ArgumentParser(prog="script/screenshots", description="Takes pictures of the admin UI.")
    parser.add_argument("names", nargs="*", metavar="name", help=f"all without one: {', '.join(names)}")
    parser.add_argument("--to", type=Path, default=IMAGES, help="where to put them (docs/images)")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(names):
        parser.error(f"there is no picture {', '.join(sorted(unknown))}")
    pictures = [picture for picture in PICTURES if picture.name in (arguments.names or names)]
    arguments.to.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        servers({picture.server for picture in pictures}, Path(folder)) as running,
        Chromium.started() as chromium,
        chromium.awake() as browser,
    ):
        if "world" in running:
            page = browser.new_page()
            page.wait_for_timeout(HISTORY_MS)
            page.close()
        for picture in pictures:
            png = take(browser, running[picture.server].ui_url, picture)
            if len(png) > PICTURE_BYTES_MAX:
                raise AssertionError(
                    f"{picture.name} has {len(png):,} bytes, more than {PICTURE_BYTES_MAX:,}"
                )
            (arguments.to / f"{picture.name}.png").write_bytes(png)
            print(f"{picture.name}.png {len(png):,} bytes")


if __name__ == "__main__":
    main()
