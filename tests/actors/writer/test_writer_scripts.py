"""Random scripts of commands, with cancellations, through the writer on both engines: the same comes of them.

A script is drawn by Hypothesis; its steps are a few commands that are sent at the same time, each by a caller who
stays, who is cancelled before it could send, or who leaves while a commit runs. Everything else comes from a seed (see
whole_app/replay.py), the same for both engines, so batches are put together in the same way. Commands are drawn with
stand-ins for receipts and ids, as in the test of the engines (conformance/random_commands.py).
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
import trio
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from conformance.random_commands import commands, messages
from conformance.test_model_equivalence import SETTINGS, Side
from forq_trio.model.commands import Claim, Produce, Release
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.types import Delivery
from forq_trio.storage.engine import Batch, BatchResult, Engine
from forq_trio.storage.sqlite.engine import SqliteEngine
from forq_trio.store import Store
from forq_trio.telemetry.counters import Counters
from forq_trio.waiters import Call
from forq_trio.writer_actor import WriterActor
from oracle.engine import MemoryEngine
from reliability.whole_app.replay import run_seeded
from support.actors import ObservedEngine, TrioClock, elapse, in_a_thread
from support.effort import count, many_trials

STAYS, WITHDRAWS, LEAVES = "stays", "withdraws", "leaves"
PATIENCE_SECONDS = 0.0004  # less than the millisecond in which an engine counts


class Asked(NamedTuple):
    """A command and what its caller does. wait_ms: for a claim."""

    command: Any
    fate: str
    wait_ms: int


class Step(NamedTuple):
    """Commands that are sent together, and the time that passes before them."""

    asked: Sequence[Asked]
    later_ms: int


# Most of it happens in one queue, or receivers would hardly ever meet a message.
sends_here = st.builds(Produce, st.just("a"), messages)
claims_here = st.builds(Claim, st.just("a"), st.integers(1, 3), st.sampled_from((None, 0, 1_000, 40_000)))
some_asked = st.builds(
    Asked,
    st.one_of(sends_here, claims_here, claims_here, claims_here, commands),
    st.sampled_from((STAYS, STAYS, WITHDRAWS, LEAVES)),
    st.sampled_from((0, 0, 10, 2_000)),
)
scripts = st.lists(
    st.builds(Step, st.lists(some_asked, min_size=1, max_size=4), st.sampled_from((0, 0, 1, 1_000, 40_000))),
    min_size=3,
    max_size=8,
)


def deliveries_in(outcomes: Sequence[Any]) -> list[Delivery]:
    tuples = [outcome for outcome in outcomes if isinstance(outcome, tuple)]
    return [each for some in tuples for each in some if isinstance(each, Delivery)]


class NotedEngine(ObservedEngine):
    """Remembers what came of every command that was executed, and what was handed out.

    due_times: when each batch said that something is due next. An engine may say an earlier time than another, and so
    run a batch more, in whose commit callers leave: another one is given these times in the place of its own.
    """

    def __init__(self, engine: Engine, due_times: Sequence[int | None] | None = None) -> None:
        super().__init__(engine)
        self.done: list[tuple[Any, Any]] = []
        self.handed: list[Delivery] = []
        self.due_times: list[int | None] = []
        self._given = due_times

    def execute_batch(self, batch: Batch) -> BatchResult:
        result = super().execute_batch(batch)
        if self._given is not None and len(self.due_times) < len(self._given):
            given = self._given[len(self.due_times)]
            assert result.next_due_ms is None or (given is not None and given <= result.next_due_ms)
            result.next_due_ms = given
        self.due_times.append(result.next_due_ms)
        self.done += zip(batch.commands, result.outcomes, strict=True)
        self.handed += deliveries_in(result.outcomes)
        self.handed += deliveries_in([deliveries for _, deliveries in result.served])
        return result

    def outcomes_of(self, command: Any) -> list[Any]:
        return [outcome for done, outcome in self.done if done is command]


class Play:
    """One script on one engine. said: everything that the two engines have to agree on."""

    def __init__(
        self,
        engine: Engine,
        make_writer: type[WriterActor] = WriterActor,
        due_times: Sequence[int | None] | None = None,
    ) -> None:
        self._make_writer = make_writer
        self.engine = NotedEngine(engine, due_times)
        self.side = Side(self.engine)
        self.clock = TrioClock()
        self.said: list[Any] = []

    async def run(self, script: Sequence[Step]) -> None:
        policy = in_a_thread()
        # The policy learns from commits; these take no time, and it would move them to the loop.
        policy.record = lambda seconds: None
        writer = self._make_writer(Store(self.engine, policy), self.clock, Counters())
        async with trio.open_nursery() as nursery:
            await nursery.start(writer.run)
            for step in script:
                await elapse(step.later_ms / 1_000)
                await self._take(writer, step)
                self.said.append(self.side.view())
            writer.stop()

    async def _take(self, writer: WriterActor, step: Step) -> None:
        scopes = [trio.CancelScope() for _ in step.asked]
        told: list[Any] = [None] * len(step.asked)
        translated = [self._translate(asked) for asked in step.asked]

        async def send(index: int) -> None:
            with scopes[index]:
                try:
                    told[index] = await writer.execute(translated[index])
                except Exception as error:
                    told[index] = error

        def leave() -> None:
            for scope, asked in zip(scopes, step.asked, strict=True):
                if asked.fate == LEAVES:
                    scope.cancel()

        self.engine.before_commit = leave
        async with trio.open_nursery() as nursery:
            for index, asked in enumerate(step.asked):
                if asked.fate == WITHDRAWS:
                    scopes[index].cancel()
                elif asked.fate == LEAVES:
                    scopes[index].deadline = trio.current_time() + PATIENCE_SECONDS
                nursery.start_soon(send, index)
        self.engine.before_commit = lambda: None
        # What was left behind is given back in a batch of its own. Engines may wake the writer earlier than need be, so
        # some callers leave a little later on one: the next step begins at the same moment on both.
        await elapse(0.7 - trio.current_time() % 0.5)
        for each in [outcome for _, outcome in self.engine.done]:
            self.side._learn_ids(each)
        for asked, command, outcome, scope in zip(step.asked, translated, told, scopes, strict=True):
            self._check(asked, command, outcome, scope)
        self._check_given_back(told)

    def _translate(self, asked: Asked) -> Any:
        command = asked.command
        if isinstance(command, Claim):
            command = msgspec.structs.replace(command, wait_ms=asked.wait_ms)
        # Always a new object, by which it can be found again among those that were executed.
        return msgspec.structs.replace(self.side.translate(command, self.clock.now_ms()))

    def _check(self, asked: Asked, command: Any, outcome: Any, scope: trio.CancelScope) -> None:
        """What the contract of cancellation says about one call, and what both engines have to say alike."""
        executed = self.engine.outcomes_of(command)
        assert len(executed) <= 1, f"{command} was executed {len(executed)} times"
        if asked.fate == WITHDRAWS:
            assert executed == []
        elif not scope.cancelled_caught:
            assert len(executed) == 1
        queue = command.queue if isinstance(command, Claim) else ""
        alike = self.side._take(queue, tuple(executed)), self.side._take(queue, outcome)
        self.said.append((asked.fate, scope.cancelled_caught, alike))

    def _check_given_back(self, told: Sequence[Any]) -> None:
        """What was handed out and nobody was told of is released once, with success: the attempt is uncounted.

        Without success only where its lease had ended by then, and with it perhaps its last attempt.
        """
        received = {delivery.receipt for delivery in deliveries_in(told)}
        released = [
            (str(receipt), outcome)
            for command, outcomes in self.engine.done
            if isinstance(command, Release)
            for receipt, outcome in zip(command.receipts, outcomes, strict=True)
        ]
        for delivery in self.engine.handed:
            if delivery.receipt not in received:
                outcomes = [outcome for receipt, outcome in released if receipt == delivery.receipt]
                ended = delivery.lease_until <= self.clock.now_ms()
                assert outcomes == [True] or (ended and outcomes == [False]), f"{delivery}: {outcomes}"
                self.said.append(("given back", delivery.sequence, outcomes))
        self.engine.handed.clear()


def play(engine: Engine, script: Sequence[Step], seed: int, **options: Any) -> Play:
    played = Play(engine, **options)
    # Commits take no time: who leaves in one leaves at the same time on both engines.
    run_seeded(seed, lambda _: played.run(script), thread_seconds=(0.0,))
    return played


@many_trials
@settings(
    max_examples=count("writer_scripts"),
    deadline=None,
    database=None,
    print_blob=True,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow],
)
@given(script=scripts, seed=st.integers(0, 2**32))
def test_both_engines_do_the_same_behind_the_writer(script, seed) -> None:
    """A withdrawn call has no effect, no call takes effect twice, and messages of abandoned claims are ready again."""
    with tempfile.TemporaryDirectory() as directory:
        found = play(SqliteEngine(str(Path(directory) / "forq.db"), SETTINGS, "none"), script, seed)
    expected = play(MemoryEngine(SETTINGS), script, seed, due_times=found.engine.due_times)
    assert found.said == expected.said


class Keeps(WriterActor):
    """Gives nothing back."""

    def _release_abandoned(self, queue: str, deliveries: tuple[Delivery, ...]) -> None:
        """Forgotten."""


class TakesAll(WriterActor):
    """Executes also what was withdrawn."""

    def _sort_out(self, taken: Sequence[Call[Any]]) -> list[Call[Any]]:
        for call in taken:
            call.abandoned = False
        return super()._sort_out(taken)


@pytest.mark.parametrize("writer", [Keeps, TakesAll])
def test_a_writer_that_breaks_the_contract_is_noticed(writer) -> None:
    send = Step([Asked(Produce("a", NewMessage("x")), STAYS, 0)], 0)
    leave = Step([Asked(Claim("a", 1, None), LEAVES, 0)], 0)
    withdraw = Step([Asked(Produce("a", NewMessage("y")), WITHDRAWS, 0)], 0)
    with pytest.raises(ExceptionGroup) as caught:
        play(MemoryEngine(SETTINGS), [send, leave, send, withdraw], 1, make_writer=writer)
    assert caught.group_contains(AssertionError)
