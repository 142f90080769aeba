"""The programs of the documents are right in the eyes of type checkers, as their readers run them: both strict.

They see the package as one that is installed: only what it says of its types counts, not how it is written.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.needs import lacks

from .test_docs_programs import FILE, PROGRAM

ROOT = Path(__file__).parents[3]
UNTYPED = re.compile(
    r"^(?:from|import) (?:boto3|celery|deltalake|django|prometheus_client|pyspark)", re.MULTILINE
)
"""Libraries that say nothing of their types, or not all: what comes from them is not known."""
RELAXED = (
    "# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false,"
    " reportUnknownArgumentType=false, reportUntypedFunctionDecorator=false\n"
    '# mypy: disable-error-code="import-untyped, misc, no-untyped-call, untyped-decorator"\n'
)
MYPY = f"""
[mypy]
strict = True
mypy_path = {ROOT}
[mypy-forq_trio.*,pyspark_forq.*]
follow_imports = silent
[mypy-boto3.*,celery.*,django.*,httptools.*,pyarrow.*,uuid6.*]
ignore_missing_imports = True
"""

MORE = """
from typing import assert_type

import anyio
import trio
from msgspec import Struct

from forq_trio import AsyncForqClient, Broker
from forq_trio.delayed import CronDailySchedule, CronService, DelayedQueue
from forq_trio.outbox import Relay
from forq_trio.worker import Job, Router, Worker

router = Router()


class Mail(Struct):
    to: str


@router.on("emails", lease="5 min", retry=[5, "1 h"])
async def send_email(mail: Mail, job: Job) -> None: ...


@router.on("numbers", batch=10)
def add(numbers: list[int], jobs: list[Job]) -> int:
    return sum(numbers)


async def over_a_broker_and_a_client(broker: Broker, client: AsyncForqClient) -> None:
    Worker(broker).include(router)
    Worker(client)
    Relay("shop.db", broker)
    Relay("shop.db", client)
    assert_type(await DelayedQueue.create(client, "alarms", str, acquire_timeout="1 min"), DelayedQueue[str])
    queue = await DelayedQueue.create(broker, "alarms", str)
    assert_type((await queue.poll()).payload, str)
    daily = CronDailySchedule(())
    async with trio.open_nursery() as nursery, anyio.create_task_group() as tasks:
        await CronService(queue).install_daily_schedule(nursery, "daily", daily, str)
        await CronService(queue).install_daily_schedule(tasks, "daily", daily, str)


async def send() -> None:
    await send_email.later(Mail("anna"), delay="5 min", key="k", mode="debounce", max_wait=60)
    add.later_blocking(7, priority=1)
    assert_type(add([1, 2], []), int)
    await send_email(Mail("anna"), Job.__new__(Job))
"""
"""What no program of the documents shows: both sources wherever one is taken, and handlers as functions."""

WRONG = """
from forq_trio import ForqClient
from forq_trio.delayed import DelayedQueue
from forq_trio.worker import Worker

app = Worker()


@app.on("emails")
async def send_email(to: str) -> None: ...


@app.on("numbers", batch=10)
async def add(numbers: list[int]) -> None: ...


async def send(client: ForqClient) -> None:
    await send_email.later(7)  # wrong
    await send_email.later("anna", dealy=5)  # wrong
    await send_email.later("anna", delay=[5])  # wrong
    send_email.later_blocking("anna", priority="high")  # wrong
    await add.later([7])  # wrong
    await app.send("emails", "anna", ttl={})  # wrong
    Worker(client)  # wrong
    DelayedQueue(client, "alarms", str)  # wrong


@app.on("more", batch=5)  # wrong
async def more(number: int) -> None: ...
"""
"""Each line that is marked is a mistake that both find; in no other one do they find any."""


def wrong_lines() -> set[int]:
    return {number for number, line in enumerate(WRONG.splitlines(), 1) if line.endswith("# wrong")}


def programs() -> Iterator[tuple[str, str]]:
    """The programs of the documents: the name of the file for each, and its text."""
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        for number, program in enumerate(PROGRAM.findall(page.read_text(encoding="utf-8")), 1):
            named = FILE.match(program)
            name = named[1] if named else f"{page.stem.replace('-', '_').lower()}_{number}"
            yield f"{name}.py", (RELAXED if UNTYPED.search(program) else "") + program


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All programs in one folder, with the settings of both type checkers."""
    folder = tmp_path_factory.mktemp("programs")
    found = [*programs(), ("more.py", MORE), ("wrong.py", WRONG)]
    assert len(found) == len(dict(found)) > 40
    for name, text in found:
        (folder / name).write_text(text, encoding="utf-8")
    settings: dict[str, Any] = {"typeCheckingMode": "strict", "extraPaths": [str(ROOT)]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    (folder / "mypy.ini").write_text(MYPY, encoding="utf-8")
    return folder


def run(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", *arguments], cwd=folder, capture_output=True, text=True, check=False
    )


def told(found: list[tuple[str, int, str]]) -> list[str]:
    """What a type checker says of the programs that are right; fails unless it finds each mistake in the wrong one."""
    assert {line for name, line, _ in found if name == "wrong.py"} == wrong_lines()
    return [f"{name}:{line}: {words}" for name, line, words in found if name != "wrong.py"]


@pytest.mark.tier2
def test_mypy_finds_no_mistake(folder: Path) -> None:
    ran = run(folder, "mypy", "--output", "json", *sorted(path.name for path in folder.glob("*.py")))
    assert not ran.stderr, ran.stderr
    found = [json.loads(line) for line in ran.stdout.splitlines()]
    assert told([(each["file"], each["line"], each["message"]) for each in found]) == []


@pytest.mark.tier2
def test_pyright_finds_no_mistake(folder: Path) -> None:
    if run(folder, "pyright", "--version").returncode:  # the first run of the package fetches the program
        lacks("types of programs", "pyright (pip install pyright && pyright --version; it needs Node.js)")
    ran = run(folder, "pyright", "--outputjson", "--pythonpath", sys.executable)
    found = json.loads(ran.stdout)["generalDiagnostics"]
    places = [
        (Path(each["file"]).name, each["range"]["start"]["line"] + 1, each["message"]) for each in found
    ]
    assert told(places) == []
