"""The programs of the documents, and the examples, are right in the eyes of type checkers, as their readers run them:
both strict.

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

from house.examples.test_docs_programs import FILE, PROGRAM
from support.django_tasks import for_this_django
from support.needs import lacks

ROOT = Path(__file__).parents[3]
IMPORTS = re.compile(r"^(?:from|import) ", re.MULTILINE)
UNTYPED = re.compile(
    r"^(?:from|import) (?:boto3|celery|deltalake|django|prometheus_client|pyspark)", re.MULTILINE
)
"""Libraries that say nothing of their types, or not all: what comes from them is not known."""
RELAXED = (
    "# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false,"
    " reportUnknownArgumentType=false, reportUntypedFunctionDecorator=false, reportArgumentType=false\n"
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
from collections.abc import Sequence
from datetime import timedelta
from typing import assert_type

import anyio
import trio
from msgspec import Struct

from forq_trio import AsyncForqClient, Broker
from forq_trio.delayed import CronDailySchedule, CronService, DelayedQueue
from forq_trio.outbox import Relay
from forq_trio.worker import BatchSender, Discard, Job, Router, Worker

router = Router()
app = Worker()


class Mail(Struct):
    to: str


@router.on("emails", lease="5 min", retry=[5, "1 h"])
async def send_email(mail: Mail, job: Job) -> None: ...


@router.on("numbers", batch=10)
def add(numbers: list[int], jobs: list[Job]) -> int:
    return sum(numbers)


@app.on("thumbnails", keep_result="1 h", on_unreadable="retry", dead=OSError)
async def thumbnail(path: str) -> int | Discard:
    return len(path)


@app.on("sizes", keep_result=timedelta(hours=1))
def size(path: str, job: Job) -> int:
    return len(path)


@app.on("many", batch=10, keep_result=60)
async def of_many(paths: list[str]) -> list[int]:
    return [len(path) for path in paths]


@app.on("many.plain", batch=10, keep_result=60)
def of_many_plain(paths: list[str]) -> list[int]:
    return [len(path) for path in paths]


@app.on("lists", keep_result=60)
async def of_a_list(paths: list[str]) -> list[int]:
    return [len(path) for path in paths]


async def results() -> None:
    sent = await thumbnail.later("a.png")
    assert_type(await thumbnail.result(sent, timeout="5 s"), int | Discard)
    assert_type(await size.result("an id"), int)
    assert_type(size.result_blocking(sent, timeout=5), int)
    assert_type(await of_many.result(sent), int)
    assert_type(await of_many_plain.result(sent), int)
    assert_type(of_many.result_blocking(sent), int)
    assert_type(await of_a_list.result(sent), list[int])
    assert_type(await send_email.result(sent), None)


async def batches(job: Job, outer: BatchSender, paths: Sequence[str]) -> None:
    async with app.batch(
        then=size, payload="album", on_dead="alarms", needs="done", expires="3 d", outer=outer
    ) as batch:
        await batch.add(thumbnail, "a.png", delay="5 min", priority=7)
        await batch.add("elsewhere", {"any": 1}, attributes={"a": "b"})
        await batch.add_many(of_many, paths, ttl=60)
        batch.add_blocking(of_many, "b.png")
        assert_type((await batch.progress()).done, int)
    async with app.batch():
        pass
    app.batch(payload="album", on_dead=size)
    app.batch(then="reports", payload=None, on_dead="alarms")
    if job.batch is not None:
        await job.batch.add(size, "c.png")
    assert_type(await app.chain((thumbnail, "a.png"), (size, "a.png"), ("reports", 7), expires=60), str)
    nine = [(thumbnail, "a.png")] * 9
    await app.chain(*nine)
    await app.chain((send_email, Mail("anna")), (of_many, "a.png"), *[("reports", each) for each in range(3)])
    a, b, c = (size, "a"), (thumbnail, "b"), (of_many, "c")
    await app.chain(a, b, c, a, b, c, (size, "g"), ("h", 8), ("i", None))


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
    app.batch(then=send_email, payload=7)  # wrong
    app.batch(then=send_email)  # wrong
    app.batch(on_dead=send_email)  # wrong
    app.batch(payload="anna")  # wrong
    app.batch(then=send_email, payload="anna", on_dead=add)  # wrong
    await app.chain((send_email, 7), ("emails", 7))  # wrong
    await app.chain(("emails", 7), (send_email, "anna"), (add, "a"))  # wrong
    await app.chain((send_email, "anna"))  # wrong
    app.batch(then=add, payload=1, needs="all")  # wrong
    async with app.batch() as batch:
        await batch.add(send_email, 7)  # wrong
        await batch.add_many(add, ["a"])  # wrong
        batch.add_blocking(send_email, 7)  # wrong
        await batch.add(send_email, "anna", key="k")  # wrong
    await send_email.result(7)  # wrong
    Worker(client)  # wrong
    DelayedQueue(client, "alarms", str)  # wrong


@app.on("more", batch=5)  # wrong
async def more(number: int) -> None: ...


@app.on("kept", keep_result=[5])  # wrong
async def kept(number: int) -> None: ...
"""
"""Each line that is marked is a mistake that both find; in no other one do they find any."""


def wrong_lines() -> set[int]:
    return {number for number, line in enumerate(WRONG.splitlines(), 1) if line.endswith("# wrong")}


def programs() -> Iterator[tuple[str, str]]:
    """The programs of the documents, and the examples: the file for each, and its text. What imports nothing is a part.

    Those that are several files import each other, so each page has a folder for them.
    """
    examples = ROOT / "examples"
    for path in examples.rglob("*.py"):
        yield str(path.relative_to(examples)), path.read_text(encoding="utf-8")
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        for number, program in enumerate(PROGRAM.findall(page.read_text(encoding="utf-8")), 1):
            if IMPORTS.search(program):
                named = FILE.match(program)
                name = f"{page.stem}/{named[1]}" if named else f"{page.stem}_{number}".replace("-", "_")
                relaxed = RELAXED if UNTYPED.search(program) else ""
                yield f"{name}.py", relaxed + for_this_django(program)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All programs, with the settings of both type checkers."""
    folder = tmp_path_factory.mktemp("programs")
    found = [*programs(), ("more.py", MORE), ("wrong.py", WRONG)]
    assert len(found) == len(dict(found)) > 40
    for name, text in found:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    roots = [{"root": each.name} for each in pages(folder)]
    settings: dict[str, Any] = {
        "typeCheckingMode": "strict",
        "extraPaths": [str(ROOT)],
        "executionEnvironments": [*roots, {"root": "."}],
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    (folder / "mypy.ini").write_text(MYPY, encoding="utf-8")
    return folder


def pages(folder: Path) -> list[Path]:
    """The folders of pages whose programs are several files."""
    return sorted({path.parent for path in folder.glob("*/*.py")})


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
    settings = ("--output", "json", "--config-file", str(folder / "mypy.ini"))
    found = []
    for place in (folder, *pages(folder)):
        ran = run(place, "mypy", *settings, *sorted(path.name for path in place.glob("*.py")))
        assert not ran.stderr, ran.stderr
        found += [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
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
