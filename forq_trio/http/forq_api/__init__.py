"""Forq's REST dialect under /api/v1 (contract F), and our additions under the same prefix."""

from forq_trio.http.forq_api.errors import answer_error
from forq_trio.http.forq_api.openapi import build_document, openapi_routes
from forq_trio.http.forq_api.routes import forq_routes

__all__ = ["answer_error", "build_document", "forq_routes", "openapi_routes"]
