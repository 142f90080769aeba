"""The use of a bound that all keys share."""

from typing import NamedTuple


class Quota(NamedTuple):
    """How much of a bound is used. used: in all, of `limit`. key_used: by the key that uses most, of `key_limit`."""

    name: str
    used: int
    limit: int
    key_used: int
    key_limit: int
