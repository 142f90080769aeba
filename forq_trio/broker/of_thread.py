"""Brokers for blocking programs, as those see them who put something around a broker from outside."""

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from forq_trio.broker.broker import Broker


class OfThread(Protocol):
    """A broker for blocking programs."""

    @property
    def inner(self) -> "Broker": ...


def inner_of(broker: "Broker | OfThread") -> Any:
    """The broker itself, or the one in trio's thread behind it."""
    return getattr(broker, "inner", broker)
