"""The two servers that the benchmarks are compared with start, tell their port and answer 204."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from support.transport import Client, get, post

ROOT = Path(__file__).parents[3]


@pytest.mark.process
@pytest.mark.parametrize("module", ["bench.targets.bare_204", "bench.targets.noop_server"])
async def test_answers_204_kept_alive_and_pipelined(module):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = await trio.lowlevel.open_process(
        [sys.executable, "-m", module, "127.0.0.1", "0"], cwd=ROOT, env=environment, stdout=subprocess.PIPE
    )
    try:
        with trio.fail_after(120):
            port = b""
            while not port.endswith(b"\n"):
                port += await process.stdout.receive_some()
            client = Client(await trio.open_tcp_stream("127.0.0.1", int(port)))
            await client.send(post(b"x" * 200) + get())
            assert [(await client.answer()).status for _ in range(2)] == [204, 204]
            await client.send(post(b"x" * 200))
            assert (await client.answer()).status == 204
            await client.close()
            process.send_signal(signal.SIGINT)
            assert await process.wait() == 0
    finally:
        process.kill()
        await process.stdout.aclose()
