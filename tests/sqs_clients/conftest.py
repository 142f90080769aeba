"""A real server, and how clients of Amazon SQS find it: by the variables of docs/sqs.md."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import boto3
import pytest

from support.real_server import SECRET, RealServer, real_server
from support.sqs_clients import Said


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RealServer]:
    with real_server(tmp_path / "forq.db") as server:
        yield server


@pytest.fixture
def variables(server: RealServer) -> Mapping[str, str]:
    """Those of docs/sqs.md, with the server's own key; that of the region has another name in Go and Java."""
    return {
        "AWS_ACCESS_KEY_ID": "forq",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_ENDPOINT_URL_SQS": server.url,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_REGION": "us-east-1",
    }


@pytest.fixture
def here(variables: Mapping[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The variables, in this process, too."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def sqs(here: None) -> Iterator[Any]:
    """boto3's client."""
    client = boto3.client("sqs")
    yield client
    client.close()


@pytest.fixture
def said(sqs: Any) -> Said:
    return Said(sqs)
