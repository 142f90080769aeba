"""The backend of Django's tasks in real programs: what is wrong in TASKS, forks with threads, and PostgreSQL."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.postgres.engine import PostgresEngine
from forq_trio.worker.handlers import HandlerOptions
from support.batches import do
from support.django_tasks import for_this_django, home
from support.programs import ROOT, run_program
from support.real_server import environment
from support.words import claim

from .conftest import Sent, SetTasks


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"HANDLER": {"concurrency": 0}}, "concurrency: a whole number from 1 to 1,000, not 0"),
        ({"HANDLER": {"colour": "red"}}, "HANDLER: colour is no option for tasks"),
        ({"HANDLER": {"keep_result": "1h"}}, "HANDLER: keep_result is no option for tasks"),
        ({"HANDLER": {"batch": 10}}, "HANDLER: batch is no option for tasks"),
        ({"HANDLER": {"pool": "process"}}, "HANDLER: pool is no option for tasks"),
        ({"PREFIX": "ü"}, "queue"),
    ],
)
def test_djangos_check_names_what_is_wrong(set_tasks: SetTasks, options: Any, problem: str) -> None:
    from django.core.exceptions import ImproperlyConfigured

    from forq_trio.worker.django import worker_of
    from forq_trio.worker.django.api import task_backends

    set_tasks()
    assert task_backends["default"].check() == []
    set_tasks(**options)
    (error,) = task_backends["default"].check()
    assert (error.id, error.msg.startswith("TASKS['default']: ")) == ("forq.E001", True)
    assert problem in error.msg
    with pytest.raises(ImproperlyConfigured, match="TASKS"):
        worker_of()


def test_each_option_of_a_handler_is_for_tasks_or_refused() -> None:
    from forq_trio.worker.django.backend import TASK_OPTIONS

    others = {"batch", "keep_result", "pool"}
    assert {*HandlerOptions.__struct_fields__} == TASK_OPTIONS | others


def test_an_option_that_does_not_exist_is_refused(set_tasks: SetTasks) -> None:
    from django.core.exceptions import ImproperlyConfigured

    from forq_trio.worker.django.api import task_backends

    set_tasks(COLOUR="red")
    with pytest.raises(ImproperlyConfigured, match=r"TASKS\['default'\]: .*colour"):
        task_backends["default"]


def test_only_this_backend_has_a_worker(set_tasks: SetTasks) -> None:
    from django.core.exceptions import ImproperlyConfigured

    from forq_trio.worker.django import worker_of

    set_tasks(backend=f"{home()}.backends.dummy.DummyBackend")
    with pytest.raises(ImproperlyConfigured, match="another backend"):
        worker_of()


def test_a_worker_without_settings_says_so_in_one_line(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "forq_trio.cli", "work", "forq_trio.worker.django:app"],
        cwd=tmp_path,
        env=environment(PYTHONPATH=str(ROOT), DJANGO_SETTINGS_MODULE=""),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
    assert "DJANGO_SETTINGS_MODULE" in done.stderr


SET_UP = """
import os, sys, threading
from django.conf import settings
settings.configure(
    DATABASES=DATABASES,
    TASKS={"default": {"BACKEND": "forq_trio.worker.django.ForqBackend", "OPTIONS": OPTIONS}},
)
import django
django.setup()
sys.path.insert(0, ".")
from jobs import greet
"""
JOBS = """
from django.tasks import task

@task
def greet(to): ...
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a module of tasks, for a program that begins with SET_UP."""
    (tmp_path / "jobs.py").write_text(for_this_django(JOBS))
    return tmp_path


CHECKING = """
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command

for run in (lambda: call_command("check"), lambda: greet.enqueue("anna")):
    try:
        run()
    except (CommandError, ImproperlyConfigured) as problem:
        print(type(problem).__name__, "HANDLER: batch is no option for tasks" in str(problem))
"""


def test_the_command_check_fails_and_so_does_the_first_send(folder: Path) -> None:
    """Where the check is registered: the program imports django.tasks, or has the app of django-tasks."""
    installed = [] if home() == "django.tasks" else [home()]
    settings = SET_UP.replace("DATABASES=DATABASES", f"DATABASES={{}}, INSTALLED_APPS={installed}")
    settings = settings.replace("OPTIONS}", "{'HANDLER': {'batch': 3}}}")
    done = run_program(settings + CHECKING, folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "SystemCheckError True\nImproperlyConfigured True\n"


FORKING = """
def send(name):
    threads = [threading.Thread(target=greet.enqueue, args=(f"{name} {number}",)) for number in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

send("master")
children = []
for number in range(2):
    child = os.fork()
    if not child:
        send(f"child {number}")
        os._exit(0)
    children.append(child)
send("master again")
assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
"""


def test_processes_that_are_forked_and_their_threads_send(folder: Path, url: str, sent: Sent) -> None:
    """As those of a web server that has loaded the application, and used it, before it forks."""
    program = SET_UP.replace("DATABASES=DATABASES", "DATABASES={}").replace("OPTIONS}", "{}}") + FORKING
    done = run_program(program, folder, FORQ_URL=url)
    assert (done.returncode, done.stderr) == (0, "")
    names = ("master", "child 0", "child 1", "master again")
    found = sorted(each.content.partition('"args":["')[2].partition('"')[0] for each in sent())
    assert found == sorted(f"{name} {number}" for name in names for number in range(3))


@pytest.fixture
def engine(empty_tables: str) -> Iterator[PostgresEngine]:
    with closing(PostgresEngine(empty_tables, EngineSettings(), "normal")) as engine:
        yield engine


ON_POSTGRES = """
from django.db import connections, transaction

with transaction.atomic():
    greet.using(priority=7).enqueue("anna")
try:
    with transaction.atomic():
        greet.enqueue("never")
        1 / 0
except ZeroDivisionError:
    connections.close_all()
"""


def test_on_postgresql_a_task_is_sent_by_the_transaction(
    engine: PostgresEngine, empty_tables: str, folder: Path
) -> None:
    from psycopg.conninfo import conninfo_to_dict

    parts = conninfo_to_dict(empty_tables)
    database = {
        "ENGINE": "django.db.backends.postgresql",
        **{
            name.upper(): parts[key] for name, key in (("name", "dbname"), ("user", "user"), ("host", "host"))
        },
    }
    settings = SET_UP.replace("DATABASES=DATABASES", f"DATABASES={{'default': {database}}}")
    done = run_program(settings.replace("OPTIONS}", "{'OUTBOX': True}}") + ON_POSTGRES, folder)
    assert (done.returncode, done.stderr) == (0, "")
    (delivery,) = do(engine, claim(queue="default", most=100))
    assert ('"args":["anna"]' in delivery.content, delivery.priority) == (True, 107)
