"""A fake server for each test, and its URL."""

from collections.abc import Iterator

import pytest

from client.fake_forq import FakeForq, serving


@pytest.fixture
def fake() -> FakeForq:
    return FakeForq()


@pytest.fixture
def url(fake: FakeForq) -> Iterator[str]:
    with serving(fake) as url:
        yield url
