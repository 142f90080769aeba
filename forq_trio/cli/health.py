"""`forq health`: asks a running server how it is.

A container runs it every half minute, so it imports little: no client, and none of the settings' library.
"""

import http.client
import time
from collections.abc import Callable, Mapping

import click

from forq_trio.cli.at_most import run_at_most
from forq_trio.cli.exits import CliFailure, Exit
from forq_trio.cli.options import duration_option, url_option
from forq_trio.client.address import ServerAddress, address_of, without_credentials

_ANSWER_BYTES_MAX = 64 * 1024
_PAUSE_SECONDS = 0.2
_SENTENCE_LENGTH_MAX = 500


@click.command()
@click.option("--live", is_flag=True, help="Ask only whether it answers at all, even without its database.")
@click.option("--sends", is_flag=True, help="Fail also while it refuses sends, as on a full disk.")
@duration_option(
    "--timeout", "timeout_ms", default="5s", show_default=True, help="How long to wait for the server."
)
@duration_option("--wait", "wait_ms", default="0s", help="Keep asking for this long, until it works.")
@url_option
def health(live: bool, sends: bool, timeout_ms: int, wait_ms: int, url: str) -> None:
    """Ask a running server whether it works; needs no secret.

    The exit code is 0 if it does, 1 if it answers but cannot use its database, and 3 if it does not answer.

    \f
    One sentence says how it is. On a full disk it works, too, and the sentence says that sends are refused: what is
    stored can be received and acknowledged, and a restart frees no space. It also says if another server on its
    database has another `FORQ_AUTH_SECRET`. If the command line or the settings are not right, nothing is asked, and
    the exit code is 2.

    It asks [`/healthcheck`](docs/reference/http-server.md#get-healthcheck), with `--live`
    [`/livez`](docs/reference/http-server.md#get-livez) instead: then 0 means that it answers at all. It does not check
    the certificate, because it sends no secret. A container asks so every half minute, where its settings say
    ([containers.md](docs/containers.md#health)).
    """
    if live and sends:
        raise click.UsageError("--live and --sends exclude each other.")
    try:
        server = address_of(url)
    except ValueError as problem:
        raise CliFailure(str(problem), Exit.USAGE) from None
    where = without_credentials(url)
    deadline = time.monotonic() + wait_ms / 1_000
    while True:
        answer = _in_time(lambda: _how_it_is(server, where, live, sends, timeout_ms), timeout_ms / 1_000)
        if isinstance(answer, str):
            click.echo(_printable(answer))
            return
        failure = answer or CliFailure(f"{where} does not answer", Exit.UNREACHABLE)
        if time.monotonic() + _PAUSE_SECONDS > deadline:
            raise CliFailure(_printable(str(failure)), failure.code)
        time.sleep(_PAUSE_SECONDS)


def _in_time(ask: Callable[[], str], seconds: float) -> str | CliFailure | None:
    """The answer, or why it is not what is wanted; None if there is none in this time."""
    found: list[str | CliFailure] = []

    def look() -> None:
        try:
            found.append(ask())
        except CliFailure as failure:
            found.append(failure)

    run_at_most(seconds, look)
    return found[0] if found else None


def _how_it_is(server: ServerAddress, where: str, live: bool, sends: bool, timeout_ms: int) -> str:
    """One sentence; raises CliFailure if it is not what is wanted."""
    if live:
        _ask(server, where, "/livez", timeout_ms)
        return f"{where} is alive."
    about = _object(_ask(server, where, "/healthcheck?verbose", timeout_ms))
    refused = _refused_sends(about)
    if refused is not None and sends:
        raise CliFailure(f"{where} works, but: {refused}")
    faults = [each for each in (refused, _other_secrets(about)) if each is not None]
    return f"{where} works, but: {'. '.join(faults)}." if faults else f"{where} works."


def _printable(sentence: str) -> str:
    """The sentence, part of which a server may have said. `output` spells such things out, but takes long to import."""
    return "".join(each if each.isprintable() else "?" for each in sentence[:_SENTENCE_LENGTH_MAX])


def _ask(server: ServerAddress, where: str, path: str, timeout_ms: int) -> bytes:
    """The body of a successful answer. Raises CliFailure, which says what the server is like instead."""
    connection = _connection(server, max(1, timeout_ms) / 1_000)
    try:
        connection.request("GET", f"{server.path}{path}")
        answer = connection.getresponse()
        body = answer.read(_ANSWER_BYTES_MAX)
    except TimeoutError:
        raise CliFailure(f"{where} does not answer", Exit.UNREACHABLE) from None
    except (OSError, http.client.HTTPException) as problem:
        reason = getattr(problem, "strerror", None) or str(problem) or type(problem).__name__
        raise CliFailure(f"{where} cannot be reached: {reason}", Exit.UNREACHABLE) from None
    finally:
        connection.close()
    if answer.status == 503:
        from forq_trio.model.error_answers import MESSAGE_HEADER

        said = answer.getheader(MESSAGE_HEADER) or _text(_object(body), "message")
        raise CliFailure(f"{where} answers, but does not work" + (f": {said}" if said else ""))
    if answer.status not in (200, 204):
        raise CliFailure(f"{where} answers {path.partition('?')[0]} with {answer.status}: is it this server?")
    return body


def _connection(server: ServerAddress, seconds: float) -> http.client.HTTPConnection:
    if not server.tls:
        return http.client.HTTPConnection(server.host, server.port, timeout=seconds)
    import ssl

    # No secret is sent, and the certificate is for the name by which others reach the server.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return http.client.HTTPSConnection(server.host, server.port, timeout=seconds, context=context)


def _refused_sends(about: Mapping[str, object]) -> str | None:
    """Why sends are refused, in words; None where they are not."""
    cause = _text(about, "sendsRefused")
    if not cause:
        return None
    from forq_trio.model.engine_facts import REFUSAL_WORDS

    return next((words for known, words in REFUSAL_WORDS.items() if known == cause), cause)


def _other_secrets(about: Mapping[str, object]) -> str | None:
    """What is wrong if other servers have another secret; None if none has."""
    count = about.get("otherSecrets")
    if not isinstance(count, int) or count < 1:
        return None
    others = (
        "another server on its database has"
        if count == 1
        else f"{count:,} other servers on its database have"
    )
    return f"{others} another FORQ_AUTH_SECRET"


def _text(about: Mapping[str, object], name: str) -> str:
    """A member that is a text; "" where it is none."""
    value = about.get(name)
    return value if isinstance(value, str) else ""


def _object(body: bytes) -> Mapping[str, object]:
    """A JSON object; an empty one if it is none."""
    import json

    try:
        found = json.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
