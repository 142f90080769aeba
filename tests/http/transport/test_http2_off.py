"""FORQ_H2C=off in the whole server: neither the preface nor TLS leads to HTTP/2."""

import socket
import ssl

import pytest
import trustme

from support.real_server import real_server


@pytest.fixture
def pair(tmp_path):
    issued = trustme.CA().issue_cert("127.0.0.1")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    issued.cert_chain_pems[0].write_to_path(str(cert))
    issued.private_key_pem.write_to_path(str(key))
    return {"FORQ_TLS_CERT": str(cert), "FORQ_TLS_KEY": str(key)}


@pytest.mark.parametrize(
    ("h2c", "chosen"), [("off", "http/1.1"), pytest.param("on", "h2", marks=pytest.mark.tier2)]
)
def test_the_protocol_that_tls_negotiates(tmp_path, pair, h2c: str, chosen: str):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2", "http/1.1"])
    with real_server(tmp_path / "forq.db", FORQ_H2C=h2c, **pair) as server:
        host, _, port = server.address.rpartition(":")
        with socket.create_connection((host, int(port))) as plain, context.wrap_socket(plain) as secured:
            assert secured.selected_alpn_protocol() == chosen
