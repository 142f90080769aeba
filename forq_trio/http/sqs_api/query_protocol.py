"""The query protocol of SDKs before 2023 and of curl: a form, in the body or in the URL, and answers in XML.

A list is written as `AttributeName.1`, `AttributeName.2`; a map as `Tag.1.Key`, `Tag.1.Value`. `_LISTS` and `_MAPS` say
how each member of the requests and answers is called there.
"""

import re
from binascii import a2b_qp
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape

import msgspec
from msgspec import Struct
from msgspec.structs import fields

from forq_trio.http.message import Request, Response
from forq_trio.http.sqs_api.checks import FORBIDDEN
from forq_trio.http.sqs_api.errors import (
    MALFORMED,
    QUEUE_DOES_NOT_EXIST,
    UNKNOWN_OPERATION,
    SqsError,
    missing,
    shown,
)
from forq_trio.http.sqs_api.shapes import REQUESTS, Nothing, Wire

_NAMESPACE = "http://queue.amazonaws.com/doc/2012-11-05/"
_DECLARATION = '<?xml version="1.0"?>\n'
_SLICE_LENGTH = 16_384  # characters of a text; `&` becomes five bytes, others become up to four
_FIELDS_MAX = 1_000  # ten messages with ten attributes each have 350
_NUMBER = re.compile(r"-?[0-9]{1,18}")
_ORDINAL = re.compile(r"0|[1-9][0-9]{0,8}")
_ESCAPED_ELSEWHERE = {b"=": b"%3D", b"\r": b"%0D", b"\n": b"%0A"}  # curl leaves them as they are
_UNESCAPED_MAX = 100_000
_BATCH = "Entries"
_NO_SUCH_QUEUE = "The specified queue does not exist for this wsdl version."
_LISTS = {
    "AttributeNames": "AttributeName",
    "MessageAttributeNames": "MessageAttributeName",
    "MessageSystemAttributeNames": "MessageSystemAttributeName",
    "TagKeys": "TagKey",
    "AWSAccountIds": "AWSAccountId",
    "Actions": "ActionName",
    "QueueUrls": "QueueUrl",
    "queueUrls": "QueueUrl",
    "Messages": "Message",
    "Failed": "BatchResultErrorEntry",
    "Results": "ListMessageMoveTasksResultEntry",
}
_MAPS = {
    "Attributes": ("Attribute", "Name", "Value"),
    "Tags": ("Tag", "Key", "Value"),
    "tags": ("Tag", "Key", "Value"),
    "MessageAttributes": ("MessageAttribute", "Name", "Value"),
    "MessageSystemAttributes": ("MessageSystemAttribute", "Name", "Value"),
}


class QueryProtocol:
    """Reads requests and makes answers of the query protocol."""

    @staticmethod
    def read(request: Request) -> tuple[str, Wire]:
        """The operation and its request."""
        form = _form(request)
        operation = form.get("Action")
        if not isinstance(operation, str) or (shape := REQUESTS.get(operation)) is None:
            raise missing("Action") if operation is None else _unknown(operation)
        if "QueueUrl" not in form and request.path != "/":
            form["QueueUrl"] = request.path
        members = _members(form, shape, operation)
        try:
            return operation, msgspec.convert(members, shape)
        except msgspec.ValidationError as error:
            raise SqsError(MALFORMED, f"The request is not one of {operation}: {shown(error)}") from None

    @staticmethod
    def parts(operation: str, result: Wire, request_id: str) -> Iterator[bytes]:
        """The parts of an answer, none of them long, each made when it is asked for."""
        yield f'{_DECLARATION}<{operation}Response xmlns="{_NAMESPACE}">'.encode()
        if not isinstance(result, Nothing):
            yield f"<{operation}Result>".encode()
            for element in _elements(result, operation):
                yield element.encode()
            yield f"</{operation}Result>".encode()
        end = (
            f"<ResponseMetadata><RequestId>{request_id}</RequestId></ResponseMetadata></{operation}Response>"
        )
        yield end.encode()

    @staticmethod
    def answer(parts: Sequence[bytes], request_id: str) -> Response:
        return _xml(200, b"".join(parts), request_id)

    @staticmethod
    def refuse(error: SqsError, request_id: str) -> Response:
        message = _NO_SUCH_QUEUE if error.shape is QUEUE_DOES_NOT_EXIST else error.message
        text = (
            f'<ErrorResponse xmlns="{_NAMESPACE}"><Error><Type>{error.fault}</Type><Code>{error.shape.code}</Code>'
            f"<Message>{_escaped(message)}</Message><Detail/></Error><RequestId>{request_id}</RequestId>"
            "</ErrorResponse>"
        )
        return _xml(error.shape.status, (_DECLARATION + text).encode(), request_id, error.headers)


def _unknown(operation: object) -> SqsError:
    return SqsError(UNKNOWN_OPERATION, f"The action {shown(operation)} is not valid for this endpoint.")


def _form(request: Request) -> dict[str, Any]:
    """The fields of body and URL as a tree: `Tag.1.Key` is at ["Tag"]["1"]["Key"]."""
    tree: dict[str, Any] = {}
    pairs = [
        pair
        for part in (request.query.encode("latin-1"), request.body)
        for pair in part.split(b"&", _FIELDS_MAX)
    ]
    if len(pairs) > _FIELDS_MAX:
        raise SqsError(MALFORMED, f"The request has more than {_FIELDS_MAX} fields.")
    for pair in filter(None, pairs):
        name, value = map(_decoded, pair.partition(b"=")[::2])
        *path, last = name.split(".", _DEPTH_MAX)
        place = tree
        for step in path:
            below = place.setdefault(step, {})
            if not isinstance(below, dict):
                raise SqsError(MALFORMED, f"The field {shown(name)} is inside of another one.")
            place = below
        place[last] = value
    return tree


_DEPTH_MAX = 6  # SendMessageBatchRequestEntry.1.MessageAttribute.1.Value.StringValue


def _decoded(text: bytes) -> str:
    """A name or value of a form. Raises SqsError.

    The decoder of quoted-printable, which is the same but for its sign, needs a thirtieth of the time of urllib's, and
    no other request is answered meanwhile. It leaves a wrong escape as it is, so that the result has another length.
    """
    text = text.replace(b"+", b" ")
    if sum(map(text.count, _ESCAPED_ELSEWHERE)) > _UNESCAPED_MAX:
        raise SqsError(MALFORMED, "The request is no form: it does not escape = and ends of lines.")
    for byte, escaped in _ESCAPED_ELSEWHERE.items():
        text = text.replace(byte, escaped)
    try:
        decoded = a2b_qp(text.replace(b"%", b"="))
        if len(decoded) != len(text) - 2 * text.count(b"%"):
            raise ValueError("there is a % that is not followed by two digits")
        return decoded.decode()
    except ValueError as error:
        raise SqsError(MALFORMED, f"The request is no form: {shown(error)}") from None


def _members(form: Mapping[str, Any], shape: type[Struct], operation: str) -> dict[str, Any]:
    """The members of a request, with its lists and maps."""
    found: dict[str, Any] = {}
    for field in fields(shape):
        name = field.encode_name
        if name in _MAPS:
            element, key, value = _MAPS[name]
            entries = [entry for entry in _in_order(form.get(element)) if isinstance(entry, dict)]
            if entries:
                found[name] = {_name(entry.get(key, "")): entry.get(value, "") for entry in entries}
        elif name == _BATCH:
            entry_shape = _entry_of(shape)
            entries = list(_in_order(form.get(f"{operation}RequestEntry")))
            found[name] = [
                _members(entry, entry_shape, operation) if isinstance(entry, dict) else entry
                for entry in entries
            ]
        elif name in _LISTS:
            values = list(_in_order(form.get(_LISTS[name])))
            if values:
                found[name] = values
        elif name in form:
            found[name] = _number(form[name]) if field.type == (int | None) else form[name]
    return found


def _name(name: Any) -> str:
    if not isinstance(name, str):
        raise SqsError(MALFORMED, "The name of an entry of a map is no text.")
    return name


def _number(text: Any) -> Any:
    """The number that a text is; a text that is none is refused like the same text in JSON."""
    return int(text) if isinstance(text, str) and _NUMBER.fullmatch(text) else text


def _entry_of(shape: type[Struct]) -> type[Struct]:
    (entries,) = (field for field in fields(shape) if field.encode_name == _BATCH)
    entry: type[Struct] = entries.type.__args__[0].__args__[0]
    return entry


def _in_order(numbered: Any) -> Iterator[Any]:
    """The values of `1`, `2`, … by number. What has another name is left out."""
    if isinstance(numbered, dict):
        numbers = sorted(int(each) for each in numbered if _ORDINAL.fullmatch(each))
        yield from (numbered[str(number)] for number in numbers)


def _elements(value: Struct, operation: str) -> Iterator[str]:
    """The members of an answer as XML, in short pieces; absent ones are left out."""
    for field in fields(value):
        name, content = field.encode_name, getattr(value, field.name)
        if content is None or content == field.default:
            continue
        if isinstance(content, dict):
            element, key, inner = _MAPS[name]
            for each, found in content.items():
                yield f"<{element}><{key}>{_escaped(each)}</{key}>"
                yield from _element(inner, found, operation)
                yield f"</{element}>"
        elif isinstance(content, list):
            element = f"{operation}ResultEntry" if name == "Successful" else _LISTS[name]
            for each in content:
                yield from _element(element, each, operation)
        else:
            yield from _element(name, content, operation)


def _element(name: str, content: Any, operation: str) -> Iterator[str]:
    if isinstance(content, Struct):
        yield f"<{name}>"
        yield from _elements(content, operation)
        yield f"</{name}>"
        return
    if isinstance(content, bytes):
        content = msgspec.to_builtins(content)
    text = str(content).lower() if isinstance(content, bool) else str(content)
    if len(text) <= _SLICE_LENGTH:
        yield f"<{name}>{_escaped(text)}</{name}>"
        return
    yield f"<{name}>"
    for start in range(0, len(text), _SLICE_LENGTH):
        yield _escaped(text[start : start + _SLICE_LENGTH])
    yield f"</{name}>"


def _escaped(text: str) -> str:
    """A text in XML. A carriage return would be read as a line end, unless it is written as a number.

    XML has no way to write some characters, which messages of other dialects may have.
    """
    return escape(FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text), {"\r": "&#13;"})


def _xml(
    status: int, body: bytes, request_id: str, headers: tuple[tuple[bytes, bytes], ...] = ()
) -> Response:
    return Response(status, body, b"text/xml", (*headers, (b"x-amzn-requestid", request_id.encode())))
