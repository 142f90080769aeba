"""How much is used of a bound that all keys share."""

from typing import NamedTuple


class Quota(NamedTuple):
    """used: of `limit` in all; key_used: by the key that uses most, of at most `key_limit`."""

    name: str
    used: int
    limit: int
    key_used: int
    key_limit: int
