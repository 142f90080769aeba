"""Which addresses are public: by the registries of special-purpose addresses of IANA, under every Python alike."""

from ipaddress import ip_network

import pytest

from forq_trio.worker.public_addresses import is_public

SPECIAL = (
    *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
    *("192.0.0.0/24", "192.0.0.0/29", "192.0.0.8/32", "192.0.0.9/32", "192.0.0.10/32"),
    *("192.0.0.170/31", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15"),
    *("198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4", "255.255.255.255/32"),
    *("::1/128", "::/128", "::/96", "::ffff:0:0:0/96", "64:ff9b:1::/48", "100::/64"),
    *("100:0:0:1::/64", "2001::/23", "2001::/32", "2001:1::1/128", "2001:1::2/128", "2001:1::3/128"),
    *("2001:2::/48", "2001:3::/32", "2001:4:112::/48", "2001:10::/28", "2001:20::/28"),
    *("2001:30::/28", "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16", "fc00::/7"),
    *("fe80::/10", "fec0::/10", "ff00::/8"),
)
"""The blocks of the registries that are not for everybody, and the anycast ones, which the nearest gateway answers."""

REACHABLE = ("192.31.196.0/24", "192.52.193.0/24", "192.175.48.0/24", "2620:4f:8000::/48")
"""The registries' blocks that are reachable from everywhere."""


def ends(block: str) -> list[str]:
    network = ip_network(block)
    return [str(network[0]), str(network[-1])]


BESIDE = (
    *("9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "172.15.255.255", "172.32.0.0"),
    *("191.255.255.255", "192.0.1.0", "192.88.98.255", "192.88.100.0", "198.17.255.255", "198.20.0.0"),
    *("223.255.255.255", "2001:200::", "2001:db7:ffff::1", "2001:db9::", "2003::", "3ffe:ffff::1"),
)


def test_no_special_purpose_address_is_public() -> None:
    assert [each for block in SPECIAL for each in ends(block) if is_public(each)] == []


def test_special_purpose_addresses_that_all_reach_are() -> None:
    assert [each for block in REACHABLE for each in ends(block) if not is_public(each)] == []


def test_the_addresses_beside_such_blocks_are() -> None:
    assert [each for each in BESIDE if not is_public(each)] == []


FORMS = {
    "mapped": "::ffff:{}",
    "NAT64": "64:ff9b::{}",
    "ISATAP, local": "2600:1::5efe:{}",
    "ISATAP, universal": "2600:1::200:5efe:{}",
    "ISATAP, group": "2600:1::300:5efe:{}",
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_form_that_stands_for_an_ipv4_address_is_as_public_as_that_is(form: str) -> None:
    assert is_public(form.format("8.8.8.8"))
    for private in ("127.0.0.1", "10.0.0.1", "169.254.169.254", "100.64.0.1", "192.0.0.8", "224.0.0.1"):
        assert not is_public(form.format(private))


TUNNELLED = (
    *("2002:808:808::1", "2002:7f00:1::1", "2001:0:808:808::f7f7:f7f7", "fe80::5efe:8.8.8.8"),
    *("fd00::5efe:8.8.8.8", "::8.8.8.8", "::ffff:0:8.8.8.8", "64:ff9b:1::8.8.8.8"),
)


def test_tunnels_and_translations_of_a_network_of_its_own_are_not() -> None:
    assert [each for each in TUNNELLED if is_public(each)] == []


def test_a_zone_does_not_hide_an_address() -> None:
    assert [each for each in ("fe80::1%eth0", "fe80::1%25", "::1%lo") if is_public(each)] == []


def test_what_is_public() -> None:
    assert all(map(is_public, ("8.8.8.8", "2001:4860:4860::8888", "2a00:1450::1")))


@pytest.mark.parametrize("text", ["", "x", "0x7f.1", "127.1", "1.2.3.4.5", "2001:::1"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="address"):
        is_public(text)
