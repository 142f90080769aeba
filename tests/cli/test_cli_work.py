"""`forq work`: a command or a URL for a queue, the Worker of a module, and what is refused."""

import io
import json
import os
import re
import signal
import socket
import sys
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import opentelemetry.trace
import pytest
from rich.console import Console
from standardwebhooks import Webhook

from forq_trio import ForqClient
from forq_trio.cli.work_apps import directory_of, parse_app
from forq_trio.cli.work_reload import Reloader
from forq_trio.cli.work_report import Rates, table
from forq_trio.worker import QueueStats
from support.spans import PARENT, TRACE, Spans, trace_of

from .conftest import Forq

APP = """
from forq_trio.worker import Worker

app = Worker({url!r})
number = 3

@app.on({queue!r})
async def write(content: str) -> None:
    with open({file!r}, "a") as file:
        file.write(content)
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working directory, whose modules are forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def lines(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_command_has_each_message_until_the_queue_is_empty(
    forq: Forq, url: str, client: ForqClient, queue: str, tmp_path: Path
):
    for content in ("a", "b", "bad"):
        client.produce(queue, content, attributes={"n": content})
    file = tmp_path / "done"
    command = f'read line || true; echo "$FORQ_ATTRIBUTE_N" >> {file}; test "$line" != bad'
    done = forq("work", queue, "--exec", command, "--stop-when-empty", "--retry", "1h", "--url", url)
    assert done.code == 0, done.err
    assert sorted(file.read_text().split()) == ["a", "b", "bad"]
    last = lines(done.out)[-1]
    assert (last["queue"], last["handled"], last["failed"], last["running"]) == (queue, 2, 1, 0)
    assert "CommandFailed" in done.err
    assert client.queue_stats(queue).total == 1


def test_what_a_command_says_is_one_line_of_the_log(forq: Forq, url: str, client: ForqClient, queue: str):
    client.produce(queue, "x")
    command = r"printf 'a\nforq: all is well\033[2J' >&2; exit 1"
    done = forq("work", queue, "--exec", command, "--stop-when-empty", "--retry", "1h", "--url", url)
    (line,) = done.err.splitlines()
    assert line.endswith(r"failed: CommandFailed: exit 1: a forq: all is well\x1b[2J")


@pytest.mark.tier2
def test_work_that_ends_when_empty_gives_up_on_a_server_that_is_not_there(
    forq: Forq, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("forq_trio.worker.source.ANSWER_SECONDS_MAX", 0.05)
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        done = forq("work", "q", "--exec", "true", "--stop-when-empty", "--url", url)
    assert done.code == 3
    assert f"no server can be reached at {url}" in done.err


def test_a_command_has_only_messages_that_fit(
    forq: Forq, url: str, client: ForqClient, queue: str, tmp_path: Path
):
    for region in ("eu", "us"):
        client.produce(queue, region, attributes={"region": region})
    options = (
        "--exec",
        f"cat >> {tmp_path}/done",
        "--where",
        "region!=us",
        "--stop-when-empty",
        "--url",
        url,
    )
    assert forq("work", queue, *options).code == 0
    assert (tmp_path / "done").read_text() == "eu"
    assert client.queue_stats(queue).ready == 1
    assert forq("work", "module:app", "--where", "a=b").code == 2


@contextmanager
def receiving(posts: list[tuple[bytes, dict[str, str]]]) -> Iterator[str]:
    """A server for posts: notes the body and the headers of each."""

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            posts.append((body, dict(self.headers)))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Receiver) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/hook"
        finally:
            server.shutdown()
            thread.join()


KEYS = [f"whsec_{b64encode(bytes([number]) * 32).decode()}" for number in (1, 2)]


@pytest.mark.parametrize("place", ["file", "environment"])
def test_each_message_is_posted_and_signed_with_the_keys_of_a_file_or_the_environment(
    forq: Forq,
    url: str,
    client: ForqClient,
    queue: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
):
    options = ["--stop-when-empty", "--url", url]
    if place == "file":
        (tmp_path / "keys").write_text("\n".join(KEYS) + "\n")
        options += ["--signing-key-file", str(tmp_path / "keys")]
    else:
        monkeypatch.setenv("FORQ_SIGNING_KEY", " ".join(KEYS))
    sent = client.produce(queue, '"hello"')
    posts: list[tuple[bytes, dict[str, str]]] = []
    with receiving(posts) as target:
        done = forq("work", queue, "--post", target, "--allow-private", *options)
    assert done.code == 0, done.err
    ((body, headers),) = posts
    assert headers["webhook-id"] == sent.id
    for key in KEYS:
        assert Webhook(key).verify(body, headers) == "hello"
    assert client.queue_stats(queue).total == 0


def test_a_module_has_its_worker(forq: Forq, url: str, client: ForqClient, queue: str, here: Path):
    client.produce(queue, "x")
    file = here / "done"
    (here / "work_app_one.py").write_text(APP.format(url=url, queue=queue, file=str(file)))
    done = forq("work", "work_app_one:app", "--stop-when-empty", terminal=True)
    assert (done.code, done.out) == (0, ""), done.err
    assert file.read_text() == "x"
    assert "handled" in done.err


FAILING = """@asynccontextmanager
async def resources():
    raise OSError("no route")
    yield"""


def test_the_lifespan_of_a_module_that_fails_is_told(forq: Forq, url: str, queue: str, here: Path):
    app = APP.format(url=url, queue=queue, file="done").replace(
        "Worker(", "Worker(lifespan=resources, source="
    )
    lifespan = f"from contextlib import asynccontextmanager\n\n{FAILING}\n"
    (here / "work_lifespan.py").write_text(lifespan + app)
    done = forq("work", "work_lifespan:app", "--stop-when-empty")
    assert done.code == 2
    assert "work_lifespan.py:3: resources: the lifespan failed at its start: OSError: no route" in done.err


@pytest.mark.parametrize("target", ["work_app_two.py", "./work_app_two.py:app", "below/work_app_three.py"])
def test_a_file_has_its_worker(forq: Forq, url: str, client: ForqClient, queue: str, here: Path, target: str):
    client.produce(queue, "x")
    file = here / "done"
    path = here / target.partition(":")[0]
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"{APP.format(url=url, queue=queue, file=str(file))}\nsame = app\n")
    done = forq("work", target, "--stop-when-empty")
    assert done.code == 0, done.err
    assert file.read_text() == "x"


def test_a_file_of_a_package_is_imported_as_a_part_of_it(
    forq: Forq, url: str, client: ForqClient, queue: str, here: Path
):
    client.produce(queue, "x")
    package = here / "work_package_two" / "jobs"
    package.mkdir(parents=True)
    for directory in (package, package.parent):
        (directory / "__init__.py").write_text("")
    (package / "server.py").write_text(f"URL = {url!r}\n")
    text = APP.format(url="URL", queue=queue, file=str(here / "done")).replace("'URL'", "URL")
    (package / "first.py").write_text(f"from .server import URL\n{text}")
    done = forq("work", "work_package_two/jobs/first.py", "--stop-when-empty")
    assert done.code == 0, done.err
    assert (here / "done").read_text() == "x"


WORKERS = "from forq_trio.worker import Worker\n"


@pytest.mark.parametrize(
    ("name", "text", "target", "words"),
    [
        (
            "work_none.py",
            "x = 1\n",
            "work_none.py",
            "work_none.py has no Worker: write `app = Worker()` in it",
        ),
        (
            "work_many.py",
            f"{WORKERS}mails = Worker()\nreports = Worker()\n",
            "work_many.py",
            "work_many.py has 2 Workers: name one, of work_many.py:mails, work_many.py:reports",
        ),
        ("work_named.py", f"{WORKERS}app = Worker()\n", "work_named.py:work", "has no 'work'; it has app"),
        (
            "work_named_too.py",
            f"{WORKERS}app = Worker()\n",
            "work_named_too:work",
            "has no 'work'; it has app",
        ),
        ("work_alone_too.py", "", "work_alone_too", "`forq work work_alone_too.py` runs the file"),
        ("other.py", "", "work_missing.py", "there is no file 'work_missing.py' here"),
        ("queue.py", f"{WORKERS}app = Worker()\n", "queue.py", "queue.py has the name of another module ("),
        ("a.b.py", "", "a.b.py", "a.b.py cannot be imported, because its name has a dot"),
    ],
)
def test_a_file_that_cannot_be_run_says_what_to_write(
    forq: Forq, here: Path, name: str, text: str, target: str, words: str
):
    (here / name).write_text(text)
    done = forq("work", target)
    assert (done.code, done.out) == (2, "")
    assert words in done.err


def test_a_reloaded_file_is_named_as_on_the_command_line(here: Path):
    (here / "work_four.py").write_text("")
    app = parse_app("work_four.py")
    assert (app.target, app.module, app.name) == ("work_four.py", "work_four", "")
    assert directory_of(app) == (here, False)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("q", "--exec", "x", "--post", "http://x"), "--exec and --post exclude each other"),
        (("q",), "'q' is not of the form module:app; for a queue, --exec or --post says what to run"),
        (("q", "--exec", " "), "--exec: the command is empty"),
        (("a b", "--exec", "x"), "queue"),
        (("q", "--exec", "x", "--lease", "1ms"), "lease: "),
        (("q", "--exec", "x", "--reload"), "--reload is not for a queue"),
        (("q", "--exec", "x", "--allow-private"), "--allow-private is not for --exec"),
        (("m:app", "--lease", "5s"), "--lease is not for a module"),
        (("q", "--post", "nowhere"), "--post: 'nowhere' is not a URL to post to"),
        (("q", "--post", "http://10.0.0.1/"), "10.0.0.1 is not a public address; --allow-private allows it"),
        (("q", "--post", "http://localhost/"), "localhost is not a public address"),
        (("q", "--exec", "x", "--retry", "soon"), "'soon' is not a duration"),
        (("no_such_module_here:app",), "there is no module 'no_such_module_here' here"),
        (("no_such_module_here:app", "--reload"), "there is no module 'no_such_module_here' here"),
        (("json:app",), "the module 'json' has no 'app'"),
        (("json:dumps",), "json:dumps is no Worker but of the type function"),
    ],
)
def test_what_is_refused_ends_with_2(forq: Forq, here: Path, arguments: tuple[str, ...], words: str):
    done = forq("work", *arguments)
    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("x = 1\ndef f(:\n", 2, "SyntaxError: invalid syntax"),
        ("\nx = 1 / 0\n", 2, "ZeroDivisionError: division by zero"),
        ("import no_such_module_there\n", 1, "ModuleNotFoundError: No module named 'no_such_module_there'"),
        (APP.format(url="x", queue="q", file="f").replace("content: str", "content"), 7, "has no annotation"),
    ],
)
def test_a_module_that_cannot_be_imported_says_where(
    forq: Forq, here: Path, text: str, line: int, words: str
):
    (here / "work_app_bad.py").write_text(text)
    done = forq("work", "work_app_bad:app")
    assert done.code == 2
    assert re.search(rf"work_app_bad\.py:{line}: ", done.err), done.err
    assert words in done.err


@pytest.mark.parametrize("text", ["\n", "secret\n", f"{KEYS[0]}\nwhsec_x\n"])
def test_a_key_file_without_a_key_is_refused(forq: Forq, tmp_path: Path, text: str):
    (tmp_path / "key").write_text(text)
    arguments = ("--post", "http://example.com", "--signing-key-file", str(tmp_path / "key"))
    done = forq("work", "q", *arguments)
    words = f"forq: {tmp_path / 'key'}: a signing key is whsec_ and the base64 of 24 to 64 bytes\n"
    assert (done.code, done.err) == (2, words)


def test_a_key_file_that_is_none_is_refused(forq: Forq, tmp_path: Path):
    """It was read for ever."""
    file = tmp_path / "key"
    options = ("work", "q", "--post", "http://example.com", "--signing-key-file", str(file))
    os.mkfifo(file)
    done = forq(*options)
    words = f"forq: --signing-key-file {str(file)!r} is not a file; allowed: a readable file\n"
    assert (done.code, done.err) == (2, words)
    file.unlink()
    assert "cannot be read (No such file or directory)" in forq(*options).err
    file.write_bytes(b"\xff")
    assert "names no file of text" in forq(*options).err


def test_which_directory_is_watched(here: Path):
    (here / "work_package").mkdir()
    (here / "work_package" / "__init__.py").write_text("raise SystemExit\n")
    (here / "work_alone.py").write_text("")
    assert directory_of(parse_app("work_package.workers:app")) == (here / "work_package", True)
    assert directory_of(parse_app("work_alone:app")) == (here, False)


def test_a_change_starts_the_worker_again_also_after_an_error(tmp_path: Path, capfd: pytest.CaptureFixture):
    """The looks of watchfiles are given by hand: a change, then nothing until the process has ended."""
    file, begun = tmp_path / "program.py", tmp_path / "begun"
    file.write_text("raise SystemExit('broken')")
    reloader = Reloader([sys.executable, "-S", str(file)])

    def looks() -> Iterator[set]:
        reloader._process.wait()
        yield set()
        yield set()
        file.write_text(f"import signal; open({str(begun)!r}, 'w'); signal.pause()")
        yield {(1, str(file))}
        while not begun.exists():
            pass
        file.write_text("print('begun')")
        yield {(1, str(file))}
        reloader._process.wait()
        yield set()
        pytest.fail("it ended well, and nobody looks again")

    assert reloader.run(looks()) == 0
    out, err = capfd.readouterr()
    assert out == "begun\n"
    changed = "forq: program.py changed: starting again"
    assert err.splitlines() == ["broken", "forq: waiting for a change", changed, changed]


def test_a_signal_is_passed_on_once_and_ends_it(tmp_path: Path):
    program = "import signal; signal.signal(15, lambda *_: exit(0)); print(1, flush=True); signal.pause()"
    reloader = Reloader([sys.executable, "-S", "-c", program])

    def looks() -> Iterator[set]:
        reloader.on_signal(signal.SIGTERM)
        yield set()
        pytest.fail("it was told to end")

    assert reloader.run(looks()) == 0
    assert reloader._process.poll() is not None


def test_the_table_fits_80_columns_whatever_a_queue_is_called():
    stats = {f"{number}-{'q' * 100}": QueueStats(handled=123_456_789, failed=1_234) for number in range(30)}
    rates = Rates()
    table(stats, rates, 0.0)
    for each in stats.values():
        each.handled += 100
    text = io.StringIO()
    Console(file=text, width=80).print(table(stats, rates, 10.0))
    shown = text.getvalue().splitlines()
    assert max(map(len, shown)) <= 80
    assert len(shown) == 22
    assert shown[1].split()[1:] == ["123,456,889", "10.0", "1,234", "0", "0"]
    assert shown[-1].strip().startswith("and 10 more")


def test_handlers_have_spans_where_an_sdk_is_set_up(
    forq: Forq, url: str, client: ForqClient, queue: str, monkeypatch: pytest.MonkeyPatch
):
    spans = Spans()
    monkeypatch.setattr(opentelemetry.trace, "_TRACER_PROVIDER", spans.provider)
    client.produce(queue, "x", attributes=PARENT)
    assert forq("work", queue, "--exec", "true", "--stop-when-empty", "--url", url).code == 0
    assert trace_of(spans.one(f"process {queue}")) == TRACE
