"""Validates keys and offers. All functions raise CallerErrors, and TypeError for a value that is not a text."""

from typing import get_args

from forq_trio.model import limits
from forq_trio.model.checks import check_is_text, check_message, check_range
from forq_trio.model.errors import InvalidKey, InvalidKind, InvalidRequest, WrongPhrase
from forq_trio.model.keys.types import Mode, Offering
from forq_trio.model.messages.new_message import NewMessage

_MODES = get_args(Mode)


def check_key(key: str, kind: str = "") -> None:
    """Raise InvalidKey or InvalidKind unless a message may have this key and kind."""
    _check_name("key", key, 1, limits.KEY_LENGTH_MAX, InvalidKey)
    check_kind(kind)


def check_prefix(prefix: str) -> None:
    """Raise InvalidKey unless a key may begin with this prefix."""
    _check_name("prefix", prefix, 0, limits.KEY_LENGTH_MAX, InvalidKey)


def check_kind(kind: str) -> None:
    """Raise InvalidKind unless a key may be of this kind."""
    _check_name("kind", kind, 0, limits.KIND_LENGTH_MAX, InvalidKind)


def check_offering(offering: Offering, now_ms: int) -> NewMessage:
    """Return the message of an offer if it may be stored.

    Raises the errors of `check_key` and `check_message`; InvalidRequest for an unknown mode, for debounce without
    delayMs, and for maxWaitMs with another mode; OutOfRange for a maxWaitMs that is too long.
    """
    check_is_offering(offering)
    check_key(offering.key, offering.kind)
    message = check_message(offering.message, now_ms)
    if offering.mode not in _MODES:
        raise InvalidRequest(f"mode must be one of {', '.join(_MODES)}, not {offering.mode!r}", field="mode")
    if offering.mode == "debounce" and offering.delay_ms is None:
        raise InvalidRequest("debounce needs delay_ms: how long no other offer may come", field="delayMs")
    if offering.max_wait_ms is not None:
        check_range("max_wait_ms", offering.max_wait_ms, 1, limits.MAX_WAIT_MS_MAX)
        if offering.mode != "debounce":
            raise InvalidRequest("max_wait_ms is for the mode debounce alone", field="maxWaitMs")
    return message


def check_is_offering(offering: object) -> None:
    """Raise TypeError, which says what to do, unless `offering` is an Offering."""
    if not isinstance(offering, Offering):
        kind = type(offering).__name__
        raise TypeError(
            f"an offer of a batch is an Offering, not {kind}: Offering(content, key=...) makes one"
        )


def check_phrase(queue: str, confirm: str) -> None:
    """Raise WrongPhrase unless `confirm` is the name of the queue."""
    if confirm != queue:
        raise WrongPhrase(field="confirm")


def _check_name(name: str, text: str, low: int, high: int, error: type[InvalidKey | InvalidKind]) -> None:
    check_is_text(name, text)
    if not low <= len(text) <= high:
        raise error(f"a {name} has {low} to {high} characters, not {len(text)}", field=name)
    if "\0" in text or not _is_utf_8(text):
        raise error(field=name)


def _is_utf_8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
