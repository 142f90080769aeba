"""A client's socket under TLS: what arrives is decrypted in memory, and what is sent encrypted there."""

import socket
import ssl
from contextlib import suppress

from forq_trio.http.transport.client_socket import ClientSocket
from forq_trio.http.transport.connections import OpenConnections
from forq_trio.http.transport.http1_connection import Http1Connection
from forq_trio.http.transport.http2.frames import PREFACE
from forq_trio.http.transport.http_socket import HttpSocket
from forq_trio.http.transport.poller import READ, Later
from forq_trio.http.transport.services import Services
from forq_trio.model import limits

RECORD_HEAD_BYTES = 5  # of TLS: kind, version, and in the last two the length of what follows
RECORD_KINDS = range(20, 24)
RECORD_BYTES_MAX = 18 * limits.KIB  # 16 KiB, and what encryption adds
RECORDS_AT_ONCE_MAX = 16  # that are decrypted in one pass of the loop


class TlsSocket(HttpSocket):
    """ssl_context: must offer h2 and http/1.1 by ALPN for HTTP/2 to be chosen.

    No more is received before all that has come is decrypted, except the rest of a record.
    """

    __slots__ = (
        "_client_ended",
        "_encrypted",
        "_handshake_done",
        "_incoming",
        "_is_decrypting",
        "_outgoing",
        "_portion_bytes",
        "_record",
        "_tls",
    )

    def __init__(
        self,
        services: Services,
        connected: socket.socket,
        client: str,
        connections: OpenConnections[ClientSocket],
        ssl_context: ssl.SSLContext,
    ) -> None:
        super().__init__(services, connected, client, connections)
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = ssl_context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._handshake_done = False
        self._record = bytearray()  # what has come of the handshake's next record
        self._client_ended = False  # its side, as far as that is decrypted
        self._is_decrypting = False  # the rest of what has come will be decrypted in a later pass of the loop
        self._encrypted = memoryview(b"")  # a portion to send that the socket has not taken yet
        self._portion_bytes = 0  # its length before it was encrypted
        self.deadline = services.now() + services.config.header_seconds

    def finish_idle(self) -> None:
        if not self._is_decrypting:
            super().finish_idle()

    # Receiving

    def _take(self, data: bytes) -> None:
        if not self._handshake_done:
            self._take_record(data)
            return
        if data:
            self._incoming.write(data)
        else:
            self._incoming.write_eof()
        self._decrypt()

    def _take_record(self, data: bytes) -> None:
        """Go on with the handshake once a record is whole.

        To answer it may take a millisecond, so one connection does that in each pass of the loop.
        """
        if not data:
            self.close()
            return
        self._record += data
        whole = self._whole_bytes()
        if not whole:
            return
        self._incoming.write(self._record[:whole])
        del self._record[:whole]
        self._wait_for(self._events & ~READ)
        self.later(Later.HANDSHAKE, self._shake_hands)

    def _whole_bytes(self) -> int:
        """How many bytes of what has come are whole records. What cannot be one is for the handshake to refuse."""
        whole = 0
        while len(self._record) >= whole + RECORD_HEAD_BYTES:
            length = RECORD_HEAD_BYTES + int.from_bytes(self._record[whole + 3 : whole + RECORD_HEAD_BYTES])
            if self._record[whole] not in RECORD_KINDS or length > RECORD_BYTES_MAX:
                return len(self._record)
            if len(self._record) < whole + length:
                break
            whole += length
        return whole

    def _shake_hands(self) -> None:
        if self.peer_closed():  # cheaper than an answer
            self.close()
            return
        try:
            self._tls.do_handshake()
            self._handshake_done = True
            self._incoming.write(self._record)
            self._record.clear()
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError:
            self.close()  # which sends the alert
        self._flush_handshake()
        if self._handshake_done and not self.is_closed:
            self.deadline = self._services.now() + self._services.config.idle_seconds
            if self._tls.selected_alpn_protocol() != "h2":
                self._speak(Http1Connection, b"")
        if not self.is_closed:
            self.receive_more()

    def _flush_handshake(self) -> None:
        made = self._outgoing.read() if not self.is_closed else b""
        if made and super()._send_now(made) < len(made):
            self.close()  # a client that does not read even this

    def _detect(self, data: bytes) -> None:
        """The client has chosen HTTP/2: it may speak nothing else."""
        start = (self._start + data)[: len(PREFACE)]
        if PREFACE.startswith(start):
            super()._detect(data)
        else:
            self.close()

    def _decrypt(self) -> None:
        """Decrypt some of what has arrived, if the protocol wants it."""
        self._is_decrypting = False
        if self._protocol is not None and not self._protocol.wants_bytes:
            return
        data = b""
        try:
            for _ in range(RECORDS_AT_ONCE_MAX):
                record = self._tls.read(self._services.config.receive_chunk_bytes)
                if not record:
                    self._client_ended = True
                    break
                data += record
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError:  # also an end without a good-bye
            self._client_ended = True
        if data or self._client_ended:
            super()._take(data)
            if not self.is_closed and (self._protocol is None or self._protocol.wants_bytes):
                self.receive_more()
        else:
            super().receive_more()

    def receive_more(self) -> None:
        """First what has come already is decrypted, in a later pass."""
        rest = self._tls.pending() or self._incoming.pending or self._client_ended
        if not self._handshake_done or not rest:
            super().receive_more()
            return
        self._wait_for(self._events & ~READ)
        if not self._is_decrypting:
            self._is_decrypting = True
            self.later(Later.PORTION, self._decrypt)

    # Sending

    def _send_now(self, data: bytes | memoryview) -> int:
        """Only what the socket has taken whole counts as sent."""
        if not self._encrypted:
            portion = memoryview(data)[: limits.SEND_PORTION_BYTES]  # because TLS copies what it is given
            self._tls.write(portion)
            self._encrypted = memoryview(self._outgoing.read())
            self._portion_bytes = len(portion)
        self._encrypted = self._encrypted[super()._send_now(self._encrypted) :]
        return 0 if self._encrypted else self._portion_bytes

    def send_eof(self) -> None:
        """Nothing to do: a client of TLS may take this for an attack."""

    def _end_stream(self) -> None:
        if self._encrypted:  # in the middle of a record nothing else can be said
            return
        if self._handshake_done:
            with suppress(ssl.SSLError):
                self._tls.unwrap()
        with suppress(OSError):
            self._socket.send(self._outgoing.read())
