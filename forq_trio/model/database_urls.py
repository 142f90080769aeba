"""The URLs of one database, beside the one where it is written."""

from typing import NamedTuple


class OtherUrls(NamedTuple):
    """Further URLs of the same database: where to listen, and of a replica to read from. None: there is none."""

    listen: str | None = None
    replica: str | None = None


NO_OTHER_URLS = OtherUrls()


def shown(text: str) -> str:
    """What can be shown of a text that is no URL of a database: it may be one with a typo, and have a password."""
    if "@" in text or "password" in text.lower():
        return f"{text.partition('://')[0]}://…" if "://" in text else "…"
    return text
