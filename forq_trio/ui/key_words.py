"""The key of a message, and what waits behind it, in words and for templates. Plain functions."""

from typing import Any

from markupsafe import Markup
from msgspec import Struct

from forq_trio.model.keys.types import KeyInfo, Mode, OnceMore
from forq_trio.model.messages.types import MessageInfo
from forq_trio.ui import content, differences

MODE_WORDS: dict[Mode, str] = {
    "create": "at its time",
    "createOrUpdate": "newest wins",
    "createIfAbsent": "first wins",
    "debounce": "debounced",
    "onceMore": "one more",
}
"""How an offer under a key waits, by the mode of the latest offer."""
_MEANING: dict[Mode, str] = {
    "create": "at its time: other offers are refused while it is pending",
    "createOrUpdate": "newest wins: an offer replaces what waits",
    "createIfAbsent": "first wins: later offers change nothing",
    "debounce": "debounced: each offer moves its time",
    "onceMore": "one more: what is offered while it is in flight is delivered after it",
}


class After(Struct, frozen=True):
    """The offer that waits behind a message, ready to be shown."""

    shown: content.Shown
    html: Markup  # with what differs marked
    same: bool
    members: list[str]  # of JSON, that differ


def after(message: MessageInfo, once_more: OnceMore) -> After:
    """The offer that comes after a message, with its differences from the message marked."""
    before, shown = content.show(message.content), content.show(once_more.content)
    members = differences.differing_members(message.content, once_more.content) or []
    same = message.content == once_more.content
    return After(shown, shown.html if same else differences.marked(before, shown), same, members)


def quiet_ms(message: MessageInfo) -> int | None:
    """How long after the last offer a debounced message is due; None if the stored values do not tell.

    They do not tell after a delivery, or if `maxWaitMs` has bounded the due time.
    """
    keyed = message.keyed
    if keyed is None or keyed.mode != "debounce" or message.first_received_at is not None:
        return None
    wait_ms = message.process_after - keyed.last_offer_at
    return wait_ms if wait_ms > 0 and message.process_after != keyed.max_wait_until else None


def meaning(keyed: KeyInfo) -> str:
    """The mode, and what it means for the next offer."""
    return _MEANING[keyed.mode]


def key_context(message: MessageInfo, once_more: OnceMore | None) -> dict[str, Any]:
    """What the templates of a message need of its key."""
    return {
        "key_meaning": meaning,
        "quiet_ms": quiet_ms(message),
        "once_more": once_more,
        "more": None if once_more is None else after(message, once_more),
    }
