"""Proof that an unsafe request was made by one of our pages: a token, the Origin, and the Host.

The token is a random salt and the HMAC of it under the session's id, so it needs no storage, is different on every page
(its bytes cannot be guessed from the sizes of compressed pages), and is not valid in other sessions. Before the login
the id is that of a cookie that the login page sets.
"""

import base64
import hmac
import secrets
from hashlib import sha256
from ipaddress import ip_address
from urllib.parse import urlsplit

_SALT_BYTES = 9
_TOKEN_LENGTH = 12 + 43


def make_token(session_id: str) -> str:
    """A token for a page of this session."""
    salt = secrets.token_urlsafe(_SALT_BYTES)
    return salt + _mac(session_id, salt)


def is_valid(token: str, session_id: str) -> bool:
    """True if `make_token` made the token for this session."""
    salt, mac = token[:12], token[12:]
    return len(token) == _TOKEN_LENGTH and hmac.compare_digest(mac.encode(), _mac(session_id, salt).encode())


def _mac(session_id: str, salt: str) -> str:
    made = hmac.new(session_id.encode(), salt.encode(), sha256).digest()
    return base64.urlsafe_b64encode(made).decode().rstrip("=")


def is_same_origin(origin: str | None, referer: str | None, host: str) -> bool:
    """True if the browser says that the request is from a page of this host.

    Browsers send Origin with every unsafe request; where a proxy removed it the Referer has to tell. The scheme is not
    compared: a proxy may speak TLS on our behalf.
    """
    said = origin if origin is not None else referer
    if said is None:
        return False
    try:
        return urlsplit(said).netloc.lower() == host.lower()
    except ValueError:
        return False


def is_plain(origin: str | None, referer: str | None) -> bool:
    """True if the browser says that it got the page over plain HTTP, whatever a proxy in front may speak with us."""
    said = origin if origin is not None else referer
    return (said or "").lower().startswith("http://")


class Hosts:
    """The names by which browsers may ask for the UI.

    Any site can make its own name resolve to our address, and its pages would then be of the same origin. But the Host
    is that name. So only configured names and localhost are allowed; addresses always are, because no site can own one.
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        self._any = "*" in names
        self._names = {name.lower() for name in names} | {"localhost"}

    def allow(self, host: str) -> bool:
        """host: the value of the Host header, with or without a port."""
        if self._any:
            return True
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        if name in self._names:
            return True
        try:
            ip_address(name)
        except ValueError:
            return False
        return True
