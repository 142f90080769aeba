"""The yardstick of every ratio in docs/benchmarks.md: trio and httptools, nothing else.

Answers 204 to any complete request, with keep-alive and pipelining, written as one naturally would.
Usage: python bench/bare_204.py [HOST] [PORT]; prints the port it listens on.
"""

import sys
from functools import partial

import httptools
import trio

ANSWER = b"HTTP/1.1 204 No Content\r\n\r\n"
RECEIVE_BYTES = 65536


class RequestCounter:
    """Parser callbacks: counts the requests that are complete and not yet answered."""

    def __init__(self) -> None:
        self.complete = 0
        self.url = b""
        self.headers: dict[bytes, bytes] = {}
        self.body = b""

    def on_message_begin(self) -> None:
        self.url = b""
        self.headers = {}
        self.body = b""

    def on_url(self, url: bytes) -> None:
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.lower()] = value

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        self.complete += 1


async def connection(stream: trio.SocketStream) -> None:
    requests = RequestCounter()
    parser = httptools.HttpRequestParser(requests)
    try:
        while data := await stream.receive_some(RECEIVE_BYTES):
            parser.feed_data(data)
            while requests.complete:
                requests.complete -= 1
                await stream.send_all(ANSWER)
                if not parser.should_keep_alive():
                    return
    except (httptools.HttpParserError, trio.BrokenResourceError):
        return
    finally:
        await stream.aclose()


async def main(host: str = "127.0.0.1", port: str = "0") -> None:
    async with trio.open_nursery() as nursery:
        serve = partial(trio.serve_tcp, connection, int(port), host=host, backlog=1024)
        listeners = await nursery.start(serve)
        print(listeners[0].socket.getsockname()[1], flush=True)


if __name__ == "__main__":
    try:
        trio.run(main, *sys.argv[1:])
    except* KeyboardInterrupt:
        print("stopped", file=sys.stderr)
