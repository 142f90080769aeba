"""Pages of queues: by their names here, each with the token of the next."""

from bisect import bisect_left
from collections.abc import Callable

import trio

from forq_trio.broker.broker import Broker
from forq_trio.http.sqs_api.caller import ANY_SCOPE, SqsCaller
from forq_trio.http.sqs_api.checks import in_range
from forq_trio.http.sqs_api.details import queue_in_house
from forq_trio.http.sqs_api.errors import INVALID_PARAMETER, SqsError
from forq_trio.http.sqs_api.names import SqsQueue
from forq_trio.model import limits


async def page_of_queues(
    broker: Broker, caller: SqsCaller, most: int | None, token: str | None, wanted: Callable[[SqsQueue], bool]
) -> tuple[list[SqsQueue], str | None]:
    """A page of the queues of the caller's region that it may use and wants, and the token of the next page.

    Without `most` there are at most 1,000, and no token, as on AWS.
    """
    if token is not None and most is None:
        text = "MaxResults is a mandatory parameter when you provide a value for NextToken."
        raise SqsError(INVALID_PARAMETER, text)
    size = in_range("MaxResults", most, 1, limits.SQS_QUEUES_MAX, limits.SQS_QUEUES_MAX)
    names = broker.known.queue_names()
    found: list[SqsQueue] = []
    start = 0 if token is None else bisect_left(names, token)
    for number in range(start, len(names)):
        if number % limits.SQS_QUEUES_LOOKED_AT == 0:
            await trio.lowlevel.checkpoint()
        queue = queue_in_house(broker, names[number], caller.region, caller.account)
        if queue is None or not caller.may(queue, *ANY_SCOPE) or not wanted(queue):
            continue
        if len(found) == size:
            return found, names[number] if most is not None else None
        found.append(queue)
    return found, None
