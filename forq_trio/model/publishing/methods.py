"""Methods for stages, publications and exports of pipelines."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from forq_trio.model.limits import APPS_PAGE_MAX, EXPORT_PAGE_MAX, EXPORT_PARTITIONS_DEFAULT
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.publishing.bodies import AppPage, ExportPage, ExportPartitions, Publication
from forq_trio.model.publishing.types import PublishedVersion, Stage, Staged


class PublishingMethods(ABC):
    """A stage has messages beside a queue until it is published."""

    @abstractmethod
    async def stage(self, queue: str, stage: str, page: int, messages: Sequence[NewMessage]) -> Staged:
        """Store a page of up to 10,000 messages (4 MiB) beside the queue, until `publish`; returns once it is durable.

        stage: a name of the caller's choice, unique in the queue. page: its number, from 0; a page that exists already
        is ignored, and answered like the first time, so a call can be repeated. A stage is discarded a day after its
        last page, also when its queue was deleted, and one without messages when its key has 2,500.

        All or nothing: raises what `check_message` raises for the first message that cannot be stored, with `field`
        lines[3].content, say; InvalidName, InvalidQueueName, ProduceToDeadLetterQueue, OutOfRange, StagingFull, and
        what `produce` raises.
        """

    @abstractmethod
    async def discard_stage(self, queue: str, stage: str) -> None:
        """Discard a stage, if it exists. Raises InvalidName or InvalidQueueName."""

    @abstractmethod
    async def publish(
        self, app: str, version: int, stages: Sequence[Stage], *, once: bool = False
    ) -> Publication:
        """Publish up to 1,000 stages in this order, in one transaction; returns when all messages are in their queues.

        once: the app's name is used for one job only; it is remembered for 7 days instead of 366.

        Nothing is done if the app has published this version, or a later one, before: so the call can be repeated. An
        app is known by its name and by the queues that it writes, or by who made it. Once it is committed, no message
        is lost or repeated: the messages enter their queues even if this call is cancelled or the process ends.

        Raises InvalidName, OutOfRange, AppInUse, StageMissing for a stage that has not exactly these pages, QueueFull,
        TooManyApps, and what `produce` raises: then nothing is published. And PublicationUnfinished, after 30 seconds
        in which nothing can be stored: then it is published, its messages enter when they can, and a repeated call
        waits for that.
        """

    @abstractmethod
    async def publication(self, app: str) -> PublishedVersion:
        """The last version that an app published.

        If several apps have this name: that of your own one, or else the highest. A key sees only apps all of whose
        queues it covers. Raises InvalidName or PublicationNotFound.
        """

    @abstractmethod
    async def apps(self, *, after: int = 0, limit: int = APPS_PAGE_MAX) -> AppPage:
        """The apps that are remembered, in the order in which they published last, at most `limit` (1-1,000).

        after: the `next` of the page before. A key sees only apps all of whose queues it covers; a page may then have
        fewer.
        """

    @abstractmethod
    async def delete_app(self, app: str) -> None:
        """Forget what an app published: the same version is then published again.

        A key sees only apps all of whose queues it covers. Raises InvalidName or PublicationNotFound.
        """

    @abstractmethod
    async def export(
        self, queue: str, *, after: int = 0, until: int | None = None, limit: int = EXPORT_PAGE_MAX
    ) -> ExportPage:
        """Messages as they are, whatever their state, by sequence: those above `after`, up to `until` (None: all).

        At most `limit` (1-10,000) and 4 MiB of content, and at least one if there is one; go on with `next` as `after`.
        Nothing is changed. Raises InvalidQueueName, QueueNotFound or OutOfRange, ReadDeadlineExceeded,
        StorageUnavailable or Stopping.
        """

    @abstractmethod
    async def export_partitions(self, queue: str, count: int = EXPORT_PARTITIONS_DEFAULT) -> ExportPartitions:
        """Divide the stored messages into at most `count` (1-1,000) ranges for parallel exports.

        Raises like `export`.
        """
