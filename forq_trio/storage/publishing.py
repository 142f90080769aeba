"""The decisions about stages and publications, for all engines."""

from collections.abc import Callable, Sequence

import msgspec

from forq_trio.model import limits
from forq_trio.model.commands import StagePage
from forq_trio.model.errors import ForqError, QueueFull, StageMissing, StagingFull
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import QueueCounts
from forq_trio.model.publishing.types import Stage, Staging
from forq_trio.model.queues.setting_values import Overflow
from forq_trio.model.queues.settings import QueueRules
from forq_trio.storage.allowance import part
from forq_trio.storage.apps import share_of
from forq_trio.storage.rules import Space, above

read_part = msgspec.msgpack.Decoder(list[NewMessage]).decode
"""The messages of a part."""


def admitted(messages: Sequence[NewMessage], name: Callable[[str], ForqError | None]) -> list[NewMessage]:
    """The messages as they enter their queue. A message loses its own dead-letter queue if that cannot be created.

    name: makes a queue known, or returns the reason why not.
    """
    found = []
    for message in messages:
        target = message.dead_letter_queue
        if target and name(target) is not None:
            message = msgspec.structs.replace(message, dead_letter_queue=None)
        found.append(message)
    return found


class PublishStep:
    """How many staged parts one batch moves into queues or removes: as many as fit the bounds, at least one.

    is_full: a part did not fit.
    """

    def __init__(self, *, shared: bool = False) -> None:
        """shared: other calls are waiting, so the step is shorter."""
        share = part if shared else int
        self._messages_max = share(limits.PUBLISH_STEP_MESSAGES_MAX)
        self._bytes_max = share(limits.PUBLISH_STEP_BYTES_MAX)
        self._messages = 0
        self._bytes = 0
        self.is_full = False

    def takes(self, messages: int, size: int) -> bool:
        """Whether the step takes the next part. A part counts as one message more than it has."""
        is_first = self._messages == 0
        self._messages += messages + 1
        self._bytes += size
        fits = self._messages <= self._messages_max and self._bytes <= self._bytes_max
        self.is_full = not (is_first or fits)
        return not self.is_full


def stored_bytes(command: StagePage) -> int:
    """The bytes that a page takes in the database."""
    return sum(len(part.body) for part in command.parts)


def check_staging(staging: Staging, command: StagePage, made_by: str, *, is_new: bool) -> StagingFull | None:
    """StagingFull if this page is too much. made_by: the key that made its stage; is_new: the page begins the stage."""
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
    """The error for a stage that does not have the pages that were named. pages: how many it has."""
    has = "is not there" if pages == 0 else f"has other pages ({pages})"
    return StageMissing(
        f"stage {stage.stage} of queue {stage.queue} {has}; {stage.pages} were named, from 0; nothing was published"
    )


def check_space(counts: QueueCounts, on_the_way: Space, new: Space, rules: QueueRules) -> QueueFull | None:
    """QueueFull if a queue has no space for these messages. on_the_way: published to it, not in it yet.

    A queue that evicts takes as much as if it were empty. The publication itself evicts nothing, but later sends do.
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
