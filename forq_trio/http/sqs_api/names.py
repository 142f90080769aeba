"""Queues by their URLs, ARNs and names, and what such a queue is called in the rest of the server.

A queue `emails` of the server's own region is the queue `emails`. One of another region has the region before its name:
`eu-west-1.emails`. No name of Amazon's has a point, except before `fifo`, so both can be told apart. A name that is too
long for the rest of the server is cut there, and ends with some digits of its hash. That of a FIFO queue ends in
`.fifo` there, too, because that makes its groups strict.
"""

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import NamedTuple
from urllib.parse import urlsplit

from forq_trio.http.sqs_api.errors import INVALID_PARAMETER, SqsError, missing, no_such_queue
from forq_trio.model import limits
from forq_trio.model.amazon_names import ACCOUNT, REGION
from forq_trio.model.queues.names import FIFO_SUFFIX, is_fifo_queue

_DIGEST_DIGITS = 16
_NEVER_CUT_LENGTH = limits.QUEUE_NAME_LENGTH_MAX - len(".") - _DIGEST_DIGITS - len(FIFO_SUFFIX)
_URLS_CACHED_MAX = 1_024
_NAME = re.compile(rf"(?=.{{1,80}}\Z)[A-Za-z0-9_-]+({re.escape(FIFO_SUFFIX)})?")
_ARN = re.compile(rf"arn:aws[a-z-]*:sqs:({REGION}):({ACCOUNT}):([^:]+)")
_NAME_RULE = "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length"


class SqsAccount(NamedTuple):
    """Where the queues of this server are, as AWS names it."""

    number: str  # twelve digits
    region: str  # the server's own
    scheme: str = "http"  # of the server's URLs
    trusts_proxy: bool = False  # whether X-Forwarded-Proto says the scheme


@dataclass(frozen=True)
class SqsQueue:
    """A queue as its clients name it. The names are made once: the queue of a URL is the same object each time."""

    name: str
    region: str
    account: SqsAccount

    @cached_property
    def full_name(self) -> str:
        """Its name with its region, unless that is the server's own."""
        return self.name if self.region == self.account.region else f"{self.region}.{self.name}"

    @cached_property
    def house_name(self) -> str:
        """Its name in the other dialects, the admin UI and the command line, where names are shorter."""
        full = self.full_name
        if len(full) <= limits.QUEUE_NAME_LENGTH_MAX:
            return full
        digest = sha256(full.encode()).hexdigest()[:_DIGEST_DIGITS]
        ending = f".{digest}{FIFO_SUFFIX if self.is_fifo else ''}"
        return full[: limits.QUEUE_NAME_LENGTH_MAX - len(ending)] + ending

    @cached_property
    def is_fifo(self) -> bool:
        return is_fifo_queue(self.name)

    @property
    def arn(self) -> str:
        return f"arn:aws:sqs:{self.region}:{self.account.number}:{self.name}"

    def url(self, origin: str) -> str:
        """Its URL. origin: `http://host:port`, as the client wrote it, so that it can reach what it gets."""
        return f"{origin}/{self.account.number}/{self.name}"


def new_queue(name: str | None, region: str, account: SqsAccount) -> SqsQueue:
    """The queue that CreateQueue names; raises SqsError for a name that no queue may have."""
    if name is None:
        raise missing("QueueName")
    if not _is_name(name, region, account):
        raise SqsError(INVALID_PARAMETER, _NAME_RULE)
    return SqsQueue(name, region, account)


def queue_of_url(url: str | None, region: str, account: SqsAccount) -> SqsQueue:
    """The queue of a QueueUrl: its last segment, whatever the host. A bare name will do, too."""
    if not url:
        raise missing("QueueUrl")
    if len(url) > limits.SQS_URL_LENGTH_MAX:
        raise no_such_queue()
    return _queue_of_url(url, region, account)


@lru_cache(_URLS_CACHED_MAX)
def _queue_of_url(url: str, region: str, account: SqsAccount) -> SqsQueue:
    try:
        name = urlsplit(url).path.rstrip("/").rpartition("/")[2]
    except ValueError:
        raise no_such_queue() from None
    if not _is_name(name, region, account):
        raise no_such_queue()
    return SqsQueue(name, region, account)


def queue_of_arn(arn: str, account: SqsAccount) -> SqsQueue | None:
    """The queue of an ARN; None if it is no ARN of a queue of this account."""
    found = _ARN.fullmatch(arn)
    if found is None or found[2] != account.number or not _is_name(found[3], found[1], account):
        return None
    return SqsQueue(found[3], found[1], account)


def queue_of_full_name(full_name: str, region: str, account: SqsAccount) -> SqsQueue | None:
    """The queue of this region with this `full_name`; None for one of another region, or of no region."""
    name = full_name
    if region != account.region:
        if not full_name.startswith(f"{region}."):
            return None
        name = full_name[len(region) + 1 :]
    return SqsQueue(name, region, account) if _is_name(name, region, account) else None


def start_in_house(prefix: str, region: str, account: SqsAccount) -> str:
    """How the `house_name` of each queue of this region begins whose name begins with `prefix`."""
    return SqsQueue(prefix, region, account).full_name[:_NEVER_CUT_LENGTH]


def _is_name(name: str, region: str, account: SqsAccount) -> bool:
    """Whether a queue may have this name. `fifo` of the region `a` would be `a.fifo` of the server's own."""
    return _NAME.fullmatch(name) is not None and (region == account.region or name != FIFO_SUFFIX[1:])
