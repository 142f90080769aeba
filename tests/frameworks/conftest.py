"""Django in this process, with one database, and a server whose URL a test gives to its backend."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from typing import Any

import pytest

from forq_trio import ForqClient, QueueNotFound
from forq_trio.model.messages.export import ExportedMessage
from support.django_tasks import home
from support.in_process import in_process_server
from support.real_server import SECRET

BACKEND = "forq_trio.worker.django.ForqBackend"
QUEUES = ("default", "letters")
SetTasks = Callable[..., None]


@pytest.fixture
def url() -> Iterator[str]:
    with in_process_server() as url:
        yield url


class Sent:
    """What waits in the queues of the server."""

    def __init__(self, client: ForqClient) -> None:
        self.client = client

    def __call__(self, queue: str = "default") -> list[ExportedMessage]:
        with suppress(QueueNotFound):
            return self.client.export(queue).messages
        return []


@pytest.fixture
def sent(url: str) -> Iterator[Sent]:
    with ForqClient(url, SECRET) as client:
        yield Sent(client)


@pytest.fixture(scope="session")
def django_shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Django is set up once for each process of a run: it has no way back."""
    import django
    from django.conf import settings

    database = tmp_path_factory.mktemp("django") / "shop.db"
    settings.configure(
        INSTALLED_APPS=[] if home() == "django.tasks" else [home()],
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": str(database)}},
        LOGGING_CONFIG=None,
        SECRET_KEY="of the tests",
        TASKS={"default": {"BACKEND": BACKEND, "QUEUES": QUEUES}},
    )
    django.setup()
    yield
    from django.db import connections

    connections.close_all()


@pytest.fixture
def set_tasks(django_shop: None) -> Iterator[SetTasks]:
    """Sets the OPTIONS of the backend, and whatever else TASKS shall be for this test."""
    from django.test.utils import override_settings

    with ExitStack() as stack:

        def set_to(*, backend: str = BACKEND, queues: tuple[str, ...] = QUEUES, **options: Any) -> None:
            changed = {"BACKEND": backend, "QUEUES": queues, "OPTIONS": options}
            stack.enter_context(override_settings(TASKS={"default": changed}))

        yield set_to


@pytest.fixture
def shop(set_tasks: SetTasks, url: str) -> Any:
    """The module of the tasks, which the backend sends to the server."""
    set_tasks(URL=url, SECRET=SECRET)
    from frameworks import shop_tasks

    shop_tasks.seen.clear()
    return shop_tasks
