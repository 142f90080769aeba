"""The preview of a message in a list: the beginning of its content, or what surrounds the text that was searched."""

from forq_trio.model import limits

ELLIPSIS = "…"
_CHARACTER_BYTES_MAX = 4
LEAD_BYTES = limits.PREVIEW_LEAD * _CHARACTER_BYTES_MAX
EXCERPT_BYTES = limits.PREVIEW_LENGTH_MAX * _CHARACTER_BYTES_MAX
"""Bytes of UTF-8 in which the characters before a match, and all of a preview, have space whatever they are."""


def preview_of(content: str, text: str | None) -> str:
    """At most PREVIEW_LENGTH_MAX characters of `content`.

    The first ones; but where the first match of `text` comes after PREVIEW_MATCH_LATE characters, those around it, and
    an ellipsis before them.
    """
    match_at = content.find(text) if text else 0
    if match_at < limits.PREVIEW_MATCH_LATE:
        return content[: limits.PREVIEW_LENGTH_MAX]
    start = match_at - limits.PREVIEW_LEAD
    return ELLIPSIS + content[start : start + limits.PREVIEW_LENGTH_MAX - 1]


def preview_of_excerpt(excerpt: bytes, match_at: int) -> str:
    """`preview_of` from an excerpt of the content of EXCERPT_BYTES; its first and last character may be cut.

    match_at: where the match begins in it, at most at LEAD_BYTES; 0 where the excerpt is the content's beginning.
    """
    if match_at == 0:
        return excerpt.decode(errors="ignore")[: limits.PREVIEW_LENGTH_MAX]
    lead = excerpt[:match_at].decode(errors="ignore")[-limits.PREVIEW_LEAD :]
    rest = excerpt[match_at:].decode(errors="ignore")[: limits.PREVIEW_LENGTH_MAX - 1 - limits.PREVIEW_LEAD]
    return ELLIPSIS + lead + rest
