"""Requests that change something come from our own pages, made for the session that sends them."""

import pytest

from forq_trio.ui.csrf import Hosts, is_plain, is_same_origin, is_valid, make_token


def test_a_token_is_valid_for_its_session_alone_and_another_on_each_page():
    token = make_token("a-session")
    assert is_valid(token, "a-session")
    assert not is_valid(token, "another-session")
    assert not is_valid(token, "")
    assert make_token("a-session") != token


@pytest.mark.parametrize("text", ["", "x", "x" * 55, "ä" * 55, "\0" * 55, "x" * 10_000])
def test_what_is_no_token_is_not_valid(text):
    assert not is_valid(text, "a-session")


def test_every_changed_character_makes_a_token_invalid():
    token = make_token("a-session")
    for place, sign in enumerate(token):
        changed = token[:place] + ("A" if sign != "A" else "B") + token[place + 1 :]
        assert not is_valid(changed, "a-session"), place


@pytest.mark.parametrize(
    ("origin", "referer", "host", "same"),
    [
        ("http://localhost:8081", None, "localhost:8081", True),
        ("https://queue.example", None, "queue.example", True),
        ("http://LOCALHOST:8081", None, "localhost:8081", True),
        (None, "http://localhost:8081/queue/a?x=1", "localhost:8081", True),
        ("http://localhost:8080", None, "localhost:8081", False),
        ("http://evil.example", None, "localhost:8081", False),
        ("null", None, "localhost:8081", False),
        ("null", "http://localhost:8081/", "localhost:8081", False),
        ("http://localhost:8081.evil.example", None, "localhost:8081", False),
        ("http://[::1", None, "localhost:8081", False),
        (None, None, "localhost:8081", False),
        ("", None, "localhost:8081", False),
    ],
)
def test_origin(origin, referer, host, same):
    assert is_same_origin(origin, referer, host) is same


@pytest.mark.parametrize(
    ("names", "host", "allowed"),
    [
        ((), "localhost:8081", True),
        ((), "127.0.0.1:8081", True),
        ((), "10.2.3.4", True),
        ((), "[::1]:8081", True),
        ((), "evil.example:8081", False),
        ((), "localhost.evil.example", False),
        ((), "", False),
        ((), "[::1", False),
        (("Queue.example",), "queue.EXAMPLE:443", True),
        (("queue.example",), "a.queue.example", False),
        (("*",), "anything.example", True),
    ],
)
def test_hosts(names, host, allowed):
    assert Hosts(names).allow(host) is allowed


def test_whether_a_page_came_over_plain_http():
    assert is_plain("http://queue.example", None)
    assert is_plain("HTTP://queue.example", "https://queue.example/login")
    assert is_plain(None, "http://queue.example/login")
    assert not is_plain("https://queue.example", "http://queue.example/login")
    assert not is_plain("null", None)
    assert not is_plain(None, None)
