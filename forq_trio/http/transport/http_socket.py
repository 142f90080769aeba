"""A client's socket on which HTTP/1.1 or HTTP/2 is spoken, as the client begins: HTTP/2 begins with a preface."""

import socket

from forq_trio.http.transport.client_socket import ClientSocket
from forq_trio.http.transport.connections import OpenConnections
from forq_trio.http.transport.http1_connection import Http1Connection
from forq_trio.http.transport.http2.connection import Http2Connection
from forq_trio.http.transport.http2.frames import PREFACE
from forq_trio.http.transport.services import Services


class HttpSocket(ClientSocket):
    """Without TLS."""

    __slots__ = ("_start",)

    def __init__(
        self,
        services: Services,
        connected: socket.socket,
        client: str,
        connections: OpenConnections[ClientSocket],
    ) -> None:
        super().__init__(services, connected, client, connections)
        self._start = b""  # too few bytes to tell the protocol

    def _detect(self, data: bytes) -> None:
        config = self._services.config
        if not self._start:
            self.deadline = self._services.now() + config.header_seconds
        start, self._start = self._start + data, b""
        if not config.http2 or not PREFACE.startswith(start[: len(PREFACE)]):
            self._speak(Http1Connection, start)
        elif len(start) >= len(PREFACE):
            self._speak(Http2Connection, start[len(PREFACE) :])
        else:
            self._start = start

    def _end_stream(self) -> None:
        """Nothing to say."""
