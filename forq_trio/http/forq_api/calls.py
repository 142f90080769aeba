"""Endpoints that do no more than call: a generic function reads the body, calls, and encodes the result."""

from collections.abc import Callable
from typing import Any, TypeAlias

from forq_trio.http.router import Respond, Route
from forq_trio.wire.endpoints.endpoint import Endpoint

MakeRoute: TypeAlias = Callable[[Endpoint[Any], Respond], Route]
"""Makes the route of an endpoint from its declaration and the function that responds."""
