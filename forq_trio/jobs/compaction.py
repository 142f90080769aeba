"""Gives free pages of the database file back to the disk, in small steps beside other calls: on request, or by itself.

Rules
- A step is a command of at most 64 pages and 2 ms, and counts as long work (step_scheduler.py): a call of others waits
  for one step at most. A step is final, however the compaction ends.
- A compaction begins by itself if much of the file was free in LOOKS checks in a row. It gives back at most what was
  free in all of them, because steady traffic uses the rest again. It does not begin by itself while sends are refused:
  they need the free pages.
- A requested compaction gives back all free pages. A request also sets this goal for one that began by itself.
- Its state is not stored: after a restart it has to be requested again.
- A file that Forq made cannot give pages back; then no compaction begins.
"""

from collections import deque
from collections.abc import Callable, Iterator

import msgspec
import trio

from forq_trio.jobs.runs import Runs, failure_words
from forq_trio.model import limits
from forq_trio.model.clock import Clock
from forq_trio.model.commands import Compact, Compacted
from forq_trio.model.engine_facts import EngineFacts
from forq_trio.model.errors import CompactionImpossible, FeatureUnavailable, ServiceError, Stopping
from forq_trio.model.server.compaction import CompactionInfo
from forq_trio.telemetry import words
from forq_trio.telemetry.families import Family, counter, gauge
from forq_trio.telemetry.log import LogEvent, log
from forq_trio.writer_actor import WriterActor

LOOK_SECONDS = 60.0
LOOKS = 10
BYTES_MIN = 64 * limits.MIB
SHARE_MIN = 0.25
"""A compaction begins by itself if this many bytes, and this share of the file, were free in this many checks."""


class Compaction:
    """A job: `run` until cancelled; the other methods are for callers. facts: of the engine, without a query.

    on_given_back: called when a compaction has ended, so that a checkpoint soon makes the file shorter.
    """

    name = "compaction"

    def __init__(
        self,
        writer: WriterActor,
        clock: Clock,
        facts: Callable[[], EngineFacts],
        on_given_back: Callable[[], None] = lambda: None,
    ) -> None:
        self._writer = writer
        self._clock = clock
        self._facts = facts
        self._on_given_back = on_given_back
        self._info = CompactionInfo()
        self._given_back_bytes = 0
        self._goal_is_all = False
        self._free_bytes: deque[int] = deque(maxlen=LOOKS)
        self._changed = trio.Event()
        self._serving = False
        self.runs = Runs(self.name, "Compact", next_when="when much of the file is free for long")

    def state(self) -> CompactionInfo:
        """The compaction with its progress, and how much of the file is free."""
        facts = self._facts()
        return msgspec.structs.replace(
            self._info,
            file_bytes=facts.file_bytes,
            free_bytes=facts.free_page_bytes,
            possible=facts.gives_pages_back,
        )

    def families(self) -> Iterator[Family]:
        """How long the file is, how much of it and of its disk is free, and what was given back since the start."""
        facts = self._facts()
        yield gauge(
            "forq_file_bytes",
            "Bytes of the database file without its log, as of the last checkpoint.",
            facts.file_bytes,
        )
        yield gauge(
            "forq_file_free_bytes",
            "Bytes of its free pages, as of the last checkpoint.",
            facts.free_page_bytes,
        )
        yield counter(
            "forq_file_given_back_bytes_total",
            "Bytes that compactions gave back to the disk.",
            self._given_back_bytes,
        )
        yield gauge(
            "forq_disk_free_bytes",
            "Free bytes on the disk of the database file; absent without one.",
            facts.disk_free_bytes,
        )

    def start(self, started_by: str | None = None) -> CompactionInfo:
        """Begin to give all free pages back, or resume a paused compaction; a requested one that runs is unchanged.

        started_by: the name of an access token, None for the server's secret. Raises CompactionImpossible,
        FeatureUnavailable, Stopping.
        """
        if not self._serving:
            raise Stopping
        facts = self._facts()
        if facts.shared:
            raise FeatureUnavailable
        if not facts.gives_pages_back:
            raise CompactionImpossible
        if self._info.state not in ("running", "paused"):
            self._begin(self._facts().free_page_bytes, started_by=started_by)
        elif self._info.automatic:
            goal_bytes = self._info.given_back_bytes + self._facts().free_page_bytes
            self._goal_is_all = True
            self._set(state="running", automatic=False, started_by=started_by, goal_bytes=goal_bytes)
        elif self._info.state == "paused":
            self._set(state="running")
        return self.state()

    def pause(self) -> CompactionInfo:
        """Pause a compaction that runs, until `start`."""
        if self._info.state == "running":
            self._set(state="paused")
        return self.state()

    def stop(self) -> CompactionInfo:
        """End a compaction that runs or is paused; pages that it gave back stay given back."""
        if self._info.state in ("running", "paused"):
            self._end("stopped")
        return self.state()

    async def run_now(self) -> None:
        """`start`, and return when it has ended, also if it failed. Raises what `start` raises."""
        self.start()
        await self.runs.wait_for_next()

    async def run(self) -> None:
        self._serving = True
        try:
            while True:
                with trio.move_on_after(LOOK_SECONDS):
                    await self._changed.wait()
                self._changed = trio.Event()
                if self._info.state != "running":
                    self._check_free_pages()
                if self._info.state == "running":
                    await self._work()
        finally:
            self._serving = False

    def _check_free_pages(self) -> None:
        """Begin if much of the file was free for long."""
        facts = self._facts()
        self._free_bytes.append(facts.free_page_bytes)
        unused = min(self._free_bytes)
        if (
            self._info.state != "paused"
            and len(self._free_bytes) == LOOKS
            and facts.gives_pages_back
            and not self._writer.storage.sends_refused
            and unused >= max(BYTES_MIN, facts.file_bytes * SHARE_MIN)
        ):
            self._begin(unused, automatic=True)

    def _begin(self, goal_bytes: int, *, automatic: bool = False, started_by: str | None = None) -> None:
        self._info = CompactionInfo(
            state="running",
            automatic=automatic,
            started_at=self._clock.now_ms(),
            started_by=started_by,
            goal_bytes=goal_bytes,
        )
        self._goal_is_all = not automatic
        self._changed.set()

    async def _work(self) -> None:
        """Give pages back until the goal is reached, or somebody stops it."""
        with self.runs.run() as outcome:
            try:
                while self._info.state in ("running", "paused"):
                    if self._info.state == "running":
                        await self._step()
                    else:
                        await self._changed.wait()
                        self._changed = trio.Event()
            except Stopping:
                raise
            except ServiceError as error:
                self._end("failed", error=failure_words(error))
            outcome.result = f"{words.size(self._info.given_back_bytes)} given back"
        self._free_bytes.clear()
        self._on_given_back()

    async def _step(self) -> None:
        """Give pages back until the next checkpoint at the latest, so that a pause or stop is noticed soon.

        How much is free is known as of the last checkpoint. A requested compaction learns it from its next step.
        """
        info = self._info
        pages = -(-(info.goal_bytes - info.given_back_bytes) // limits.LOG_PAGE_BYTES)
        done = Compacted(0, 0)
        if pages > 0 or self._goal_is_all:
            done = await self._writer.execute(Compact(max(1, pages)))
        if done.pages:
            self._given_back_bytes += done.pages * limits.LOG_PAGE_BYTES
            given = self._info.given_back_bytes + done.pages * limits.LOG_PAGE_BYTES
            goal = self._info.goal_bytes
            if self._goal_is_all:
                goal, self._goal_is_all = given + done.free_pages * limits.LOG_PAGE_BYTES, False
            self._info = msgspec.structs.replace(
                self._info, given_back_bytes=given, goal_bytes=max(given, goal)
            )
        if self._info.state == "running" and not (done.pages and done.free_pages):
            self._end("done")

    def _set(self, **members: object) -> None:
        self._info = msgspec.structs.replace(self._info, **members)
        self._changed.set()

    def _end(self, state: str, error: str | None = None) -> None:
        self._set(state=state, finished_at=self._clock.now_ms(), error=error)
        given_back = self._info.given_back_bytes
        if error is not None:
            log(LogEvent.COMPACTION_FAILED, given_back=given_back, error=error)
        else:
            log(LogEvent.COMPACTED, given_back=given_back, stopped=state == "stopped")
