"""Small tables that are whole in the cache, as one batch sees them: tokens, sessions, redrives, consumers."""

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Generic, Self, TypeVar

ValueT = TypeVar("ValueT")


class Changes(MutableMapping[str, ValueT], Generic[ValueT]):
    """The values of the last commit by key, with the changes of this batch, which are kept beside them.

    changed: the values that were set, None for those that were removed.
    """

    def __init__(self, committed: Mapping[str, ValueT], changed: dict[str, ValueT | None]) -> None:
        self._committed = committed
        self.changed = changed

    def copy(self) -> Self:
        """The same as it is now, for a savepoint."""
        return type(self)(self._committed, self.changed.copy())

    def merged(self) -> dict[str, ValueT]:
        """All values, for the cache."""
        changed: dict[str, ValueT | None] = {**self._committed, **self.changed}
        return {key: value for key, value in changed.items() if value is not None}

    def __getitem__(self, key: str) -> ValueT:
        value = self.changed[key] if key in self.changed else self._committed.get(key)
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
