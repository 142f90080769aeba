"""Methods for dead letters and redrives."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from forq_trio.model.dead_letters.bodies import DeadLetterFilter, MoveResult
from forq_trio.model.dead_letters.redrives import ChangedRedrive, RedriveInfo
from forq_trio.model.dead_letters.searches import DeadLetterPage
from forq_trio.model.messages.types import MessageInfo, Produced


class DeadLetterMethods(ABC):
    """They need a queue that takes dead letters, and raise DeadLettersOnly for any other."""

    @abstractmethod
    async def search_dead_letters(
        self,
        queue: str,
        wanted: DeadLetterFilter | None = None,
        *,
        before_sequence: int | None = None,
        limit: int = 50,
    ) -> DeadLetterPage:
        """A page (1-100) of dead letters that match, newest first; reads 10,000 messages at most.

        Raises InvalidQueueName, DeadLettersOnly, QueueNotFound, OutOfRange, InvalidAttributes, InvalidContent, and what
        reads raise.
        """

    @abstractmethod
    async def dead_letter(self, queue: str, message_id: str) -> MessageInfo:
        """One dead letter, with its origin and its failures. Raises like `message`, and DeadLettersOnly."""

    @abstractmethod
    async def redrive(
        self, queue: str, message_ids: Sequence[str], *, target: str | None = None
    ) -> list[MoveResult]:
        """Move up to 1,000 dead letters to `target` (None: back to where each came from), attempts and TTL reset.

        By 50 in a transaction. A message that does not exist, is processing or has no queue to go to is refused alone.
        Raises InvalidQueueName, DeadLettersOnly, OutOfRange.
        """

    @abstractmethod
    async def delete_dead_letters(self, queue: str, message_ids: Sequence[str]) -> list[MoveResult]:
        """Delete up to 1,000 dead letters for good, by 50 in a transaction. Results and errors like `redrive`."""

    @abstractmethod
    async def resubmit(
        self,
        queue: str,
        message_id: str,
        *,
        content: str | None = None,
        attributes: Mapping[str, str] | None = None,
        target: str | None = None,
        remove: bool = False,
    ) -> Produced:
        """Send a copy of a dead letter with other content or attributes (None: the same), to its source queue.

        target: another queue instead. remove: delete the original in the same transaction. Raises MessageNotFound when
        it is not there, has no queue to go to or (with remove) is processing; DeadLettersOnly, InvalidQueueName,
        MalformedMessageId, ContentTooLarge, InvalidContent, InvalidAttributes.
        """

    @abstractmethod
    async def start_redrive(
        self,
        queue: str,
        wanted: DeadLetterFilter | None = None,
        *,
        target: str | None = None,
        rate_per_second: int | None = None,
        dry_run: bool = False,
    ) -> ChangedRedrive:
        """Start a task that moves all dead letters that match now; returns once it is stored.

        target: None moves each back to where it came from. rate_per_second: 1-10,000, None for no limit. dry_run: only
        count. Raises InvalidQueueName, DeadLettersOnly, QueueNotFound, OutOfRange, InvalidAttributes, InvalidContent or
        TooManyRedrives. If this call is cancelled, the task starts all the same.
        """

    @abstractmethod
    async def start_deletion(
        self,
        queue: str,
        wanted: DeadLetterFilter | None = None,
        *,
        rate_per_second: int | None = None,
        dry_run: bool = False,
    ) -> ChangedRedrive:
        """Start a task that deletes all dead letters that match now.

        It is a redrive with the action "delete": it is listed, paused, resumed and cancelled like one. Parameters and
        errors are those of `start_redrive`.
        """

    @abstractmethod
    async def redrives(self, queue: str) -> list[RedriveInfo]:
        """The redrives of a queue, the latest first: unfinished ones, and the latest that ended.

        Raises DeadLettersOnly.
        """

    @abstractmethod
    async def redrive_info(self, queue: str, redrive_id: str) -> RedriveInfo:
        """A redrive, with its progress. Raises RedriveNotFound."""

    @abstractmethod
    async def pause_redrive(self, queue: str, redrive_id: str) -> ChangedRedrive:
        """Pause a redrive until it is resumed, also over a restart of the server; a paused one does not change.

        Raises RedriveNotFound, and RedriveStateConflict if it has ended. If this call is cancelled, the redrive is
        still paused; the same applies to `resume_redrive` and `cancel_redrive`.
        """

    @abstractmethod
    async def resume_redrive(self, queue: str, redrive_id: str) -> ChangedRedrive:
        """Continue a paused or failed redrive; a running one does not change.

        Raises RedriveNotFound, TooManyRedrives, and RedriveStateConflict if it is done or cancelled.
        """

    @abstractmethod
    async def cancel_redrive(self, queue: str, redrive_id: str) -> ChangedRedrive:
        """End a redrive; returns once it has ended. Moved messages stay where they are. Raises RedriveNotFound."""

    @abstractmethod
    async def dismiss_redrive(self, queue: str, redrive_id: str) -> None:
        """Forget a redrive that has ended. Raises RedriveNotFound, and RedriveStateConflict for one that has not."""
