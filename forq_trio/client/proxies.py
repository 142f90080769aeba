"""The proxy that the environment names: HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, and NO_PROXY for hosts without one."""

import os
import sys
from typing import NamedTuple
from urllib.parse import urlsplit

from forq_trio.client.address import ServerAddress, address_of, is_server_url, without_credentials


class Proxy(NamedTuple):
    """url: without the password that it may have."""

    url: str
    address: ServerAddress


def proxy_before(url: str) -> Proxy | None:
    """The proxy for the server at `url`; None without one. Raises ValueError for one that cannot be used."""
    named = proxy_url(url)
    if named is None:
        return None
    try:
        return Proxy(without_credentials(named), address_of(named))
    except ValueError:
        raise ValueError(f"{without_credentials(named)!r} is not a URL of an HTTP proxy") from None


def proxy_url(url: str) -> str | None:
    """The URL of the proxy for the server at `url`, as the environment has it."""
    if not is_server_url(url) or not _may_be_named():
        return None
    # It imports http.client and all of email: a tenth of what the process of a Spark stream takes to start.
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(url)
    proxies = getproxies()
    named = proxies.get(parts.scheme) or proxies.get("all")
    if not named or proxy_bypass(parts.netloc.rpartition("@")[2]):
        return None
    return named if "://" in named else f"http://{named}"


def _may_be_named() -> bool:
    """False where getproxies would find none: elsewhere than on these systems it knows the environment alone."""
    return sys.platform in ("darwin", "win32") or any(name.lower().endswith("_proxy") for name in os.environ)
