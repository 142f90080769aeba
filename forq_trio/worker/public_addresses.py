"""Which addresses are public: those that a program may be sent to by somebody who should not reach its own network."""

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

_NAT64 = IPv6Network("64:ff9b::/96")
_GLOBAL_UNICAST = IPv6Network("2000::/3")


def is_public(host: str) -> bool:
    """True for a public unicast address, as of the registries of IANA.

    False for private, loopback, link-local, shared, multicast and reserved ones, also where one is inside of an IPv6
    address that stands for it. Raises ValueError for what is no address.
    """
    address = ip_address(host.partition("%")[0])
    if isinstance(address, IPv4Address):
        return _is_global(address)
    if address.ipv4_mapped is not None:
        return _is_global(address.ipv4_mapped)
    if address in _NAT64:
        return _is_global(IPv4Address(int(address) & 0xFFFF_FFFF))
    within = [each for each in (address.sixtofour, *(address.teredo or ())) if each is not None]
    return address in _GLOBAL_UNICAST and all(map(_is_global, (address, *within)))


def _is_global(address: IPv4Address | IPv6Address) -> bool:
    return address.is_global and not address.is_multicast
