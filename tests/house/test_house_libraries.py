"""Members of libraries that their documentation does not promise: each is there, as we use it.

pyproject.toml has an upper bound for each of these libraries. Who raises one sees here what moved, and not first in the
traceback of a server that does not start.
"""

import inspect
from collections.abc import Iterator
from datetime import datetime
from importlib import import_module
from typing import Any

import pytest
from packaging.requirements import Requirement

CALLED = {
    "hypercorn.app_wrappers.ASGIWrapper": "app",
    "hypercorn.config.Config": "",
    "hypercorn.events.Closed": "",
    "hypercorn.events.RawData": "data",
    "hypercorn.events.Updated": "idle",
    "hypercorn.protocol.ProtocolWrapper": "app config context task_group state ssl client server send",
    "hypercorn.protocol.ProtocolWrapper.handle": "self event",
    "hypercorn.protocol.ProtocolWrapper.initiate": "self",
    "hypercorn.trio.task_group.TaskGroup": "",
    "hypercorn.trio.worker_context.WorkerContext": "max_requests",
    "hypercorn.utils.parse_socket_addr": "family address",
    "quart_trio.asgi.TrioASGIHTTPConnection.handle_request": "self nursery request send",
    "quart_trio.wrappers.TrioRequest._load_form_data": "self",
    "quart_trio.wrappers.TrioRequest.get_data": "self cache as_text parse_form_data",
    "cronsim.CronSim": "expr dt",
    "cronsim.CronSim.match_day": "self d",
    "cronsim.cronsim.Field.parse": "self s",
    "psycopg.pq.PGconn.connect_start": "conninfo",
    "psycopg.pq.PGconn.send_query_params": "self command param_values",
    "psycopg.pq.PGconn.send_prepare": "self name command",
    "psycopg.pq.PGconn.send_query_prepared": "self name param_values",
    "psycopg.pq.PGconn.enter_pipeline_mode": "self",
    "psycopg.pq.PGconn.pipeline_sync": "self",
    "psycopg.pq.PGconn.notifies": "self",
    "psycopg.adapt.Transformer": "context",
}
"""What is called, and the names of its first parameters in their order."""

THERE = (
    *("hypercorn.typing.ASGIFramework", "hypercorn.typing.ConnectionState", "quart_trio.QuartTrio"),
    *(
        "quart.wrappers.response.ResponseBody",
        "psycopg.capabilities.has_cancel_safe",
        "psycopg.pq.abc.PGconn",
    ),
    *("psycopg.types.numeric.IntLoader", "psycopg.types.string.TextLoader", "psycopg.pq.PollingStatus"),
    *("psycopg.types.datetime.TimestamptzLoader", "psycopg.pq.DiagnosticField", "psycopg.adapt.AdaptersMap"),
)
OF_OBJECTS: dict[str, tuple[tuple[Any, ...], str]] = {
    "cronsim.CronSim": (("* * * * *", datetime(2024, 1, 1)), "parts seconds minutes hours months"),
    "hypercorn.config.Config": ((), "include_server_header keep_alive_max_requests h11_max_incomplete_size"),
    "quart_trio.QuartTrio": (("x",), "asgi_app asgi_http_class request_class"),
}
"""Attributes of objects, with what the object is made of."""


def found(path: str) -> Any:
    """What this path names. Fails with the first part of it that moved."""
    parts = path.split(".")
    value: Any = import_module(parts[0])
    for number, part in enumerate(parts[1:], 2):
        if not hasattr(value, part):
            try:
                import_module(".".join(parts[:number]))
            except ModuleNotFoundError:
                pytest.fail(f"{path} moved: {'.'.join(parts[: number - 1])} has no {part}")
        value = getattr(value, part)
    return value


def parameters(path: str) -> list[str]:
    """The names of the parameters of what this path names; none where a compiled function does not tell them."""
    try:
        return list(inspect.signature(found(path)).parameters)
    except ValueError:
        return []


@pytest.mark.parametrize("path", CALLED)
def test_what_we_call_is_there_and_takes_what_we_give(path: str) -> None:
    wanted = CALLED[path].split()
    taken = parameters(path)
    assert not taken or taken[: len(wanted)] == wanted, f"{path} moved: it takes {taken}"


@pytest.mark.parametrize("path", THERE)
def test_what_we_name_is_there(path: str) -> None:
    found(path)


@pytest.mark.parametrize("path", OF_OBJECTS)
def test_objects_have_the_attributes_that_we_read_or_set(path: str) -> None:
    arguments, names = OF_OBJECTS[path]
    made = found(path)(*arguments)
    moved = [name for name in names.split() if not hasattr(made, name)]
    assert not moved, f"{path} has no {moved} any more"


@pytest.mark.parametrize("library", ["cronsim", "hypercorn", "psycopg", "quart", "quart-trio", "werkzeug"])
def test_such_a_library_has_an_upper_bound(library: str, declared: dict[str, list[Requirement]]) -> None:
    wanted = list(requirements(library, declared))
    assert wanted
    for each in wanted:
        assert any(bound.operator == "<" for bound in each.specifier), f"{each} has no upper bound"


def requirements(library: str, declared: dict[str, list[Requirement]]) -> Iterator[Requirement]:
    for extra, listed in declared.items():
        if extra not in ("dev", "bench", "fuzz"):
            yield from (each for each in listed if each.name == library)


def test_the_checker_tells_what_moved() -> None:
    with pytest.raises(pytest.fail.Exception, match="hypercorn has no nowhere"):
        found("hypercorn.nowhere.Thing")
    with pytest.raises(pytest.fail.Exception, match=r"hypercorn\.utils has no thing"):
        found("hypercorn.utils.thing")
