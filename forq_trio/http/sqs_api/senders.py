"""Who sent a message: an access token. Its name is among the attributes (model/sqs/attributes.py), with a proof.

Senders of other dialects may write that attribute, too, because that is how a message is copied. They may say all that
it says, but not who they are. So the name is believed only with a proof, which no one can make without the server's
secret. It is over the whole message, except itself: it holds for a move or a copy of the message, and for no other one.
So it says who wrote a message, not who put it into its queue. A message without a proof is of somebody: of the server's
secret, or of a sender of another dialect. A proof of the secret would make its plain messages longer, and sends slower.
"""

import hmac
from collections.abc import Mapping
from hashlib import blake2b, sha256

from msgspec.json import encode

from forq_trio.http.sqs_api.messages import extra_of
from forq_trio.model.messages.types import Delivery
from forq_trio.model.sqs.attributes import EXTRA

_PURPOSE = b"sender of a message"
_PROOF_BYTES = 16
_MARK, _END = ',"proof":"', '"}'  # around the proof, at the end of the JSON


def sender_key(server_secret: bytes) -> bytes:
    """The key of the proofs of a server with this secret."""
    return hmac.digest(server_secret, _PURPOSE, sha256)


def with_proof(content: str, attributes: dict[str, str], key: bytes) -> dict[str, str]:
    """The attributes of a message that has a sender, with the proof."""
    proof = _proof(content, attributes, key)
    return {**attributes, EXTRA: attributes[EXTRA].removesuffix("}") + _MARK + proof + _END}


def sender_of(delivery: Delivery, key: bytes | None) -> str | None:
    """The token that sent a message; None if there is none, or no proof. key: None on a server that has no senders."""
    text, mark, end = delivery.attributes.get(EXTRA, "").rpartition(_MARK)
    if key is None or not mark:
        return None
    proof = _proof(delivery.content, {**delivery.attributes, EXTRA: text + "}"}, key)
    return extra_of(delivery).sender if hmac.compare_digest((proof + _END).encode(), end.encode()) else None


def _proof(content: str, attributes: Mapping[str, str], key: bytes) -> str:
    digest = blake2b(encode(sorted(attributes.items())), key=key, digest_size=_PROOF_BYTES)
    digest.update(content.encode())
    return digest.hexdigest()
