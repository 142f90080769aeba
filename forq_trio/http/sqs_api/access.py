"""Who may send a request: the key of its signature (model/access/signing_keys.py), or the server's own secret.

A gate sees a request before its body, and the signature is over the body, too. So the gate only looks for a signature
of about now with a known key, and the endpoint checks it. Until then the request uses a share of its address and this
key; the endpoint gives it its rights before it does anything.
"""

from time import time
from typing import NoReturn, Protocol

from forq_trio.broker.access_tokens import AccessTokens
from forq_trio.http.access import KeyFailures, LocalGate, give_rights
from forq_trio.http.errors import ForeignSite, Unauthorized
from forq_trio.http.message import Request
from forq_trio.http.router import work_for
from forq_trio.http.sqs_api.errors import UNKNOWN_KEY, SqsError
from forq_trio.http.sqs_api.signature import Signature, check_signature, check_time, region_of, signature_of
from forq_trio.model.access.signing_keys import digest_start, signing_key
from forq_trio.model.access.types import AccessToken, Scope
from forq_trio.model.holders import Holder, HolderKind

_OWN_SITE = (b"none", b"same-origin")
ROOT_KEY_ID = "forq"
"""The id of the key whose secret is the server's own."""


class SqsGate(Protocol):
    """A `router.Gate` that leaves the signature to `verify`."""

    @property
    def scope(self) -> Scope | None: ...

    def __call__(self, request: Request) -> None: ...

    def verify(self, request: Request, body_hash: str) -> str:
        """Give the request its rights; returns its region. body_hash: of its body. Raises SqsError, LockedOut."""
        ...


class SignatureGate:
    """For servers that check signatures. secret: the server's."""

    scope = None

    def __init__(self, secret: str, tokens: AccessTokens, failures: KeyFailures) -> None:
        self._secret = secret
        self._tokens = tokens
        self._failures = failures

    def __call__(self, request: Request) -> None:
        try:
            request.noted = signature = signature_of(request)
            check_time(signature, time())
            found = self._find(signature.terms.key_id)
        except SqsError as error:
            self._refuse(request, error)
        if found is None:
            self._refuse(request, _unknown_key())
        # who knows the id of a key, as everybody does that of the secret, uses up no share of other keys
        request.holder = Holder(HolderKind.ADDRESS, f"{request.holder.name} {signature.terms.key_id}")

    def verify(self, request: Request, body_hash: str) -> str:
        signature: Signature = request.noted
        found = self._find(signature.terms.key_id)
        if found is None:  # revoked since the gate
            self._refuse(request, _unknown_key())
        secret, token = found
        try:
            check_signature(request, body_hash, signature, secret)
        except SqsError as error:
            self._refuse(request, error)
        self._failures.forget(request)
        if token is not None:
            self._tokens.by_digest(token.digest.hex)  # notes the use
        give_rights(request, token, self._failures.address(request))
        work_for(request)
        return signature.terms.region

    def _find(self, key_id: str) -> tuple[str, AccessToken | None] | None:
        """The secret of a key, and its token (None for the server's own secret); None if there is no such key."""
        if key_id == ROOT_KEY_ID:
            return self._secret, None
        token = self._tokens.beginning_with(digest_start(key_id))
        return None if token is None else (signing_key(self._secret, token.digest.hex).secret, token)

    def _refuse(self, request: Request, error: SqsError) -> NoReturn:
        """Count a wrong or missing key, and raise `error`, or LockedOut while the address is locked out."""
        try:
            self._failures.refuse(request)
        except Unauthorized:
            raise error from None


class UnsignedGate(LocalGate):
    """For servers on this machine alone that take any signature, or none. region: of a request that names none."""

    def __init__(self, region: str) -> None:
        self._region = region

    def __call__(self, request: Request) -> None:
        """Refuse web pages. A GET changes queues here, and an image or a link of a page sends one without Origin."""
        if request.headers.get(b"sec-fetch-site", b"none") not in _OWN_SITE:
            raise ForeignSite
        super().__call__(request)

    def verify(self, request: Request, body_hash: str) -> str:
        return region_of(request) or self._region


def _unknown_key() -> SqsError:
    return SqsError(UNKNOWN_KEY, "The security token included in the request is invalid.")
