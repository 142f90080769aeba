"""Checks of what many requests have: numbers in a range, and texts that XML can show."""

import re

from forq_trio.http.sqs_api.errors import INVALID_CONTENTS, SqsError, invalid

FORBIDDEN = re.compile(r"[^\t\n\r\x20-\uD7FF\uE000-\uFFFD\U00010000-\U0010FFFF]")


def in_range(parameter: str, value: int | None, low: int, high: int, default: int) -> int:
    """Return a number of a request, or `default` for none; raise SqsError unless low <= value <= high."""
    if value is None:
        return default
    if not low <= value <= high:
        raise invalid(parameter, value, f"Must be between {low} and {high}, if provided.")
    return value


def check_characters(text: str) -> None:
    """Raise SqsError for characters that XML has not, or that UTF-8 cannot carry."""
    if text.isascii() and text.isprintable():
        return  # most texts, and sooner than the pattern
    if FORBIDDEN.search(text) is not None:
        raise SqsError(
            INVALID_CONTENTS,
            "Invalid characters found. Valid unicode characters are #x9 | #xA | #xD | [#x20 to #xD7FF] |"
            " [#xE000 to #xFFFD] | [#x10000 to #x10FFFF].",
        )
