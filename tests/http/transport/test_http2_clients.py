"""Clients that others wrote, over HTTP/2: httpx, and the conformance suite h2spec where it is installed."""

import re
import shutil
import ssl

import httpx
import pytest
import trio
import trio.testing
import trustme

from support.processes import WAIT_SECONDS_MAX
from support.transport import echo, running

from .test_disconnect import LongPoll

# Both protocols share a port: what does not begin like HTTP/2 is a bad request of HTTP/1.1, and answered as such.
NOT_PASSED_IN_CLEAR_TEXT = {"Sends invalid connection preface"}
H2SPEC = shutil.which("h2spec")


def client(transport) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        http1=False,
        http2=True,
        base_url=f"http://127.0.0.1:{transport.port}",
        timeout=WAIT_SECONDS_MAX,
        verify=False,
    )


async def test_httpx_sends_many_requests_over_one_connection():
    async with running() as transport, client(transport) as asking:
        bodies: dict[int, str] = {}

        async def ask(number: int) -> None:
            answer = await asking.post(f"/{number}", content=b"x" * 1_000 * number)
            assert (answer.http_version, answer.status_code) == ("HTTP/2", 200)
            bodies[number] = answer.text

        async with trio.open_nursery() as nursery:
            for number in range(50):
                nursery.start_soon(ask, number)
        assert transport.server.connections == 1
        assert all(body == f"POST /{number}?\n" + "x" * 1_000 * number for number, body in bodies.items())
        assert len(bodies) == 50


async def test_httpx_gets_the_answer_to_a_request_that_runs_when_the_server_is_told_to_stop():
    poll = LongPoll()
    async with running(poll) as transport, client(transport) as asking, trio.open_nursery() as nursery:
        answers = []

        async def ask() -> None:
            answers.append((await asking.get("/wait")).status_code)

        nursery.start_soon(ask)
        await poll.started.wait()
        nursery.start_soon(transport.server.drain, 10)
        await trio.testing.wait_all_tasks_blocked()
        poll.release.set()
    assert answers == [204]


@pytest.mark.tier2
@pytest.mark.process
@pytest.mark.skipif(
    H2SPEC is None, reason="go install github.com/summerwind/h2spec/cmd/h2spec@latest, and put it on PATH"
)
@pytest.mark.parametrize("secured", [False, True], ids=["clear text", "TLS"])
async def test_h2spec(secured: bool):
    context = None
    if secured:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
        context.set_alpn_protocols(["h2", "http/1.1"])
    command = [H2SPEC, "--strict", "--timeout", "10", "-h", "127.0.0.1"]
    async with running(echo, ssl_context=context) as transport:
        command += ["-p", str(transport.port), *(["--tls", "--insecure"] if secured else [])]
        done = await trio.run_process(command, check=False, capture_stdout=True)
    said = done.stdout.decode()
    assert re.search(r"14\d tests, \d+ passed, 0 skipped", said)
    failed = set(re.findall(r"\u00d7 \d+: (.*)", said.partition("Failures:")[2]))
    assert failed == (set() if secured else NOT_PASSED_IN_CLEAR_TEXT)
