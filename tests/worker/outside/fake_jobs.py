"""Jobs without a worker."""

import anyio

from forq_trio.model.messages.types import Delivery
from forq_trio.worker.jobs import Job


def job_of(content: str = "", *, lease_seconds: float = 60.0, **attributes: str) -> Job:
    """A job on its second attempt. attributes: of its message."""
    delivery = Delivery(
        id="0190d3f0-0000-7000-8000-000000000001",
        content=content,
        receipt="r",
        attempts=2,
        received_at=1,
        lease_until=2,
        sequence=7,
        priority=5,
        first_received_at=1,
        attributes=attributes,
    )
    return Job("emails", delivery, anyio.current_time() + lease_seconds)
