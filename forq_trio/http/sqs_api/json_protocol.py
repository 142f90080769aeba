"""AWS JSON 1.0, which SDKs have spoken since 2023: the operation is in a header, the body is its request.

Decoding many small values takes far longer than one long text, and no other request is answered meanwhile. So the
values of a body are counted before it is decoded.
"""

import msgspec
from msgspec import Raw, Struct, field

from forq_trio.http.message import Request, Response
from forq_trio.http.sqs_api.batches import too_many
from forq_trio.http.sqs_api.errors import MALFORMED, UNKNOWN_OPERATION, SqsError, shown
from forq_trio.http.sqs_api.shapes import REQUESTS, Wire
from forq_trio.model import limits

TARGET_HEADER = b"x-amz-target"
_TARGET_PREFIX = "AmazonSQS."
_CONTENT_TYPE = b"application/x-amz-json-1.0"
_NAMESPACE = "com.amazonaws.sqs#"
_DECODE = {name: msgspec.json.Decoder(kind).decode for name, kind in REQUESTS.items()}
_encode = msgspec.json.Encoder().encode
_QUOTES_MAX = 10_000  # ten messages with ten attributes each have about 2,000
_COUNTED_MAX = 1_000  # entries that are counted in a batch of too many


_Entries = msgspec.defstruct(
    "_Entries",
    [(f"entry_{number}", Raw, Raw()) for number in range(_COUNTED_MAX)],
    array_like=True,
    forbid_unknown_fields=True,
)


class _Batch(Struct):
    """A batch whose entries are counted, and not decoded. A longer one is refused without reading the rest."""

    entries: _Entries | None = field(default=None, name="Entries")  # type: ignore[valid-type]


_count_entries = msgspec.json.Decoder(_Batch).decode


class JsonProtocol:
    """Reads requests and makes answers of the JSON protocol."""

    @staticmethod
    def read(request: Request) -> tuple[str, Wire]:
        """The operation and its request."""
        operation = request.headers.get(TARGET_HEADER, b"").decode("latin-1").removeprefix(_TARGET_PREFIX)
        decode = _DECODE.get(operation)
        if decode is None:
            raise SqsError(UNKNOWN_OPERATION, f"The operation {shown(operation)} is not known.")
        try:
            return operation, decode(_checked(request.body) or b"{}")
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise SqsError(MALFORMED, f"The request is not the JSON of {operation}: {shown(error)}") from None

    @staticmethod
    def answer(result: Wire, request_id: str) -> Response:
        return Response(200, _encode(result), _CONTENT_TYPE, ((b"x-amzn-requestid", request_id.encode()),))

    @staticmethod
    def refuse(error: SqsError, request_id: str) -> Response:
        shape = error.shape
        return Response(
            shape.status,
            _encode({"__type": _NAMESPACE + shape.name, "message": error.message}),
            _CONTENT_TYPE,
            (
                *error.headers,
                (b"x-amzn-requestid", request_id.encode()),
                (b"x-amzn-query-error", f"{shape.code};{error.fault}".encode()),
            ),
        )


def _checked(body: bytes) -> bytes:
    """Return a body that is UTF-8, and has not so many values that reading them would hold up other requests."""
    if not body.isascii():
        body.decode()  # the decoder does not check the UTF-8 of members that it ignores
    if len(body) > limits.READ_SLICE_BYTES:
        # The quote before a text is never one that a backslash escapes, so there are not more texts than these.
        if body.count(b'"') - body.count(b'\\"') > _QUOTES_MAX:
            raise SqsError(MALFORMED, "The request has too many members.")
        entries = _count_entries(body).entries
        count = 0 if entries is None else sum(map(bool, msgspec.structs.astuple(entries)))
        if count > limits.SQS_BATCH_MAX:
            raise too_many(count)
    return body
