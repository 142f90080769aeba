"""The further URLs of a database besides the one for writing, and our own option in a URL."""

import re
from typing import NamedTuple


class OtherUrls(NamedTuple):
    """Further URLs of the same database: where to listen, and of a replica to read from. None: there is none."""

    listen: str | None = None
    replica: str | None = None


NO_OTHER_URLS = OtherUrls()
_POOLED = re.compile("([?&])pooled=(yes|auto)(?:&|$)")


def split_pooled(url: str) -> tuple[str, bool]:
    """A URL of PostgreSQL as libpq reads it, and whether its option `pooled=yes` says that it leads to a pool.

    `pooled=auto` is the same as no option: a pool is recognised by its process ids. Any other value stays in the URL,
    and libpq refuses it.
    """
    found = _POOLED.search(url)
    if found is None:
        return url, False
    before, after = url[: found.start()], url[found.end() :]
    return f"{before}{found[1]}{after}" if after else before, found[2] == "yes"


def shown(text: str) -> str:
    """The part of an invalid URL that is safe to show: it may be a valid one with a typo, including a password."""
    if "@" in text or "password" in text.lower():
        return f"{text.partition('://')[0]}://…" if "://" in text else "…"
    return text
