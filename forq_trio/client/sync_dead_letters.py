"""Work on dead letters: a part of `ForqClient`."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from forq_trio.client import dead_letters
from forq_trio.client.calls import Call, ResultT
from forq_trio.client.dead_letters import (
    DeadLetterFilter,
    DeadLetterPage,
    MoveResult,
    RedriveInfo,
    Resubmitted,
)
from forq_trio.client.types import MessageInfo


class DeadLetterMethods(ABC):
    """For queues that take dead letters; others refuse. Errors are those of every method of the client."""

    @abstractmethod
    def _run(self, call: Call[ResultT]) -> ResultT: ...

    def search_dead_letters(
        self,
        queue: str,
        wanted: DeadLetterFilter | None = None,
        *,
        before_sequence: int | None = None,
        limit: int = 50,
    ) -> DeadLetterPage:
        """A page (1-100) of those that match, newest first; it looks at 10,000 at most and says how far it came."""
        call = dead_letters.search(queue, wanted or DeadLetterFilter(), before_sequence, limit)
        return self._run(call)

    def dead_letter(self, queue: str, message_id: str) -> MessageInfo:
        """One of them, with where it came from and how it failed."""
        return self._run(dead_letters.show(queue, message_id))

    def redrive(
        self, queue: str, message_ids: Sequence[str], *, target: str | None = None
    ) -> list[MoveResult]:
        """Move up to 1,000 to `target` (None: back to where each came from) in one commit."""
        return self._run(dead_letters.redrive(queue, message_ids, target))

    def delete_dead_letters(self, queue: str, message_ids: Sequence[str]) -> list[MoveResult]:
        """Remove up to 1,000 for good."""
        return self._run(dead_letters.delete(queue, message_ids))

    def resubmit(
        self,
        queue: str,
        message_id: str,
        *,
        content: str | None = None,
        attributes: Mapping[str, str] | None = None,
        target: str | None = None,
        remove: bool = False,
    ) -> Resubmitted:
        """Send a copy with other content or attributes (None: the same). remove: take the original away with it."""
        call = dead_letters.resubmit(queue, message_id, content, attributes, target, remove)
        return self._run(call)

    def start_redrive(
        self,
        queue: str,
        wanted: DeadLetterFilter,
        *,
        target: str | None = None,
        rate_per_second: int | None = None,
        dry_run: bool = False,
    ) -> RedriveInfo:
        """Have the server move all that match (an empty filter: all) and are there now; returns at once."""
        return self._run(dead_letters.start_redrive(queue, wanted, target, rate_per_second, dry_run))

    def redrives(self, queue: str) -> list[RedriveInfo]:
        """Those that run and the latest that ended, the latest first."""
        return self._run(dead_letters.redrives(queue))

    def redrive_info(self, queue: str, redrive_id: str) -> RedriveInfo:
        """How a redrive stands."""
        return self._run(dead_letters.show_redrive(queue, redrive_id))

    def cancel_redrive(self, queue: str, redrive_id: str) -> RedriveInfo:
        """Stop a redrive; returns once it has ended. What it moved stays moved."""
        return self._run(dead_letters.cancel_redrive(queue, redrive_id))
