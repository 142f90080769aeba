"""Whom the clients trust: with TLS those the system trusts, and nobody is looked up without it."""

import ssl

import pytest
import trustme

from client.fake_forq import SECRET
from forq_trio.client import AsyncForqClient, ForqClient, ForqUnreachable
from support.real_server import real_server


def test_without_tls_no_certificate_authorities_are_loaded(url: str, monkeypatch):
    """They take longer than a request, and each command of the CLI would wait for them."""

    def load(*arguments: object, **more: object) -> ssl.SSLContext:
        raise AssertionError("certificate authorities are loaded for an address without TLS")

    monkeypatch.setattr(ssl, "create_default_context", load)
    monkeypatch.setattr(ssl.SSLContext, "load_default_certs", load)
    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", load)
    with ForqClient(url, SECRET) as client:
        client.produce("q", "hello")
    with pytest.raises(AssertionError):  # this test would see it
        ForqClient("https://forq.example", SECRET)


@pytest.mark.process
async def test_with_tls_a_server_needs_a_certificate_of_somebody_trusted(tmp_path, monkeypatch):
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    certificate, key, trusted = tmp_path / "cert.pem", tmp_path / "key.pem", tmp_path / "ca.pem"
    issued.cert_chain_pems[0].write_to_path(certificate)
    issued.private_key_pem.write_to_path(key)
    authority.cert_pem.write_to_path(trusted)
    files = {"FORQ_TLS_CERT": str(certificate), "FORQ_TLS_KEY": str(key)}
    with real_server(tmp_path / "forq.db", **files) as server:
        url = f"https://{server.address}"
        with ForqClient(url, SECRET, retry_seconds=0) as client, pytest.raises(ForqUnreachable):
            client.produce("q", "hello")
        monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
        with ForqClient(url, SECRET) as client:
            produced = client.produce("q", "hello")
        async with AsyncForqClient(url, SECRET) as client:
            (delivery,) = await client.receive("q", wait_ms=0)
        assert delivery.id == produced.id
