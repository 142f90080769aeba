"""The MD5s with which SDKs check that a message arrived as it was sent."""

from collections.abc import Mapping
from hashlib import md5

from forq_trio.http.sqs_api.shapes import AttributeValue

_STRING, _BINARY = b"\x01", b"\x02"


def md5_of_text(text: str) -> str:
    """The MD5 of a body, in hex."""
    return md5(text.encode(), usedforsecurity=False).hexdigest()


def md5_of_attributes(attributes: Mapping[str, AttributeValue]) -> str:
    """The MD5 of message attributes, in hex: of names, types and values by name, each with its length before it.

    Source: the Amazon SQS Developer Guide, "Calculating the MD5 message digest for message attributes".
    """
    digest = md5(usedforsecurity=False)
    for name, value in sorted(attributes.items(), key=lambda item: item[0].encode()):
        for part in (name.encode(), (value.data_type or "").encode()):
            digest.update(len(part).to_bytes(4, "big") + part)
        kind, content = _BINARY, value.binary_value
        if content is None:
            kind, content = _STRING, (value.string_value or "").encode()
        digest.update(kind + len(content).to_bytes(4, "big") + content)
    return digest.hexdigest()
