"""Fingerprints of errors: the same text for errors that differ only by numbers, ids and addresses.

"timed out after 10 s at /hooks/41" and "timed out after 9 s at /hooks/42" have the fingerprint
"timed out after ‹n› s at /hooks/‹n›". These parts vary:

- an e-mail address, and the host of a URL;
- a word with a digit in it, and such words joined by `.`, `,` or `:` (numbers, ids, dates, times, IP addresses).

An HTTP status does not vary: three digits at the start, or behind "HTTP", "status" or "code".
The fingerprint of a fingerprint is the same text. Computing one takes a single pass over the text, whatever is in it.
"""

import re
from collections.abc import Iterator
from hashlib import blake2b

VARYING = "‹n›"

_PART = re.compile(
    r"""
      (?P<status>^[1-5][0-9]{2}(?![\w.,:-]) | \b(?:HTTP|status|code)[ =:]{1,2}[1-5][0-9]{2}(?![\w.,:-]))
    | (?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+
    | (?<=://)[^\s/?\#"'<>]+
    | (?<![\w-])(?=[A-Za-z_-]*[0-9])[\w-]+(?:[.,:](?=[A-Za-z_-]*[0-9])[\w-]+)*
    """,
    re.VERBOSE | re.ASCII,
)


def parts(error: str) -> Iterator[tuple[str, bool]]:
    """The parts of an error in order, and whether each one varies."""
    end = 0
    for match in _PART.finditer(error):
        if match.lastgroup == "status":
            continue
        if match.start() > end:
            yield error[end : match.start()], False
        yield match[0], True
        end = match.end()
    if end < len(error):
        yield error[end:], False


def fingerprint(error: str) -> str:
    """The error with each part that varies as ‹n›."""
    return "".join([VARYING if varies else part for part, varies in parts(error)])


def alike(error: str | None, other: str) -> bool:
    """True if two errors have the same fingerprint."""
    return bool(error) and fingerprint(error or "") == fingerprint(other)


def fingerprint_key(error: str | None) -> int | None:
    """64 bits of a hash of the fingerprint, by which an engine groups and finds errors; None for no error."""
    if not error:
        return None
    return int.from_bytes(blake2b(fingerprint(error).encode(), digest_size=8).digest(), signed=True)
