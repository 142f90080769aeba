"""`forq work`: a command, a URL or the handlers of a module, run on messages as they come."""

import os
from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from forq_trio.cli.connection import connect
from forq_trio.cli.exits import CliFailure, Exit
from forq_trio.cli.names import QUEUE
from forq_trio.cli.options import duration_ms, duration_option, json_option, url_option, where_option
from forq_trio.model.access.secret_files import SecretFileError, read_secret_file
from forq_trio.model.traces import sdk_is_set_up

if TYPE_CHECKING:
    from forq_trio.worker import Job, Worker

CONCURRENCY_DEFAULT = 10
_OF_A_QUEUE = ("concurrency", "lease_ms", "timeout_ms", "retry", "where", "url")
_OF_POST = ("signing_key_file", "allow_private")


def delays(text: str) -> list[float]:
    """Seconds from a list of durations. For use as an option's type."""
    return [duration_ms(part) / 1_000 for part in text.split(",")]


@click.command()
@click.argument("target", metavar="QUEUE|MODULE:APP|FILE", type=QUEUE)
@click.option("--exec", "command", metavar="CMD", help="Run this line of /bin/sh for each message.")
@click.option("--post", "post_url", metavar="URL", help="Post each message to this URL.")
@click.option(
    "--concurrency",
    type=click.IntRange(1, 1_000),
    metavar="NUMBER",
    default=CONCURRENCY_DEFAULT,
    show_default=True,
    help="How many messages are in process at once.",
)
@click.option("--stop-when-empty", is_flag=True, help="End when no message is ready.")
@duration_option(
    "--lease",
    "lease_ms",
    help="How long a lease is; it is extended while the message is in process.  [default: the queue's]",
)
@duration_option("--timeout", "timeout_ms", help="An attempt that takes longer has failed.")
@click.option(
    "--retry",
    type=delays,
    metavar="DELAYS",
    help="Delays after each failed attempt, as 5s,30s,5m; one more failure is final.  [default: the queue's]",
)
@where_option
@click.option(
    "--signing-key-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Sign posts with the keys in this file, whsec_… each.  [default: those in FORQ_SIGNING_KEY]",
)
@click.option("--allow-private", is_flag=True, help="Post to addresses that are not public, too.")
@click.option("--reload", is_flag=True, help="Start again when the module's files change.")
@json_option
@url_option
def work(
    target: str,
    command: str | None,
    post_url: str | None,
    stop_when_empty: bool,
    signing_key_file: Path | None,
    allow_private: bool,
    reload: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Run a command on each message, post each to a URL, or run the Worker of a module or of a FILE such as first.py.

    SIGTERM or SIGINT ends it: messages in process have 10 seconds to finish; those that do not are released. A second
    signal ends it at once.

    \f
    Leases are extended while a message is in process. A lost lease ends the command or the request at once. `--lease`,
    `--retry`, `--timeout`, `--concurrency`, `--where` and `--url` are for a queue: a module says them itself
    ([workers.md](docs/workers.md)).

    **`--exec`** has the content on stdin, and as environment `FORQ_MESSAGE_ID`, `FORQ_QUEUE`, `FORQ_ATTEMPT` (from 1),
    `FORQ_LAST_ATTEMPT` (`1` or `0`) and `FORQ_ATTRIBUTE_…` for each attribute: its name in upper case, with `_` for
    what is no ASCII letter or digit. The rest of its environment is that of `forq work`, the secret included, so that
    it may call `forq` itself. Exit code 0 acknowledges, 75 asks for another attempt, any other is a failure. The
    reason is the exit code with the last 4 KiB of stderr, as far as a reason may be long. What the command writes to
    stdout is thrown away; it may redirect it. When it is ended (lost lease, `--timeout`, a second signal), its whole
    process group gets SIGTERM, and 5 seconds later SIGKILL.

    **`--post`** sends the content as the body, with the attribute `content-type` as its Content-Type, else
    `application/json` where it is JSON that every reader takes as the same (no `NaN`, no `1e999`, no half of a
    surrogate pair) and `text/plain` where it is not. Headers are `Forq-Message-Id`, `Forq-Queue`, `Forq-Attempt` and
    `Forq-Attribute-…` for each attribute (names with `-` for what a header cannot have, values percent-encoded where
    needed, 8 KiB in all; `Forq-Attributes-Left-Out` counts the rest). 2xx acknowledges, 410 discards, 429 and 503 with
    `Retry-After` ask for another attempt then (0 and past times do not count), anything else is a failure whose reason
    has the status and the start of the answer. An answer has 30 seconds. Redirects are not followed, and the proxy of
    the environment is not used. Addresses that are not public (private, loopback, link-local) are refused unless
    `--allow-private`; the check is made on the address that is connected to.

    Posts are signed as [Standard Webhooks](https://www.standardwebhooks.com) says, which has libraries for receivers
    ([webhooks.md](docs/webhooks.md)), once there is a signing key: `whsec_` and the base64 of 24 to 64 bytes.
    Several in the file, or in `FORQ_SIGNING_KEY` with spaces between them, sign each post side by side.

    **`MODULE:APP`** imports the module, also from the working directory. `--reload` needs the extra `reload`: a change
    of a Python file next to the module, or in its package, ends the Worker as SIGTERM does, and starts it again. A
    module that cannot be imported is reported, and the next change tries it again.

    On a terminal stderr shows what is done, and how fast. Otherwise, and with `--json`, stdout has a line for each
    queue every 10 seconds in which something happened, and at the end, with `queue`, `handled`, `failed`, `discarded`,
    `dead`, `lost` (leases), `running` and `perSecond`; warnings go to stderr. The exit code is 0 also if messages
    failed: their attempts are counted by the queue. Without an answer of the server it tries again, for ever, or with
    `--stop-when-empty` for 30 seconds; then the exit code is 3.
    """
    context = click.get_current_context()
    if command is not None and post_url is not None:
        raise click.UsageError("--exec and --post exclude each other", context)
    is_app = command is None and post_url is None
    _refuse_given(context, _OF_A_QUEUE if is_app else ("reload",), "a module" if is_app else "a queue")
    if post_url is None:
        _refuse_given(context, _OF_POST, "a module" if is_app else "--exec")
    if is_app:
        return _run_app(target, stop_when_empty=stop_when_empty, reload=reload, as_json=as_json)
    handler = (
        _exec_handler(command, context)
        if command is not None
        else _post_handler(str(post_url), signing_key_file, allow_private=allow_private)
    )
    return _run(_worker(target, handler, options), stop_when_empty=stop_when_empty, as_json=as_json)


def _refuse_given(context: click.Context, names: tuple[str, ...], what: str) -> None:
    """Raise UsageError if options are given that have no meaning here."""
    for parameter in context.command.params:
        given = context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
        if parameter.name in names and given:
            raise click.UsageError(f"{parameter.opts[0]} is not for {what}", context)


def _run_app(target: str, *, stop_when_empty: bool, reload: bool, as_json: bool) -> int:
    from forq_trio.cli.work_apps import load_app, parse_app

    app = parse_app(target)
    if reload:
        from forq_trio.cli.work_reload import run_reloading

        return run_reloading(app, stop_when_empty=stop_when_empty, as_json=as_json)
    return _run(load_app(app), stop_when_empty=stop_when_empty, as_json=as_json)


def _run(worker: "Worker", *, stop_when_empty: bool, as_json: bool) -> int:
    from forq_trio.cli.work_report import reporting
    from forq_trio.worker import WorkerSetupError

    try:
        with reporting(worker, as_json=as_json):
            worker.run(stop_when_empty=stop_when_empty)
    except (WorkerSetupError, ValueError) as problem:
        raise CliFailure(str(problem), Exit.USAGE) from None
    return Exit.OK


def _worker(
    queue: str, handler: "Callable[[str, Job], Awaitable[None]]", options: dict[str, Any]
) -> "Worker":
    """A Worker with one handler, at the server of the command line."""
    from forq_trio.worker import Worker, WorkerSetupError

    connect(options["url"]).close()  # raises if the URL, the secret or the proxy is invalid
    worker = Worker(options["url"], name="forq-work")
    try:
        worker.on(
            queue,
            concurrency=options["concurrency"],
            retry=options["retry"],
            lease=_seconds(options["lease_ms"]),
            timeout=_seconds(options["timeout_ms"]),
            where=options["where"] or None,
        )(handler)
    except WorkerSetupError as problem:
        # Without the place at its beginning, which is in our own files.
        raise CliFailure(str(problem).rpartition(f"{handler.__qualname__}: ")[2], Exit.USAGE) from None
    if sdk_is_set_up():
        from forq_trio.worker.tracing import trace

        trace(worker)
    return worker


def _seconds(ms: int | None) -> float | None:
    return None if ms is None else ms / 1_000


def _exec_handler(command: str, context: click.Context) -> "Callable[[str, Job], Awaitable[None]]":
    from forq_trio.worker.commands import exec_handler

    if not command.strip() or "\0" in command:
        raise click.UsageError("--exec: the command is empty", context)
    return exec_handler(command)


def _post_handler(
    url: str, key_file: Path | None, *, allow_private: bool
) -> "Callable[[str, Job], Awaitable[None]]":
    from forq_trio.client.address import address_of, without_credentials
    from forq_trio.worker.posting import post_handler
    from forq_trio.worker.public_addresses import is_public

    keys = _signing_keys(key_file)
    try:
        host = address_of(url).host
        handler = post_handler(url, signing_keys=keys, allow_private=allow_private)
    except ValueError:
        raise CliFailure(
            f"--post: {without_credentials(url)!r} is not a URL to post to", Exit.USAGE
        ) from None
    if not allow_private and (host == "localhost" or (_is_number(host) and not is_public(host))):
        raise CliFailure(f"--post: {host} is not a public address; --allow-private allows it", Exit.USAGE)
    return handler


def _is_number(host: str) -> bool:
    try:
        ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


def _signing_keys(file: Path | None) -> list[str]:
    """The keys that posts are signed with, none for no signature. A command line would show them to everybody here."""
    from forq_trio.worker.webhooks import NO_KEY, read_keys

    place, text = "FORQ_SIGNING_KEY", os.environ.get("FORQ_SIGNING_KEY", "")
    if file is not None:
        try:
            place, text = str(file), read_secret_file(str(file))
        except SecretFileError as problem:
            raise CliFailure(f"--signing-key-file {problem}", Exit.USAGE) from None
    keys = text.split()
    try:
        read_keys(keys)
    except ValueError as problem:
        raise CliFailure(f"{place}: {problem}", Exit.USAGE) from None
    if file is not None and not keys:
        raise CliFailure(f"{place}: {NO_KEY}", Exit.USAGE)
    return keys
