"""Where a server is, as a URL."""

from urllib.parse import urlsplit

DEFAULT_URL = "http://localhost:8080"


def is_server_url(url: str) -> bool:
    """True if a server can be at this URL."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
