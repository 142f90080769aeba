"""The key of a message, and what waits behind it, in words and for templates. Plain functions."""

from typing import Any

from markupsafe import Markup
from msgspec import Struct

from forq_trio.model.keys import KeyInfo, Mode, OnceMore
from forq_trio.model.messages import MessageInfo
from forq_trio.ui import content, differences

MODE_WORDS: dict[Mode, str] = {
    "create": "at its time",
    "createOrUpdate": "newest wins",
    "createIfAbsent": "first wins",
    "debounce": "debounced",
    "onceMore": "one more",
}
"""How what is offered under a key waits, by the mode of the latest offer."""
_MEANING: dict[Mode, str] = {
    "create": "at its time: other offers are refused while it is pending",
    "createOrUpdate": "newest wins: an offer replaces what waits",
    "createIfAbsent": "first wins: later offers change nothing",
    "debounce": "debounced: each offer moves its time",
    "onceMore": "one more: what is offered while it is in flight is delivered after it",
}


class After(Struct, frozen=True):
    """What waits behind a message, made ready."""

    shown: content.Shown
    html: Markup  # with what differs marked
    same: bool
    members: list[str]  # of JSON, that differ


def after(message: MessageInfo, once_more: OnceMore) -> After:
    """What comes after a message, beside it."""
    before, shown = content.show(message.content), content.show(once_more.content)
    members = differences.differing_members(message.content, once_more.content) or []
    same = message.content == once_more.content
    return After(shown, shown.html if same else differences.marked(before, shown), same, members)


def quiet_ms(message: MessageInfo) -> int | None:
    """How long after the last offer a debounced message is due; None where what is stored does not say that.

    Its due time says something else after a delivery, and where it was bounded.
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
