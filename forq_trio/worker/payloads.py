"""Payloads by the annotation of a handler: the content of a message as a value, and a value as content."""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec import inspect

from forq_trio.model import json_text


class Payload:
    """How contents of one type are read and written.

    str is the content itself, bytes its UTF-8; what has a pydantic model in it is read and written by pydantic;
    anything else is JSON by msgspec: Struct, dataclass, TypedDict, dict, list, numbers, times.

    Raises TypeError for a type that neither library knows, InvalidJson for values that `json_text` refuses, and what
    the libraries raise for a content that they cannot read.
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
    kind = inspect.type_info(of)
    plain = kind.type if isinstance(kind, inspect.Metadata) else kind
    if isinstance(plain, inspect.StrType):
        return (lambda content: msgspec.convert(content, of),) * 2
    if isinstance(plain, inspect.BytesType):
        return str.encode, bytes.decode
    classes = list(_classes(kind, set()))
    if any(hasattr(each, "__pydantic_validator__") for each, _ in classes):
        return _by_pydantic(of)
    for each, known in classes:
        if not known:
            raise TypeError(f"msgspec does not know {each!r}")
    read: msgspec.json.Decoder[Any] = msgspec.json.Decoder(of)
    decode = json_text.bounded(read.decode)
    return decode, _checked(json_text.encode_payload, decode)


def _by_pydantic(of: Any) -> Codec:
    from pydantic import TypeAdapter

    adapter = TypeAdapter(of)
    adapter.rebuild()  # raises where a name in it is not defined

    def write(value: Any) -> bytes:
        known = adapter.validate_python(value)
        content = bytes(adapter.dump_json(known, by_alias=True))
        json_text.check_numbers(adapter.dump_python(known, by_alias=True))  # pydantic writes null for NaN
        return content

    def read(content: str) -> Any:
        json_text.check_range(content)  # pydantic reads 1e999 as infinity
        return adapter.validate_json(content)

    decode = json_text.bounded(read)
    return decode, _checked(write, decode)


def _checked(write: Callable[[Any], bytes], read: Callable[[str], Any]) -> Callable[[Any], str]:
    """Write values, and read each once, so that the sender learns of a value that does not fit."""

    def encode(value: Any) -> str:
        content = write(value).decode()
        read(content)
        return content

    return encode


def _classes(node: Any, seen: set[int]) -> Iterator[tuple[type, bool]]:
    """The classes that a type is made of, each with whether msgspec knows it."""
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, tuple):
        parts = node
    elif isinstance(node, (inspect.Type, inspect.Field)):
        parts = tuple(getattr(node, name) for name in node.__struct_fields__)
        found = getattr(node, "cls", None)
        if isinstance(found, type):
            yield found, not isinstance(node, inspect.CustomType)
    else:
        return
    for part in parts:
        yield from _classes(part, seen)
