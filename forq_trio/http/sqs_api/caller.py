"""A request of SQS once its signature is checked, and what every operation does with it."""

import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import NamedTuple

from forq_trio.broker.broker import Broker
from forq_trio.http.message import Request
from forq_trio.http.sqs_api.errors import ACCESS_DENIED, INVALID_ADDRESS, SqsError, no_such_queue
from forq_trio.http.sqs_api.names import SqsAccount, SqsQueue, queue_of_url
from forq_trio.http.sqs_api.shapes import Wire
from forq_trio.model.access.types import ALL_QUEUES, Scope

_HOST = re.compile(
    rb"([A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?"
)  # it becomes a part of URLs
ANY_SCOPE = (Scope.PRODUCE, Scope.CONSUME, Scope.BROWSE)


class SqsCaller(NamedTuple):
    """Who asks, from where, and for which region."""

    request: Request
    region: str
    account: SqsAccount

    @property
    def origin(self) -> str:
        """Scheme and authority under which the client reached the server. Raises SqsError for a Host that is none."""
        headers = self.request.headers
        host = headers.get(b"host", b"localhost")
        if _HOST.fullmatch(host) is None:
            raise SqsError(INVALID_ADDRESS, "The header Host is no name or address of a host.")
        forwarded = headers.get(b"x-forwarded-proto", b"") if self.account.trusts_proxy else b""
        scheme = "https" if forwarded == b"https" else self.account.scheme
        return f"{scheme}://{host.decode()}"

    def queue(self, broker: Broker, url: str | None, *scopes: Scope) -> SqsQueue:
        """The queue of a QueueUrl. Raises SqsError if the client has none of the scopes, or there is no such queue."""
        found = queue_of_url(url, self.region, self.account)
        self.check(found, *scopes)
        if not broker.known.has_queue(found.house_name):
            raise no_such_queue()
        return found

    def check(self, queue: SqsQueue, *scopes: Scope) -> None:
        """Raise SqsError unless the client has one of these scopes for the queue."""
        if not self.may(queue, *scopes):
            raise SqsError(
                ACCESS_DENIED,
                f"Access to the resource {queue.arn} is denied: it needs {' or '.join(scopes)}.",
            )

    def may(self, queue: SqsQueue, *scopes: Scope) -> bool:
        may, name = self.request.principal.may, queue.house_name
        if not (may(scopes[0], name) or any(may(each, name) for each in scopes[1:])):
            return False
        return queue.region == self.account.region or _names_region(self.request.principal.key.queues, queue)


def _names_region(glob: str, queue: SqsQueue) -> bool:
    """Whether the glob of a token means the queue's region, too: `a*` is for names, not for the region ap-south-1."""
    region, _, name = glob.partition(".")
    name_in_house = queue.house_name[len(queue.region) + 1 :]
    return glob == ALL_QUEUES or (fnmatchcase(queue.region, region) and fnmatchcase(name_in_house, name))


class Undoable(NamedTuple):
    """The result of an operation that has to be undone if its answer does not arrive."""

    result: Wire
    undo: Callable[[], None]
