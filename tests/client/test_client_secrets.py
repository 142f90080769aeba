"""A secret or URL that no request can carry is told where it is given; a server that wants one, at its first answer."""

import pytest

from forq_trio import AsyncForqClient, ForqClient, InvalidSecret, InvalidServerUrl, TooManyWrongKeys, WrongKey
from forq_trio.client.http1 import ClientRequest, HttpAnswer
from forq_trio.model.access.secrets import why_no_secret
from support.in_process import in_process_server
from support.real_server import SECRET

from .conftest import calls_of

CLIENTS = (ForqClient, AsyncForqClient)
GEHEIM = "geheim" * 6
UNUSABLE = {
    f"{GEHEIM}\n": "ends with a line end",
    f"{GEHEIM}\r\n": "ends with a line end",
    f"{GEHEIM} ": "has blanks at an end",
    f" {GEHEIM}": "has blanks at an end",
    f"\t{GEHEIM}": "has blanks at an end",
    " ": "has blanks at an end",
    f"{GEHEIM}\x00": "has control characters",
    f"{GEHEIM}\x1b[1m": "has control characters",
    f"{GEHEIM}\r\nX-Admin: 1": "has control characters",
    f"{GEHEIM}é": "are not ASCII",
    f"{GEHEIM}€": "are not ASCII",
    f"{GEHEIM}\u2028": "are not ASCII",
    f"\ufeff{GEHEIM}": "begins with a byte order mark",
    f'"{GEHEIM}"': "has quotes around it",
    f"'{GEHEIM}'": "has quotes around it",
}


@pytest.mark.parametrize("client", CLIENTS)
def test_a_secret_that_no_request_can_carry(client: type[ForqClient]):
    for secret, why in UNUSABLE.items():
        with pytest.raises(InvalidSecret, match=why) as caught:
            client("http://localhost", secret)
        assert isinstance(caught.value, ValueError)
        assert "geheim" not in str(caught.value)


def test_what_is_a_secret():
    for secret in (SECRET, "a", "a b", "a\"b'c", "\"a'", "~!#"):
        assert why_no_secret(secret) is None


@pytest.mark.parametrize("client", CLIENTS)
def test_what_is_no_text(client: type[ForqClient]):
    """None is what `os.environ.get` returns for a variable that is not set."""
    for secret in (None, b"geheim"):
        with pytest.raises(TypeError, match=r"secret is text \(str\)"):
            client("http://localhost", secret)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_url_that_no_server_is_at(client: type[ForqClient]):
    says = r"is not the (URL of a server, such as http://localhost:8080|name of a host)$"
    for url in (
        "ftp://forq",
        "http://",
        "http://forq:0",
        "http://for q",
        "http://[::1",
        "http://forq\n",
        " http://forq",
        '"http://forq"',
        "http://a..b",
        f"http://{'a' * 64}.example",
        "",
    ):
        with pytest.raises(InvalidServerUrl, match=says):
            client(url)


def test_the_password_of_a_url_is_not_told():
    with pytest.raises(InvalidServerUrl) as caught:
        ForqClient("http://me:geheim@forq:0")
    assert "geheim" not in str(caught.value)


def test_a_client_without_a_secret_says_so():
    """Also where the address is locked out: without a secret it would not be let in later either."""
    with in_process_server(lock_out=True) as url, calls_of("sync", url, "") as call:
        words = (
            rf"^the server at {url} wants a key, and this client was given no secret \(FORQ_AUTH_SECRET\)$"
        )
        for _ in range(7):
            with pytest.raises(WrongKey, match=words):
                call("queues")


def test_for_how_long_an_address_is_locked_out():
    def locked(request: ClientRequest) -> HttpAnswer:
        headers = {"content-type": "application/json", "retry-after": "43"}
        return HttpAnswer(429, headers, b'{"code": "too_many_requests", "message": "see Retry-After"}')

    with calls_of("sync", "http://forq", "wrong", locked) as call:
        with pytest.raises(
            TooManyWrongKeys, match=r"locked out for 43 s by the server at http://forq$"
        ) as caught:
            call("queues")
        assert "Retry-After" not in str(caught.value)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_number_of_seconds_that_is_none_is_refused(client) -> None:
    for seconds in (float("nan"), -1):
        with pytest.raises(ValueError, match=r"^retry_seconds: 0 or more, not (nan|-1)$"):
            client("http://forq", "secret", retry_seconds=seconds)
