"""Handlers in processes: what comes back, what becomes of a lost one, and what ends one."""

import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from forq_trio.worker import Worker, WorkerSetupError, WorkerTest
from support.processes import WAIT_SECONDS_MAX, killed_after
from support.real_server import environment
from worker.cpu_bound import app, hang, mix, note, work

ROOT = Path(__file__).parents[2]

tier2 = pytest.mark.tier2
both = pytest.mark.parametrize("backend", ["trio", pytest.param("asyncio", marks=tier2)])


def run_with(backend: str, test: Callable[[WorkerTest], Awaitable[None]]) -> None:
    async def main() -> None:
        async with app.testing() as t:
            await test(t)

    anyio.run(main, backend=backend)


REASONS = {
    "kill": "ProcessLost: the handler's process was ended by SIGKILL",
    "segfault": "ProcessLost: the handler's process was ended by SIGSEGV",
    "exit": "ProcessLost: the handler's process ended with exit code 3",
    "sys.exit": "SystemExit: enough",
    "retry": "later",
    "dead": "never",
    "declined": "Declined: no money",
    "stubborn": "ErrorInProcess: Stubborn: no 7",
    "refused": "no money 402",
    "refusing": "no money 402",
    "later": "no 7",
    "returned": "ErrorInProcess: Stubborn: no 7",
    "class": "TypeError: the handler returned Local, which is a class: return Local(...), or raise it",
    "group": "2 errors: ValueError: bad; OSError: away",
    "interrupt": "ErrorInProcess: KeyboardInterrupt",
}
FINAL = {"dead", "declined", "refused", "refusing"}


@both
def test_what_a_handler_returns_and_raises_comes_back(backend: str, caplog: pytest.LogCaptureFixture) -> None:
    """Also of a process that is lost: its attempt has failed, and another process goes on."""

    async def test(t: WorkerTest) -> None:
        sent = {deed: await work.later(deed) for deed in ("return", "lock", "dropped", *REASONS)}
        assert await t.drain() == len(sent)
        counts = await t.broker.queue_stats("cpu")
        assert (counts.total, counts.delayed) == (len(REASONS) - len(FINAL),) * 2
        for deed, reason in REASONS.items():
            queue = "cpu-dlq" if deed in FINAL else "cpu"
            assert (await t.broker.message(queue, sent[deed].id)).last_error == reason

    run_with(backend, test)
    assert "cpu_bound.py" in caplog.text
    assert "in raising" in caplog.text
    assert "to_thread" not in caplog.text


def test_a_failure_that_cannot_come_back_from_a_process_is_none_of_the_others() -> None:
    """All of a batch were acknowledged with it."""

    async def test(t: WorkerTest) -> None:
        deeds = ("return", "lock", "returned", "refused")
        sent = {deed: await mix.later(deed) for deed in deeds}
        assert await t.drain() == len(deeds)
        assert (await t.broker.message("mixed", sent["returned"].id)).last_error == REASONS["returned"]
        assert (await t.broker.message("mixed-dlq", sent["refused"].id)).last_error == REASONS["refused"]
        assert (await t.broker.queue_stats("mixed")).total == 1

    run_with("trio", test)


@pytest.mark.parametrize("backend", [pytest.param("trio", marks=tier2), "asyncio"])
def test_a_process_is_used_again_and_gets_the_jobs(backend: str, tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("one", "two", "three", "dead")]

    async def test(t: WorkerTest) -> None:
        sent = [await note.later(str(each)) for each in files]
        assert await t.drain() == len(files)
        written = [each.read_text().split() for each in files]
        assert [each[1:] for each in written] == [[each.id, "1", "None"] for each in sent]
        assert len({number for number, *_ in written} - {str(os.getpid())}) == 1
        (dead,) = (await t.broker.search_dead_letters("noted-dlq")).messages
        assert dead.content == str(files[-1])

    run_with(backend, test)


async def number_from(pipe: Path) -> int:
    """The number of the process that hangs, once it does."""
    os.mkfifo(pipe)
    await hang.later(str(pipe))
    return int(await anyio.to_thread.run_sync(pipe.read_text))


async def ends(process: int) -> None:
    await anyio.wait_readable(process)


@pytest.mark.parametrize(
    ("backend", "by"),
    [
        ("trio", "lost lease"),
        pytest.param("asyncio", "stop", marks=tier2),
        pytest.param("trio", "stop", marks=tier2),
        pytest.param("asyncio", "lost lease", marks=tier2),
    ],
)
def test_a_process_ends_with_its_call(backend: str, by: str, tmp_path: Path) -> None:
    """A worker that stops gives it `drain_seconds`, which are 0 here; a lost lease ends it at once."""

    async def test(t: WorkerTest) -> None:
        async with app:
            number = await number_from(tmp_path / "pipe")
            process = os.pidfd_open(number)
            try:
                if by == "stop":
                    app.stop()
                else:
                    (loop,) = [each for each in app.running_loops if each.queue == "hanging"]
                    (job,) = loop.leases.jobs.values()
                    job.lose()
                with anyio.fail_after(WAIT_SECONDS_MAX):
                    await ends(process)
            finally:
                os.close(process)

    run_with(backend, test)


def add(number: int) -> int:
    return number + 1


async def add_async(number: int) -> int:
    return number + 1


class Adder:
    def add(self, number: int) -> int:
        return number + 1


def test_a_handler_that_no_process_can_import_is_refused() -> None:
    def inner(number: int) -> int:
        return number + 1

    by_name, plain = "imports its handler by name", "is a plain `def`"
    for function, words in ((inner, by_name), (Adder().add, by_name), (add_async, plain)):
        with pytest.raises(WorkerSetupError, match=words):
            Worker().on("q", pool="process")(function)
    with pytest.raises(WorkerSetupError, match="pool:"):
        Worker().on("q", pool="threads")(add)  # type: ignore[arg-type]


PROGRAM = """
from dataclasses import dataclass
from forq_trio.worker import Worker

app = Worker("memory:")


@dataclass
class Number:
    of: int


class TooSmall(Exception):
    pass


@app.on("q", pool="process", concurrency={concurrency}, dead=(TooSmall,))
def double(number: Number) -> None:
    if number.of < 2:
        raise TooSmall(number)
    print(2 * number.of, flush=True)


async def first() -> None:
    await double.later(Number(4))
    await double.later(Number(1))

{guard}
    app.run(first=first, stop_when_empty=True)
    print("dead:", app.stats["q"].dead)
    print("handled:", app.stats["q"].handled)
"""


IMPORTS_FOR_EVER = """
import sys, threading
from forq_trio.worker import Worker

app = Worker("memory:", backend=sys.argv[1])


@app.on("q", pool="process")
def handle(content: str) -> None:
    pass


if __name__ == "__main__":
    app.run()
    print("over", flush=True)
else:
    print("begun", flush=True)
    threading.Event().wait()
"""


@both
def test_a_worker_that_stops_does_not_wait_for_imports(backend: str, tmp_path: Path) -> None:
    """It did, for up to thirty seconds for each handler."""
    (tmp_path / "program.py").write_text(IMPORTS_FOR_EVER)
    with subprocess.Popen(
        [sys.executable, "-W", "error", "program.py", backend],
        cwd=tmp_path,
        env=environment(PYTHONPATH=str(ROOT)),
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        with killed_after(process):
            assert process.stdout.readline() == "begun\n"
            process.send_signal(signal.SIGTERM)
            out, _ = process.communicate()
    assert (process.returncode, out) == (0, "over\n")


def run_program(guard: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    (folder / "program.py").write_text(PROGRAM.format(guard=guard, concurrency=1))
    return subprocess.run(
        [sys.executable, "-W", "error", "program.py"],
        cwd=folder,
        env=environment(PYTHONPATH=str(ROOT)),
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS_MAX,
        check=False,
    )


def test_a_program_has_its_handlers_in_its_own_file(tmp_path: Path) -> None:
    done = run_program('if __name__ == "__main__":', tmp_path)
    assert (done.returncode, sorted(done.stdout.splitlines())) == (0, ["8", "dead: 1", "handled: 1"]), (
        done.stderr
    )


@tier2
def test_a_program_that_runs_wherever_it_is_imported_says_what_to_write(tmp_path: Path) -> None:
    done = run_program("if True:", tmp_path)
    assert done.returncode == 1
    assert "write `if __name__ == '__main__':` above app.run()" in done.stderr
    place = (
        r"program\.py:\d+: double: the handler's process ended with exit code 1 while it imported the program"
    )
    assert re.search(place, done.stderr.splitlines()[-1]), done.stderr


@tier2
def test_ctrl_c_lets_a_process_end_its_call(tmp_path: Path) -> None:
    """A terminal sends it to all processes of its group."""
    waiting = "print('begun', flush=True); open('pipe').read()"
    program = PROGRAM.replace("print(2 * number.of, flush=True)", waiting)
    (tmp_path / "program.py").write_text(program.format(guard='if __name__ == "__main__":', concurrency=2))
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(
        [sys.executable, "-W", "error", "program.py"],
        cwd=tmp_path,
        env=environment(PYTHONPATH=str(ROOT)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        with killed_after(process):
            assert process.stdout.readline() == "begun\n"
            os.killpg(process.pid, signal.SIGINT)
            (tmp_path / "pipe").write_text("")
            out, errors = process.communicate()
    assert process.returncode == 0, errors
    assert "SIGINT" not in errors
    assert "handled: 1" in out


@pytest.mark.parametrize(
    "wait",
    ["import threading; threading.Event().wait()", "import ctypes; ctypes.PyDLL(None).pause()"],
    ids=["in Python", "in C, where no other thread runs"],
)
def test_a_process_ends_when_its_worker_is_killed(tmp_path: Path, wait: str) -> None:
    """It went on for ever, deaf to SIGTERM, with a message that another worker had by then."""
    waiting = f"import os; print(os.getpid(), flush=True); {wait}"
    program = PROGRAM.replace("print(2 * number.of, flush=True)", waiting)
    (tmp_path / "program.py").write_text(program.format(guard='if __name__ == "__main__":', concurrency=1))
    with subprocess.Popen(
        [sys.executable, "-W", "error", "program.py"],
        cwd=tmp_path,
        env=environment(PYTHONPATH=str(ROOT)),
        stdout=subprocess.PIPE,
        text=True,
    ) as worker:
        assert worker.stdout is not None
        with killed_after(worker):
            number = int(worker.stdout.readline())
            process = os.pidfd_open(number)
            try:
                worker.kill()
                assert select.select([process], [], [], WAIT_SECONDS_MAX)[0] == [process]
            finally:
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(process, signal.SIGKILL)
                os.close(process)
