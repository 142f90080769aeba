"""Handlers of every shape, with annotations that are texts until somebody reads them."""

from __future__ import annotations

from functools import partial

import msgspec

from forq_trio.worker import Job

SEEN: list[tuple[str, str, int]] = []


class Mail(msgspec.Struct):
    to: str


async def function(mail: Mail, job: Job) -> None:
    SEEN.append(("function", mail.to, job.attempt))


class Mailer:
    def __init__(self, name: str) -> None:
        self.name = name

    async def method(self, mail: Mail, job: Job) -> None:
        SEEN.append((self.name, mail.to, job.attempt))

    @classmethod
    async def of_class(cls, mail: Mail, job: Job) -> None:
        SEEN.append((cls.__name__, mail.to, job.attempt))

    @staticmethod
    async def of_nobody(mail: Mail, job: Job) -> None:
        SEEN.append(("static", mail.to, job.attempt))


class Callable_:
    async def __call__(self, mail: Mail, job: Job) -> None:
        SEEN.append(("object", mail.to, job.attempt))


async def with_name(name: str, mail: Mail, job: Job) -> None:
    SEEN.append((name, mail.to, job.attempt))


def in_a_thread(mail: Mail | None, job: Job) -> None:
    SEEN.append(("thread", mail.to if mail else "", job.attempt))


HANDLERS = {
    "function": function,
    "method": Mailer("method").method,
    "Mailer": Mailer.of_class,
    "static": Mailer.of_nobody,
    "object": Callable_(),
    "partial": partial(with_name, "partial"),
    "thread": in_a_thread,
}
