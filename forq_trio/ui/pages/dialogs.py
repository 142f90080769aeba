"""Dialogs: a part of the page for htmx, a page of its own for a browser that opens its link by itself."""

from typing import Any

from quart import Response

from forq_trio.ui.site import Site, is_part


async def show_dialog(site: Site, template: str, title: str, status: int = 200, **context: Any) -> Response:
    """The dialog of this template. title: of the page, or of the dialog if it uses it."""
    if is_part():
        return site.part(template, status, title=title, **context)
    return await site.page(
        "dialog_page.html", "queues", status=status, dialog=template, title=title, **context
    )
