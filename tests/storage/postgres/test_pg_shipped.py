"""What processes of two versions tell each other, the one understands of the other.

GOLDEN is what the first version wrote. A later one reads it, and writes what the first one reads: new members are at
new parts, or in a Struct within one, and all have defaults. A tuple stays as long as it is.
"""

from base64 import b64decode
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from forq_trio.model.access.sessions import UiSession
from forq_trio.model.access.types import AccessToken, Digest, Scope
from forq_trio.model.consumers.types import ConsumerTotals, NumberedLease, PipelineConsumer, Settling
from forq_trio.model.logs.history import HistoryCounts
from forq_trio.model.logs.types import Log
from forq_trio.model.messages.types import QueueCounts
from forq_trio.model.messages.where import Condition
from forq_trio.model.publishing.types import KeyShare, Staging
from forq_trio.model.queues.settings import QueueSettings
from forq_trio.model.schedules.types import ScheduleTotals
from forq_trio.model.workers.withdrawn import Withdrawal
from forq_trio.storage.engine import DamagedMessage, EngineSettings
from forq_trio.storage.message_batches import BatchTotals
from forq_trio.storage.postgres import shipped as module
from forq_trio.storage.postgres.shipped import unpack
from forq_trio.storage.relational.parts.heads import HeadChange
from forq_trio.storage.relational.parts.history import QueueHistory
from forq_trio.storage.relational.parts.message_batches import MessageBatchTotals
from forq_trio.storage.relational.parts.scans import Scan
from forq_trio.storage.relational.transaction import Transaction
from support.redrives import redrive_task

NOW_MS = 1_700_000_000_000
VALUES: dict[str, Any] = {
    "sequence": 5,
    "grouped": (["q"], {"q": 7, "r": None}),
    "freed": ([("q", "c")], [("q", "a")], [("q", "b")]),
    "rounds": [(("q", 100), 3)],
    "counts": ({"q": QueueCounts(1, 2, 3, 4, 5, 6)}, ["r"], {"q": "key"}),
    "settings": {"q": QueueSettings(lease_ms=1_000), "r": None},
    "rates": (True, {"q": 9}),
    "schedules": (ScheduleTotals(2, {"key": 1}, 1_700_000_000_001), "key"),
    "due": (1_700_000_000_002, 1_700_000_000_003, True),
    "wakes": (["q"], "q", ["r"]),
    "scans": [("q", [((Condition("k", "v", True, True),), Scan((100, 1, 1), True, True))])],
    "heads": ({"q": HeadChange((-100, 1, 1), ((-100, 2, 2),), (), True), "r": None}, {"s": (-100, 1, 1)}),
    "tokens": {"t": AccessToken("t", (Scope.CONSUME,), "*", 1, 2, 3, Digest("d" * 64)), "u": None},
    "sessions": {"s": UiSession("s" * 64, "t", "d" * 64, 1, 2, 3, "127.0.0.1", "browser"), "u": None},
    "redrives": {"1": redrive_task(), "2": None},
    "consumers": (
        {
            "c": PipelineConsumer(
                queue="q",
                name="c",
                open=NumberedLease(2, 1, 1, 1, 1),
                settling=Settling.ACKNOWLEDGE,
                kept=(NumberedLease(1),),
                dropping=(NumberedLease(0),),
                opened_at=1,
                used_at=2,
            ),
            "d": None,
        },
        ConsumerTotals(1, 2, 3),
    ),
    "leased_pages": (1_700_000_000_000, {"q": 1_700_000_000_004}),
    "staging": Staging(1, 2, 3, 4, 5, 6, {"key": KeyShare(1, 2, 3)}),
    "history": ({"q": QueueHistory(1, 2, HistoryCounts(3, 4)), "r": None}, Log(True, 2, 3, 4, 5)),
    "events": (Log(True, 1, 2, 3, 4), ["q"]),
    "set_aside": (1_700_000_000_000, [DamagedMessage("q", 8, "damaged")]),
}
LATER: dict[str, Any] = {
    "endings": {"id": "acked"},
    "message_batches": MessageBatchTotals(
        BatchTotals(1, 2), {"t": BatchTotals(3, 4)}, 5, 6, 7, 8, 9, 10, True
    ),
    "withdrawn": [
        Withdrawal(1_700_000_000_005, "q", "00000000-0000-7000-8000-000000000000", "cancelled", "no")
    ],
}
"""What the parts ship that came after the first version, which ignores them."""
GOLDEN = b64decode(
    """
    ks8AAAGLz+VoAN4AFahzZXF1ZW5jZQWnZ3JvdXBlZJKRoXGCoXEHoXLApWZyZWVkk5GSoXGhY5GSoXGhYZGSoXGhYqZyb3VuZHORkpKhcWQDpmNvdW50
    c5OBoXGGpXJlYWR5Aapwcm9jZXNzaW5nAqZmYWlsZWQDp2RlbGF5ZWQEpGhlbGQFpWJ5dGVzBpGhcoGhcaNrZXmoc2V0dGluZ3OCoXGBp2xlYXNlTXPN
    A+ihcsClcmF0ZXOSw4GhcQmpc2NoZWR1bGVzkoOlY291bnQCpG1hZGWBo2tleQGmZHVlX2F0zwAAAYvP5WgBo2tleaNkdWWTzwAAAYvP5WgCzwAAAYvP
    5WgDw6V3YWtlc5ORoXGhcZGhcqVzY2Fuc5GSoXGRkpGUoWuhdsPDk5NkAQHDw6VoZWFkc5KCoXGUk9CcAQGRk9CcAgKQw6FywIGhc5PQnAEBpnRva2Vu
    c4KhdIekbmFtZaF0pnNjb3Blc5GnY29uc3VtZaZxdWV1ZXOhKqljcmVhdGVkQXQBqWV4cGlyZXNBdAKqbGFzdFVzZWRBdAOmZGlnZXN02UBkZGRkZGRk
    ZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkoXXAqHNlc3Npb25zgqFziKZkaWdlc3TZQHNzc3Nz
    c3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Ona2V5TmFtZaF0qWtleURpZ2VzdNlAZGRkZGRk
    ZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZKljcmVhdGVkQXQBqWV4cGlyZXNBdAKqbGFzdFVz
    ZWRBdAOmY2xpZW50qTEyNy4wLjAuMaVhZ2VudKdicm93c2VyoXXAqHJlZHJpdmVzgqEx3gAVomlk2SQwMDAwMDAwMC0wMDAwLTQwMDAtODAwMC0wMDAw
    MDAwMDAwMDGlcXVldWWlcS1kbHGmYWN0aW9up3JlZHJpdmWlc3RhdGWncnVubmluZ6ZkcnlSdW7CpnRhcmdldMCtcmF0ZVBlclNlY29uZMCldG90YWwA
    qXN0YXJ0ZWRBdAGpc3RhcnRlZEJ5wKhwYXVzZWRBdMCqZmluaXNoZWRBdMCmZmlsdGVyiKZyZWFzb27ApXNpbmNlwKV1bnRpbMCqYXR0cmlidXRlc4Ck
    dGV4dMClZXJyb3LArWFib3ZlU2VxdWVuY2XAqWVycm9yTGlrZcCoc2VhcmNoZWQAp21hdGNoZWQAp3NraXBwZWQApW1vdmVkAKVlcnJvcsCuYmVmb3Jl
    U2VxdWVuY2XApndhbGtlcqCod2Fsa2VkQXQAoTLAqWNvbnN1bWVyc5KCoWPeABSlcXVldWWhcaRuYW1loWOqZ2VuZXJhdGlvbgGnaWRsZV9tc84FJlwA
    pmxlYXNlZACpbGVhc2VkX2F0AKxhY2tub3dsZWRnZWQAr3JlbGVhc2VkX2JlZm9yZQCkb3BlboambnVtYmVyAqhtZXNzYWdlcwGlYnl0ZXMBpXBhZ2Vz
    AadtYWRlX2F0Aadmb2xsb3dzAKhjb21wbGV0ZcKlYWhlYWTArmFoZWFkX2NvbXBsZXRlwqhzZXR0bGluZ6thY2tub3dsZWRnZa1zZXR0bGVkX3BhZ2Vz
    AKRrZXB0kYambnVtYmVyAahtZXNzYWdlcwClYnl0ZXMApXBhZ2VzAKdtYWRlX2F0AKdmb2xsb3dzAKhkcm9wcGluZ5GGpm51bWJlcgCobWVzc2FnZXMA
    pWJ5dGVzAKVwYWdlcwCnbWFkZV9hdACnZm9sbG93cwCpb3BlbmVkX2F0Aad1c2VkX2F0AqdtYWRlX2J5oT+qY3JlYXRlZF9hdAChZMCEq3BhZ2VzX2J5
    dGVzAbRmb3Jnb3R0ZW5fZ2VuZXJhdGlvbgKwZm9yZ290dGVuX251bWJlcgOsbGVhc2VkX2J5dGVzAKxsZWFzZWRfcGFnZXOSzwAAAYvP5WgAgaFxzwAA
    AYvP5WgEp3N0YWdpbmeHpnN0YWdlcwGlYnl0ZXMCq2luX3Byb2dyZXNzA6tmaXJzdF9lbnRyeQSqbGFzdF9lbnRyeQWkYXBwcwamc2hhcmVzgaNrZXmD
    pnN0YWdlcwGlYnl0ZXMCpGFwcHMDp2hpc3RvcnmSgqFxkwECkgMEoXLAlcMCAwQFpmV2ZW50c5KVwwECAwSRoXGpc2V0X2FzaWRlks8AAAGLz+VoAJGT
    oXEIp2RhbWFnZWQ=
    """
)


def plain(changes: bytes) -> list[Any]:
    return msgspec.msgpack.decode(changes)


def not_read(old: Any, new: Any, where: str) -> Iterator[str]:
    """What whoever knows `old` does not read in `new`."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key, value in old.items():
            yield from not_read(value, new.get(key), f"{where}.{key}")
    elif isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            yield where
        for number, pair in enumerate(zip(old, new, strict=False)):
            yield from not_read(*pair, f"{where}.{number}")
    elif old != new:
        yield where


def written() -> bytes:
    return module._encode((NOW_MS, VALUES))


def test_every_part_that_is_shipped_is_among_what_is_compared() -> None:
    assert set(VALUES) == set(plain(GOLDEN)[1])
    assert {*VALUES, *LATER} == set(module._KINDS)


def test_all_that_the_first_version_wrote_is_read_as_it_was_meant() -> None:
    assert unpack(GOLDEN) == unpack(written())
    assert unpack(GOLDEN).now_ms == NOW_MS


def test_the_first_version_reads_what_is_written_now() -> None:
    assert list(not_read(plain(GOLDEN), plain(written()), "batch")) == []
    assert list(not_read([[1], {"a": 1}], [[1, 2], {"a": 2, "b": 3}], "x")) == ["x.0", "x.1.a"]


@pytest.mark.parametrize("later", [1, {"y": [1, 2]}, None])
def test_what_a_later_version_adds_is_ignored(later: Any) -> None:
    now_ms, parts = plain(GOLDEN)
    consumers, _ = parts["consumers"]
    for each in (parts["tokens"], parts["sessions"], parts["redrives"], consumers):
        next(iter(each.values()))["later"] = 1
    parts["staging"]["later"] = 1
    parts["later"] = later
    assert unpack(msgspec.msgpack.encode((now_ms, parts))) == unpack(GOLDEN)


def test_a_part_takes_over_what_another_shipped() -> None:
    """Each ships again what it took over."""
    parts = Transaction.new(EngineSettings(), heads=True)
    unpack(GOLDEN).take_over(parts)
    shipped = {name: part.ship() for name, part in parts.by_name().items() if name in VALUES}
    again = unpack(module._encode((NOW_MS, shipped)))
    expected = unpack(GOLDEN)
    # Whether logs are kept is each process's own setting, and so far it has no events and knows no heads.
    expected.parts["events"] = (Log(False, 1, 2, 3, 4), [])
    expected.parts["history"] = (expected.parts["history"][0], Log(False, 2, 3, 4, 5))
    expected.parts["heads"] = (expected.parts["heads"][0], {})
    assert again == expected


def test_so_does_one_that_came_later() -> None:
    parts = Transaction.new(EngineSettings(), heads=True)
    unpack(module._encode((NOW_MS, LATER))).take_over(parts)
    assert {name: parts.by_name()[name].ship() for name in LATER} == LATER
