"""Tasks of Django: those of Django 6, or of the package django-tasks, which has the same for Django before it."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from forq_trio.model.extras import needing

with needing("django", "forq_trio.worker.django"):
    import django
    from django.utils.module_loading import import_string

_ARE_IN_DJANGO = django.VERSION >= (6, 0)
_HOME = "django.tasks" if _ARE_IN_DJANGO else "django_tasks"
if not _ARE_IN_DJANGO and find_spec(_HOME) is None:
    raise ImportError("Django before 6.0 has no tasks of its own: pip install django-tasks")

_tasks = import_module(_HOME)
_base = import_module(f"{_HOME}.base")
signals: Any = import_module(f"{_HOME}.signals")
normalize_json: Any = import_module(
    "django.utils.json" if _ARE_IN_DJANGO else "django_tasks.utils"
).normalize_json
"""A value as JSON has it. Raises TypeError for one that JSON has not."""

BaseTaskBackend: Any = import_module(f"{_HOME}.backends.base").BaseTaskBackend
Task: Any = _base.Task
TaskContext: Any = _base.TaskContext
TaskError: Any = _base.TaskError
TaskResult: Any = _base.TaskResult
TaskResultStatus: Any = _base.TaskResultStatus
task_backends: Any = _tasks.task_backends


def task_at(path: str) -> Any:
    """The task of this path, "shop.tasks.greet". Raises ImportError if there is none, as in an older program."""
    found = import_string(path)
    if not isinstance(found, Task):
        raise ImportError(f"{path} is no task")
    return found
