"""Tasks of the Django that is here: its own since 6.0, before that those of the package django-tasks."""

from importlib import import_module
from typing import Any


def home() -> str:
    """The package that has them."""
    import django

    return "django.tasks" if django.VERSION >= (6, 0) else "django_tasks"


def for_this_django(program: str) -> str:
    """A program that was written for Django 6."""
    return program.replace("django.tasks", home())


def tasks() -> Any:
    """The module, whose `task` makes a function a task. Django has to be configured."""
    return import_module(home())
