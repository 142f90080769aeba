"""A real server, and Amazon's own client for Python."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import boto3
import httpx
import pytest
from botocore.config import Config

from support.real_server import SECRET, RealServer, real_server

from .raw import RawClient

ROOT_KEY = ("forq", SECRET)
METRICS_SECRET = "what-a-scraper-presents-as-its-key"
_numbers = itertools.count()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    metrics = {"FORQ_METRICS_ENABLED": "true", "FORQ_METRICS_AUTH_SECRET": METRICS_SECRET}
    with real_server(tmp_path_factory.mktemp("sqs") / "forq.db", **metrics) as server:
        yield server


Connect = Callable[..., Any]
"""Makes a client: of a key (id and secret), in a region."""


@pytest.fixture(scope="session")
def connect(server: RealServer) -> Iterator[Connect]:
    with ExitStack() as clients:

        def client(key: tuple[str, str] = ROOT_KEY, region: str = "us-east-1", **more: Any) -> Any:
            made = boto3.client(
                "sqs",
                endpoint_url=server.url,
                region_name=region,
                aws_access_key_id=key[0],
                aws_secret_access_key=key[1],
                config=Config(retries={"max_attempts": 0}, **more),
            )
            clients.callback(made.close)
            return made

        yield client


@pytest.fixture
def api(server: RealServer) -> Iterator[httpx.Client]:
    """The REST API of the same server."""
    with httpx.Client(base_url=server.url, headers={"X-API-Key": SECRET}, verify=False) as client:
        yield client


@pytest.fixture(scope="session")
def sqs(connect: Connect) -> Any:
    """A client with all rights."""
    return connect()


@pytest.fixture
def raw(server: RealServer) -> Iterator[RawClient]:
    """Sends any body, signed."""
    client = RawClient(server.url, ROOT_KEY)
    yield client
    client.close()


@pytest.fixture
def token(api: httpx.Client, name: str) -> Callable[..., tuple[str, str]]:
    """Makes a token; returns its pair of keys."""

    def make(*scopes: str, queues: str = "*") -> tuple[str, str]:
        body = {"name": f"{name}-{'-'.join(scopes)}", "scopes": scopes, "queues": queues}
        made = api.post("/api/v1/tokens", json=body).json()
        return made["accessKeyId"], made["secretAccessKey"]

    return make


@pytest.fixture
def name() -> str:
    """A name that no other test uses."""
    return f"q{next(_numbers)}"


@pytest.fixture
def url(sqs: Any, name: str) -> str:
    """A standard queue."""
    return str(sqs.create_queue(QueueName=name)["QueueUrl"])


@pytest.fixture
def fifo(sqs: Any, name: str) -> str:
    """A FIFO queue that knows duplicates by their content."""
    attributes = {"FifoQueue": "true", "ContentBasedDeduplication": "true"}
    return str(sqs.create_queue(QueueName=f"{name}.fifo", Attributes=attributes)["QueueUrl"])
