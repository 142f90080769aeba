"""The OpenAPI document as strict about words as the server that made it: clients take others, it answers none."""

from typing import Any

from forq_trio.http.forq_api.openapi_schemas import KNOWN_WORDS


def closed(value: Any) -> Any:
    """A part of the document in which each text that is one of several words today has a list of these alone."""
    if isinstance(value, list):
        return [closed(each) for each in value]
    if not isinstance(value, dict):
        return value
    made = {name: closed(each) for name, each in value.items() if name != KNOWN_WORDS}
    if KNOWN_WORDS in value:
        made["enum"] = [*value[KNOWN_WORDS], *([None] if "null" in value["type"] else [])]
    return made
