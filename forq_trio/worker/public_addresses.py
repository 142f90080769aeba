"""Which addresses are public: those that a program may be sent to by somebody who should not reach its own network.

Python's `is_global` follows the registries of IANA as of each release: 3.11.7 and 3.13.0 differ about 192.0.0.8,
2002::/16, 2001::/23 and 64:ff9b:1::/48. This file decides about those addresses, and about IPv6 addresses that stand
for an IPv4 address, so that an address is public under every Python or under none.
"""

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

_NAT64 = IPv6Network("64:ff9b::/96")
"""Its addresses stand for IPv4 ones. The prefixes that networks choose for themselves cannot be told from others."""
_GLOBAL_UNICAST = IPv6Network("2000::/3")
_REFUSED_V4 = (
    IPv4Network(
        "192.0.0.0/24"
    ),  # for protocols: also .9 and .10 are answered by what is nearest, as a gateway
    IPv4Network("192.88.99.0/24"),  # relays of 6to4, withdrawn
)
_REFUSED_V6 = (
    IPv6Network("2001::/23"),  # for protocols: Teredo, benchmarks, ORCHID, anycast to what is nearest
    IPv6Network("2001:db8::/32"),  # documentation
    IPv6Network("2002::/16"),  # 6to4: relays send it to the IPv4 address within
    IPv6Network("3fff::/20"),  # documentation since 2024
)
_ISATAP = 0x0000_5EFE
_ISATAP_MASK = 0xFCFF_FFFF  # without the bits "universal" and "group"


def is_public(host: str) -> bool:
    """True for a public unicast address, as of the registries of IANA, whichever the version of Python.

    False for private, loopback, link-local, shared, multicast, reserved and tunnel addresses, and for an IPv6 address
    that stands for one of them. Raises ValueError if `host` is not an address.
    """
    address = ip_address(host.partition("%")[0])
    if isinstance(address, IPv4Address):
        return _is_public_v4(address)
    if address.ipv4_mapped is not None:
        return _is_public_v4(address.ipv4_mapped)
    if address in _NAT64:
        return _is_public_v4(_last_32_bits(address))
    return _is_public_v6(address) and all(map(_is_public_v4, _within(address)))


def _is_public_v4(address: IPv4Address) -> bool:
    return _is_global(address) and not any(address in each for each in _REFUSED_V4)


def _is_public_v6(address: IPv6Address) -> bool:
    return (
        address in _GLOBAL_UNICAST
        and _is_global(address)
        and not any(address in each for each in _REFUSED_V6)
    )


def _within(address: IPv6Address) -> Iterator[IPv4Address]:
    """The IPv4 address that a router of ISATAP sends it to (RFC 5214, 6.1)."""
    if (int(address) >> 32) & _ISATAP_MASK == _ISATAP:
        yield _last_32_bits(address)


def _last_32_bits(address: IPv6Address) -> IPv4Address:
    return IPv4Address(int(address) & 0xFFFF_FFFF)


def _is_global(address: IPv4Address | IPv6Address) -> bool:
    return address.is_global and not address.is_multicast
