"""The live part of a page: what it reads, and the template whose cells it renders."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from forq_trio.ui.cells import Cells
from forq_trio.ui.site import Site
from forq_trio.ui.viewer import Viewer


class PageView:
    """A `View` (live/hub.py). read: what the template needs besides what every page has."""

    def __init__(
        self,
        site: Site,
        viewer: Viewer,
        template: str,
        read: Callable[[], Awaitable[dict[str, Any]]] | None = None,
    ) -> None:
        self._site = site
        self._viewer = viewer
        self._template = template
        self._read = read
        self._values: dict[str, Any] = {}

    async def refresh(self) -> None:
        values = {} if self._read is None else await self._read()
        self._values = await self._site.navigation(self._viewer) | values

    def cells(self) -> Mapping[str, str]:
        cells = Cells()
        self._site.templates.render(self._template, cells, **self._values)
        return cells.html
