"""Reads stored values, or says which one cannot be read."""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from forq_trio.model.errors import StorageOpenError

T = TypeVar("T")


def whole(what: str, read: Callable[[Any], T], stored: Any, path: str) -> T:
    """A stored value. Raises StorageOpenError, which says what cannot be read, and in which database."""
    try:
        return read(stored)
    except (msgspec.MsgspecError, TypeError):
        raise StorageOpenError(f"{path} is damaged: {what} cannot be read") from None
