"""Reads the bodies of sends: the JSON is decoded straight into the message that the broker stores.

Forq ignores unknown members, and so does a send of one message that has only Forq's own members. A message with any of
our members comes from a client that knows us: an unknown member is a mistake and refused by name. Batches are ours
alone, so there an unknown member is always refused.
"""

import msgspec
from msgspec import Struct

from forq_trio.http.forq_api.bodies import BodyReader
from forq_trio.http.forq_api.refusals import Refused
from forq_trio.model import messages as model
from forq_trio.wire.messages import NewMessage, NewMessages, SendResult

FORQS_MEMBERS = frozenset({"content", "processAfter"})
OUR_MEMBERS = frozenset(NewMessage.__struct_encode_fields__) - FORQS_MEMBERS


class _RawMessages(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """NewMessages whose messages are not decoded yet."""

    messages: list[msgspec.Raw]


class _ForqsMessage(Struct, frozen=True, rename="camel"):
    """The members of a message that Forq has."""

    content: str
    process_after: int | None = None


_read_message = BodyReader(NewMessage)
_read_messages = BodyReader(NewMessages)
_read_raw_messages = BodyReader(_RawMessages)
_read_forqs_message = BodyReader(_ForqsMessage)
_read_members = BodyReader(dict[str, msgspec.Raw])


def read_message(body: bytes) -> model.NewMessage:
    """The message of a body. Raises Refused."""
    try:
        return _read_message(body)
    except Refused:
        if OUR_MEMBERS.isdisjoint(_read_members(body)):
            sent = _read_forqs_message(body)
            return model.NewMessage(sent.content, sent.process_after)
        raise


def read_messages(body: bytes) -> list[model.NewMessage | SendResult]:
    """The messages of a batch; for an invalid one its result. A batch without any is decoded at once.

    Raises Refused for a body that is no batch.
    """
    try:
        return list(_read_messages(body).messages)
    except Refused:
        return [_read_entry(raw) for raw in _read_raw_messages(body).messages]


def refused_result(refusal: Refused) -> SendResult:
    """The result of a message of a batch that is refused alone. Its `field` is a path into the message."""
    view = refusal.view
    return SendResult(code=view.code, field=view.field, message=view.message)


def _read_entry(raw: msgspec.Raw) -> model.NewMessage | SendResult:
    try:
        return _read_message(raw)
    except Refused as refusal:
        return refused_result(refusal)
