"""Stages, publications, and exports of a queue. A part of `Broker`."""

from collections.abc import Iterator, Sequence
from math import inf
from typing import NoReturn

import msgspec
import trio

from forq_trio.broker.queue_names import name_queues
from forq_trio.broker.sends import Sends
from forq_trio.model import commands, limits
from forq_trio.model.access.types import SECRET, Key
from forq_trio.model.checks import check_message, check_producible, check_range
from forq_trio.model.errors import CallerError, PublicationNotFound, PublicationUnfinished, Stopping
from forq_trio.model.messages.export import read_exported
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import check_queue_name
from forq_trio.model.publishing.bodies import AppPage, ExportPage, ExportPartitions, ExportRange, Publication
from forq_trio.model.publishing.methods import PublishingMethods
from forq_trio.model.publishing.types import PublishedVersion, Stage, Staged, StagedPart, check_pipeline_name
from forq_trio.telemetry.families import Family, gauge
from forq_trio.writer_actor import WriterActor

_encode = msgspec.msgpack.Encoder().encode


class Publishing(PublishingMethods, Sends):
    """Cancellation is that of `Broker`; exports are reads, which are interrupted when cancelled."""

    async def stage(
        self, queue: str, stage: str, page: int, messages: Sequence[NewMessage], *, key: Key = SECRET
    ) -> Staged:
        check_producible(queue)
        check_pipeline_name(stage, "stage")
        check_range("page", page, 0, limits.STAGE_PAGES_MAX - 1)
        check_range("number of messages", len(messages), 0, limits.STAGE_PAGE_MESSAGES_MAX, "messages")
        parts = await self._parts_of(messages)
        return await self._writer.execute(commands.StagePage(queue, stage, page, parts, key))

    async def _parts_of(self, messages: Sequence[NewMessage]) -> tuple[StagedPart, ...]:
        """Check the messages and cut them into parts, with a checkpoint after each."""
        parts: list[StagedPart] = []
        start = size = 0
        now_ms = self._clock.now_ms()
        for index, message in enumerate(messages):
            try:
                self._check_texts(check_message(message, now_ms))
            except CallerError as error:
                _refuse_line(index, error)
            message_bytes = _bytes_of(message)
            full = index - start == limits.PUBLISH_PART_MESSAGES_MAX
            if index > start and (full or size + message_bytes > limits.PUBLISH_PART_BYTES_MAX):
                parts.append(StagedPart(_encode(messages[start:index]), index - start, size))
                start, size = index, 0
                await trio.lowlevel.checkpoint()
            size += message_bytes
        parts.append(StagedPart(_encode(messages[start:]), len(messages) - start, size))
        return tuple(parts)

    async def discard_stage(self, queue: str, stage: str) -> None:
        check_queue_name(queue)
        check_pipeline_name(stage, "stage")
        await self._writer.execute(commands.DiscardStage(queue, stage))

    async def publish(
        self,
        app: str,
        version: int,
        stages: Sequence[Stage],
        *,
        once: bool = False,
        key: Key = SECRET,
        seconds: float = inf,
    ) -> Publication:
        check_pipeline_name(app, "app")
        check_range("version", version, 0, limits.SEQUENCE_MAX)
        check_range("number of stages", len(stages), 1, limits.PUBLISH_STAGES_MAX, "stages")
        for each in stages:
            check_producible(each.queue)
            check_pipeline_name(each.stage, "stage")
            check_range("pages", each.pages, 1, limits.STAGE_PAGES_MAX)
        await name_queues(self._writer, *[each.queue for each in stages])
        outcome = await self._writer.execute(commands.Publish(app, version, tuple(stages), once, key))
        deadline = trio.current_time() + seconds
        moved = await self._wait_for_stages(outcome.entry)
        while not moved and trio.current_time() < deadline:
            moved = await self._wait_for_stages(outcome.entry)
        return Publication(outcome.published, outcome.messages if outcome.published else None, not moved)

    async def _wait_for_stages(self, last: int) -> bool:
        """Wait until no published stage up to this entry number is left; False if that takes too long.

        Raises Stopping, and PublicationUnfinished if it takes too long because nothing can be stored.
        """
        writer = self._writer
        with trio.move_on_after(limits.PUBLISH_WAIT_SECONDS):
            while True:
                moved = writer.announced.moved
                first = writer.snapshot().staging.first_entry
                if first is None or first > last:
                    return True
                if writer.finished:
                    raise Stopping
                await moved.wait()
        if writer.storage.sends_refused or writer.storage.files_problem is not None:
            raise PublicationUnfinished
        return False

    async def publication(self, app: str, *, key: Key = SECRET) -> PublishedVersion:
        check_pipeline_name(app, "app")
        found = await self._readers.run(lambda reader: reader.apps_named(app))
        known = [each for each in found if key.covers_all(each.queues)]
        if not known:
            raise PublicationNotFound
        return max(known, key=lambda each: (each.made_by == key.name, each.version))

    async def apps(self, *, after: int = 0, limit: int = limits.APPS_PAGE_MAX, key: Key = SECRET) -> AppPage:
        check_range("after", after, 0, limits.SEQUENCE_MAX)
        check_range("limit", limit, 1, limits.APPS_PAGE_MAX)
        found = await self._readers.run(lambda reader: reader.list_apps(after, limit))
        known = [app for _, app in found if key.covers_all(app.queues)]
        return AppPage(known, found[-1][0] if len(found) == limit else None)

    async def delete_app(self, app: str, *, key: Key = SECRET) -> None:
        check_pipeline_name(app, "app")
        if not await self._writer.execute(commands.ForgetApp(app, key)):
            raise PublicationNotFound

    async def export(
        self, queue: str, *, after: int = 0, until: int | None = None, limit: int = limits.EXPORT_PAGE_MAX
    ) -> ExportPage:
        rows = await self.lines.export(queue, after=after, until=until, limit=limit)
        return ExportPage(read_exported(rows.lines), rows.next)

    async def export_partitions(
        self, queue: str, count: int = limits.EXPORT_PARTITIONS_DEFAULT
    ) -> ExportPartitions:
        check_range("count", count, 1, limits.EXPORT_PARTITIONS_MAX)
        self.known.check_queue(queue)
        found = await self._readers.run(lambda reader: reader.export_bounds(queue, count), long=True)
        return ExportPartitions([ExportRange(*each) for each in found.bounds], found.messages)


def _bytes_of(message: NewMessage) -> int:
    """The bytes of content and attributes of a message."""
    content, attributes = message.content, message.attributes
    size = len(content) if content.isascii() else len(content.encode())
    if attributes:
        size += sum(len(key.encode()) + len(value.encode()) for key, value in attributes.items())
    return size


def _refuse_line(index: int, error: CallerError) -> NoReturn:
    """Raise the error of a message as an error of its page. index: of the message."""
    field = f"lines[{index}]" if error.member is None else f"lines[{index}].{error.member}"
    raise type(error)(error.message, field=field, code=error.code) from None


def staged_families(writer: WriterActor) -> Iterator[Family]:
    """What is staged."""
    yield gauge(
        "forq_staged_bytes",
        "Bytes that are staged and not yet in their queues, as they are stored, now.",
        writer.snapshot().staging.bytes,
    )
