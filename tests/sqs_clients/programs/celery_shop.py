"""An application of Celery: tasks that are tried again, come later, or whose worker dies."""

import os
import signal

from celery import Celery, Task
from said import say

app = Celery("shop", broker="sqs://")
app.conf.broker_transport_options = {
    "visibility_timeout": int(os.environ.get("VISIBILITY_SECONDS", "600")),
    "fetch_message_attributes": {"MessageSystemAttributeNames": ["All"], "MessageAttributeNames": ["All"]},
    "wait_time_seconds": 1,
}
app.conf.broker_connection_retry_on_startup = True
app.conf.task_acks_late = True


@app.task
def add(a: int, b: int) -> None:
    say(f"add {a + b}")


@app.task(bind=True)
def stubborn(self: Task) -> None:
    say(f"try {self.request.retries}")
    if self.request.retries < 2:
        raise self.retry(countdown=1)


@app.task
def hold() -> None:
    """In a worker that is to die it never ends."""
    say("hold")
    if "DIES" in os.environ:
        signal.pause()
    say("held")
