"""Broker, AsyncForqClient and ForqClient have one shape, and every type in it is a public name."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any, get_args, get_overloads, get_type_hints

import msgspec
import pytest

import forq_trio
from forq_trio import (
    AsyncForqClient,
    BlockingBroker,
    Broker,
    ForqClient,
    ForqError,
    ReceiptResult,
    open_blocking_broker,
    open_broker,
)
from forq_trio.embedded.bridges import AsyncioBroker

FOR_DIALECTS = {
    "ack_message": "Forq's ack names the message, and may do without a receipt",
    "nack_message": "Forq's nack does, too",
    "produce_across": "Sasquatch's batch is one commit of messages for several queues",
    "produce_message": "`produce` with a message that was made before: HTTP reads one from the body",
    "perform": "HTTP makes the routes of endpoints that are one command from it",
    "offer_message": "`offer` with an offer that was made before: the same",
    "change_settings": "`configure` with a change that was made before: HTTP and the form read one",
    "store_message": "SQS: a message that was checked by its rules",
    "store_messages": "the same",
    "change_sqs_queue": "SQS: settings, attributes and tags in one commit",
    "ack_claims": "SQS: which receipts settle depends on the queue",
    "extend_claims": "the same",
    "take_over": "SQS: a queue that another server has just made exists",
    "present": "SQS: whether a receipt that settles nothing is too old",
    "delete_queue_with_messages": "SQS deletes queues with their messages",
    "read_receipt": "SQS: receipts of tables are no UUIDs",
    "undeliver": "gives back without waiting what a consumer that disconnected did not get",
}
"""What only the Broker has, with the reason. Other calls are on the objects that it fronts."""

MORE_PARAMETERS = {
    ("receive", "redrive_policy"): "Sasquatch: of one receive",
    ("purge", "on_step"): "the admin UI shows how far it is",
    ("purge_history", "on_step"): "the same",
    ("drop_keys", "on_step"): "the same",
    ("peek", "wait_ms"): "over HTTP a look that waits is a receive with peek",
    ("publish", "seconds"): "over HTTP a request ends after a while",
    **{
        (method, "key"): "over HTTP it is that of the request"
        for method in (
            "stage",
            "publish",
            "publication",
            "apps",
            "delete_app",
            "open_consumer",
            "relay_outbox",
            "outbox_position",
            "report_worker",
            "forget_worker",
            "withdrawn",
            "workers",
        )
    },
    ("start_compaction", "started_by"): "the same",
}
WIDER = {
    ("ack", "queue"): "None: Sasquatch settles by receipts alone",
    ("extend", "queue"): "the same",
    ("redrives", "queue"): "None: those of all queues",
}


OVER_HTTP = {"queue_health": "only a server watches its queues"}
"""What only the clients have, with the reason."""


def methods(face: type) -> dict[str, Callable[..., Any]]:
    return {name: each for name, each in inspect.getmembers(face, inspect.isfunction) if name[0] != "_"}


SHARED = sorted(methods(AsyncForqClient).keys() - {"aclose"} - OVER_HTTP.keys())


def shape(method: Callable[..., Any]) -> dict[str, tuple[object, ...]]:
    """Kind, default and type of each parameter, and the type of the result, without what only the Broker has."""
    hints = get_type_hints(method)
    found: dict[str, tuple[object, ...]] = {
        name: (each.kind, each.default, None if (method.__name__, name) in WIDER else hints.get(name))
        for name, each in inspect.signature(method).parameters.items()
        if (method.__name__, name) not in MORE_PARAMETERS
    }
    return found | {"return": (hints["return"],)}


def test_all_have_the_same_methods() -> None:
    assert methods(ForqClient).keys() == {*SHARED, *OVER_HTTP, "close"}
    assert methods(Broker).keys() == {*SHARED, *FOR_DIALECTS}
    assert FOR_DIALECTS.keys().isdisjoint(SHARED)


def test_the_brokers_for_asyncio_and_for_blocking_programs_have_them_too() -> None:
    """Each method is one of their own, so that none runs outside of trio."""
    assert methods(BlockingBroker).keys() == {*SHARED, "close"}
    assert methods(AsyncioBroker).keys() == methods(Broker).keys()
    for name in SHARED:
        bridged, blocking = methods(AsyncioBroker)[name], methods(BlockingBroker)[name]
        assert bridged is not methods(Broker)[name]
        assert blocking is not methods(ForqClient)[name]
        assert inspect.iscoroutinefunction(bridged)
        assert shape(bridged) == shape(blocking)


def test_a_method_is_called_alike_and_returns_the_same() -> None:
    for name in SHARED:
        broker, aio, blocking = (methods(face)[name] for face in (Broker, AsyncForqClient, ForqClient))
        assert shape(broker) == shape(aio) == shape(blocking), name
        assert inspect.iscoroutinefunction(broker), name
        assert inspect.iscoroutinefunction(aio), name


@pytest.mark.parametrize("name", ["ack", "discard", "nack", "extend", "release"])
def test_one_receipt_has_a_result_and_a_list_has_a_list(name: str) -> None:
    faces = [methods(face)[name] for face in (Broker, AsyncForqClient, ForqClient)]
    for face in faces:
        results = [get_type_hints(each)["return"] for each in get_overloads(face)]
        assert results == [ReceiptResult, list[ReceiptResult]]
    ones, manys = zip(*([shape(each) for each in get_overloads(face)] for face in faces), strict=True)
    assert ones[0] == ones[1] == ones[2]
    assert manys[0] == manys[1] == manys[2]


def test_every_exception_to_the_shape_is_one() -> None:
    for name in OVER_HTTP:
        assert shape(methods(AsyncForqClient)[name]) == shape(methods(ForqClient)[name])
    for name, parameter in MORE_PARAMETERS:
        assert parameter in inspect.signature(methods(Broker)[name]).parameters
        assert parameter not in inspect.signature(methods(AsyncForqClient)[name]).parameters
    for name, parameter in WIDER:
        hints = [get_type_hints(methods(face)[name])[parameter] for face in (Broker, AsyncForqClient)]
        assert hints[0] == hints[1] | None


def our_types(hint: object, seen: set[type]) -> Iterator[type]:
    """The classes of forq_trio in an annotation, and in their members."""
    for part in get_args(hint):
        yield from our_types(part, seen)
    if not isinstance(hint, type) or not hint.__module__.startswith("forq_trio") or hint in seen:
        return
    seen.add(hint)
    yield hint
    if issubclass(hint, msgspec.Struct | dict):
        for member in get_type_hints(hint).values():
            yield from our_types(member, seen)


def test_every_type_of_a_public_signature_is_exported() -> None:
    calls = [*(methods(face)[name] for face in (Broker, AsyncForqClient, ForqClient) for name in SHARED)]
    calls += [methods(face)[name] for face in (AsyncForqClient, ForqClient) for name in OVER_HTTP]
    calls += [AsyncForqClient.__init__, ForqClient.__init__]
    calls += [inspect.unwrap(open_broker), open_blocking_broker]
    seen: set[type] = set()
    found = {
        each for call in calls for hint in get_type_hints(call).values() for each in our_types(hint, seen)
    }
    assert len(found) > 20
    assert {
        each.__qualname__ for each in found if getattr(forq_trio, each.__name__, None) is not each
    } == set()


def test_every_error_is_exported_and_has_a_code_of_its_own_kind() -> None:
    def below(kind: type[ForqError]) -> Iterator[type[ForqError]]:
        for each in kind.__subclasses__():
            yield each
            yield from below(each)

    errors = [each for each in below(ForqError) if each.__module__ == "forq_trio.model.errors"]
    assert len(errors) > 30
    for kind in errors:
        assert getattr(forq_trio, kind.__name__) is kind
        error = kind(field="another")
        assert (error.code, error.field, error.message) == (kind.code, "another", str(error))
        for field, reason in kind.members.items():
            assert kind(field=field).code == reason.code
