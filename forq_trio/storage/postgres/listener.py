"""Hears of the batches of other processes, on a connection of its own."""

from collections.abc import Set

from forq_trio.model.errors import StorageUnavailable
from forq_trio.storage.postgres.connection import DatabaseFailed
from forq_trio.storage.postgres.open import Address

NOTIFY_BYTES_MAX = 7_000
"""PostgreSQL takes 8,000."""


def payload(name: str, woken: Set[str]) -> str:
    """What a process of this name tells the others: the queues that its batch woke; none stands for all."""
    text = " ".join((name, *sorted(woken)))
    return text if len(text) <= NOTIFY_BYTES_MAX else name


class PgListener:
    """See `Listener`. name: of this process, which does not hear itself."""

    def __init__(self, address: Address, name: str) -> None:
        self._name = name
        try:
            self._connection = address.connect()
            self._connection.query("listen")
        except DatabaseFailed as error:
            raise StorageUnavailable(str(error)) from error

    @property
    def socket(self) -> int:
        return self._connection.socket

    def heard(self) -> Set[str] | None:
        try:
            heard = [text.split(" ") for text in self._connection.notifications()]
        except DatabaseFailed as error:
            raise StorageUnavailable(str(error)) from error
        others = [queues for name, *queues in heard if name != self._name]
        if not all(others):
            return None
        return {queue for queues in others for queue in queues}

    def close(self) -> None:
        self._connection.close()
