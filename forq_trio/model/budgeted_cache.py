"""A cache with a bound in bytes that all clients of a server share.

Each holder of a right (holders.py) sees its own values only. Beyond the bound, the holder whose values have the most
bytes loses its oldest, so that no client can make those of the others be forgotten.
"""

from typing import Generic, NamedTuple, TypeVar

from forq_trio.model.holders import HOLDER, Holder

KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")


class _Held(NamedTuple, Generic[ValueT]):
    value: ValueT
    bytes: int


class _Values(Generic[KeyT, ValueT]):
    """The values of a holder, the oldest first."""

    def __init__(self) -> None:
        self.held: dict[KeyT, _Held[ValueT]] = {}
        self.bytes = 0


class BudgetedCache(Generic[KeyT, ValueT]):
    """For one thread; does not wait. The holder is that of the current task."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._holders: dict[Holder, _Values[KeyT, ValueT]] = {}

    def get(self, key: KeyT) -> ValueT | None:
        """The value, None if there is none."""
        values = self._holders.get(HOLDER.get())
        held = None if values is None else values.held.get(key)
        return None if held is None else held.value

    def oldest(self) -> tuple[KeyT, ValueT] | None:
        """What the holder put first of all that it still has, None if it has nothing."""
        values = self._holders.get(HOLDER.get())
        if values is None:
            return None
        key, held = next(iter(values.held.items()))
        return key, held.value

    def put(self, key: KeyT, value: ValueT, size: int) -> None:
        """Remember a value of `size` bytes, in place of one with the same key."""
        self.drop(key)
        values = self._holders.setdefault(HOLDER.get(), _Values())
        values.held[key] = _Held(value, size)
        values.bytes += size
        self._bytes += size
        while self._bytes > self._bytes_max:
            holder, most = max(self._holders.items(), key=lambda item: item[1].bytes)
            self._drop(holder, next(iter(most.held)))

    def drop(self, key: KeyT) -> None:
        """Forget a value, if there is one."""
        self._drop(HOLDER.get(), key)

    def _drop(self, holder: Holder, key: KeyT) -> None:
        values = self._holders.get(holder)
        held = None if values is None else values.held.pop(key, None)
        if values is None or held is None:
            return
        values.bytes -= held.bytes
        self._bytes -= held.bytes
        if not values.held:
            del self._holders[holder]
