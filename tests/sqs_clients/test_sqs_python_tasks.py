"""Task queues of Python over SQS: Celery through kombu, dramatiq, PyQS. Each message is handled, or kept."""

import sys
from pathlib import Path

import pytest

from support.foreign import run
from support.processes import WAIT_SECONDS_MAX
from support.sqs_clients import PROGRAMS, ended, kill, left, worker

pytestmark = [pytest.mark.process, pytest.mark.tier2]

CELERY = [
    sys.executable,
    "-m",
    "celery",
    "-A",
    "celery_shop",
    "worker",
    "--concurrency",
    "2",
    "--loglevel",
    "INFO",
]


def delay(program: str, variables: dict[str, str]) -> None:
    run(PROGRAMS, sys.executable, "-c", program, **variables)


def test_celery_retries_and_comes_later(sqs, said, variables) -> None:
    delay(
        "from celery_shop import *\n"
        "for number in range(20): add.delay(number, 1)\n"
        "add.apply_async((50, 50), countdown=2)\n"
        "stubborn.delay()",
        variables,
    )
    with worker(*CELERY, **variables) as process:
        said.wait_for(*(f"add {number + 1}" for number in range(20)), "add 100", "try 0", "try 1", "try 2")
        wrote = ended(process)
    assert process.returncode == 0, wrote
    assert set(said.lines.values()) == {1}, said.lines
    assert left(sqs, "celery") == 0


def test_celery_loses_nothing_when_a_worker_is_killed(sqs, said, variables) -> None:
    first = {**variables, "VISIBILITY_SECONDS": "3"}
    delay("from celery_shop import *\nhold.delay()\nfor number in range(10): add.delay(number, 1)", first)
    with worker(*CELERY, **first, DIES="yes") as process:
        said.wait_for("hold")
        kill(process)
        process.communicate(timeout=WAIT_SECONDS_MAX)
    assert "held" not in said.lines
    assert left(sqs, "celery") > 0
    # What the dead worker had comes back soon; what the next one gets stays with it, however slow the machine is.
    sqs.set_queue_attributes(QueueUrl="celery", Attributes={"VisibilityTimeout": "600"})
    with worker(*CELERY, **variables) as process:
        said.wait_for("held", *(f"add {number + 1}" for number in range(10)))
        wrote = ended(process)
    assert process.returncode == 0, wrote
    assert left(sqs, "celery") == 0


def test_dramatiq(sqs, said, variables) -> None:
    delay(
        "from dramatiq_shop import *\n"
        "for number in range(20): add.send(number, 1)\n"
        "add.send_with_options(args=(50, 50), delay=2000)\n"
        "hopeless.send()",
        variables,
    )
    command = [sys.executable, "-m", "dramatiq", "dramatiq_shop", "--processes", "2", "--threads", "2"]
    with worker(*command, **variables) as process:
        said.wait_for(*(f"add {number + 1}" for number in range(20)), "add 100", "try 0", "try 1", "try 2")
        dead = sqs.get_queue_url(QueueName="shop_default_dlq")["QueueUrl"]
        assert len(sqs.receive_message(QueueUrl=dead, WaitTimeSeconds=20)["Messages"]) == 1
        wrote = ended(process)
    assert process.returncode == 0, wrote
    assert set(said.lines.values()) == {1}, said.lines
    assert left(sqs, "shop_default") == 0
    assert sqs.list_queue_tags(QueueUrl=dead)["Tags"] == {"of": "shop"}


def test_pyqs(sqs, said, variables) -> None:
    delay(
        "from pyqs_shop import *\n"
        "for number in range(20): add.delay(number, 1)\n"
        "add.delay(50, 50, _delay_seconds=2)\n"
        "fail.delay()",
        variables,
    )
    command = [str(Path(sys.executable).with_name("pyqs")), "adding", "failing", "--concurrency", "2"]
    with worker(*command, **variables, PYTHONPATH=str(PROGRAMS)) as process:
        said.wait_for(*(f"add {number + 1}" for number in range(20)), "add 100", "fail")
        wrote = ended(process)
    assert process.returncode == 0, wrote
    assert left(sqs, "adding") == 0
    assert left(sqs, "failing") == 1
