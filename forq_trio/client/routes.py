"""The ways of both clients to a server: directly or through a proxy, with TLS or without."""

from typing import TYPE_CHECKING, NamedTuple

from forq_trio.client.address import ServerAddress
from forq_trio.client.http1 import basic
from forq_trio.client.proxies import Proxy

if TYPE_CHECKING:
    from ssl import SSLContext


class ServerRoute(NamedTuple):
    """The way to a server. context: of TLS, for the server and for a proxy; None where neither has it."""

    address: ServerAddress
    proxy: Proxy | None
    context: "SSLContext | None"


def route_to(address: ServerAddress, proxy: Proxy | None, authorities: str | None) -> ServerRoute:
    """The way to a server. authorities: whom to trust, in PEM; None: as the environment says. Raises OSError."""
    if not (address.tls or (proxy is not None and proxy.address.tls)):
        return ServerRoute(address, proxy, None)
    from forq_trio.client.tls import context_for  # see there

    return ServerRoute(address, proxy, context_for(authorities))


def proxy_headers(proxy: Proxy) -> tuple[tuple[str, str], ...]:
    """What a proxy has to be told beside a request."""
    return (("Proxy-Authorization", basic(proxy.address)),) if proxy.address.credentials else ()
