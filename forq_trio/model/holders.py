"""The holders of shares of the budgets that all clients use: a key, or, without a right key, an address."""

from contextvars import ContextVar
from enum import StrEnum
from ipaddress import IPv6Address, ip_address
from typing import NamedTuple

_NETWORK_BITS = 64  # of an IPv6 address


class HolderKind(StrEnum):
    """The kind of a holder.

    OWNER: the server's own secret. TOKEN: an access token. OPEN: a request that needs no key. ADDRESS: a request with
    no key yet, or with a wrong one.
    """

    OWNER = "owner"
    TOKEN = "token"
    OPEN = "open"
    ADDRESS = "address"


class Holder(NamedTuple):
    """The holder of a share. name: of the token, or the network of the address; "" for the owner."""

    kind: HolderKind
    name: str


OWNER = Holder(HolderKind.OWNER, "")
HOLDER: ContextVar[Holder] = ContextVar("holder", default=OWNER)
"""The holder whose share the current task uses; OWNER in an application that embeds the queue.

Set in the context of a request.
"""


def token_of_task() -> str | None:
    """The name of the access token for which the current task works; None if it works for none."""
    holder = HOLDER.get()
    return holder.name if holder.kind is HolderKind.TOKEN else None


def network(address: str) -> str:
    """The address, or for IPv6 its network of 64 bits, because whoever has one address of it usually has all."""
    if ":" not in address:
        return address
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if not isinstance(parsed, IPv6Address):
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    if parsed.is_loopback:
        return address
    host_bits = 128 - _NETWORK_BITS
    return f"{IPv6Address(int(parsed) >> host_bits << host_bits)}/{_NETWORK_BITS}"


def at_address(address: str) -> Holder:
    """The holder of a request from this address without a right key."""
    return Holder(HolderKind.ADDRESS, network(address))
