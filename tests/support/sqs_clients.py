"""Programs that speak to a server as to Amazon SQS: how their workers run, and what they say."""

import os
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import Any

from support.processes import WAIT_SECONDS_MAX
from support.real_server import environment

PROGRAMS = Path(__file__).parents[1] / "sqs_clients" / "programs"
TESTS = "clients of Amazon SQS"
_COUNTS = [f"ApproximateNumberOfMessages{kind}" for kind in ("", "NotVisible", "Delayed")]


@contextmanager
def worker(*command: str, folder: Path = PROGRAMS, **more: str) -> "Iterator[subprocess.Popen[str]]":
    """A worker with processes of its own, which are killed at the end if they still run."""
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment(**more),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            kill(process)


def kill(process: "subprocess.Popen[str]") -> None:
    """Kill a worker with all its processes."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def ended(process: "subprocess.Popen[str]") -> str:
    """Let a worker end in order; what it wrote."""
    process.send_signal(signal.SIGTERM)
    return process.communicate(timeout=WAIT_SECONDS_MAX)[0]


class Said:
    """The queue `said`, by which programs say what they do (tests/sqs_clients/programs/said.py)."""

    def __init__(self, sqs: Any) -> None:
        self._sqs = sqs
        self._url = sqs.create_queue(QueueName="said")["QueueUrl"]
        self.lines: Counter[str] = Counter()

    def wait_for(self, *wanted: str) -> None:
        """Until all these lines have been said, since the test began."""
        deadline = monotonic() + WAIT_SECONDS_MAX
        while missing := set(wanted) - set(self.lines):
            assert monotonic() < deadline, f"nobody said {sorted(missing)}, but {dict(self.lines)}"
            asked = {"QueueUrl": self._url, "MaxNumberOfMessages": 10, "WaitTimeSeconds": 5}
            for message in self._sqs.receive_message(**asked).get("Messages", []):
                self._sqs.delete_message(QueueUrl=self._url, ReceiptHandle=message["ReceiptHandle"])
                self.lines[message["Body"]] += 1


def left(sqs: Any, queue: str) -> int:
    """How many messages a queue has, whatever they wait for."""
    url = sqs.get_queue_url(QueueName=queue)["QueueUrl"]
    counts: Mapping[str, str] = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=_COUNTS)["Attributes"]
    return sum(map(int, counts.values()))
