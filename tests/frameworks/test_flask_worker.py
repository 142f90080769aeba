"""A Worker as an extension of Flask: its configuration, the context of its handlers, forks and threads."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import wraps
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import anyio
import pytest

from forq_trio.worker import Job, Router, WorkerSetupError
from support.processes import WAIT_SECONDS_MAX, killed_after
from support.programs import ROOT
from support.real_server import SECRET, environment

from .conftest import Sent

Made = tuple[Any, Any]
both = pytest.mark.parametrize("backend", ["trio", "asyncio"])


@pytest.fixture
def make() -> Callable[..., Made]:
    """Makes an application of Flask and the Worker that is its extension."""
    from flask import Flask

    from forq_trio.worker.flask import FlaskWorker

    def make(**config: str) -> Made:
        app = Flask("shop")
        app.config.from_mapping(config)
        return app, FlaskWorker(app)

    return make


def test_server_and_secret_are_in_the_configuration(make: Callable[..., Made], url: str, sent: Sent) -> None:
    app, worker = make(FORQ_URL=url, FORQ_AUTH_SECRET=SECRET)
    assert app.extensions["forq"] is worker
    worker.send_blocking("emails", "anna")
    assert [each.content for each in sent("emails")] == ["anna"]


def test_the_latest_application_counts_and_none_while_it_is_open(
    make: Callable[..., Made], url: str, sent: Sent
) -> None:
    app, worker = make(FORQ_URL=url, FORQ_AUTH_SECRET=SECRET)
    worker.send_blocking("emails", "anna")
    other, _ = make(FORQ_URL="memory:")
    worker.init_app(other)
    worker.send_blocking("emails", "never")
    worker.init_app(app)
    worker.send_blocking("emails", "bela")
    assert [each.content for each in sent("emails")] == ["anna", "bela"]

    async def main() -> None:
        async with worker.testing():
            with pytest.raises(RuntimeError, match="open already"):
                worker.init_app(other)

    anyio.run(main)


def test_an_extension_is_given_an_application() -> None:
    from forq_trio.worker.flask import FlaskWorker

    with pytest.raises(
        TypeError, match=r"an application of Flask, whose configuration has FORQ_URL, not 'http"
    ):
        FlaskWorker("http://localhost:8080")  # type: ignore[arg-type]


def test_a_worker_without_an_application_does_not_start() -> None:
    from forq_trio.worker.flask import FlaskWorker

    worker = FlaskWorker()

    @worker.on("emails")
    def note(to: str) -> None: ...

    with pytest.raises(WorkerSetupError, match="init_app"):
        worker.run()


@both
def test_handlers_run_in_the_context_and_leave_it_in_their_thread(
    make: Callable[..., Made], backend: str
) -> None:
    from flask import current_app, g

    app, worker = make()
    router = Router()
    seen: list[object] = []
    left: list[object] = []

    @app.teardown_appcontext
    def leave(error: BaseException | None) -> None:
        left.append((g.to, threading.get_ident(), error and str(error)))

    @worker.on("emails")
    def note(to: str) -> None:
        g.to = to
        seen.append((current_app.name, to, threading.get_ident(), None))

    @router.on("letters")
    async def write(to: str, job: Job) -> None:
        g.to = to
        await anyio.lowlevel.checkpoint()
        seen.append((current_app.name, to, threading.get_ident(), "no address"))
        raise ValueError("no address")

    worker.include(router, prefix="slow.")

    async def main() -> None:
        async with worker.testing() as t:
            await note.later("anna")
            assert await t.drain() == 1
            await note.later("bela")
            await write.later("cleo")
            assert await t.drain() == 2

    anyio.run(main, backend=backend)
    names = {name for name, *_ in seen}
    assert (names, [to for _, to, *_ in seen[:1]], len(seen)) == ({"shop"}, ["anna"], 3)
    assert sorted(left, key=str) == sorted(
        (each[1:] for each in seen), key=str
    )  # each once, by its own thread


def test_a_plain_function_around_an_async_one_has_the_context(make: Callable[..., Made]) -> None:
    from flask import current_app

    _, worker = make()
    seen = []

    def logged(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def inner(*given: Any) -> Any:
            return function(*given)

        return inner

    @worker.on("emails")
    @logged
    async def note(to: str) -> None:
        await anyio.lowlevel.checkpoint()
        seen.append((current_app.name, to))

    async def main() -> None:
        async with worker.testing() as t:
            await note.later("anna")
            assert await t.drain() == 1

    anyio.run(main)
    assert seen == [("shop", "anna")]


SHOP = """
import os
from flask import Flask, request
from forq_trio.worker.flask import FlaskWorker

worker = FlaskWorker()

@worker.on("emails")
def send_email(to: str) -> None: ...

def create_app() -> Flask:
    app = Flask("shop")
    worker.init_app(app)

    @app.post("/mails")
    def send():
        return {"id": send_email.later_blocking(request.form["to"]).id}, 202

    return app
"""
PREFORKED = """
import logging, os, socket, threading
from werkzeug.serving import make_server
from shop import create_app

logging.getLogger("werkzeug").setLevel("ERROR")
app = create_app()

def end_with_input():
    os.read(0, 1)
    os._exit(0)

def send(to):
    assert app.test_client().post("/mails", data={"to": to}).status_code == 202

send("master")  # opens a connection, which no child may use
listener = socket.create_server(("127.0.0.1", 0))
children = []
for number in range(2):
    child = os.fork()
    if not child:
        send(f"child {number}")
        threading.Thread(target=end_with_input).start()
        make_server("127.0.0.1", 0, app, threaded=True, fd=listener.fileno()).serve_forever()
    children.append(child)
send("master again")
print(listener.getsockname()[1], flush=True)
listener.close()
assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
"""


def test_a_web_server_that_forks_and_has_threads_sends(tmp_path: Path, url: str, sent: Sent) -> None:
    """As gunicorn with `preload_app` and `threads` is: the application is loaded, then forked."""
    (tmp_path / "shop.py").write_text(SHOP)
    program = [sys.executable, "-W", "error", "-c", PREFORKED]
    env = environment(PYTHONPATH=f"{ROOT}:{tmp_path}", FORQ_URL=url)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(program, env=env, text=True, **pipes) as server, killed_after(server):
        assert server.stdout is not None
        port = int(server.stdout.readline())

        def post(number: int) -> str:
            form = {"Content-Type": "application/x-www-form-urlencoded"}
            with closing(HTTPConnection("127.0.0.1", port, timeout=WAIT_SECONDS_MAX)) as browser:
                browser.request("POST", "/mails", f"to=browser+{number}", form)
                return str(json.load(browser.getresponse())["id"])

        with ThreadPoolExecutor(8) as browsers:
            ids = set(browsers.map(post, range(40)))
        assert server.communicate("", timeout=WAIT_SECONDS_MAX) == ("", "")
        assert server.returncode == 0
    found = {each.content: each.id for each in sent("emails")}
    programs = {"master", "master again", "child 0", "child 1"}
    assert found.keys() == programs | {f"browser {number}" for number in range(40)}
    assert ids == {id for content, id in found.items() if content not in programs}
