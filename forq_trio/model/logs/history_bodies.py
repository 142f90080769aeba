"""The history as people look through it: what a search may ask for, and which messages are sent again."""

from typing import Annotated, Any

from msgspec import Meta, Struct, field

from forq_trio.model import limits
from forq_trio.model.dead_letters.bodies import AttributePairs, DeadLetterFilter, MessageIds, SearchLimit
from forq_trio.model.logs import history
from forq_trio.model.queries import Query
from forq_trio.model.values import bounded

Outcome = Annotated[history.Outcome, Meta(description="How the message ended.")]


class RequeueFinished(Struct, frozen=True, forbid_unknown_fields=True):
    """Finished messages to send again."""

    message_ids: MessageIds = field(name="ids")


class HistoryFilter(
    DeadLetterFilter, frozen=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True
):
    """Which finished messages match; an empty filter matches all. Ages are those of the end."""

    reason: (
        Annotated[
            str,
            Meta(
                description="Why they were discarded, exactly.",
                extra_json_schema={"maxLength": limits.SEARCH_TEXT_LENGTH_MAX},
            ),
        ]
        | None
    ) = None
    outcome: Outcome | None = None


class FinishedQuery(Query, HistoryFilter, frozen=True, kw_only=True):
    """A filter, and where the page begins."""

    attributes: AttributePairs = field(default_factory=dict, name="attribute")
    before: (
        Annotated[int, bounded(1, limits.SEQUENCE_MAX, "Only those with a history id below this.")] | None
    ) = None
    limit: SearchLimit = limits.SEARCH_PAGE_DEFAULT

    def arguments(self) -> dict[str, Any]:
        return {"wanted": self, "before": self.before, "limit": self.limit}
