"""The errors about consumers of pipelines and their leases; `errors` has them, too."""

from forq_trio.model.forq_error import CallerError, NotFound, ServiceError


class ConsumerNotFound(NotFound, code="forq.consumer_not_found"):
    """There is no such consumer of this queue: open it first"""


class ConsumerFenced(CallerError, code="forq.consumer_fenced", status=409):
    """The consumer was opened again since; only its latest generation may do that"""


class LeaseOutOfOrder(CallerError, code="forq.lease_out_of_order", status=409):
    """It is not the turn of this lease, or it is not complete; the message says which number is next"""


class OtherLease(CallerError, code="forq.other_lease", status=409):
    """The lease of this number was made at another time, so it is not the one that was meant; nothing was done"""


class LeaseGone(CallerError, code="forq.lease_gone", status=410):
    """The lease can no longer be read: it was given back, or acknowledged some leases ago"""


class LeasesFull(ServiceError, code="forq.leases_full"):
    """The leases of all consumers, or of those this key made, have as many bytes as are allowed; nothing was leased"""
