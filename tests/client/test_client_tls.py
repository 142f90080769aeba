"""Whom the clients trust: with TLS those the system trusts, and nobody is looked up without it."""

import ssl

import pytest
import trustme

from forq_trio import AsyncForqClient, ForqClient, ForqUnreachable
from support.in_process import in_process_server
from support.real_server import SECRET


def test_without_tls_no_certificate_authorities_are_loaded(url: str, queue: str, monkeypatch):
    """They take longer than a request, and each command of the CLI would wait for them."""

    def load(*arguments: object, **more: object) -> ssl.SSLContext:
        raise AssertionError("certificate authorities are loaded for an address without TLS")

    monkeypatch.setattr(ssl, "create_default_context", load)
    monkeypatch.setattr(ssl.SSLContext, "load_default_certs", load)
    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", load)
    with ForqClient(url, SECRET) as client:
        client.produce(queue, "hello")
    with pytest.raises(AssertionError):  # this test would see it
        ForqClient("https://forq.example", SECRET)


async def test_with_tls_a_server_needs_a_certificate_of_somebody_trusted(tmp_path, monkeypatch):
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    trusted = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(trusted)
    with in_process_server(ssl_context=context) as url:
        with ForqClient(url, SECRET, retry_seconds=0) as client, pytest.raises(ForqUnreachable):
            client.produce("q", "hello")
        monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
        with ForqClient(url, SECRET) as client:
            produced = client.produce("q", "hello")
        async with AsyncForqClient(url, SECRET) as client:
            (delivery,) = await client.receive("q", wait_ms=0)
        assert delivery.id == produced.id


@pytest.mark.parametrize("useless", ["/does/not/exist", __file__])
def test_a_file_without_certificates_is_named(monkeypatch, useless):
    monkeypatch.setenv("SSL_CERT_FILE", useless)
    for client in (ForqClient, AsyncForqClient):
        with pytest.raises(OSError, match="SSL_CERT_FILE: ") as raised:
            client("https://forq.example", SECRET)
        assert useless in str(raised.value)
