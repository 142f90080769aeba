"""The methods of the clients take what their endpoint takes, and return what it answers."""

import ast
import inspect
import re
import textwrap
from typing import Any, get_args, get_type_hints

import msgspec

from forq_trio import AsyncForqClient
from forq_trio.model.endpoint import Endpoint
from forq_trio.model.member_names import python_name
from forq_trio.model.message_batches.types import NewMessageBatch
from forq_trio.model.messages.new_message import NewMessage
from forq_trio.model.messages.receipts import ReceiptResult, ReceiptResults
from forq_trio.model.schedules.types import NewSchedule, Timing
from forq_trio.model.workers.bodies import WorkerState
from support.endpoints import all_endpoints

NO_METHOD = {
    "sendMessage": "sendMessages is answered with ids",
    "receiveMessage": "receiveMessages takes a lease, too",
    "ackMessage": "receipts are settled by ackMessages",
    "nackMessage": "receipts are settled by nackMessages",
    "startBackup": "`forq backup` and the admin UI begin backups",
    "showBackups": "`forq backup` and the admin UI begin backups",
    "listSettings": "`settings` answers for one queue",
}
"""Endpoints that no method of the clients calls, with the reason."""

OTHER_NAMES = {"batch": "batch_id", "consumer": "name", "schedule": "name", "max": "max_messages"}
"""Names in requests that are others in Python."""

_MEMBERS_OF_FILTERS = {"reason", "min_age_ms", "max_age_ms", "attribute", "text", "error", "error_like"}
OTHER_PARAMETERS = {
    "consumers": ({"after", "limit"}, set(), "all pages"),
    "queues": ({"after", "limit"}, set(), "all pages"),
    "cancel": (set(), {"running"}, "a request of its own"),
    "drop_key": ({"revision"}, set(), "with a revision it is `ack_revision`"),
    "ack_revision": ({"once_more"}, set(), "without a revision it is `drop_key`"),
    "produce": ({"messages"}, set(NewMessage.__struct_fields__), "a batch of one"),
    "produce_json": (
        {"messages"},
        {*NewMessage.__struct_fields__, "value"} - {"content"},
        "a batch of one, whose content is made of the value",
    ),
    "receive": ({"peek", "order"}, {"shuffle"}, "a look is `peek`; one of two orders"),
    "peek": ({"order"}, {"shuffle"}, "one of two orders"),
    "search_dead_letters": (
        {*_MEMBERS_OF_FILTERS, "before"},
        {"wanted", "before_sequence"},
        "the members of a filter; history ids are no sequences",
    ),
    "search_history": ({*_MEMBERS_OF_FILTERS, "outcome"}, {"wanted"}, "the members of a filter"),
    "open_batch": (set(NewMessageBatch.__struct_fields__), {"batch"}, "the members of a new batch"),
    "next_runs": (set(Timing.__struct_fields__), {"timing"}, "the members of a timing"),
    "report_worker": ({*WorkerState.__struct_fields__, "worker_id"}, {"report"}, "the members of a report"),
    "save_schedule": (set(NewSchedule.__struct_fields__), {"schedule"}, "the members of a schedule"),
    "stage": (set(), {"messages"}, "a line each, and no body of JSON"),
    "start_deletion": ({"filter", "target", "action"}, {"wanted"}, "what is deleted goes nowhere"),
    "start_redrive": ({"filter", "action"}, {"wanted"}, "a deletion has a method of its own"),
}
"""What an endpoint takes and its method does not, what only the method takes, and why."""

_PAGE = "a page of lines, whose headers say where it ends"
OTHER_RESULTS = {
    "events": _PAGE,
    "export": _PAGE,
    "history": _PAGE,
    "lease_page": _PAGE,
    "add_to_batch": "errors instead of their codes",
    "ack_revision": "whether it was there, instead of an error",
    "contains_key": "the same",
    "drop_key": "the same",
    "keyed_message": "None where it was not there, instead of an error",
    "offer_many": "errors instead of their codes",
    "produce": "the result of the one message, or its error raised",
    "produce_json": "the same",
    "produce_many": "errors instead of their codes",
    "requeue_finished": "errors instead of their codes",
    "receive": "with a receipt, for nothing is only looked at",
}
"""Methods that return something else than the answer or its first member, with the reason."""


SHARED_CALLS = {"_call", "_exchange", "_perform", "_request", "_settle"}
"""What makes the requests of all methods."""


def endpoints_of(name: str) -> list[Endpoint[Any]]:
    """The endpoints that a method of the client names, or a private one that it calls."""
    method = getattr(AsyncForqClient, name)
    names = vars(inspect.getmodule(method))
    found: list[Endpoint[Any]] = []
    for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(method)))):
        match node:
            case ast.Attribute(ast.Name("self"), str(called)) if called not in SHARED_CALLS:
                if inspect.isfunction(getattr(AsyncForqClient, called, None)):
                    found += endpoints_of(called)
            case ast.Attribute(ast.Name(str(module)), str(constant)):
                value = getattr(names.get(module), constant, None)
                found += [value] if isinstance(value, Endpoint) else []
            case ast.Name(str(constant)) if isinstance(value := names.get(constant), Endpoint):
                found.append(value)
    return list({each.name: each for each in found}.values())


METHODS = {
    name: endpoints_of(name)
    for name, each in inspect.getmembers(AsyncForqClient, inspect.isfunction)
    if name[0] != "_" and endpoints_of(name)
}


def taken(endpoint: Endpoint[Any]) -> set[str]:
    """What the path, query and body of a request have, by names in Python."""
    names = {*re.findall(r"{(\w+)}", endpoint.path), *endpoint.query_names}
    body = endpoint.body
    if body is not None and endpoint.body_type == "application/json":
        names |= set(body.__struct_fields__)
    return {OTHER_NAMES.get(name, python_name(name)) for name in names}


def parameters(name: str) -> set[str]:
    method = getattr(AsyncForqClient, name)
    found = set()
    for each in inspect.signature(method).parameters.values():
        if each.kind is each.VAR_KEYWORD:
            (options,) = get_args(get_type_hints(method)[each.name])
            found |= set(options.__annotations__)
        else:
            found.add(each.name)
    return found - {"self"}


def result_types(endpoint: Endpoint[Any]) -> list[object]:
    """The type of the answer, and that of its first member; a settlement has one result, or a list of them."""
    body = endpoint.answers[0].body
    is_struct = isinstance(body, type) and issubclass(body, msgspec.Struct)
    members = list(get_type_hints(body).values()) if is_struct else []
    settled = [ReceiptResult | list[ReceiptResult]] if body is ReceiptResults else []
    return [body, *members[:1], *settled]


def test_every_endpoint_has_a_method() -> None:
    called = {endpoint.name for found in METHODS.values() for endpoint in found}
    assert {endpoint.name for endpoint in all_endpoints()} - called == NO_METHOD.keys()


def test_a_method_takes_what_its_endpoint_takes() -> None:
    for name, called in METHODS.items():
        wanted = {each for endpoint in called for each in taken(endpoint)}
        left_out, added, _ = OTHER_PARAMETERS.get(name, (set(), set(), ""))
        assert wanted - parameters(name) == left_out, name
        assert parameters(name) - wanted == added, name


def test_a_method_returns_what_its_endpoint_answers() -> None:
    for name, called in METHODS.items():
        returned = get_type_hints(getattr(AsyncForqClient, name))["return"]
        answered = [each for endpoint in called for each in result_types(endpoint)]
        assert (returned not in answered) == (name in OTHER_RESULTS), name
