"""Every face says which process serves the queue."""

import os
import socket

from .face import Face


async def test_on_a_file_it_is_this_process(face: Face) -> None:
    (one,) = await face.methods.processes()
    assert (one.here, one.silent, one.address, one.process) == (True, False, None, os.getpid())
    assert one.name == socket.gethostname()
    assert one.started_at <= one.heard_at
    assert one.last_batch_at is None or one.last_batch_at <= one.heard_at


async def test_it_says_when_it_changed_something(face: Face) -> None:
    await face.methods.produce("q", "x")
    (one,) = await face.methods.processes()
    assert one.last_batch_at is not None
