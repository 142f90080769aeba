"""A link that logs in once: `forq demo` prints it and opens it in a browser, so that nobody types a password.

The token stands behind the # of the address. A browser keeps that part to itself: no request has it, so neither has a
log, a proxy or a Referer. A script of the login page takes it out of the address, and posts it as the form would post
a password, with the same checks. So whoever only fetches the address ahead (a preview, a virus scanner, a browser that
guesses where its reader goes next) gets a login page, and the link is as good as before.

The browser is started with the whole address, so for a moment other users of this machine can read it in the list of
processes. A file would hide it, but browsers in a sandbox cannot read one. Each link works once: if somebody else was
first, the reader of the terminal sees that.
"""

import secrets
import time
from collections.abc import Callable
from hmac import compare_digest

from forq_trio.model import limits


class OneTimeLink:
    """Only memory has its token. now: seconds on any clock that does not go back."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.token = secrets.token_urlsafe(limits.LINK_TOKEN_BYTES)
        self._now = now
        self._ends_at = now() + limits.LINK_SECONDS_MAX
        self._used = False

    def url(self, ui_url: str) -> str:
        """The link to the admin UI at this URL."""
        return f"{ui_url}/login#{self.token}"

    def use(self, token: str) -> bool:
        """Whether this token logs in, which it does once."""
        right = compare_digest(token.encode(errors="replace"), self.token.encode())
        if not right or self._used or self._now() >= self._ends_at:
            return False
        self._used = True
        return True
