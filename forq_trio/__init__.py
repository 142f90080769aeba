"""forq-trio: a durable, instant, self-hosted message queue on one writer actor.

The names below are the ones to use from programs: `open_broker` runs the queue inside an application on trio or
asyncio, `open_blocking_broker` inside a blocking one, `ForqClient` and `AsyncForqClient` reach a server. All have
the same methods, results and errors (docs/python.md). `forq serve` is the server.

A name is imported when it is first used, so that a program loads only what it needs. The clients need nothing but what
the package installs without an extra; for any other name ImportError says which extra it needs.
"""

import re
from functools import cache
from importlib import import_module
from pkgutil import get_data
from typing import Any

_EMBEDDED = ("BlockingBroker", "Broker", "BrokerOptions", "open_blocking_broker", "open_broker")
"""The names that need the extra `embed`."""


@cache
def _homes() -> dict[str, str]:
    """The module of each public name: of those that __init__.pyi lists, and of the errors."""
    listed = (get_data(__name__, "__init__.pyi") or b"").decode()
    homes = {name: home for home, name in re.findall(r"^from forq_trio\.(\S+) import (\w+) as", listed, re.M)}
    errors = import_module(f"{__name__}.model.errors")
    return homes | dict.fromkeys(errors.names(), "model.errors")


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module(f"{__name__}.model.version").installed_version() or "unknown"
    if name == "__all__":
        return sorted(_homes())
    if name not in _homes():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = f"{__name__}.{_homes()[name]}"
    if name not in _EMBEDDED:
        return getattr(import_module(home), name)
    extras = import_module(f"{__name__}.model.extras")
    extras.check_system(name)
    with extras.needing("embed", name):
        return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_homes()})
