"""A server that does what a test says, byte by byte: for what a sound server never does."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue

from support.processes import WAIT_SECONDS_MAX

Connection = Callable[["Peer"], None]


class Peer:
    """The server's end of one connection."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        sock.settimeout(WAIT_SECONDS_MAX)
        self._unread = b""

    def request(self) -> bytes:
        """The next whole request; b"" when there are no more."""
        while b"\r\n\r\n" not in self._unread:
            if not self._more():
                return b""
        head, _, rest = self._unread.partition(b"\r\n\r\n")
        lengths = [line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
        length = int(lengths[0].partition(b":")[2]) if lengths else 0
        while len(rest) < length:
            assert self._more(), "a body that ends early"
            rest = self._unread.partition(b"\r\n\r\n")[2]
        self._unread = rest[length:]
        return head + b"\r\n\r\n" + rest[:length]

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def receive(self) -> bytes:
        try:
            return self.socket.recv(65_536)
        except ConnectionError:
            return b""

    def _more(self) -> bool:
        data = self.receive()
        self._unread += data
        return bool(data)


class Script:
    """url: of the server. requests: as they came, of all connections; ended: the number of each that was served to its
    end.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.requests: SimpleQueue[tuple[int, bytes]] = SimpleQueue()
        self.ended: SimpleQueue[int] = SimpleQueue()


@contextmanager
def scripted(serve: Callable[[Peer, int, Script], None]) -> Iterator[Script]:
    """Serve each connection in a thread of its own by calling `serve` with its peer, its number, and the script."""
    with socket.create_server(("127.0.0.1", 0), backlog=256) as listener:
        script = Script(f"http://127.0.0.1:{listener.getsockname()[1]}")
        threads: list[threading.Thread] = []

        def accept() -> None:
            while True:
                try:
                    sock, _ = listener.accept()
                except OSError:
                    return
                threads.append(threading.Thread(target=run, args=(sock, len(threads))))
                threads[-1].start()

        def run(sock: socket.socket, number: int) -> None:
            with sock:
                serve(Peer(sock), number, script)
            script.ended.put(number)

        accepting = threading.Thread(target=accept)
        accepting.start()
        try:
            yield script
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            accepting.join()
            for thread in threads:
                thread.join(WAIT_SECONDS_MAX)
                assert not thread.is_alive(), "a client left its connection open"


def answering(*answers: bytes) -> Callable[[Peer, int, Script], None]:
    """On every connection: one answer after another, the last one for ever; b"" closes it instead."""

    def serve(peer: Peer, number: int, script: Script) -> None:
        left = list(answers)
        while request := peer.request():
            script.requests.put((number, request))
            answer = left.pop(0) if len(left) > 1 else left[0]
            if not answer:
                return
            try:
                peer.send(answer)
            except ConnectionError:
                return

    return serve
