"""All endpoints of Forq's API that are declared."""

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from forq_trio.wire import endpoints, methods
from forq_trio.wire.endpoints.endpoint import Endpoint


def named_endpoints() -> Iterator[tuple[str, Endpoint[Any]]]:
    """Each where it is declared, by the name of its constant."""
    for package in (endpoints, methods):
        for module in iter_modules(package.__path__, f"{package.__name__}."):
            declared = vars(import_module(module.name)).items()
            yield from ((name, each) for name, each in declared if isinstance(each, Endpoint))


def all_endpoints() -> Iterator[Endpoint[Any]]:
    yield from (each for _, each in named_endpoints())
