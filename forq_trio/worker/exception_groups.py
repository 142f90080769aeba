"""How the exceptions in a group decide what becomes of a message.

A group of exceptions, as nurseries and task groups raise them, counts as its causes. One cause counts as itself. Of
several

1. one that is final is: a DeadLetter, or an exception of the handler's `dead`;
2. else the first Retry holds;
3. else the first error for which the handler has delays, or simply the first;
4. the message is discarded only if every cause is a Discard.

So no error is lost behind an outcome that would have finished the message.
"""

from collections.abc import Callable, Sequence
from itertools import chain

import anyio

from forq_trio.model import limits
from forq_trio.model.checks import storable_reason
from forq_trio.worker.outcomes import DeadLetter, Discard, Retry, reason_of

CAUSE_LENGTH_MIN = 60
"""How much of each cause the reason of a group has at least, until it is full."""


def plain(result: object) -> object:
    """The result without a group around a single cause; an error in place of a class, which is no outcome."""
    if isinstance(result, type) and issubclass(result, BaseException):
        name = result.__name__
        return TypeError(f"the handler returned {name}, which is a class: return {name}(...), or raise it")
    if not isinstance(result, BaseExceptionGroup):
        return result
    causes = causes_of(result)
    if len(causes) == 1:
        return causes[0]
    discards = [each for each in causes if isinstance(each, Discard)]
    if len(discards) == len(causes):
        return Discard("; ".join(each.reason_or("discarded") for each in discards))
    return result


def deciding(
    causes: Sequence[BaseException],
    dead: tuple[type[Exception], ...],
    has_delays: Callable[[BaseException], bool],
) -> BaseException:
    """The cause that decides about the message."""
    others = [each for each in causes if not isinstance(each, Discard)]
    orders: tuple[Callable[[BaseException], bool], ...] = (
        lambda each: isinstance(each, (DeadLetter, *dead)),
        lambda each: isinstance(each, Retry),
        has_delays,
    )
    return next(chain.from_iterable(filter(order, others) for order in orders), others[0])


def causes_of(error: BaseException) -> list[BaseException]:
    """The errors inside of groups, in their order; cancellations only if there is nothing else."""
    found = _inside(error)
    cancelled = anyio.get_cancelled_exc_class()
    return [each for each in found if not isinstance(each, cancelled)] or found


def _inside(error: BaseException) -> list[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return [found for each in error.exceptions for found in _inside(each)]
    return [error]


def reason_in_words(error: BaseException) -> str:
    """The reason of a nack: the error, or each cause of a group, cut to the length that the queue takes."""
    causes = causes_of(error)
    if len(causes) == 1:
        return reason_of(causes[0])
    each_max = max(CAUSE_LENGTH_MIN, limits.REASON_LENGTH_MAX // len(causes) - 2)
    named = "; ".join(_cut(reason_of(each), each_max) for each in causes)
    return storable_reason(f"{len(causes)} errors: {named}")


def _cut(text: str, length_max: int) -> str:
    return text if len(text) <= length_max else f"{text[: length_max - 1]}…"
