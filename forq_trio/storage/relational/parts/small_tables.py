"""Small tables that are whole in memory: access tokens, sessions, tasks over dead letters, consumers of pipelines."""

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any, Generic, TypeVar

import msgspec

from forq_trio.model.access.sessions import UiSession
from forq_trio.model.access.types import AccessToken, Digest, Scope
from forq_trio.model.consumers.types import ConsumerTotals, PipelineConsumer
from forq_trio.model.dead_letters.redrives import RedriveTask
from forq_trio.storage.relational.parts.damaged import whole
from forq_trio.storage.relational.parts.part import Part
from forq_trio.storage.relational.statements import Query

ValueT = TypeVar("ValueT")

_read_scopes = msgspec.json.Decoder(tuple[Scope, ...]).decode
_read_task = msgspec.json.Decoder(RedriveTask).decode
_read_consumer = msgspec.json.Decoder(PipelineConsumer).decode


def _read_token(row: tuple[Any, ...]) -> AccessToken:
    name, scopes, queues, created_at, expires_at, last_used_at, digest = row
    return AccessToken(
        name, _read_scopes(scopes), queues, created_at, expires_at, last_used_at, Digest(digest)
    )


class SmallTable(Part, MutableMapping[str, ValueT], Generic[ValueT]):
    """The values of a table by key, as of the last command."""

    def __init__(self) -> None:
        self.committed: dict[str, ValueT] = {}  # replaced where it changes
        self.changed: dict[str, ValueT | None] = {}  # by this batch; None for one that was removed

    def merged(self) -> dict[str, ValueT]:
        """All values."""
        changed: dict[str, ValueT | None] = {**self.committed, **self.changed}
        return {key: value for key, value in changed.items() if value is not None}

    def __getitem__(self, key: str) -> ValueT:
        value = self.changed[key] if key in self.changed else self.committed.get(key)
        if value is None:
            raise KeyError(key)
        return value

    def __setitem__(self, key: str, value: ValueT) -> None:
        self.changed[key] = value

    def __delitem__(self, key: str) -> None:
        self[key]
        self.changed[key] = None

    def __iter__(self) -> Iterator[str]:
        return iter(self.merged())

    def __len__(self) -> int:
        return len(self.merged())

    def _load(self, rows: Mapping[str, ValueT]) -> None:
        self.changed = {**rows}
        SmallTable.adopt(self)

    def copy(self) -> Any:
        return self.changed.copy()

    def restore(self, copied: Any) -> None:
        self.changed = copied

    def adopt(self) -> None:
        if self.changed:
            self.committed = self.merged()
            self.changed = {}

    def discard(self) -> None:
        if self.changed:
            self.changed = {}

    def ship(self) -> Any:
        return self.changed or None

    def take_over(self, shipped: Any) -> None:
        self.changed = shipped

    def begins_or_ends(self) -> bool:
        """True if the batch added or removed a value."""
        return any(now is None or key not in self.committed for key, now in self.changed.items())


class TokenTable(SmallTable[AccessToken]):
    """Access tokens by name."""

    shipped = dict[str, AccessToken | None]

    def load(self, query: Query, path: str) -> None:
        self._load(
            {
                row[0]: whole(f"the access token {row[0]}", _read_token, row, path)
                for row in query("load_tokens")
            }
        )


class SessionTable(SmallTable[UiSession]):
    """Sessions of the admin UI by digest."""

    shipped = dict[str, UiSession | None]

    def load(self, query: Query, path: str) -> None:
        sessions = [UiSession(*row) for row in query("load_sessions")]
        self._load({session.digest: session for session in sessions})


class RedriveTable(SmallTable[RedriveTask]):
    """Tasks over dead letters by id, in the order in which they were first stored."""

    shipped = dict[str, RedriveTask | None]

    def load(self, query: Query, path: str) -> None:
        rows = query("load_redrives")
        self._load({key: whole(f"the redrive {key}", _read_task, text, path) for key, text in rows})


class ConsumerTable(SmallTable[PipelineConsumer]):
    """Consumers of pipelines by `consumer_key`, and their totals."""

    shipped = tuple[dict[str, PipelineConsumer | None], ConsumerTotals]

    def __init__(self) -> None:
        super().__init__()
        self.committed_totals = ConsumerTotals()
        self.totals = ConsumerTotals()  # as of the last command

    def load(self, query: Query, path: str) -> None:
        consumers = [
            whole(f"consumer {name} of queue {queue}", _read_consumer, text, path)
            for queue, name, text in query("load_consumers")
        ]
        self._load({consumer.key: consumer for consumer in consumers})
        ((generation, number),) = query("load_forgotten_consumers")
        stored = sum([consumer.stored_bytes for consumer in consumers])
        leased = sum([consumer.leased_bytes for consumer in consumers])
        self.totals = self.committed_totals = ConsumerTotals(stored, generation, number, leased)

    def copy(self) -> Any:
        return super().copy(), self.totals

    def restore(self, copied: Any) -> None:
        self.changed, self.totals = copied

    def adopt(self) -> None:
        super().adopt()
        self.committed_totals = self.totals

    def discard(self) -> None:
        super().discard()
        self.totals = self.committed_totals

    def ship(self) -> Any:
        return (
            (self.changed, self.totals) if self.changed or self.totals is not self.committed_totals else None
        )

    def take_over(self, shipped: Any) -> None:
        self.changed, self.totals = shipped
