"""Stages and publications: messages that are stored beside a queue until all of them are published at once.

A client stages pages of messages under a name of its own, then publishes whole stages as a version of an app. Once the
publication is committed, no message can be lost or repeated; the writer moves them into their queues in the next
batches.
"""

import re
from collections.abc import Mapping

from msgspec import Struct

from forq_trio.model import limits
from forq_trio.model.errors import InvalidName

_NAME = re.compile(rf"(?!\.{{1,2}}\Z)[A-Za-z0-9._:-]{{1,{limits.PIPELINE_NAME_LENGTH_MAX}}}")


class StagedPart(Struct, frozen=True, gc=False):
    """A part of a staged page, which enters its queue in one batch."""

    body: bytes  # the messages as MessagePack
    messages: int  # how many
    bytes: int  # of their contents and attributes


class Staged(Struct, frozen=True, gc=False):
    """A staged page."""

    messages: int  # how many it has
    bytes: int  # of their contents and attributes


class Stage(Struct, frozen=True, gc=False):
    """A stage to publish. pages: how many it has, numbered from 0; a stage without exactly these is refused."""

    queue: str
    stage: str
    pages: int


class Published(Struct, frozen=True, gc=False):
    """The outcome of a publication."""

    published: bool  # False if the app had published this version, or a later one, before
    messages: int
    # all messages are in their queues once no stage up to this entry number is in progress any more
    entry: int


class PublishedVersion(Struct, frozen=True, gc=False, rename="camel"):
    """The last version that an app published."""

    app: str  # its name
    version: int  # the last that it published
    published_at: int  # when (epoch ms)
    once: bool = False  # its name is used for one job only
    # the name of the access token that published it last, empty for the server's secret, `?` if that was not
    # stored
    made_by: str = ""
    # the latest 1,000 that it wrote; if they were not stored, the glob of its key
    queues: tuple[str, ...] = ()


class KeyShare(Struct, frozen=True, gc=False):
    """What one key has made: stages that are not published, their bytes as they are stored, and apps."""

    stages: int = 0
    bytes: int = 0
    apps: int = 0


class Staging(Struct, frozen=True, gc=False):
    """How much is staged, in all and by key."""

    # this and the next: the stages that are neither in a queue yet nor removed, and the bytes of their parts as they
    # are stored
    stages: int = 0
    bytes: int = 0
    # how many stages are published and being moved into their queues, or have ended and are being removed
    in_progress: int = 0
    first_entry: int | None = None  # the entry number of the first published one, None for none
    last_entry: int = 0  # the last number that a stage got
    apps: int = 0  # how many apps have published
    shares: Mapping[str, KeyShare] = {}  # by name of the key; without keys that have nothing


def check_pipeline_name(name: str, field: str) -> str:
    """Return the name of a stage or an app, or raise InvalidName about `field`."""
    if _NAME.fullmatch(name) is None:
        raise InvalidName(field=field)
    return name
