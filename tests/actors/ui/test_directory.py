"""What is known of all queues: found once for all who ask, in slices, whatever is asked."""

import random
from types import SimpleNamespace

import pytest
import trio

from forq_trio.model.access.types import Scope
from forq_trio.model.messages.types import QueueCounts
from forq_trio.model.queues.settings import QueueSettings
from forq_trio.ui.directory import FEW, SECONDS, SOURCES_SECONDS, Directory
from forq_trio.ui.slices import AT_ONCE, Slices
from forq_trio.ui.viewer import Viewer
from support.access import access_token
from support.actors import elapse

QUEUES = 4 * AT_ONCE
SECRET = Viewer("session", "digest", None)
TOKEN = Viewer("session", "digest", access_token("t", "digest", (Scope.BROWSE,), "q1*", 0))


class Asked:
    """A broker whose cache counts what it is asked."""

    def __init__(self, queues):
        self.names = [f"q{number}" + "-dlq" * (number % 2) for number in range(queues)]
        self.counted = self.ruled = 0
        self.known = self

    def counts(self):
        self.counted += 1
        return dict.fromkeys(random.sample(self.names, len(self.names)), QueueCounts(ready=1))

    def queue_names(self):
        return sorted(self.names)

    def settings(self):
        return {"q0": QueueSettings(dead_letter_queue="q2")}

    def rules(self, name):
        self.ruled += 1
        return SimpleNamespace(dead_letter_queue="q2" if name == "q0" else f"{name}-dlq")


class CountedSlices(Slices):
    """Counts the items of each slice."""

    def __init__(self):
        super().__init__()
        self.sizes = []

    async def over(self, items, do):
        def counted(part):
            assert self.lock.locked()
            self.sizes.append(len(part))
            return do(part)

        return await super().over(items, counted)


@pytest.fixture
def broker():
    return Asked(QUEUES)


@pytest.fixture
def slices():
    return CountedSlices()


@pytest.fixture
def directory(broker, slices):
    return Directory(broker, slices)


async def test_it_knows_names_and_who_takes_dead_letters(autojump_clock, directory, broker) -> None:
    known = await directory.known()
    assert known.names == sorted(broker.names)
    assert known.targets == {"q2", *(name for name in broker.names if name.endswith("-dlq"))}
    assert await directory.seen(TOKEN) == sorted(name for name in broker.names if name.startswith("q1"))
    assert (await directory.sources(SECRET))["q2"] == ["q0"]
    assert not (await directory.sources(TOKEN)).get("q2")


async def test_all_who_ask_share_it_for_a_second(autojump_clock, directory, broker) -> None:
    found = []

    async def ask() -> None:
        found.append(await directory.known())

    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(ask)
    await elapse(SECONDS / 2)
    await ask()
    assert broker.counted == 1
    assert len({id(known) for known in found}) == 1
    await elapse(SECONDS)
    broker.names = [*broker.names[1:], "new"]
    assert "new" in (await directory.known()).names
    assert broker.counted == 2


async def test_an_answer_is_found_once_for_what_is_known(autojump_clock, directory) -> None:
    made = []

    async def find() -> int:
        await trio.lowlevel.checkpoint()
        made.append(1)
        return len(made)

    known = await directory.known()
    assert [await known.answers.once("question", find) for _ in range(3)] == [1, 1, 1]
    await elapse(2 * SECONDS)
    assert await (await directory.known()).answers.once("question", find) == 2


async def test_who_is_cancelled_leaves_the_work_to_the_next(autojump_clock, directory, broker) -> None:
    with trio.move_on_after(0):
        await directory.known()
    assert len((await directory.known()).names) == QUEUES


async def test_sources_are_found_every_ten_seconds(autojump_clock, directory, broker) -> None:
    await directory.sources(SECRET)
    asked = broker.ruled
    await elapse(SOURCES_SECONDS / 2)
    await directory.sources(SECRET)
    assert broker.ruled == asked
    await elapse(SOURCES_SECONDS)
    await directory.sources(SECRET)
    assert broker.ruled == 2 * asked


async def test_of_few_queues_nothing_is_kept(autojump_clock) -> None:
    broker = Asked(FEW - 1)
    directory = Directory(broker, Slices())
    await directory.known()
    broker.names.append("new")
    assert "new" in (await directory.known()).names


async def test_everything_is_done_in_slices(autojump_clock, directory, slices) -> None:
    """Between any two slices all others run, however many ask for something else at a time."""
    slices_between, running = [], True

    async def other() -> None:
        while running:
            before = len(slices.sizes)
            await trio.lowlevel.checkpoint()
            slices_between.append(len(slices.sizes) - before)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(other)
        async with trio.open_nursery() as askers:
            for viewer in (SECRET, TOKEN):
                askers.start_soon(directory.sources, viewer)
                askers.start_soon(directory.seen, viewer)
        running = False
    assert max(slices.sizes) <= AT_ONCE
    assert sum(slices.sizes) >= 3 * QUEUES
    assert max(slices_between) <= 2  # one that ended in this pass, one that began


@pytest.mark.parametrize("size", [0, 1, AT_ONCE, 20 * AT_ONCE])
async def test_a_part_of_what_is_sorted(autojump_clock, slices, size) -> None:
    items = [(number % 7, f"{number}") for number in range(size)]
    random.shuffle(items)
    for start, stop in ((0, None), (0, 50), (AT_ONCE - 10, AT_ONCE + 10), (size - 5, size + 5)):
        assert await slices.in_order(items, max(0, start), stop) == sorted(items)[max(0, start) : stop]
    assert max(slices.sizes, default=0) <= AT_ONCE
