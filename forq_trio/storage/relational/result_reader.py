"""Reads how a message ended, for who waits for its result."""

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import Any

from forq_trio.model.results.types import MessageResult
from forq_trio.storage.relational.needs import Needs


class ResultReads(ABC):
    """The reads of a `Reader` about results."""

    def message_result(self, queue: str, message_id: str) -> MessageResult | None:
        with self._snapshot():
            stored = self._query("stored_message", message_id)
            if stored:
                return _of_stored(stored[0], queue, message_id)
            Needs(self._query).message(queue, message_id)
            finished = self._query("finished_from", message_id, queue)
        if not finished:
            return None
        place, outcome, attempts, result, last_error, finished_at = finished[0]
        return MessageResult(message_id, place, outcome, attempts, result, last_error, finished_at)

    @abstractmethod
    def _query(self, name: str, *bindings: Any) -> list[Any]: ...

    @abstractmethod
    def _snapshot(self) -> AbstractContextManager[Any]: ...


def _of_stored(row: tuple[Any, ...], queue: str, message_id: str) -> MessageResult | None:
    place, attempts, last_error, source, dead_lettered_at = row
    if place == queue:
        return MessageResult(message_id, place, "waiting", attempts, None, last_error)
    if source == queue:
        return MessageResult(message_id, place, "dead", attempts, None, last_error, dead_lettered_at)
    return None
