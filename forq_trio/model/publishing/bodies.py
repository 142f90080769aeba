"""Stages, publications, and exports of a queue."""

from typing import Annotated

from msgspec import Meta, Struct

from forq_trio.model import limits
from forq_trio.model.messages.export import ExportedMessage
from forq_trio.model.publishing.types import PublishedVersion, Stage
from forq_trio.model.queries import Query
from forq_trio.model.values import LEFT_OUT, Count, bounded, text_up_to, up_to

_NAME = "1 to 128 characters of A-Z a-z 0-9 . _ : -"


class NamedStage(Stage, frozen=True, gc=False, forbid_unknown_fields=True):
    """A stage to publish, with the number of its pages."""

    queue: str  # in which its messages will be
    stage: Annotated[str, text_up_to(limits.PIPELINE_NAME_LENGTH_MAX, _NAME)]
    pages: Annotated[int, bounded(1, limits.STAGE_PAGES_MAX, "Its pages are numbered from 0.")]


class PublishRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Stages to publish in this order, as a version of an app."""

    app: Annotated[str, text_up_to(limits.PIPELINE_NAME_LENGTH_MAX, _NAME)]
    version: Annotated[int, Meta(description="Higher than all that the app published before.")]
    stages: Annotated[list[NamedStage], up_to(limits.PUBLISH_STAGES_MAX, "May be empty.")]
    once: Annotated[
        bool, Meta(description="The app's name is used for one job only; it is remembered for 7 days.")
    ] = False


class Publication(Struct, frozen=True, gc=False, omit_defaults=True):
    """What became of a publication."""

    # false if the app had published this version, or a later one, before: nothing was done then
    published: bool
    messages: Annotated[Count | None, LEFT_OUT] = None  # how many are in their queues
    moving: bool = False  # not all of them are yet; repeat the call to wait on


class AppsQuery(Query, frozen=True, kw_only=True):
    """A page of apps."""

    after: Annotated[
        int, bounded(0, limits.SEQUENCE_MAX, "Only those after this one: `next` of the page before.")
    ] = 0
    limit: Annotated[int, bounded(1, limits.APPS_PAGE_MAX, "How many apps at most.")] = limits.APPS_PAGE_MAX


class ExportQuery(Query, frozen=True, kw_only=True):
    """A page of an export."""

    after: Annotated[int, bounded(0, limits.SEQUENCE_MAX, "Only messages with a sequence above this.")] = 0
    until: (
        Annotated[int, bounded(0, limits.SEQUENCE_MAX, "Only messages with a sequence up to this.")] | None
    ) = None
    limit: Annotated[int, bounded(1, limits.EXPORT_PAGE_MAX, "How many messages at most.")] = (
        limits.EXPORT_PAGE_MAX
    )


class PartitionsQuery(Query, frozen=True, kw_only=True):
    """Into how many ranges a queue is divided."""

    count: Annotated[int, bounded(1, limits.EXPORT_PARTITIONS_MAX, "How many ranges at most.")] = (
        limits.EXPORT_PARTITIONS_DEFAULT
    )


class AppPage(Struct, frozen=True, gc=False):
    """Apps in the order of their last publications."""

    apps: list[PublishedVersion]  # at most `limit`
    next: int | None = None  # the `after` of the next page, None at the end


class ExportPage(Struct, frozen=True, gc=False):
    """A page of an export, by sequence. next: the `after` of the next page, None at the end."""

    messages: list[ExportedMessage]
    next: int | None


class ExportRange(Struct, frozen=True, gc=False):
    """A range of an export."""

    after: int  # only messages with a sequence above this
    until: int  # only messages with a sequence up to this


class ExportPartitions(Struct, frozen=True, gc=False):
    """Ranges of a queue."""

    bounds: list[ExportRange]  # disjoint, and cover all messages
    messages: Count  # how many these are
