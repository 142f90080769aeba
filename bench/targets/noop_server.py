"""The no-op ceiling: forq's HTTP transport with a handler that answers 204 and has no queue behind it.

Usage: python -m bench.targets.noop_server [HOST] [PORT]; prints the port it listens on.
"""

import sys

import trio

from forq_trio.http.message import NO_CONTENT, Request, Response
from forq_trio.http.transport.listeners import open_listeners
from forq_trio.http.transport.server import Server


async def answer(request: Request) -> Response:
    return NO_CONTENT


def report(error: Exception) -> None:
    print(repr(error), file=sys.stderr)


async def main(host: str = "127.0.0.1", port: str = "0") -> None:
    server = Server(answer, await open_listeners(host, int(port)), on_error=report)
    print(server.ports[0], flush=True)
    await server.serve()


if __name__ == "__main__":
    try:
        trio.run(main, *sys.argv[1:])
    except* KeyboardInterrupt:
        print("stopped", file=sys.stderr)
