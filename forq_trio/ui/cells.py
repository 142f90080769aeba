"""Live cells: the elements of a page that change in place while it is open.

A template makes them with `live.td(key, ...)` and similar functions; each is an element with the attribute data-live.
Rendering notes the HTML of each cell by its key. When the live part is rendered again, the cells whose HTML differs
have changed. The browser replaces the content and attributes of such an element, never the element itself.
"""

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup, escape


class Cells:
    """Makes live cells, and notes the HTML of each by its key."""

    def __init__(self) -> None:
        self.html: dict[str, str] = {}

    def td(self, key: str, text: Any, css: str = "", title: str = "") -> Markup:
        """A table cell."""
        return self.element("td", key, text, css, title)

    def span(self, key: str, text: Any, css: str = "", title: str = "") -> Markup:
        return self.element("span", key, text, css, title)

    def element(
        self, tag: str, key: str, content: Any, css: str = "", title: str = "", **attributes: str
    ) -> Markup:
        """An element; `content` is escaped unless it is Markup, `tag` and names of attributes are the template's."""
        parts = [f'<{tag} data-live="{escape(key)}"']
        if css:
            parts.append(f' class="{escape(css)}"')
        if title:
            parts.append(f' title="{escape(title)}"')
        for name, value in attributes.items():
            parts.append(f' {name.replace("_", "-")}="{escape(value)}"')
        html = f"{''.join(parts)}>{escape(content)}</{tag}>"
        self.html[key] = html
        return Markup(html)

    def block(
        self, key: str, tag: str = "div", css: str = "", caller: Any = None, **attributes: str
    ) -> Markup:
        """`{% call live.block(key) %}…{% endcall %}`: an element with any content."""
        return self.element(tag, key, caller(), css, **attributes)


def changed(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str]:
    """The cells of `after` that differ from `before`."""
    return {key: html for key, html in after.items() if before.get(key) != html}
