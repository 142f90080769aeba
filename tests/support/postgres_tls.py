"""A PostgreSQL server at 127.0.0.1 with TLS, certificates of its own, and roles with passwords."""

import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import LiteralString
from urllib.parse import quote

import psycopg
import trustme
from psycopg import sql

from support.needs import lacks
from support.postgres import SYSTEM_USER, Postgres, all_programs

HOST = "db.example"
"""Whom the certificate is for."""
ACCESS = "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n"


class TlsPostgres:
    """authority: the file of who signed its certificate; other: of somebody else."""

    def __init__(self, server: Postgres, port: int, authority: Path, other: Path) -> None:
        self.server = server
        self.port = port
        self.authority = authority
        self.other = other

    def local_url(self, database: str = "postgres") -> str:
        """By the Unix socket, without a password and without TLS."""
        return f"{self.server.url(database)}&port={self.port}"

    def url(self, user: str, password: str, database: str = "queue", host: str = HOST, **more: str) -> str:
        """By TCP. more: further parameters; the address is 127.0.0.1 whatever the host is called."""
        options = {"hostaddr": "127.0.0.1", "port": str(self.port)} | more
        query = "&".join(f"{name}={quote(value, safe='')}" for name, value in options.items())
        return f"postgresql://{quote(user, safe='')}:{quote(password, safe='')}@{host}/{database}?{query}"

    def make_role(self, name: str, password: str) -> None:
        """A role that may connect with this password, and nothing else."""
        with psycopg.connect(self.local_url(), autocommit=True) as connection:
            connection.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(sql.Identifier(name)))
            role, word = sql.Identifier(name), sql.Literal(password)
            connection.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(role, word))

    def set_password(self, name: str, password: str) -> None:
        with psycopg.connect(self.local_url(), autocommit=True) as connection:
            role, word = sql.Identifier(name), sql.Literal(password)
            connection.execute(sql.SQL("ALTER ROLE {} PASSWORD {}").format(role, word))

    def execute(self, statement: LiteralString, database: str = "postgres") -> list[tuple[object, ...]]:
        with psycopg.connect(self.local_url(database), autocommit=True) as connection:
            done = connection.execute(statement)
            return done.fetchall() if done.description else []


def _programs_with_tls() -> Path:
    """The directory of a PostgreSQL that was built with TLS: one that calls OpenSSL."""
    for _, bin in sorted(all_programs().items()):
        if b"SSL_CTX_new" in (bin / "postgres").read_bytes():
            return bin
    lacks("PostgreSQL with TLS", "a build with OpenSSL (apt-get install postgresql)", installed=False)


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@contextmanager
def tls_server(*, tls: bool = True) -> Iterator[TlsPostgres]:
    """Start one. tls: False for a server that takes no TLS."""
    bin = _programs_with_tls()
    with tempfile.TemporaryDirectory(prefix="forq-tls-", ignore_cleanup_errors=True) as name:
        directory = Path(name)
        ours, other = trustme.CA(), trustme.CA()
        authority, stranger = directory / "ca.pem", directory / "other.pem"
        ours.cert_pem.write_to_path(authority)
        other.cert_pem.write_to_path(stranger)
        issued = ours.issue_cert(HOST)
        certificate, key = directory / "server.pem", directory / "server.key"
        issued.cert_chain_pems[0].write_to_path(certificate)
        issued.private_key_pem.write_to_path(key)
        key.chmod(0o600)
        if SYSTEM_USER is not None:
            shutil.chown(key, SYSTEM_USER)
        port = _free_port()
        files = {"ssl": "on", "ssl_cert_file": str(certificate), "ssl_key_file": str(key)} if tls else {}
        settings = {"listen_addresses": "127.0.0.1", "port": str(port)} | files
        server = Postgres(bin, directory, None, **settings)
        try:
            made = TlsPostgres(server, port, authority, stranger)
            (directory / "data/pg_hba.conf").write_text(ACCESS, encoding="utf-8")
            made.execute("SELECT pg_reload_conf()")
            made.execute("CREATE DATABASE queue")
            yield made
        finally:
            server.stop()
