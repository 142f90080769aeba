"""What processes of two versions tell each other, the one understands of the other.

GOLDEN is what the first version wrote. A later one reads it, and writes what the first one reads: new members are at
the end of `Shipped`, or in a Struct within it, and all have defaults. A tuple within it stays as long as it is.
"""

from base64 import b64decode
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from forq_trio.model.access import AccessToken, Digest, Scope
from forq_trio.model.consumers import Consumer, ConsumerTotals, NumberedLease, Settling
from forq_trio.model.history import HistoryCounts
from forq_trio.model.logs import Log
from forq_trio.model.messages import QueueCounts
from forq_trio.model.publishing import KeyShare, Staging
from forq_trio.model.queue_settings import QueueSettings
from forq_trio.model.schedules import ScheduleTotals
from forq_trio.model.sessions import UiSession
from forq_trio.model.where import Condition
from forq_trio.storage.engine import SetAside
from forq_trio.storage.postgres import shipped as module
from forq_trio.storage.postgres.shipped import Shipped, unpack
from forq_trio.storage.relational.cache import QueueHistory
from forq_trio.storage.relational.heads import HeadChange
from forq_trio.storage.relational.scans import Scan
from support.redrives import redrive_task

VALUES = Shipped(
    now_ms=1_700_000_000_000,
    last_seq=5,
    staging=Staging(1, 2, 3, 4, 5, 6, {"key": KeyShare(1, 2, 3)}),
    schedules=ScheduleTotals(2, {"key": 1}, 1_700_000_000_001),
    consumer_totals=ConsumerTotals(1, 2, 3),
    event_log=Log(True, 1, 2, 3, 4),
    history_log=Log(True, 2, 3, 4, 5),
    next_due_ms=1_700_000_000_002,
    due_from_ms=1_700_000_000_003,
    heads={"q": HeadChange((-100, 1, 1), ((-100, 2, 2),), (3,), True), "r": None},
    due_settled=True,
    has_buckets=True,
    claim_first_next="q",
    counts={"q": QueueCounts(1, 2, 3, 4, 5, 6)},
    woken=["q"],
    least={"s": (-100, 1, 1)},
    logged=["events"],
    history={"q": QueueHistory(1, 2, HistoryCounts(3, 4)), "r": None},
    forgotten=["r"],
    makers={"q": "key"},
    grouped=["q"],
    unhold_cursors={"q": 7, "r": None},
    wake_next=["q"],
    scans=[("q", [((Condition("k", "v", True, True),), Scan((100, 1, 1), True, True))])],
    rates_full_at={"q": 9},
    groups_taken=[("q", "a")],
    groups_left=[("q", "b")],
    freed=[("q", "c")],
    rounds=[(("q", 100), 3)],
    settings={"q": QueueSettings(lease_ms=1_000), "r": None},
    set_aside=[SetAside("q", 8, "damaged")],
    tokens={"t": AccessToken("t", (Scope.CONSUME,), "*", 1, 2, 3, Digest("d" * 64)), "u": None},
    sessions={"s": UiSession("s" * 64, "t", "d" * 64, 1, 2, 3, "127.0.0.1", "browser"), "u": None},
    redrives={"1": redrive_task(), "2": None},
    consumers={
        "c": Consumer(
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
)
GOLDEN = b64decode(
    """
    3AAjzwAAAYvP5WgABYemc3RhZ2VzAaVieXRlcwKraW5fcHJvZ3Jlc3MDq2ZpcnN0X2VudHJ5BKpsYXN0X2VudHJ5BaRhcHBzBqZzaGFyZXOBo2
    tleYOmc3RhZ2VzAaVieXRlcwKkYXBwcwODpWNvdW50AqRtYWRlgaNrZXkBpmR1ZV9hdM8AAAGLz+VoAYOrcGFnZXNfYnl0ZXMBtGZvcmdvdHRl
    bl9nZW5lcmF0aW9uArBmb3Jnb3R0ZW5fbnVtYmVyA5XDAQIDBJXDAgMEBc8AAAGLz+VoAs8AAAGLz+VoA4KhcZST0JwBAZGT0JwCApEDw6FywM
    PDoXGBoXGGpXJlYWR5Aapwcm9jZXNzaW5nAqZmYWlsZWQDp2RlbGF5ZWQEpGhlbGQFpWJ5dGVzBpGhcYGhc5PQnAEBkaZldmVudHOCoXGTAQKS
    AwShcsCRoXKBoXGja2V5kaFxgqFxB6FywJGhcZGSoXGRkpGUoWuhdsPDk5NkAQHDw4GhcQmRkqFxoWGRkqFxoWKRkqFxoWORkpKhcWQDgqFx3g
    ABp2xlYXNlTXPNA+ihcsCRk6FxCKdkYW1hZ2VkgqF0h6RuYW1loXSmc2NvcGVzkadjb25zdW1lpnF1ZXVlc6EqqWNyZWF0ZWRBdAGpZXhwaXJl
    c0F0AqpsYXN0VXNlZEF0A6ZkaWdlc3TZQGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZG
    RkZGRkZGShdcCCoXOIpmRpZ2VzdNlAc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nz
    c3Nzc6drZXlOYW1loXSpa2V5RGlnZXN02UBkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZGRkZG
    RkZGRkZGRkqWNyZWF0ZWRBdAGpZXhwaXJlc0F0AqpsYXN0VXNlZEF0A6ZjbGllbnSpMTI3LjAuMC4xpWFnZW50p2Jyb3dzZXKhdcCCoTHeABWi
    aWTZJDAwMDAwMDAwLTAwMDAtNDAwMC04MDAwLTAwMDAwMDAwMDAwMaVxdWV1ZaVxLWRscaZhY3Rpb26ncmVkcml2ZaVzdGF0ZadydW5uaW5npm
    RyeVJ1bsKmZmlsdGVyiKZyZWFzb27ApXNpbmNlwKV1bnRpbMCqYXR0cmlidXRlc4CkdGV4dMClZXJyb3LArWFib3ZlU2VxdWVuY2XAqWVycm9y
    TGlrZcCmdGFyZ2V0wK1yYXRlUGVyU2Vjb25kwKhzZWFyY2hlZACldG90YWwAp21hdGNoZWQAp3NraXBwZWQApW1vdmVkAKlzdGFydGVkQXQBqX
    N0YXJ0ZWRCecCocGF1c2VkQXTAqmZpbmlzaGVkQXTApWVycm9ywK5iZWZvcmVTZXF1ZW5jZcCmd2Fsa2VyoKh3YWxrZWRBdAChMsCCoWPeABCl
    cXVldWWhcaRuYW1loWOqZ2VuZXJhdGlvbgGnaWRsZV9tc84FJlwApmxlYXNlZACsYWNrbm93bGVkZ2VkAK9yZWxlYXNlZF9iZWZvcmUApG9wZW
    6Fpm51bWJlcgKobWVzc2FnZXMBpWJ5dGVzAaVwYWdlcwGnbWFkZV9hdAGoY29tcGxldGXCqHNldHRsaW5nq2Fja25vd2xlZGdlrXNldHRsZWRf
    cGFnZXMApGtlcHSRhaZudW1iZXIBqG1lc3NhZ2VzAKVieXRlcwClcGFnZXMAp21hZGVfYXQAqGRyb3BwaW5nkYWmbnVtYmVyAKhtZXNzYWdlcw
    ClYnl0ZXMApXBhZ2VzAKdtYWRlX2F0AKlvcGVuZWRfYXQBp3VzZWRfYXQCp21hZGVfYnmhP6FkwA==
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


def test_all_that_the_first_version_wrote_is_read_as_it_was_meant() -> None:
    assert unpack(GOLDEN) == unpack(module._encode(VALUES))


def test_the_first_version_reads_what_is_written_now() -> None:
    old, new = plain(GOLDEN), plain(module._encode(VALUES))
    assert list(not_read(old, new[: len(old)], "Shipped")) == []
    assert list(not_read([[1], {"a": 1}], [[1, 2], {"a": 2, "b": 3}], "x")) == ["x.0", "x.1.a"]


def test_every_member_of_the_first_version_is_among_what_is_compared() -> None:
    assert all(plain(GOLDEN))


@pytest.mark.parametrize("later", [[1], ["x", {"y": [1, 2]}, None]])
def test_what_a_later_version_adds_is_ignored(later: list[Any]) -> None:
    changes = plain(module._encode(unpack(GOLDEN)))
    fields = Shipped.__struct_fields__
    for each in ("tokens", "sessions", "redrives", "consumers"):
        next(iter(changes[fields.index(each)].values()))["later"] = 1
    changes[fields.index("staging")]["later"] = 1
    assert unpack(msgspec.msgpack.encode(changes + later)) == unpack(GOLDEN)
