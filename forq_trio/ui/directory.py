"""The known queues: found at most once a second for all requests, and in slices.

With very many queues no request may walk through all of them by itself. So there is one `QueueNames` a second. Totals
and sorted lists are made from it once for all viewers with the same rights, and dropped with it. Requests that come
meanwhile wait for it. With few queues nothing is cached, so that a new queue shows at once.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from typing import Any, TypeVar

import trio

from forq_trio.broker.broker import Broker
from forq_trio.model.messages.types import QueueCounts
from forq_trio.model.queues.names import is_dead_letter_queue
from forq_trio.ui.slices import Slices
from forq_trio.ui.viewer import Viewer

SECONDS = 1.0
SOURCES_SECONDS = 10.0
FEW = 100
"""With this many queues, or fewer, nothing is cached."""

_ANSWERS_MAX = 64

T = TypeVar("T")


class _Answer:
    """An answer that is found once."""

    __slots__ = ("at", "lock", "value")

    def __init__(self) -> None:
        self.lock = trio.Lock()
        self.at = float("-inf")
        self.value: Any = None


class Answers:
    """The latest answers by question; each is found once in `seconds`."""

    def __init__(self, seconds: float = float("inf")) -> None:
        self._seconds = seconds
        self._answers: OrderedDict[Hashable, _Answer] = OrderedDict()

    async def once(self, question: Hashable, find: Callable[[], Awaitable[T]]) -> T:
        """The answer; those who ask while it is being found wait for it. Cancelled, the next one finds it."""
        answer = self._answers.setdefault(question, _Answer())
        self._answers.move_to_end(question)
        if len(self._answers) > _ANSWERS_MAX:
            self._answers.popitem(last=False)
        async with answer.lock:
            if trio.current_time() - answer.at >= self._seconds:
                answer.value = await find()
                answer.at = trio.current_time()
            value: T = answer.value
            return value


class QueueNames:
    """The queues at one moment. names: all, sorted. targets: those that take dead letters."""

    def __init__(
        self, counts: Mapping[str, QueueCounts], names: Sequence[str], targets: frozenset[str]
    ) -> None:
        self.counts = counts
        self.names = names
        self.targets = targets
        self.answers = Answers()


class Directory:
    """Finds queues for pages. slices: lets other tasks run during long work."""

    def __init__(self, broker: Broker, slices: Slices) -> None:
        self.slices = slices
        self._broker = broker
        self._lock = trio.Lock()
        self._known = QueueNames({}, (), frozenset())
        self._at = float("-inf")
        self._sources = Answers(SOURCES_SECONDS)

    async def known(self) -> QueueNames:
        """The names of all queues, at most a second old."""
        async with self._lock:
            if len(self._known.names) <= FEW or trio.current_time() - self._at >= SECONDS:
                self._known = await self._find()
                self._at = trio.current_time()
            return self._known

    async def seen(self, viewer: Viewer) -> Sequence[str]:
        """The names of the queues that the viewer may see, sorted."""
        return await self.seen_of(await self.known(), viewer)

    async def seen_of(self, known: QueueNames, viewer: Viewer) -> Sequence[str]:
        """The names in `known` that the viewer may see, sorted."""
        if viewer.token is None:
            return known.names
        return await known.answers.once(
            ("seen", viewer.sees),
            lambda: self.slices.over(known.names, lambda part: [*filter(viewer.may_see, part)]),
        )

    async def sources(self, viewer: Viewer) -> Mapping[str, list[str]]:
        """The queues that send dead letters to each, of those that the viewer may see; at most ten seconds old."""
        known = await self.known()
        kept = self._sources if len(known.names) > FEW else Answers()
        return await kept.once(viewer.sees, lambda: self._find_sources(known, viewer))

    async def _find(self) -> QueueNames:
        counts, names = self._broker.known.counts(), self._broker.known.queue_names()
        settings = [*self._broker.known.settings().values()]
        named = {
            *await self.slices.over(settings, lambda part: [each.dead_letter_queue or "" for each in part])
        }
        targets = await self.slices.over(
            names, lambda part: [name for name in part if is_dead_letter_queue(name) or name in named]
        )
        return QueueNames(counts, names, frozenset(targets))

    async def _find_sources(self, known: QueueNames, viewer: Viewer) -> Mapping[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)

        def note(part: Sequence[str]) -> tuple[()]:
            for name in part:
                if name not in known.targets:
                    found[self._broker.known.rules(name).dead_letter_queue].append(name)
            return ()

        await self.slices.over(await self.seen_of(known, viewer), note)
        return found
