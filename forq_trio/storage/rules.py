"""The decisions every engine shares, as plain functions over values: no clock is read here, no store touched.

A message that comes back from a consumer (by nack, or because its lease ended) goes one of three ways:
ready, delayed, or failed once its attempts are used up. `after_nack`, `after_lease_end` and `after_release`
say which. In all of them the lease and the start of processing are cleared. The receipt is cleared too, with
one exception: a message made ready by the end of its lease keeps it, so that a slow consumer may still
acknowledge until somebody else claims. Every change of a message sets its `updated_at` to the batch's now.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

from forq_trio.model import DLQ_SUFFIX, Status
from forq_trio.storage.engine import EngineSettings

ItemT = TypeVar("ItemT")


class Returned(NamedTuple):
    """What becomes of a message that came back. process_after: when it is due, None keeps the old one."""

    status: Status
    process_after: int | None


def dead_letter_name(queue: str) -> str:
    """The queue that takes what failed or expired in the standard queue `queue`."""
    return queue + DLQ_SUFFIX


def initial_status(process_after: int, now_ms: int) -> Status:
    """READY, or DELAYED for a message that is due later than now."""
    return Status.DELAYED if process_after > now_ms else Status.READY


def expires_after(process_after: int, queue_ttl_ms: int) -> int:
    """When a message expires: its time to live starts when it falls due, not when it is sent (F2)."""
    return process_after + queue_ttl_ms


def backoff_ms(attempts: int, steps_ms: Sequence[int]) -> int:
    """The delay after `attempts` (from 1) and before the next one; the last step serves all later ones."""
    return steps_ms[min(max(attempts, 1), len(steps_ms)) - 1]


def attempts_used_up(attempts: int, max_attempts: int | None, settings: EngineSettings) -> bool:
    """True if a message may not be tried again. max_attempts: its own bound, None for the settings' one."""
    return attempts >= (settings.attempts_max if max_attempts is None else max_attempts)


def after_nack(
    attempts: int, max_attempts: int | None, delay_ms: int | None, now_ms: int, settings: EngineSettings
) -> Returned:
    """A failed attempt: failed at the last one, else back after delay_ms (None: the back-off by attempt)."""
    if attempts_used_up(attempts, max_attempts, settings):
        return Returned(Status.FAILED, None)
    delay = backoff_ms(attempts, settings.backoff_ms) if delay_ms is None else delay_ms
    return after_release(delay, now_ms)


def after_lease_end(
    attempts: int, max_attempts: int | None, now_ms: int, settings: EngineSettings
) -> Returned:
    """A consumer that did not answer in time: ready again at once, or failed when attempts are used up."""
    return after_nack(attempts, max_attempts, 0, now_ms, settings)


def after_release(delay_ms: int, now_ms: int) -> Returned:
    """A message given back untouched: ready at its old place, or after delay_ms. See also `uncounted`."""
    process_after = now_ms + delay_ms
    return Returned(initial_status(process_after, now_ms), process_after)


def uncounted(attempts: int) -> int:
    """The attempts of a message whose latest delivery is undone."""
    return max(attempts - 1, 0)


def share(available: int, wanted: Sequence[int]) -> list[int]:
    """How many of `available` messages each claim gets; wanted: the most each one takes, first come first.

    Every claim in turn gets one, so that nobody waits while another takes a heap; what is then left fills the
    earliest claims. The sum is min(available, sum(wanted)).
    """
    given = [0] * len(wanted)
    for index, most in enumerate(wanted):
        given[index] = min(1, most, available)
        available -= given[index]
    for index, most in enumerate(wanted):
        if available == 0:
            break
        extra = min(most - given[index], available)
        given[index] += extra
        available -= extra
    return given


def slices(items: Sequence[ItemT], sizes: Sequence[int]) -> Iterator[Sequence[ItemT]]:
    """Cut `items` into consecutive parts of these sizes: what `share` gave, dealt in claim order."""
    start = 0
    for size in sizes:
        yield items[start : start + size]
        start += size
