"""The tasks of a shop, as an application of Django has them. To be imported once Django is set up."""

import builtins
from typing import Any

from asgiref.sync import sync_to_async

from support.django_tasks import tasks

task = tasks().task
seen: list[Any] = []
"""What the tasks have noted, for the test that runs."""


@task
def greet(to: str, *, loud: bool = False) -> str:
    seen.append(("greet", to, loud))
    return f"hello {to}"


@task
async def greet_async(to: str) -> None:
    await sync_to_async(seen.append)(("async", to))


@task(queue_name="letters", takes_context=True)
def write(context: Any, to: str) -> None:
    seen.append((context.attempt, context.task_result.id, to))
    if to == "nobody":
        raise ValueError("no address")


@task(takes_context=True)
def fail(context: Any, errors: list[str]) -> None:
    """Raise the error of this attempt."""
    raise getattr(builtins, errors[context.attempt - 1])


@task
def connect() -> None:
    """Use the database, and note the connection of this thread, which other threads must not use."""
    from django.db import connections

    wrapper = connections["default"]
    with wrapper.cursor() as cursor:
        cursor.execute("SELECT 1")
    seen.append((wrapper, wrapper.connection is not None))


@task
def greet_all(names: list[str]) -> None:
    """Send a task for each, when its own transaction commits."""
    from django.db import transaction

    with transaction.atomic():
        for name in names:
            greet.enqueue(name)
        seen.append("not yet")


@task
def make() -> object:
    return object()


def no_task() -> None: ...
