"""One real server for the tests of this directory, and queues on it that no other test uses."""

from collections.abc import Iterator
from itertools import count

import httpx
import pytest

from support.real_server import RealServer, real_server

from .raw import KEY, Queue

_numbers = count()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    with real_server(tmp_path_factory.mktemp("hostile") / "forq.db") as server:
        yield server
        assert server.stop() == 0


@pytest.fixture
def port(server: RealServer) -> int:
    return int(server.address.rpartition(":")[2])


@pytest.fixture
def queue(server: RealServer) -> Iterator[Queue]:
    with httpx.Client(headers=KEY, timeout=120, verify=False) as client:
        yield Queue(server.url, f"q{next(_numbers)}", client)
