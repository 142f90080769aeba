"""The pages of docs/reference, made from declarations: `python -m docs._generate` writes them."""

from collections.abc import Callable, Iterator
from pathlib import Path

from docs._generate import cli, events, http, metrics, python, queues, settings, spark

DOCS = Path(__file__).parents[1]
MAKERS: tuple[Callable[[], Iterator[tuple[str, str]]], ...] = (
    cli.pages,
    http.pages,
    settings.pages,
    metrics.pages,
    events.pages,
    python.pages,
    queues.pages,
    spark.pages,
)


def pages() -> dict[Path, str]:
    """The text of each page."""
    return {DOCS / "reference" / name: text for make in MAKERS for name, text in make()}


def files() -> dict[Path, str]:
    """The text of each page, and of the OpenAPI document."""
    return pages() | {DOCS / "openapi.json": http.document_text()}
