"""A connection is made without keeping the interpreter from other threads, to the first host that answers."""

import socket
import threading
import time

import pytest

from forq_trio.storage.postgres import connecting, connection
from forq_trio.storage.postgres.connecting import NotConnected, connect
from forq_trio.storage.postgres.failures import DatabaseFailed
from forq_trio.storage.postgres.open import DatabaseAddress
from support.database_proxy import ANSWERED, Fault, database_proxy
from support.processes import WAIT_SECONDS_MAX

READY = b"Z\0\0\0\5I"
"""In what the server answers: it waits for a statement."""


@pytest.fixture
def silent():
    """The port of a server that says nothing, and its socket."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(WAIT_SECONDS_MAX)
        yield server


def test_other_threads_run_meanwhile(silent):
    """The one that would close the connection among them: libpq alone would wait for its own time limit."""
    problems: list[str] = []

    def attempt() -> None:
        with pytest.raises(NotConnected) as caught:
            connect(f"host=127.0.0.1 port={silent.getsockname()[1]} dbname=x connect_timeout=600")
        problems.append(str(caught.value))

    thread = threading.Thread(target=attempt)
    thread.start()
    peer, _ = silent.accept()
    peer.close()
    thread.join(WAIT_SECONDS_MAX)
    assert len(problems) == 1
    assert "closed the connection unexpectedly" in problems[0]


def test_a_host_that_does_not_answer_is_left_for_the_next_one(silent, postgres):
    port = silent.getsockname()[1]
    hosts = f"host=127.0.0.1,{postgres.directory} port={port},5432 user=postgres dbname=postgres connect_timeout=1"
    began = time.monotonic()
    connection = connect(hosts)
    assert time.monotonic() - began > 0.9
    assert connection.db == b"postgres"
    connection.finish()
    with pytest.raises(NotConnected, match="does not answer"):
        connect(f"host=127.0.0.1 port={port} dbname=x connect_timeout=1")


def test_other_threads_run_while_a_name_is_looked_up_and_each_of_its_addresses_is_tried(silent, monkeypatch):
    asked, answered = threading.Event(), threading.Event()

    def slow(host, port, **options):
        assert host == "db.example"
        asked.set()
        assert answered.wait(WAIT_SECONDS_MAX)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (f"127.0.0.{n}", 0)) for n in (2, 1)]

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    problems: list[str] = []

    def attempt() -> None:
        with pytest.raises(NotConnected) as caught:
            connect(f"host=db.example port={silent.getsockname()[1]} dbname=x connect_timeout=600")
        problems.append(str(caught.value))

    thread = threading.Thread(target=attempt)
    thread.start()
    assert asked.wait(WAIT_SECONDS_MAX)
    answered.set()
    peer, _ = silent.accept()  # nobody listens at the first address
    peer.close()
    thread.join(WAIT_SECONDS_MAX)
    assert ["closed the connection unexpectedly" in each for each in problems] == [True]


def test_a_name_that_nobody_knows_is_left_for_the_next_host(postgres):
    for name in ("nowhere.invalid", "x" * 64):
        hosts = f"host={name},{postgres.directory} port=5432 user=postgres dbname=postgres"
        connect(hosts).finish()
        with pytest.raises(
            NotConnected, match=f'could not translate host name "{name}" to address: [a-zA-Z]'
        ):
            connect(f"host={name} dbname=x")


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("host=127.0.0.1 port=1 connect_timeout=soon", "connect_timeout"),
        ("host=a,b port=1,2,3", "could not match 3 port numbers to 2 hosts"),
    ],
)
def test_what_cannot_be_read_is_said(url: str, complaint: str) -> None:
    with pytest.raises(NotConnected, match=complaint):
        connect(url)


@pytest.mark.parametrize("seconds", ["0", "-1", ""])
def test_no_time_limit_is_the_usual_one(monkeypatch, silent, seconds: str) -> None:
    monkeypatch.setattr(connecting, "CONNECT_SECONDS", 0.3)
    began = time.monotonic()
    with pytest.raises(NotConnected, match="does not answer"):
        connect(f"host=127.0.0.1 port={silent.getsockname()[1]} connect_timeout='{seconds}'")
    assert time.monotonic() - began > 0.2


def test_a_server_that_falls_silent_after_it_took_the_connection_is_given_up(postgres, monkeypatch):
    with database_proxy(postgres.url()) as proxy:
        proxy.faults.append(Fault(ANSWERED, READY, len(READY), silent=True))
        with monkeypatch.context() as impatient:
            impatient.setattr(connection, "ANSWER_SECONDS_MAX", 0.3)
            with pytest.raises(DatabaseFailed, match="does not answer"):
                DatabaseAddress(proxy.url).connect()
        assert proxy.hit == 1
        DatabaseAddress(proxy.url).connect().close()
