"""A real server for Spark's tests, which can be killed and come back at its address, and messages in and out of it."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import trustme

from forq_trio import ForqClient, NewMessage, batches
from forq_trio.client.sync_pool import Pool
from forq_trio.model.errors import QueueNotFound
from forq_trio.model.messages.export import ExportedMessage
from support.real_server import SECRET, RealServer, real_server

SETTINGS = {"FORQ_EVENTS": "on", "FORQ_HISTORY": "on"}


class Server:
    """A server that keeps its database and address from one process to the next. client: one for the tests.

    tls: with a certificate of an authority that only its file `ca` makes known.
    """

    def __init__(self, database: Path, *, tls: bool = False, **settings: str) -> None:
        self._database = database
        self.ca = database.with_name("ca.pem")
        self._scheme = "https" if tls else "http"
        self._settings = SETTINGS | settings | (_certified(self.ca) if tls else {})
        self._processes = ExitStack()
        self._process: RealServer | None = None
        self._address = "127.0.0.1:0"
        self.start()
        pool = Pool(self.url, self.ca.read_text() if tls else None)
        self.client = ForqClient(self.url, SECRET, retry_seconds=30, transport=pool)

    @property
    def url(self) -> str:
        return f"{self._scheme}://{self._address}"

    @property
    def options(self) -> dict[str, str]:
        """What the data source has to be told."""
        return {"url": self.url, "token": SECRET}

    def start(self) -> None:
        """Start it, at the address that it had."""
        self._process = self._processes.enter_context(
            real_server(self._database, self._address, **self._settings)
        )
        self._address = self._process.address

    def kill(self) -> None:
        """SIGKILL."""
        assert self._process is not None
        self._process.process.kill()
        self._processes.close()

    def send(self, queue: str, contents: Iterable[str], **options: object) -> None:
        """Send messages, a thousand in a request."""
        for batch in batches(NewMessage(content, **options) for content in contents):
            self.client.produce_many(queue, batch)

    def messages(self, queue: str) -> Iterator[ExportedMessage]:
        """What the queue holds, in the order in which it was sent; nothing where nobody has used it."""
        after: int | None = 0
        while after is not None:
            try:
                page = self.client.export(queue, after=after)
            except QueueNotFound:
                return
            yield from page.messages
            after = page.next

    def contents(self, queue: str) -> list[str]:
        return [message.content for message in self.messages(queue)]

    def close(self) -> None:
        self.client.close()
        self._processes.close()


def _certified(ca: Path) -> dict[str, str]:
    """Settings of a server with TLS, whose authority is in a file."""
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    certificate, key = ca.with_name("cert.pem"), ca.with_name("key.pem")
    issued.cert_chain_pems[0].write_to_path(certificate)
    issued.private_key_pem.write_to_path(key)
    authority.cert_pem.write_to_path(ca)
    return {"FORQ_TLS_CERT": str(certificate), "FORQ_TLS_KEY": str(key)}


@contextmanager
def running(database: Path, *, tls: bool = False, **settings: str) -> Iterator[Server]:
    """A server that is killed at the end."""
    server = Server(database, tls=tls, **settings)
    try:
        yield server
    finally:
        server.close()
