"""What a worker takes and returns where it sends: the options of `send` and `later`, whose durations are Python's."""

from collections.abc import Mapping
from typing import Any, TypeAlias, TypedDict

from forq_trio.model.durations import Duration, ms_of
from forq_trio.model.keys.types import Mode, Offered
from forq_trio.model.messages.types import Produced

Sent: TypeAlias = Produced | Offered
"""What became of a message."""


class MemberOptions(TypedDict, total=False):
    """The options of a message that a worker sends without a key; those of `produce`."""

    delay: Duration | None  # until it is due
    process_after: int | None  # when it is due (epoch ms), in place of a delay
    ttl: Duration | None  # its time to live from when it is due, None for the queue's
    priority: int  # messages of a higher one come first
    attributes: dict[str, str] | None
    group: str | None
    max_attempts: int | None  # None for the queue's
    dead_letter_queue: str | None  # None for the queue's, "" for none
    deduplication_id: str | None  # only without a key
    deduplication_window: Duration | None  # how long that is remembered, None for the queue's


class SendOptions(MemberOptions, total=False):
    """The options of a message that a worker sends; with a key those of `offer`."""

    key: str | None  # the message replaces the pending one of this key; the next three only with it
    kind: str  # of the key
    mode: Mode  # what becomes of the pending one, if it is not replaced
    max_wait: Duration | None  # with mode "debounce": how long after the first offer it is due at the latest


_DURATIONS = ("delay", "ttl", "deduplication_window", "max_wait")
_ONLY_WITH_KEY = ("kind", "mode", "max_wait")
_ONLY_WITHOUT_KEY = ("deduplication_id", "deduplication_window")


def options_of_source(options: Mapping[str, object]) -> dict[str, Any]:
    """The options as a broker and a client take them, who have durations in milliseconds.

    Raises TypeError and ValueError, which name the option, for what is no duration, for one that is given in both ways,
    and for one that does not go with a key, or only with one.
    """
    found = dict(options)
    keyed = found.get("key") is not None
    for name in _ONLY_WITHOUT_KEY if keyed else _ONLY_WITH_KEY:
        if found.pop(name, None) is not None:
            raise TypeError(f"{name}: only {'without' if keyed else 'with'} a key")
    for name in _DURATIONS:
        given: Any = found.pop(name, None)
        if given is not None:
            if f"{name}_ms" in found:
                raise TypeError(f"{name} and {name}_ms are one option: give one of them")
            found[f"{name}_ms"] = duration_ms(name, given)
    return found


def duration_ms(name: str, given: Duration) -> int:
    """The milliseconds of a duration. Raises TypeError and ValueError, which name it."""
    try:
        return ms_of(given)
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None
    except ValueError as error:
        raise ValueError(f"{name}: {given!r}: {error}") from None
