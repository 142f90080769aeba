"""The URLs of one database, beside the one where it is written, and the option of a URL that is ours."""

import re
from typing import NamedTuple


class OtherUrls(NamedTuple):
    """Further URLs of the same database: where to listen, and of a replica to read from. None: there is none."""

    listen: str | None = None
    replica: str | None = None


NO_OTHER_URLS = OtherUrls()
_POOLED = re.compile("([?&])pooled=(yes|auto)(?:&|$)")


def split_pooled(url: str) -> tuple[str, bool]:
    """A URL of PostgreSQL as libpq reads it, and whether its option `pooled=yes` says that it names a pool.

    `pooled=auto` is as no such option: a pool is noticed by its process numbers. Another value stays: libpq refuses it.
    """
    found = _POOLED.search(url)
    if found is None:
        return url, False
    before, after = url[: found.start()], url[found.end() :]
    return f"{before}{found[1]}{after}" if after else before, found[2] == "yes"


def shown(text: str) -> str:
    """What can be shown of a text that is no URL of a database: it may be one with a typo, and have a password."""
    if "@" in text or "password" in text.lower():
        return f"{text.partition('://')[0]}://…" if "://" in text else "…"
    return text
