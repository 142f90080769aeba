"""The decisions about stages and publications, for all engines."""

from collections.abc import Callable, Sequence

import msgspec

from forq_trio.model import limits
from forq_trio.model.commands import StagePage
from forq_trio.model.errors import ForqError, QueueFull, StageMissing, StagingFull
from forq_trio.model.messages import NewMessage, QueueCounts
from forq_trio.model.publishing import Stage, Staging
from forq_trio.model.queue_settings import Overflow, QueueRules
from forq_trio.storage.allowance import part
from forq_trio.storage.apps import share_of
from forq_trio.storage.rules import Space, above

read_part = msgspec.msgpack.Decoder(list[NewMessage]).decode
"""The messages of a part."""


def admitted(messages: Sequence[NewMessage], name: Callable[[str], ForqError | None]) -> list[NewMessage]:
    """Messages that enter their queue; those without their dead-letter queue for which that would be one too many.

    name: makes a queue known, or says why not.
    """
    found = []
    for message in messages:
        target = message.dead_letter_queue
        if target and name(target) is not None:
            message = msgspec.structs.replace(message, dead_letter_queue=None)
        found.append(message)
    return found


class PublishStep:
    """How much one batch moves into queues, or removes: parts up to these bounds, and at least one.

    is_full: a part was found that does not belong to it.
    """

    def __init__(self, *, shared: bool = False) -> None:
        """shared: others are served beside it."""
        share = part if shared else int
        self._messages_max = share(limits.PUBLISH_STEP_MESSAGES_MAX)
        self._bytes_max = share(limits.PUBLISH_STEP_BYTES_MAX)
        self._messages = 0
        self._bytes = 0
        self.is_full = False

    def takes(self, messages: int, size: int) -> bool:
        """Whether the next part belongs to the step. Each part counts as one message more than it has."""
        is_first = self._messages == 0
        self._messages += messages + 1
        self._bytes += size
        fits = self._messages <= self._messages_max and self._bytes <= self._bytes_max
        self.is_full = not (is_first or fits)
        return not self.is_full


def stored_bytes(command: StagePage) -> int:
    """The bytes of a page as it is stored."""
    return sum(len(part.body) for part in command.parts)


def check_staging(staging: Staging, command: StagePage, made_by: str, *, is_new: bool) -> StagingFull | None:
    """StagingFull if one more page would be too much. made_by: the key of its stage; is_new: it begins one."""
    size, share = stored_bytes(command), share_of(staging, made_by)
    advice = "publish or discard some first"
    if is_new and share.stages >= limits.STAGES_A_KEY_MAX:
        return StagingFull(f"{share.stages:,} stages of this key wait, as many as may at once: {advice}")
    if share.bytes + size > limits.STAGED_BYTES_A_KEY_MAX:
        return StagingFull(
            f"the stages of this key have {share.bytes:,} bytes, and no more may wait: {advice}"
        )
    if staging.bytes + size > limits.STAGED_BYTES_MAX or (is_new and staging.stages >= limits.STAGES_MAX):
        return StagingFull()
    return None


def missing(stage: Stage, pages: int) -> StageMissing:
    """The error for a stage that has so many pages."""
    has = "is not there" if pages == 0 else f"has other pages ({pages})"
    return StageMissing(
        f"stage {stage.stage} of queue {stage.queue} {has}; {stage.pages} were named, from 0; nothing was published"
    )


def check_space(counts: QueueCounts, on_the_way: Space, new: Space, rules: QueueRules) -> QueueFull | None:
    """QueueFull if a queue does not take so many messages. on_the_way: those that are on their way to it.

    A queue that evicts takes as much as an empty one: later sends evict, the publication does not.
    """
    stored = Space(
        counts.total + on_the_way.messages + new.messages, counts.bytes + on_the_way.bytes + new.bytes
    )
    asked = stored if rules.overflow is Overflow.REJECT else new
    return QueueFull() if max(above(asked, rules)) > 0 else None


def repeated(stages: Sequence[Stage]) -> Stage | None:
    """A stage that is named twice, None for none."""
    seen: set[tuple[str, str]] = set()
    for stage in stages:
        if (stage.queue, stage.stage) in seen:
            return stage
        seen.add((stage.queue, stage.stage))
    return None
