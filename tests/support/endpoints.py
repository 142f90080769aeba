"""All endpoints of Forq's API that are declared."""

from collections.abc import Iterator
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

from forq_trio import model
from forq_trio.model.endpoint import Endpoint


def named_endpoints() -> Iterator[tuple[str, Endpoint[Any]]]:
    """Each where it is declared, by the name of its constant."""
    for module in walk_packages(model.__path__, f"{model.__name__}."):
        if module.name.endswith(("endpoints", "methods")):
            declared = vars(import_module(module.name)).items()
            yield from ((name, each) for name, each in declared if isinstance(each, Endpoint))


def all_endpoints() -> Iterator[Endpoint[Any]]:
    yield from (each for _, each in named_endpoints())
