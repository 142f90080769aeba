"""`forq send --key`: offers one message under a key, and prints the outcome."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from forq_trio.cli.exits import Exit, reporting_unknown_outcome
from forq_trio.cli.options import all_options, duration_option
from forq_trio.cli.output import echo, print_json
from forq_trio.model.keys.types import Mode, Offered
from forq_trio.model.messages.new_message import MessageOptions

if TYPE_CHECKING:
    from forq_trio.client.sync import ForqClient

_MODES: Mapping[str, tuple[Mode, str]] = {
    "update": ("createOrUpdate", "With --key: change the pending message.  [default]"),
    "if-absent": ("createIfAbsent", "With --key: leave the pending message as it is."),
    "create": ("create", "With --key: fail if a message is pending."),
    "once-more": (
        "onceMore",
        "With --key: change the pending message; if it is in process, deliver this one after it.",
    ),
}


class Keyed(NamedTuple):
    """How a message is offered under a key."""

    key: str
    kind: str
    mode: Mode
    max_wait_ms: int | None


key_options = all_options(
    click.option(
        "--key",
        metavar="KEY",
        help="Offer the message under this key: one message of a key is pending at a time.",
    ),
    click.option("--kind", metavar="NAME", help="The kind of the key.  [default: the one without a name]"),
    *(click.option(f"--{name}", is_flag=True, help=says) for name, (_, says) in _MODES.items()),
    duration_option("--debounce", "debounce_ms", help="With --key: due this long after the last offer."),
    duration_option(
        "--max-wait",
        "max_wait_ms",
        help="With --debounce: due this long after the first offer at the latest.",
    ),
)
"""--key, and how a message is offered under it."""


def take_keyed(options: dict[str, Any]) -> Keyed | None:
    """Take the options of a key out of `options`; a debounce becomes their delay. None without a key.

    Raises UsageError for options that do not go together.
    """
    key, kind = options.pop("key"), options.pop("kind")
    debounce_ms, max_wait_ms = options.pop("debounce_ms"), options.pop("max_wait_ms")
    chosen = [name for name in _MODES if options.pop(name.replace("-", "_"))]
    if debounce_ms is not None:
        chosen.append("debounce")
    if key is None:
        for name, value in (("kind", kind), ("max-wait", max_wait_ms)):
            chosen += [] if value is None else [name]
        if chosen:
            raise click.UsageError(f"--{chosen[0]} is for an offer: it needs --key")
        return None
    if len(chosen) > 1:
        raise click.UsageError(f"--{chosen[0]} and --{chosen[1]} exclude each other")
    if max_wait_ms is not None and debounce_ms is None:
        raise click.UsageError("--max-wait is for --debounce")
    for name, option in (("deduplication_id", "dedup-id"), ("deduplication_window_ms", "dedup-window")):
        if options.pop(name) is not None:
            raise click.UsageError(
                f"--{option} and --key exclude each other: a key is unique while it is pending"
            )
    mode: Mode = _MODES[(chosen or ["update"])[0]][0] if debounce_ms is None else "debounce"
    if debounce_ms is not None:
        for name, option in (("delay_ms", "delay"), ("process_after", "process-after")):
            if options[name] is not None:
                raise click.UsageError(f"--{option} and --debounce exclude each other")
        options["delay_ms"] = debounce_ms
    return Keyed(key, kind or "", mode, max_wait_ms)


def offer_one(
    client: "ForqClient", queue: str, content: str, keyed: Keyed, options: MessageOptions, as_json: bool
) -> int:
    """Offer a message, and print the outcome."""
    members: dict[str, Any] = dict(options)
    with reporting_unknown_outcome("offer"):
        offered = client.offer(
            queue,
            keyed.key,
            content,
            kind=keyed.kind,
            mode=keyed.mode,
            max_wait_ms=keyed.max_wait_ms,
            **members,
        )
    if as_json:
        print_json(offered)
    else:
        echo(_outcome(offered, queue))
    return Exit.OK


def _outcome(offered: Offered, queue: str) -> str:
    words = (
        f"{offered.outcome} {offered.id} in {queue}, sequence {offered.sequence}, revision {offered.revision}"
    )
    return f"{words}: it waits until the message in process is done" if offered.once_more else words
