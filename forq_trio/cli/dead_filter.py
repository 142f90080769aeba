"""The options by which `forq dead` and `forq history` choose messages."""

from collections.abc import Callable, Sequence

import click

from forq_trio.cli.options import CommandT, all_options, duration_option, pairs
from forq_trio.model.dead_letters.bodies import DeadLetterFilter
from forq_trio.model.logs.history import DISCARD_REASONS
from forq_trio.model.messages.types import DEAD_LETTER_REASONS


def _filter_options(why: str, when: str, reasons: Sequence[str]) -> Callable[[CommandT], CommandT]:
    """The options for the members of `DeadLetterFilter`. why, when: words for what happened to the messages."""
    return all_options(
        click.option(
            "--reason",
            type=click.Choice(reasons),
            metavar="REASON",
            help=f"Only those {why} for this reason: {', '.join(reasons)}.",
        ),
        duration_option("--min-age", "min_age_ms", help=f"Only those {when} at least this long ago."),
        duration_option("--max-age", "max_age_ms", help=f"Only those {when} at most this long ago."),
        pairs("--attribute", "attributes", help="Only those with this attribute; may be repeated."),
        click.option("--text", help="Only those whose content contains this."),
        click.option("--error", help='Only those with this last error, exactly; "" for those without one.'),
        click.option(
            "--error-like",
            help="Only those with an error like this one, apart from numbers, ids and addresses.",
        ),
    )


dead_letter_options = _filter_options("dead-lettered", "dead-lettered", DEAD_LETTER_REASONS)
finished_options = _filter_options("discarded", "that ended", DISCARD_REASONS)


def filter_of(
    reason: str | None,
    min_age_ms: int | None,
    max_age_ms: int | None,
    attributes: dict[str, str],
    text: str | None,
    error: str | None,
    error_like: str | None,
) -> DeadLetterFilter:
    """The filter of these options. An attribute's name cannot contain a colon, which separates it in the query."""
    return DeadLetterFilter(reason, min_age_ms, max_age_ms, attributes, text, error, error_like)


def chosen_by_filter(message_ids: Sequence[str], everything: bool, wanted: DeadLetterFilter) -> bool:
    """Whether a command is for --all or a filter, and not for ids. Raises UsageError unless it is for exactly one."""
    filtered = wanted != DeadLetterFilter()
    if bool(message_ids) == (everything or filtered):
        raise click.UsageError("say which: IDs, or --all, or a filter")
    if everything and filtered:
        raise click.UsageError("--all and a filter exclude each other")
    return not message_ids
