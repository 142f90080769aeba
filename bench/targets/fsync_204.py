"""The yardstick of the soak: the least that a durable server can do. Overwrites 4 KiB, fdatasync, then answers 204.

How long that takes shows how fast the machine and its disk are at the moment, independent of any queue.
Usage: python bench/fsync_204.py DIRECTORY [HOST] [PORT]; prints the port it listens on.
"""

import os
import sys
import tempfile
from functools import partial

import httptools
import trio

from bench.targets.bare_204 import ANSWER, RECEIVE_BYTES, RequestCounter

BLOCK = bytes(4_096)


async def connection(file: int, stream: trio.SocketStream) -> None:
    requests = RequestCounter()
    parser = httptools.HttpRequestParser(requests)
    async with stream:
        while data := await stream.receive_some(RECEIVE_BYTES):
            parser.feed_data(data)
            while requests.complete:
                requests.complete -= 1
                os.pwrite(file, BLOCK, 0)
                os.fdatasync(file)
                await stream.send_all(ANSWER)


async def main(directory: str, host: str = "127.0.0.1", port: str = "0") -> None:
    with tempfile.TemporaryFile(dir=directory, buffering=0) as file:
        async with trio.open_nursery() as nursery:
            serve = partial(trio.serve_tcp, partial(connection, file.fileno()), int(port), host=host)
            listeners = await nursery.start(serve)
            print(listeners[0].socket.getsockname()[1], flush=True)


if __name__ == "__main__":
    try:
        trio.run(main, *sys.argv[1:])
    except* KeyboardInterrupt:
        print("stopped", file=sys.stderr)
