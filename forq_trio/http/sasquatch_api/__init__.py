"""Sasquatch's JSON dialect at the root of the API port (contract S), for its clients as they are."""

from forq_trio.http.sasquatch_api.options import SasquatchOptions
from forq_trio.http.sasquatch_api.routes import sasquatch_routes

__all__ = ["SasquatchOptions", "sasquatch_routes"]
