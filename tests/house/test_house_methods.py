"""Each method of the broker and of the clients is declared once, in forq_trio/model: text and signature."""

import inspect
from collections.abc import Callable
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

from forq_trio import AsyncForqClient, Broker, ForqClient, model
from forq_trio.broker.endpoint_commands import CHECKS
from forq_trio.model.commands import COMMANDS
from forq_trio.model.endpoint import COMMAND_ENDPOINTS, CommandEndpoint
from forq_trio.model.member_names import python_name
from forq_trio.model.messages.methods import CANCEL_MESSAGE

OTHER_PARAMETERS = {
    ("ack", "queue"),
    ("apps", "key"),
    ("delete_app", "key"),
    ("drop_keys", "on_step"),
    ("extend", "queue"),
    ("forget_worker", "key"),
    ("open_consumer", "key"),
    ("outbox_position", "key"),
    ("peek", "wait_ms"),
    ("publication", "key"),
    ("publish", "key"),
    ("publish", "seconds"),
    ("purge", "on_step"),
    ("purge_history", "on_step"),
    ("receive", "redrive_policy"),
    ("redrives", "queue"),
    ("relay_outbox", "key"),
    ("report_worker", "key"),
    ("stage", "key"),
    ("start_compaction", "started_by"),
    ("withdrawn", "key"),
    ("workers", "key"),
}
"""Parameters that only the broker has, or takes None for; its docstring says what they mean. They may become fewer."""


def public(kind: type) -> dict[str, Callable[..., Any]]:
    found = inspect.getmembers(kind, inspect.isfunction)
    return {name: each for name, each in found if name[0] != "_"}


def declared() -> dict[str, list[Callable[..., Any]]]:
    """The declarations of each method."""
    found: dict[str, list[Callable[..., Any]]] = {}
    for module in walk_packages(model.__path__, f"{model.__name__}."):
        if not module.name.endswith("methods"):
            continue
        for kind in vars(import_module(module.name)).values():
            if inspect.isclass(kind) and kind.__module__ == module.name:
                for name, each in public(kind).items():
                    found.setdefault(name, []).append(each)
    return found


DECLARED = declared()
SHARED = public(Broker).keys() & public(AsyncForqClient).keys()


def with_other_text(face: type) -> set[str]:
    """The methods of a class that say something else than their declaration."""
    own = {name for name, each in public(face).items() if name in SHARED and each.__doc__ is not None}
    return {name for name in own if public(face)[name] is not DECLARED[name][0]}


def other_parameters(face: type) -> set[tuple[str, str]]:
    """What a class takes beside what is declared, or otherwise; "return" for another result."""
    found = set()
    for name in SHARED:
        signatures = [inspect.signature(each) for each in (public(face)[name], DECLARED[name][0])]
        ours, theirs = ({**each.parameters, "return": each.return_annotation} for each in signatures)
        found |= {(name, each) for each in {**ours, **theirs} if ours.get(each) != theirs.get(each)}
    return found


def test_a_method_is_declared_once() -> None:
    assert DECLARED.keys() == SHARED
    assert {name: found for name, found in DECLARED.items() if len(found) != 1 or not found[0].__doc__} == {}


def test_no_method_has_a_text_of_its_own() -> None:
    assert with_other_text(Broker) == set()
    assert with_other_text(AsyncForqClient) == set()


def test_help_shows_the_declared_text() -> None:
    for name in SHARED:
        text = inspect.cleandoc(DECLARED[name][0].__doc__)
        for face in (Broker, AsyncForqClient, ForqClient):
            assert inspect.getdoc(getattr(face, name)) == text, (face, name)


def test_a_method_has_the_declared_signature() -> None:
    assert other_parameters(AsyncForqClient) == set()
    assert other_parameters(Broker) == OTHER_PARAMETERS


def unlike(endpoint: CommandEndpoint[Any], command: str) -> set[str]:
    """Values of a request that a command does not have, or that nothing checks; and what else the command has."""
    taken = {python_name(name) for name in endpoint.path_names}
    for part in (endpoint.query, endpoint.body):
        taken |= set() if part is None else set(part.__struct_fields__)
    kinds = {kind.__name__: kind for kind in COMMANDS}
    return (taken ^ set(kinds[command].__struct_fields__)) | (taken - CHECKS.keys())


def test_an_endpoint_that_is_one_command_takes_what_the_command_has() -> None:
    assert {each.name for each in COMMAND_ENDPOINTS} >= {"cancelMessage"}
    assert {each.name: found for each in COMMAND_ENDPOINTS if (found := unlike(each, each.command))} == {}


def test_a_value_that_its_command_has_not_is_found() -> None:
    assert unlike(CANCEL_MESSAGE, "Pause") == {"message_id", "paused"}


def test_what_only_the_broker_takes_is_explained_at_its_class() -> None:
    assert {name for _, name in OTHER_PARAMETERS if f"{name}: " not in Broker.__doc__} == set()


def test_a_text_and_a_parameter_of_its_own_are_found() -> None:
    class Other(Broker):
        async def message(self, queue, message_id, *, twice=False):
            """Two messages."""

    assert with_other_text(Other) == {"message"}
    assert other_parameters(Other) - OTHER_PARAMETERS == {
        ("message", each) for each in ("queue", "message_id", "twice", "return")
    }
