"""Many open pages of the admin UI, in a process of their own: each follows the live view of the list of queues.

    python -m bench.load.dashboards URL KEY COUNT

It logs in once for every 100 pages, opens COUNT streams, prints "open" when each has got the whole state, and reads
what comes until its standard input ends. Then it prints how many events it has read.
"""

import http.cookies
import re
import selectors
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import httpx

from forq_trio.model import limits

ROOT = Path(__file__).resolve().parents[2]
VIEW = "/live/overview"


@contextmanager
def dashboards(url: str, key: str, count: int) -> Iterator["subprocess.Popen[str]"]:
    """Hold `count` pages open while the body runs."""
    command = [sys.executable, "-m", "bench.load.dashboards", url, key, str(count)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            said = process.stdout.readline().strip()
            if said != "open":
                raise RuntimeError(f"the dashboards could not be opened: {said}")
            yield process
        finally:
            process.stdin.close()
            process.wait(30)


def log_in(url: str, key: str) -> str:
    """The session's cookie. Raises RuntimeError if the login is refused."""
    form = httpx.get(f"{url}/login")
    found = re.search(r'name="csrf" value="([^"]+)"', form.text)
    if found is None:
        raise RuntimeError(f"no login form: {form.status_code}")
    answer = httpx.post(
        f"{url}/login",
        content=urlencode({"csrf": found[1], "key": key}),
        headers={
            "Content-Type": "application/x-www-form-urlencoded",
            "Origin": url,
            "Cookie": _cookie(form.headers, "ForqLogin"),
        },
    )
    if answer.status_code != 303:
        raise RuntimeError(f"the login was answered {answer.status_code}")
    return _cookie(answer.headers, "ForqSession")


def _cookie(headers: httpx.Headers, name: str) -> str:
    """`name=value`, also for a cookie that is marked Secure, which a client over plain HTTP would not send."""
    for value in headers.get_list("set-cookie"):
        cookies = http.cookies.SimpleCookie(value)
        if name in cookies:
            return f"{name}={cookies[name].value}"
    raise RuntimeError(f"no cookie {name}")


def main(url: str, key: str, count: int) -> int:
    address = urlsplit(url)
    assert address.hostname is not None
    assert address.port is not None
    selector = selectors.DefaultSelector()
    streams = []
    for number in range(count):
        if number % limits.UI_CONNECTIONS_A_SESSION_MAX == 0:
            cookie = log_in(url, key)
        request = f"GET {VIEW} HTTP/1.1\r\nHost: {address.netloc}\r\nCookie: {cookie}\r\n\r\n".encode()
        stream = socket.create_connection((address.hostname, address.port))
        stream.sendall(request)
        stream.recv(1)  # so that only few connections at a time have not shown their session yet
        stream.setblocking(False)
        selector.register(stream, selectors.EVENT_READ)
        streams.append(stream)
    selector.register(sys.stdin, selectors.EVENT_READ)
    silent = set(streams)
    events = 0
    while True:
        for ready, _ in selector.select():
            if ready.fileobj is sys.stdin:
                print(events, flush=True)
                return 0
            assert isinstance(ready.fileobj, socket.socket)
            data = ready.fileobj.recv(1 << 20)
            if not data:
                print(f"a stream ended after {events} events", flush=True)
                return 1
            found = data.count(b"\ndata: ")
            events += found
            if found and silent:
                silent.discard(ready.fileobj)
                if not silent:
                    print("open", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
