"""An application of dramatiq: actors that fail and are tried again, come later, or end in the dead letters."""

import dramatiq
from dramatiq.middleware import AgeLimit, Callbacks, CurrentMessage, Pipelines, Retries, TimeLimit
from dramatiq_sqs import SQSBroker
from said import say

middleware = [AgeLimit(), TimeLimit(), Callbacks(), Pipelines(), Retries(min_backoff=1000, max_backoff=1000)]
broker = SQSBroker(
    namespace="shop", dead_letter=True, middleware=[*middleware, CurrentMessage()], tags={"of": "shop"}
)
dramatiq.set_broker(broker)


@dramatiq.actor
def add(a: int, b: int) -> None:
    say(f"add {a + b}")


@dramatiq.actor(max_retries=2)
def hopeless() -> None:
    message = CurrentMessage.get_current_message()
    assert message is not None
    say(f"try {message.options.get('retries', 0)}")
    raise ValueError("as it should")
