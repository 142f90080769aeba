"""Payloads by the annotation of a handler: the content of a message as a value, and a value as content."""

import inspect
from collections.abc import Callable
from typing import Any

import msgspec
import msgspec.inspect


class Payload:
    """How contents of one type are read and written.

    str is the content itself, bytes its UTF-8; a pydantic model is read and written by pydantic; anything else is JSON
    by msgspec: Struct, dataclass, TypedDict, dict, list, numbers, times.

    Raises TypeError for a type that none of them knows.
    """

    def __init__(self, of: Any) -> None:
        self.of = of
        self.decode, self.encode = _codec(of)

    def check(self, content: str) -> str | None:
        """None if the content fits, else why it does not, with the place."""
        try:
            self.decode(content)
        except Exception as error:
            return str(error)
        return None


Codec = tuple[Callable[[str], Any], Callable[[Any], str]]


def _codec(of: Any) -> Codec:
    if of is str:
        return _text, _text
    if of is bytes:
        return str.encode, bytes.decode
    if inspect.isclass(of) and hasattr(of, "model_validate_json") and hasattr(of, "model_dump_json"):
        return of.model_validate_json, lambda value: str(value.model_dump_json())
    if isinstance(msgspec.inspect.type_info(of), msgspec.inspect.CustomType):
        raise TypeError("msgspec does not know this type")
    decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(of)
    encoder = msgspec.json.Encoder()

    def encode(value: Any) -> str:
        content = encoder.encode(value)
        decoder.decode(content)  # what does not fit is found by its sender
        return content.decode()

    return decoder.decode, encode


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a str is wanted, not {type(value).__name__}")
    return value
