"""What tests of HTTP over TLS need."""

import ssl

import pytest
import trustme


@pytest.fixture(scope="module")
def certificates() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Of a server, which offers both protocols, and of a client."""
    authority = trustme.CA()
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority.issue_cert("127.0.0.1").configure_cert(server)
    server.set_alpn_protocols(["h2", "http/1.1"])
    authority.configure_trust(client)
    return server, client
