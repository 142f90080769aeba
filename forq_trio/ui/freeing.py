"""Lists what would free space while sends are refused because the disk is full, with sizes and links, largest first."""

from collections.abc import Sequence
from heapq import nlargest

from msgspec import Struct

from forq_trio.drawing import format
from forq_trio.jobs.facts import SystemFacts
from forq_trio.model import limits
from forq_trio.ui.directory import QueueNames
from forq_trio.ui.site import Site
from forq_trio.ui.viewer import Viewer

SHOWN_MAX = 6
HELPFUL_BYTES_MIN = limits.MIB


class Freeing(Struct, frozen=True):
    """A row: one way to free space."""

    text: str  # what to do, to `queue` if there is one
    note: str
    size: int | None = None  # bytes; None if the server cannot know
    queue: str = ""
    href: str = ""  # this and the next: a link and its text; "" for none
    action: str = ""


async def what_frees_space(site: Site, viewer: Viewer, facts: SystemFacts) -> list[Freeing]:
    """The rows, most first; those of queues as far as the viewer may see them. Other programs' files are the last."""
    known = await site.directory.known()
    rows: list[Freeing] = await known.answers.once(
        ("freeing", viewer.sees), lambda: _of_queues(site, viewer, known)
    )
    rows = [*rows, *(_of_server(site, facts) if viewer.sees_all else ())]
    rows = nlargest(SHOWN_MAX, rows, key=lambda row: row.size or 0)
    rows = [row for row in rows if (row.size or 0) >= HELPFUL_BYTES_MIN]
    return [*rows, *(_of_others(facts) if viewer.sees_all else ())]


async def _of_queues(site: Site, viewer: Viewer, known: QueueNames) -> list[Freeing]:
    def largest(part: Sequence[str]) -> list[Freeing]:
        rows = [row for name in part for row in _of_queue(site, known, name)]
        return nlargest(SHOWN_MAX, rows, key=lambda row: row.size or 0)

    return await site.directory.slices.over(await site.directory.seen_of(known, viewer), largest)


def _of_queue(site: Site, known: QueueNames, name: str) -> list[Freeing]:
    rows = []
    counts, history = known.counts[name], site.broker.known.history_of(name)
    if counts.bytes:
        note = format.plural(counts.total, "message")
        if name in known.targets:
            href = site.url(f"/dead/{name}")
            rows.append(
                Freeing("Delete dead letters of", note, counts.bytes, name, href, "Open the workbench")
            )
        else:
            href = site.url(f"/queue/{name}")
            rows.append(Freeing("Consume or purge", note, counts.bytes, name, href, "Open the queue"))
    if history.bytes:
        note = f"history, {format.plural(history.messages, 'message')}"
        href = site.url(f"/queue/{name}/history")
        rows.append(Freeing("Purge the history of", note, history.bytes, name, href, "Open the history"))
    return rows


def _of_server(site: Site, facts: SystemFacts) -> list[Freeing]:
    rows = []
    events, staging = site.broker.known.log("events"), site.broker.known.staging()
    if events.bytes:
        note = f"{format.plural(events.last - events.first + 1, 'event')}, FORQ_EVENTS_MAX_MIB"
        rows.append(Freeing("Keep fewer lifecycle events", note, events.bytes))
    if staging.bytes:
        note = f"in {format.plural(staging.stages, 'stage')}"
        rows.append(Freeing("Publish or discard what is staged", note, staging.bytes))
    if facts.log_held:
        rows.append(Freeing("End the read that holds the write-ahead log", "", facts.engine.log_bytes))
    return rows


def _of_others(facts: SystemFacts) -> list[Freeing]:
    engine = facts.engine
    if engine.disk_free_bytes is None or engine.disk_total_bytes is None or facts.space is None:
        return []
    ours = engine.file_bytes + engine.log_file_bytes + facts.space.reserve_bytes
    others = engine.disk_total_bytes - engine.disk_free_bytes - ours
    if others < HELPFUL_BYTES_MIN:
        return []
    return [
        Freeing("Other files on the disk of the database", f"{format.size(others)} are not of this database")
    ]
