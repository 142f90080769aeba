"""Pages of queues: by their names here, each with the token of the next."""

from bisect import bisect_left
from collections.abc import Callable

import trio

from forq_trio.broker.broker import Broker
from forq_trio.http.sqs_api.caller import ANY_SCOPE, SqsCaller
from forq_trio.http.sqs_api.checks import in_range
from forq_trio.http.sqs_api.details import queue_in_house
from forq_trio.http.sqs_api.errors import INVALID_PARAMETER, SqsError
from forq_trio.http.sqs_api.names import SqsQueue, start_in_house
from forq_trio.model import limits

_AFTER_ALL = "\N{DELETE}"  # it sorts behind what names may have


class QueuePages:
    """Makes pages of queues. In one pass of the event loop it looks at a slice of queues for one of them."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._looking = trio.Lock()

    async def page(
        self,
        caller: SqsCaller,
        most: int | None,
        token: str | None,
        wanted: Callable[[SqsQueue], bool],
        prefix: str = "",
    ) -> tuple[list[SqsQueue], str | None]:
        """A page of the queues of the caller's region that it may use and wants, and the token of the next page.

        prefix: of the names of all that it wants. Without `most` there are at most 1,000, and no token, as on AWS.
        """
        if token is not None and most is None:
            text = "MaxResults is a mandatory parameter when you provide a value for NextToken."
            raise SqsError(INVALID_PARAMETER, text)
        size = in_range("MaxResults", most, 1, limits.SQS_QUEUES_MAX, limits.SQS_QUEUES_MAX)
        names = self._broker.known.queue_names()
        start_of_all = start_in_house(prefix, caller.region, caller.account)
        start = bisect_left(names, max(start_of_all, token or ""))
        end = bisect_left(names, start_of_all + _AFTER_ALL)
        found: list[SqsQueue] = []
        for first in range(start, end, limits.SQS_QUEUES_LOOKED_AT):
            async with self._looking:
                for name in names[first : min(first + limits.SQS_QUEUES_LOOKED_AT, end)]:
                    queue = queue_in_house(self._broker, name, caller.region, caller.account)
                    if queue is None or not caller.may(queue, *ANY_SCOPE) or not wanted(queue):
                        continue
                    if len(found) == size:
                        return found, name if most is not None else None
                    found.append(queue)
        return found, None
