"""What a process knows of queues' heads and of the next due time, compared with the tables."""

from collections.abc import Iterable

import psycopg
import pytest

from forq_trio.model import limits
from forq_trio.storage.postgres import engine as module
from forq_trio.storage.postgres.engine import PostgresEngine

READY = "SELECT queue, -priority, position, seq FROM forq.messages WHERE status = 0"
FIRST_DUE = "SELECT min(due_at) FROM forq.messages WHERE seq <> ALL (%s)"


def check_heads(engines: Iterable[PostgresEngine], url: str) -> int:
    """Assert that each engine, once it has taken over what the others did, has the truth; returns how many heads."""
    found = 0
    with psycopg.connect(url) as connection:
        ready: dict[str, set[tuple[int, ...]]] = {}
        for queue, *place in connection.execute(READY):
            ready.setdefault(queue, set()).add(tuple(place))
        for engine in engines:
            engine._catch_up()
            tx = engine.tx
            assert tx.heads is not None
            heads = tx.heads.committed
            found += len(heads)
            for queue, head in heads.items():
                true = {p for p in ready.get(queue, ()) if p <= head.frontier}
                assert set(head.ready.values()) == true, (queue, head, sorted(ready.get(queue, ())))
            ((first,),) = connection.execute(FIRST_DUE, (list(tx.set_aside._committed),))
            assert first is None or tx.due.from_ms() <= first
    return found


def small_heads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Heads of few messages, few heads, and processes that fall behind."""
    monkeypatch.setattr(limits, "HEAD_MESSAGES_MAX", 6)
    monkeypatch.setattr(limits, "HEADS_MAX", 2)
    monkeypatch.setattr(module, "HEADS_WHOLE_EVERY", 4)
    monkeypatch.setattr(module, "BATCHES_READ_MAX", 9)
