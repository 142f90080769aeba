"""The site is built without a warning, every link in it leads somewhere, and no page loads anything from elsewhere."""

import json
import posixpath
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from urllib.parse import quote, unquote, urlsplit

import pytest

from docs._site.links import repository
from support.needs import lacks
from support.processes import WAIT_SECONDS_MAX
from support.searched import SEARCHED

pytestmark = [pytest.mark.tier2, pytest.mark.timeout(600)]

LOADING = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "object": "data"}
"""The attribute by which an element loads something; a link does by `href`, if it is not only a relation."""

RELATIONS = {"canonical", "index", "search", "next", "prev", "author", "copyright"}


class Page(HTMLParser):
    """What a page links, loads and can be linked at."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors = {"", "top"}
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attributes}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if tag == "link" and not RELATIONS & set(found.get("rel", "").split()):
            self.loads.append(found["href"])
        if LOADING.get(tag) in found:
            self.loads.append(found[LOADING[tag]])


@pytest.fixture(scope="module")
def site(root, tmp_path_factory) -> Path:
    if find_spec("sphinx") is None:
        lacks("the site", "Sphinx (pip install -e '.[docs]')")
    place = tmp_path_factory.mktemp("site")
    options = [
        "--builder",
        "html",
        "--conf-dir",
        "docs",
        "--doctree-dir",
        str(place / "doctrees"),
        "--fresh-env",
    ]
    command = [sys.executable, "-m", "sphinx", *options, "--fail-on-warning", "--keep-going", "--quiet"]
    done = subprocess.run(
        [*command, ".", str(place / "html")],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=10 * WAIT_SECONDS_MAX,
    )
    assert done.returncode == 0, done.stderr[-10_000:]
    return place / "html"


@pytest.fixture(scope="module")
def pages(site) -> dict[str, Page]:
    found = {
        str(path.relative_to(site)): Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")
    }
    assert len(found) > 40
    return found


def broken(name: str, page: Page, site: Path, pages: dict[str, Page]) -> list[str]:
    """The links of a page that lead nowhere."""
    found = []
    for link in page.links:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            continue
        path = posixpath.join(posixpath.dirname(name), unquote(parts.path)) if parts.path else name
        target = posixpath.normpath(path)
        there = (site / target).is_file()
        if not there or (target in pages and unquote(parts.fragment) not in pages[target].anchors):
            found.append(link)
    return found


def from_elsewhere(page: Page) -> list[str]:
    return [each for each in page.loads if urlsplit(each).netloc or urlsplit(each).scheme not in ("", "data")]


def test_every_link_leads_somewhere(site, pages) -> None:
    found = {name: broken(name, page, site, pages) for name, page in pages.items()}
    assert {name: links for name, links in found.items() if links} == {}


def test_no_page_loads_anything_from_elsewhere(site, pages) -> None:
    found = {name: from_elsewhere(page) for name, page in pages.items()}
    assert {name: places for name, places in found.items() if places} == {}
    for path in site.rglob("*.css"):
        text = path.read_text(encoding="utf-8")
        assert re.findall(r"""url\(\s*["']?(?:https?:)?//|@import""", text) == [], path


def test_a_broken_link_and_a_foreign_script_are_found(tmp_path) -> None:
    (tmp_path / "b.html").write_text('<p id="x">')
    page = Page(
        '<a href="b.html#x">1</a><a href="b.html#y">2</a><a href="#z">3</a><a href="c.html">4</a>'
        '<a href="https://example.com">5</a><script src="//cdn.example.com/a.js"></script>'
        '<link rel="stylesheet" href="https://example.com/a.css"><link rel="next" href="b.html"><img src="data:,">'
    )
    pages = {"a.html": page, "b.html": Page((tmp_path / "b.html").read_text())}
    (tmp_path / "a.html").write_text("")
    assert broken("a.html", page, tmp_path, pages) == ["b.html#y", "#z", "c.html"]
    assert from_elsewhere(page) == ["//cdn.example.com/a.js", "https://example.com/a.css"]


def test_the_search_knows_the_words_that_people_look_for(site) -> None:
    text = (site / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))
    found = {
        word: {index["docnames"][place[0]] for place in places}
        for word, places in index["indexentries"].items()
    }
    assert {word: found.get(word) for word in SEARCHED} == {word: {page} for word, page in SEARCHED.items()}


def test_every_public_name_of_python_is_documented(pages) -> None:
    import forq_trio

    anchors = set().union(*(page.anchors for page in pages.values()))
    assert [name for name in forq_trio.__all__ if f"forq_trio.{name}" not in anchors] == []


def test_files_of_the_repository_are_linked_where_it_is(site, root) -> None:
    page = (site / "docs" / "embedding.html").read_text(encoding="utf-8")
    assert f'href="{repository(root)}/blob/HEAD/examples/embedded.py"' in page


class Files(SimpleHTTPRequestHandler):
    """Serves files and says nothing of it."""

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture(scope="module")
def address(site) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Files, directory=str(site))) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@contextmanager
def visited(chromium, address: str, **options: object) -> Iterator[object]:
    """A page of the browser, in which no script may fail and to which nothing may come from elsewhere."""
    wrong = []
    with chromium.awake() as browser, browser.new_context(**options) as context:
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda asked: asked.url.startswith((address, "data:")) or wrong.append(asked.url))
        yield page
    assert wrong == []


def test_a_search_shows_the_page_of_a_word_first(chromium, address) -> None:
    first = {}
    with visited(chromium, address) as page:
        for word in SEARCHED:
            page.goto(f"{address}/search.html?q={quote(word)}")
            link = page.locator("#search-results li a").first
            link.wait_for()
            page.wait_for_load_state("networkidle")  # what is found is fetched, for its first lines
            first[word] = urlsplit(link.get_attribute("href")).path.removesuffix(".html")
    assert first == SEARCHED


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 820, 1440])
def test_a_page_is_never_wider_than_the_window(chromium, address, width, scheme) -> None:
    names = ("index", "queues", "reference/cli-messages", "reference/metrics", "reference/python-clients")
    wide = {}
    with visited(chromium, address, viewport={"width": width, "height": 900}, color_scheme=scheme) as page:
        for name in names:
            page.goto(f"{address}/docs/{name}.html")
            sizes = page.evaluate(
                "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
            )
            dark = page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
            if sizes[0] > sizes[1] or dark != (scheme == "dark"):
                wide[name] = (sizes, dark)
    assert wide == {}
