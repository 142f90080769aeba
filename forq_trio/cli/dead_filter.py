"""The options by which `forq dead` and `forq history` choose messages."""

from collections.abc import Sequence

import click

from forq_trio.cli.options import all_options, duration_option, pairs
from forq_trio.model.dead_letters.bodies import DeadLetterFilter

filter_options = all_options(
    click.option("--reason", help="Only those dead-lettered for this reason."),
    duration_option("--min-age", "min_age_ms", help="Only those dead-lettered at least this long ago."),
    duration_option("--max-age", "max_age_ms", help="Only those dead-lettered at most this long ago."),
    pairs("--attribute", "attributes", help="Only those with this attribute; may be repeated."),
    click.option("--text", help="Only those whose content contains this."),
    click.option("--error", help='Only those with this last error, exactly; "" for those without one.'),
    click.option(
        "--error-like", help="Only those with an error like this one, apart from numbers, ids and addresses."
    ),
)
"""The options for the members of `DeadLetterFilter`."""


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
