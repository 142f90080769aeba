"""The routes of the dialect: all operations are at `/`, and those of a queue at `/{account}/{queue}`, too."""

import re
from collections.abc import Mapping

from forq_trio.broker.broker import Broker
from forq_trio.http.access import Access
from forq_trio.http.errors import PathNotFound
from forq_trio.http.message import Request, Response
from forq_trio.http.router import ErrorMapping, Gate, Route
from forq_trio.http.sqs_api.access import SignatureGate, SqsGate, UnsignedGate
from forq_trio.http.sqs_api.explain import refusal
from forq_trio.http.sqs_api.names import SqsAccount
from forq_trio.http.sqs_api.senders import sender_key
from forq_trio.http.sqs_api.service import SqsService, new_request_id, protocol_of
from forq_trio.http.transport.config import Refuse
from forq_trio.model.amazon_names import ACCOUNT
from forq_trio.model.endpoint import Operation

_PATH = re.compile(rf"/({ACCOUNT}/[^/]*)?")


def sqs_routes(
    broker: Broker, account: SqsAccount, access: Access | None, on_unknown_path: ErrorMapping
) -> list[Route]:
    """access: None for no signatures. on_unknown_path: answers for paths of two segments that are not of a queue."""
    gate: SqsGate
    if access is None:
        gate = UnsignedGate(account.region)
    else:
        gate = SignatureGate(access.secret.decode(), access.keys, access.failures)
    service = SqsService(broker, gate, account, None if access is None else sender_key(access.secret))

    def refuse(error: Exception, request: Request) -> Response:
        if _PATH.fullmatch(request.path) is None:
            return on_unknown_path(PathNotFound(), request)
        return service.refuse(error, request)

    def route(method: str, path: str, gate: Gate) -> Route:
        operation: Operation[None] = Operation(
            name=f"sqs{method.title()}", tag="SQS", summary="Any operation of Amazon SQS", answers=()
        )
        return Route(
            method, path, service.respond, operation, refuse, gate, head=False, options=False, in_place=True
        )

    return [
        route(method, path, each)
        for path, each in (("/", gate), ("/{account}/{queue}", _QueueGate(gate)))
        for method in ("GET", "POST")
    ]


def answering_as_sqs(refuse: Refuse) -> Refuse:
    """`refuse`, with errors of SQS for the requests of the dialect that the transport refuses."""

    def answer(status: int, method: str, path: str, headers: Mapping[bytes, bytes]) -> Response:
        if _PATH.fullmatch(path) is None:
            return refuse(status, method, path, headers)
        return protocol_of(headers).refuse(refusal(status), new_request_id())

    return answer


class _QueueGate:
    """The gate of the path of a queue: other paths of two segments are not the dialect's."""

    scope = None

    def __init__(self, gate: SqsGate) -> None:
        self._gate = gate

    def __call__(self, request: Request) -> None:
        if _PATH.fullmatch(request.path) is None:
            raise PathNotFound
        self._gate(request)
