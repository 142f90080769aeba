"""Turns templates into answers: the Jinja2 environment, static files by their content's digest, compression."""

import gzip
import re
from collections.abc import Mapping
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from quart import Response

from forq_trio.drawing import charts, format
from forq_trio.drawing.unseen import visible
from forq_trio.model.access.types import Scope
from forq_trio.ui.cells import Cells

_COMPRESSED_BYTES_MIN = 1_024
_COMPRESSION_LEVEL = 3
_BEFORE_A_SESSION = ("login.html", "base.html", "_ui.html", "sprite.html")
"""Templates that are compiled at the start, because that takes longer than requests without a session may take."""
_CONTENT_TYPES = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "woff2": "font/woff2",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
}


_COMMENTS = re.compile(rb"^[ \t]*//.*$", re.MULTILINE)


class Asset:
    """A static file, with its compressed form if that is smaller. Comment lines are removed from our scripts."""

    def __init__(self, name: str, content: bytes) -> None:
        if name.startswith("js/"):
            content = _COMMENTS.sub(b"", content)
        self.content = content
        self.content_type = _CONTENT_TYPES[name.rpartition(".")[2]]
        small = gzip.compress(content, mtime=0)
        self.compressed = small if len(small) < len(content) * 0.9 else None


class Assets:
    """All static files by name, read once. version: changes with their content, and is a part of their URLs."""

    def __init__(self) -> None:
        self.files = {
            name: Asset(name, content) for name, content in _walk(files("forq_trio.ui") / "static", "")
        }
        every = sha256()
        for name in sorted(self.files):
            every.update(name.encode() + b"\0" + self.files[name].content)
        self.version = every.hexdigest()[:12]


def _walk(place: Traversable, prefix: str) -> list[tuple[str, bytes]]:
    found = []
    for each in place.iterdir():
        if each.is_dir():
            found += _walk(each, f"{prefix}{each.name}/")
        elif each.name.rpartition(".")[2] in _CONTENT_TYPES:
            found.append((prefix + each.name, each.read_bytes()))
    return found


class Templates:
    """Renders templates. base: the prefix of every path, without a slash at its end."""

    def __init__(self, assets: Assets, base: str) -> None:
        self.base = base
        self._environment = Environment(
            loader=PackageLoader("forq_trio.ui"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        for name in _BEFORE_A_SESSION:
            self._environment.get_template(name)
        self._environment.globals.update(
            url=self.url,
            static=lambda name: f"{base}/static/{assets.version}/{name}",
            f=format,
            charts=charts,
            visible=visible,
            Scope=Scope,
        )

    def url(self, path: str, **query: object) -> str:
        """A URL of ours: `path` begins with a slash; parameters that are None or "" are left out."""
        return f"{self.base}{path}{encode_query(query)}"

    def render(self, name: str, cells: Cells | None = None, /, **context: Any) -> str:
        """Render a template to text. cells: notes the live cells; None if they are not needed."""
        return self._environment.get_template(name).render(live=cells or Cells(), **context)


def encode_query(query: Mapping[str, object]) -> str:
    """`?a=b`, or "" without parameters; those that are None or "" are left out."""
    given = {name: value for name, value in query.items() if value is not None and value != ""}
    return "?" + urlencode(given, doseq=True) if given else ""


def html_response(text: str, accepts_gzip: bool, status: int = 200) -> Response:
    """A page or a part of one, compressed where the browser takes it."""
    body = text.encode()
    response = Response(body, status, content_type="text/html; charset=utf-8")
    if accepts_gzip and len(body) >= _COMPRESSED_BYTES_MIN:
        response = Response(
            gzip.compress(body, _COMPRESSION_LEVEL, mtime=0), status, content_type="text/html; charset=utf-8"
        )
        response.headers["Content-Encoding"] = "gzip"
    response.headers["Vary"] = "Accept-Encoding, Cookie"
    return response
