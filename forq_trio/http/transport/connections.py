"""The open connections of a server: how many there may be, and how they are shared among clients.

Rules
- A connection is keyless until a request with a right key arrives on it; from then on it belongs to the key's holder.
- An address may have half of all connections without a key. Only this machine may have all of them: behind a proxy here
  every client has its address, and a local program could harm the server in other ways anyhow.
- When all places are used, a new connection replaces the keyless one that has been open longest. One that is younger
  than KEYLESS_CONNECTION_SECONDS is not replaced, because its client has had no time to send a key. So keyless
  connections never block a client with a key.
- Connections with a key are a budget, shared among their holders: only the owner of the server's secret can have all.
"""

from collections.abc import Callable, Iterator
from ipaddress import ip_address
from typing import Generic, Protocol, TypeVar

from forq_trio.model import limits
from forq_trio.model.budget import Budget, Share
from forq_trio.model.holders import Holder, HolderKind, at_address


class Cuttable(Protocol):
    """A connection that can be ended at once, without waiting for it."""

    def cut(self) -> None: ...


ConnectionT = TypeVar("ConnectionT", bound=Cuttable)


class OpenConnections(Generic[ConnectionT]):
    """The connections of one server, at most `size`. budget: that of the connections with a key."""

    def __init__(self, size: int) -> None:
        self.budget = Budget(size)
        self._holders: dict[ConnectionT, Holder] = {}
        self._keyless: dict[ConnectionT, float] = {}  # when each was opened; the oldest comes first
        self._by_address: dict[Holder, int] = {}  # how many keyless ones
        self.on_empty: Callable[[], object] = lambda: None  # called when the last one has ended

    def __len__(self) -> int:
        return len(self._holders)

    def __iter__(self) -> Iterator[ConnectionT]:
        return iter(tuple(self._holders))

    def admit(self, client: str, now: float) -> bool:
        """Whether one more may be opened from this address; may cut a keyless one to replace it."""
        size = self.budget.size
        keyless = self._by_address.get(at_address(client), 0)
        if keyless >= max(1, size // limits.CONNECTIONS_ADDRESS_PART) and not _is_here(client):
            return self.budget.refuse(Share.ADDRESS)
        if len(self._holders) < size:
            return True
        for oldest, opened_at in self._keyless.items():
            if now < opened_at + limits.KEYLESS_CONNECTION_SECONDS:
                break
            self._remove_keyless(oldest)
            oldest.cut()
            return True
        return self.budget.refuse(Share.ALL)

    def add(self, connection: ConnectionT, client: str, now: float) -> None:
        """A connection was opened."""
        address = self._holders[connection] = at_address(client)
        self._keyless[connection] = now
        self._by_address[address] = self._by_address.get(address, 0) + 1

    def show(self, connection: ConnectionT, holder: Holder) -> bool:
        """A request of this holder arrived on the connection; False when the holder has too many connections."""
        before = self._holders.get(connection)
        if before is None or holder.kind is HolderKind.ADDRESS or holder == before:
            return True  # None: it has ended meanwhile
        self._leave(connection)
        self._holders[connection] = holder
        return self.budget.change(holder, 1)

    def remove(self, connection: ConnectionT) -> None:
        """A connection has ended. Does nothing the second time."""
        if connection in self._holders:
            self._leave(connection)
            del self._holders[connection]
            if not self._holders:
                self.on_empty()

    def _leave(self, connection: ConnectionT) -> None:
        holder = self._holders[connection]
        if holder.kind is not HolderKind.ADDRESS:
            self.budget.change(holder, -1)
        else:
            self._remove_keyless(connection)

    def _remove_keyless(self, connection: ConnectionT) -> None:
        if self._keyless.pop(connection, None) is None:
            return
        address = self._holders[connection]
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]


def _is_here(client: str) -> bool:
    try:
        return ip_address(client.partition("%")[0].removeprefix("::ffff:")).is_loopback
    except ValueError:
        return False
