"""Where a server listens: what an address without a host means."""

from ipaddress import ip_address

from forq_trio.http.transport.listeners import open_listeners


async def test_without_a_host_every_interface_listens() -> None:
    (listener,) = await open_listeners("", 0)
    with listener:
        assert ip_address(listener.getsockname()[0]).is_unspecified
