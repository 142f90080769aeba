"""One entry that cannot be stored fails alone, through every face and on every engine; the others are stored."""

from collections.abc import AsyncIterator

import pytest

from forq_trio import NewMessage, Offered, Offering, OutboxPosition, Produced, RelayedMessage

from .face import Face
from .running import KINDS, open_face

INVALID = "bad_request.body.invalid"
WITH_ZERO = [
    {"content": "a\0b"},
    {"content": "x", "attributes": {"k": "\0"}},
    {"content": "x", "attributes": {"\0": "v"}},
    {"content": "x", "group": "\0"},
]
"""SQLite stores the character, PostgreSQL cannot."""
INVALID_EVERYWHERE = {"content": "x", "attributes": {"": "v"}}


@pytest.fixture(params=["sqlite", pytest.param("postgres", id="postgres")])
def engine(request) -> str:
    return request.param


@pytest.fixture
def url(engine, request, tmp_path) -> str:
    return (
        request.getfixturevalue("database") if engine == "postgres" else f"sqlite:///{tmp_path / 'forq.db'}"
    )


@pytest.fixture(params=KINDS)
async def face(request, url) -> AsyncIterator[Face]:
    async with open_face(request.param, url) as face:
        yield face


@pytest.fixture
def stored(engine) -> list[bool]:
    """Which of the entries are stored: two that are valid, around those with the character and an invalid one."""
    return [True, *[engine == "sqlite"] * len(WITH_ZERO), False, True]


ENTRIES = [{"content": "before"}, *WITH_ZERO, INVALID_EVERYWHERE, {"content": "after"}]


async def contents(face: Face) -> list[str]:
    return sorted([each.content for each in await face.receive(most=100)])


def expected(stored: list[bool]) -> list[str]:
    return sorted([str(each["content"]) for each, there in zip(ENTRIES, stored, strict=True) if there])


async def test_of_a_batch(face: Face, stored) -> None:
    results = await face.send_many([NewMessage(**each) for each in ENTRIES])
    assert [isinstance(each, Produced) for each in results] == stored
    assert await contents(face) == expected(stored)


async def test_of_offers_by_key(face: Face, stored) -> None:
    offers = [Offering(key=str(index), **each) for index, each in enumerate(ENTRIES)]
    results = await face.methods.offer_many("q", offers)
    assert [isinstance(each, Offered) for each in results] == stored
    assert await contents(face) == expected(stored)


async def test_of_a_page_of_an_outbox(face: Face, stored) -> None:
    """It is named, and what is before it stored: a relay sets it aside and goes on behind it."""
    left = [RelayedMessage(id, "q", NewMessage(**each)) for id, each in enumerate(ENTRIES, 1)]
    refused, position = [], 0
    while left:
        outcome = await face.methods.relay_outbox("o", position, left)
        position = outcome.position
        done = position if outcome.refused is None else outcome.refused.id
        if outcome.refused is not None:
            assert outcome.refused.code.startswith("bad_request.")
            refused.append(outcome.refused.id)
        left = [each for each in left if each.id > done]
    assert refused == [id for id, there in enumerate(stored, 1) if not there]
    assert await face.methods.outbox_position("o") == OutboxPosition(len(ENTRIES))
    assert await contents(face) == expected(stored)
