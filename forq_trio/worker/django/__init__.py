"""Django's tasks on queues: `ForqBackend` for TASKS, and the Worker that runs them. Needs the extra `django`.

docs/frameworks.md shows both.
"""

from typing import TYPE_CHECKING, Any

from forq_trio.model.extras import needing

with needing("django", "forq_trio.worker.django"):
    from forq_trio.worker.django.backend import ForqBackend as ForqBackend
    from forq_trio.worker.django.backend import worker_of as worker_of

if TYPE_CHECKING:
    from forq_trio.worker.app import Worker

    app: Worker
    """The Worker of the backend "default", for `forq work forq_trio.worker.django:app`."""


def __getattr__(name: str) -> Any:
    """Made when it is asked for: the module is imported for the backend, too, before Django is set up."""
    if name == "app":
        return worker_of()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
