"""Checks which texts may be a secret: the server's, an access token, or what a client presents."""

from forq_trio.model.checks import check_is_text
from forq_trio.model.client_errors import InvalidSecret

_LINE_ENDS = "\r\n"


def why_no_secret(text: str) -> str | None:
    """Why a header cannot carry this secret, in words that follow its name and do not contain it; None if it can.

    A header loses blanks at its ends (RFC 9110 section 5.5), and only printable ASCII arrives safely. Quotes around it
    are refused, because `docker run --env-file` and many other programs take them as part of the value.
    """
    if not text:
        return "is empty"
    if text[0] == text[-1] and text[0] in "\"'":
        return "has quotes around it, which would be part of it: leave them out"
    if text[-1] in _LINE_ENDS:
        return "ends with a line end, which an HTTP header cannot carry: leave it out"
    if text.startswith("\ufeff"):
        return "begins with a byte order mark, which an HTTP header cannot carry: leave it out"
    if not text.isascii():
        return "has characters that are not ASCII, which an HTTP header cannot carry"
    if text != text.strip():
        return "has blanks at an end, which an HTTP header cannot carry: leave them out"
    if not text.isprintable():
        return "has control characters, which an HTTP header cannot carry"
    return None


def check_secret(text: str, name: str = "the secret") -> str:
    """Return the secret. name: where it comes from. Raises InvalidSecret, and TypeError unless it is a str."""
    check_is_text(name, text)
    if (reason := why_no_secret(text)) is not None:
        raise InvalidSecret(f"{name} {reason}")
    return text
