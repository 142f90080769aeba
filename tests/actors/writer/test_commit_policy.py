"""Where commits run: the policy's two thresholds, and the hop to a worker thread on a slow disk."""

import threading
import time

import trio

from forq_trio.commit_policy import CommitPolicy
from support.actors import on_the_loop, running_writer
from support.words import claim, contents, send


def test_it_starts_on_the_loop() -> None:
    assert CommitPolicy().inline


def test_one_slow_commit_does_not_move_it() -> None:
    policy = CommitPolicy(0.001, 0.0007)
    policy.record(0.015)
    assert policy.inline


def test_slow_commits_move_it_to_the_thread_and_fast_ones_back() -> None:
    policy = CommitPolicy(0.001, 0.0007)
    slow = 0
    while policy.inline:
        policy.record(0.005)
        slow += 1
    assert slow < 10
    fast = 0
    while not policy.inline:
        policy.record(0.0001)
        fast += 1
    assert fast < 20


def test_between_the_thresholds_it_stays_where_it_is() -> None:
    policy = CommitPolicy(0.001, 0.0007)
    for _ in range(500):
        policy.record(0.0009)
    assert policy.inline
    for _ in range(500):
        policy.record(0.002)
    assert not policy.inline
    for _ in range(500):
        policy.record(0.0009)
    assert not policy.inline
    assert abs(policy.average_seconds - 0.0009) < 1e-6


async def test_on_a_slow_disk_commits_move_to_a_thread_and_the_loop_goes_on(engine) -> None:
    """Real threads on the real clock: the disk takes 3 ms longer than it does."""
    threads = []

    def slow_disk() -> None:
        threads.append(threading.current_thread())
        threading.Event().wait(0.003)

    policy = CommitPolicy(0.001, 0.0007)
    async with running_writer(engine, policy=policy) as writer:
        engine.before_commit = slow_disk
        for number in range(40):
            await writer.execute(send(str(number)))
        assert not policy.inline
        assert policy.average_seconds > 0.001
        loop_thread = threading.current_thread()
        assert threads[0] is loop_thread
        assert threads[-1] is not loop_thread
        assert contents(await writer.execute(claim(most=40))) == [str(number) for number in range(40)]
        engine.before_commit = lambda: None
        deadline = time.perf_counter() + 20
        while not policy.inline and time.perf_counter() < deadline:
            policy.record(0.0001)
            await trio.lowlevel.checkpoint()
        assert policy.inline
        await writer.execute(send("on the loop again"))


async def test_batches_without_changes_do_not_count_for_the_average(engine, autojump_clock) -> None:
    policy = on_the_loop()
    async with running_writer(engine, policy=policy) as writer:
        before = policy.average_seconds
        for _ in range(20):
            assert await writer.execute(claim()) == ()
        assert policy.average_seconds == before
