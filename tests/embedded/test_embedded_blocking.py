"""`open_blocking_broker`: trio runs in a thread of its own."""

import asyncio
import inspect
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import get_type_hints

import pytest

from forq_trio import (
    BlockingBroker,
    BrokerOptions,
    ForqClient,
    InvalidQueueName,
    OutcomeUnknown,
    OutOfRange,
    ReceiptNotCurrent,
    Stopping,
    StorageOpenError,
    open_blocking_broker,
    open_broker,
)
from forq_trio.store import CommitFailed, Store


def wait_until_parked(broker: BlockingBroker, queue: str) -> None:
    while not broker.queue_stats(queue).waiting:
        broker.healthcheck()


def test_messages_go_round() -> None:
    with open_blocking_broker("memory:") as broker:
        assert isinstance(broker, ForqClient)
        broker.produce("q", "one", priority=2)
        (delivery,) = broker.receive("q", lease_ms=5_000)
        assert delivery.content == "one"
        assert broker.ack("q", delivery).ok
        with pytest.raises(ReceiptNotCurrent):
            broker.ack("q", delivery)
        with pytest.raises(InvalidQueueName):
            broker.produce("not a name", "x")


def test_what_the_body_raises_comes_out_and_what_was_sent_is_kept(tmp_path) -> None:
    url = f"sqlite:///{tmp_path}/queue.db"

    def send_and_fail() -> None:
        with open_blocking_broker(url) as broker:
            broker.produce("q", "kept")
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        send_and_fail()
    with open_blocking_broker(url) as broker:
        assert broker.queue_stats("q").ready == 1


def test_many_threads_call_it() -> None:
    with open_blocking_broker("memory:") as broker, ThreadPoolExecutor(8) as threads:
        sent = list(threads.map(lambda number: broker.produce("q", str(number)), range(40)))
        assert len({each.id for each in sent}) == 40
        received = threads.map(lambda _: broker.receive("q", max_messages=10), range(4))
        assert sorted(int(each.content) for some in received for each in some) == list(range(40))


def test_closing_answers_those_who_wait_and_refuses_later_calls() -> None:
    broker = open_blocking_broker("memory:")
    broker.configure("q", lease_ms=60_000)
    with ThreadPoolExecutor(1) as threads:
        receiver = threads.submit(broker.receive, "q")
        wait_until_parked(broker, "q")
        broker.close()
        assert receiver.result() == []
    broker.close()
    with pytest.raises(Stopping, match="closed"):
        broker.produce("q", "late")


def test_a_signal_handler_that_raises_ends_a_receive_and_withdraws_it() -> None:
    def leave(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, leave)
    try:
        with open_blocking_broker("memory:") as broker, ThreadPoolExecutor(1) as threads:
            main = threading.main_thread().ident
            assert main is not None

            def interrupt() -> None:
                wait_until_parked(broker, "q")
                signal.pthread_kill(main, signal.SIGUSR1)

            broker.produce("q", "one")
            (first,) = broker.receive("q")
            broker.ack("q", first)
            interrupter = threads.submit(interrupt)
            with pytest.raises(KeyboardInterrupt):
                broker.receive("q")
            interrupter.result()
            broker.produce("q", "two")
            (delivery,) = broker.receive("q", wait_ms=30_000)
            assert (delivery.content, delivery.attempts) == ("two", 1)
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_what_cannot_be_opened_is_refused_without_groups(tmp_path) -> None:
    (tmp_path / "queue.db").write_text("no database" * 100)
    with pytest.raises(StorageOpenError):
        open_blocking_broker(f"sqlite:///{tmp_path}/queue.db")
    with pytest.raises(OutOfRange):
        open_blocking_broker("memory:", history_hours=0)


def test_a_failed_commit_ends_the_block(monkeypatch) -> None:
    async def fail(*_: object) -> None:
        raise CommitFailed("the disk went away")

    def send() -> None:
        with open_blocking_broker("memory:") as broker:
            monkeypatch.setattr(Store, "_commit", fail)
            with pytest.raises(OutcomeUnknown):
                broker.produce("q", "lost")

    with pytest.raises(CommitFailed, match="the disk went away"):
        send()


def test_in_an_event_loop_it_is_refused() -> None:
    async def main() -> None:
        with pytest.raises(RuntimeError, match="use open_broker"):
            open_blocking_broker("memory:")

    asyncio.run(main())


async def test_in_trio_it_is_refused() -> None:
    with pytest.raises(RuntimeError, match="use open_broker"):
        open_blocking_broker("memory:")


FORKING = """
import os, sys
from forq_trio import StorageOpenError, open_blocking_broker
broker = open_blocking_broker(sys.argv[1])
broker.healthcheck()  # its thread has nothing to do now: a lock that it holds would be held in the child for ever
reading, writing = os.pipe()
child = os.fork()
if child:
    broker.produce("q", "the parent's")
    broker.close()
    with open_blocking_broker(sys.argv[1]) as again:
        print(again.queue_stats("q").ready)
    os.write(writing, b"x")
    sys.exit(os.waitpid(child, 0)[1])
try:
    broker.produce("q", "x")
except RuntimeError as problem:
    print(problem, file=sys.stderr)
broker.close()
os.close(writing)
os.read(reading, 1)
try:
    open_blocking_broker(sys.argv[1])
except StorageOpenError as problem:
    print(problem, file=sys.stderr)
with open_blocking_broker("memory:") as other:
    other.produce("q", "the child's")
"""


def test_after_a_fork_the_child_is_told_and_does_not_keep_the_file(tmp_path) -> None:
    # Python 3.12 and newer warn of each fork of a process that has threads: that is what this is about.
    quiet = ("-W", "ignore:This process:DeprecationWarning")
    command = [sys.executable, *quiet, "-c", FORKING, f"sqlite:///{tmp_path}/queue.db"]
    done = subprocess.run(command, check=True, timeout=60, capture_output=True, text=True)
    assert done.stdout == "1\n"
    of_call, of_open = done.stderr.splitlines()
    assert "before a fork" in of_call
    assert "queue.db was open when this process was forked" in of_open


def test_a_program_that_does_not_close_it_ends_and_loses_nothing(tmp_path) -> None:
    url = f"sqlite:///{tmp_path}/queue.db"
    program = f"from forq_trio import *; open_blocking_broker({url!r}).produce('q', 'kept')"
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True, timeout=60)
    with open_blocking_broker(url) as broker:
        assert broker.queue_stats("q").ready == 1


def test_what_only_a_server_has_is_not_there() -> None:
    with open_blocking_broker("memory:") as broker:
        assert not hasattr(broker, "queue_health")
        with pytest.raises(AttributeError, match="queue_health: only a server"):
            broker.queue_health("q")


def test_the_options_are_those_of_open_broker() -> None:
    signature = inspect.signature(open_broker)
    hints = get_type_hints(inspect.unwrap(open_broker))
    options = [name for name, each in signature.parameters.items() if each.kind is each.KEYWORD_ONLY]
    assert get_type_hints(BrokerOptions) == {name: hints[name] for name in options}
