"""The open connections of a server: how many there may be, and who may have them.

Rules
- A connection belongs to a stranger until a request with a right key came on it; from then on to the key's holder.
- An address may have half of all as a stranger; this machine may have all, because behind a proxy on it everybody has
  its address, and because whoever runs programs on it has other means.
- When there are as many as may be, the stranger that is open longest makes way for the next one, unless all are younger
  than STRANGER_SECONDS: who comes just now has not had the time to send a key. So strangers keep nobody out.
- Connections of keys are a budget: nobody but the owner of the server's secret can have them all.
"""

from collections.abc import Iterator
from ipaddress import ip_address
from typing import Generic, Protocol, TypeVar

from forq_trio.http.transport.budget import Budget, Share
from forq_trio.model import limits
from forq_trio.model.holders import Holder, Kind, at_address


class Cuttable(Protocol):
    """A connection that can be ended at once, without waiting for it."""

    def cut(self) -> None: ...


ConnectionT = TypeVar("ConnectionT", bound=Cuttable)


class Connections(Generic[ConnectionT]):
    """Of one server, up to `size`. budget: of those of keys."""

    def __init__(self, size: int) -> None:
        self.budget = Budget(size)
        self._holders: dict[ConnectionT, Holder] = {}
        self._strangers: dict[
            ConnectionT, float
        ] = {}  # the longest open first, with the time at which they came
        self._by_address: dict[Holder, int] = {}

    def __len__(self) -> int:
        return len(self._holders)

    def __iter__(self) -> Iterator[ConnectionT]:
        return iter(tuple(self._holders))

    def has_space(self, client: str, now: float) -> bool:
        """Whether one more may come from this address; cuts a stranger that has to make way for it."""
        size = self.budget.size
        strangers = self._by_address.get(at_address(client), 0)
        if strangers >= max(1, size // limits.CONNECTIONS_ADDRESS_PART) and not _is_here(client):
            return self.budget.refuse(Share.ADDRESS)
        if len(self._holders) < size:
            return True
        for stranger, came_at in self._strangers.items():
            if now < came_at + limits.STRANGER_SECONDS:
                break
            self._forget_stranger(stranger)
            stranger.cut()
            return True
        return self.budget.refuse(Share.ALL)

    def add(self, connection: ConnectionT, client: str, now: float) -> None:
        """A connection has come."""
        address = self._holders[connection] = at_address(client)
        self._strangers[connection] = now
        self._by_address[address] = self._by_address.get(address, 0) + 1

    def show(self, connection: ConnectionT, holder: Holder) -> bool:
        """A request of this holder has come on the connection; False when the holder has too many connections."""
        before = self._holders[connection]
        if holder.kind is Kind.ADDRESS or holder == before:
            return True
        self._leave(connection)
        self._holders[connection] = holder
        return self.budget.change(holder, 1)

    def remove(self, connection: ConnectionT) -> None:
        """A connection has ended."""
        self._leave(connection)
        del self._holders[connection]

    def _leave(self, connection: ConnectionT) -> None:
        holder = self._holders[connection]
        if holder.kind is not Kind.ADDRESS:
            self.budget.change(holder, -1)
        else:
            self._forget_stranger(connection)

    def _forget_stranger(self, connection: ConnectionT) -> None:
        if self._strangers.pop(connection, None) is None:
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
