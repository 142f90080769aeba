"""forq-trio: a durable, instant, self-hosted message queue on one writer actor.

The names below are the ones to use from an application that embeds the queue; `forq serve` runs it as a server.
They are imported when first used, so that a program which only needs `forq_trio.client` loads nothing of the server.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str
    from forq_trio.broker.broker import Broker
    from forq_trio.model.access import AccessToken, Scope
    from forq_trio.model.clock import Clock
    from forq_trio.model.errors import CallerError, ForqError, ServiceError
    from forq_trio.model.messages import (
        Delivery,
        MessageFilter,
        MessageInfo,
        NewMessage,
        Produced,
        QueueInfo,
        Status,
    )
    from forq_trio.system import open_broker

_HOMES = {
    "AccessToken": "model.access",
    "Broker": "broker.broker",
    "CallerError": "model.errors",
    "Clock": "model.clock",
    "Delivery": "model.messages",
    "ForqError": "model.errors",
    "MessageFilter": "model.messages",
    "MessageInfo": "model.messages",
    "NewMessage": "model.messages",
    "Produced": "model.messages",
    "QueueInfo": "model.messages",
    "Scope": "model.access",
    "ServiceError": "model.errors",
    "Status": "model.messages",
    "open_broker": "system",
}

__all__ = [
    "AccessToken",
    "Broker",
    "CallerError",
    "Clock",
    "Delivery",
    "ForqError",
    "MessageFilter",
    "MessageInfo",
    "NewMessage",
    "Produced",
    "QueueInfo",
    "Scope",
    "ServiceError",
    "Status",
    "open_broker",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module(f"{__name__}.version").installed_version() or "unknown"
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
