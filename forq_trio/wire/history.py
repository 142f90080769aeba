"""The history as people look through it: what a search may ask for, and which messages are sent again."""

from typing import Annotated

from msgspec import Meta, Struct, field

from forq_trio.model import history
from forq_trio.wire.dead_letters import DeadLetterFilter, MessageIds

Outcome = Annotated[history.Outcome, Meta(description="How the message ended.")]


class RequeueFinished(Struct, frozen=True, forbid_unknown_fields=True):
    """Finished messages to send again."""

    message_ids: MessageIds = field(name="ids")


class HistoryFilter(
    DeadLetterFilter, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True
):
    """Which finished messages match; an empty filter matches all. Ages are those of the end.

    outcome: how it ended. reason: why it was discarded, exactly. attributes: those it must have, with these values.
    text: part of the content, exactly. error: the last error, exactly; "" for those without one.
    errorLike: the last error, numbers, ids and addresses aside.
    """

    outcome: Outcome | None = None
