"""The URLs of one database, beside the one where it is written."""

from typing import NamedTuple


class OtherUrls(NamedTuple):
    """Further URLs of the same database: where to listen, and of a replica to read from. None: there is none."""

    listen: str | None = None
    replica: str | None = None


NO_OTHER_URLS = OtherUrls()
