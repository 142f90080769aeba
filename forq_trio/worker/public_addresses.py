"""Which addresses are public: those that a program may be sent to by somebody who should not reach its own network."""

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

_NAT64 = IPv6Network("64:ff9b::/96")


def is_public(host: str) -> bool:
    """True for a public unicast address, as of the registries of IANA.

    False for private, loopback, link-local, shared, multicast and reserved ones, also where one is inside of an IPv6
    address that stands for it. Raises ValueError for what is no address.
    """
    address = ip_address(host.partition("%")[0])
    return all(each.is_global and not each.is_multicast for each in (address, *_inside(address)))


def _inside(address: IPv4Address | IPv6Address) -> list[IPv4Address]:
    """The IPv4 addresses that packets to this one may go to in the end."""
    if isinstance(address, IPv4Address):
        return []
    found = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    if address in _NAT64 or int(address) >> 32 == 0:
        found.append(IPv4Address(int(address) & 0xFFFF_FFFF))
    return [each for each in found if each is not None]
