"""One entry that cannot be stored fails alone, through every face and on every engine; the others are stored."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from forq_trio import NewMessage, Offered, Offering, OutboxPosition, Produced, RelayedMessage
from forq_trio.model import limits

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


async def relay(face: Face, position: int, left: list[RelayedMessage]) -> list[int]:
    """Relay these messages as a relay does, behind each that is refused; returns the ids of those."""
    refused = []
    while left:
        outcome = await face.methods.relay_outbox("o", position, left)
        position = outcome.position
        done = position if outcome.refused is None else outcome.refused.id
        if outcome.refused is not None:
            assert outcome.refused.code.startswith("bad_request.")
            refused.append(outcome.refused.id)
        left = [each for each in left if each.id > done]
    return refused


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
    page = [RelayedMessage(id, "q", NewMessage(**each)) for id, each in enumerate(ENTRIES, 1)]
    refused = await relay(face, 0, page)
    assert refused == [id for id, there in enumerate(stored, 1) if not there]
    assert await face.methods.outbox_position("o") == OutboxPosition(len(ENTRIES))
    assert await contents(face) == expected(stored)


async def test_of_random_batches(face: Face, engine, rng) -> None:
    """Whatever is in a batch, and in whichever order: each entry is stored or refused as it would be alone."""
    kinds: list[tuple[dict[str, Any], bool]] = [
        ({"content": "x"}, True),
        ({"content": "größe", "attributes": {"k": "%s {}"}}, True),
        *((each, engine == "sqlite") for each in WITH_ZERO),
        (INVALID_EVERYWHERE, False),
        ({"content": "x" * (limits.CONTENT_BYTES_MAX + 1)}, False),
        ({"content": "x", "priority": 5_000}, False),
        ({"content": "x", "process_after": 1}, False),
        ({"content": "x", "dead_letter_queue": "no name"}, False),
    ]
    position = sent = 0
    for _ in range(10):
        drawn = rng.choices(kinds, k=rng.randint(1, 12))
        kept = [is_kept for _, is_kept in drawn]
        sent += sum(kept)
        match rng.choice(("batch", "offers", "outbox")):
            case "batch":
                results = await face.send_many([NewMessage(**each) for each, _ in drawn])
                assert [isinstance(each, Produced) for each in results] == kept
            case "offers":
                offers = [Offering(key=str(rng.random()), **each) for each, _ in drawn]
                offered = await face.methods.offer_many("q", offers)
                assert [isinstance(each, Offered) for each in offered] == kept
            case "outbox":
                first = position + 1
                left = [
                    RelayedMessage(id, "q", NewMessage(**each)) for id, (each, _) in enumerate(drawn, first)
                ]
                refused = await relay(face, position, left)
                assert refused == [each.id for each, is_kept in zip(left, kept, strict=True) if not is_kept]
                position = (await face.methods.outbox_position("o")).position
                assert position == max(
                    [first - 1, *(each.id for each, is_kept in zip(left, kept, strict=True) if is_kept)]
                )
    assert (await face.methods.queue_stats("q")).ready == sent
