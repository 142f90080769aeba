"""The meaning of the endings of queue names."""

DLQ_SUFFIX = "-dlq"
LIFO_SUFFIX = "_lifo"
FIFO_SUFFIX = ".fifo"


def is_dead_letter_queue(name: str) -> bool:
    """True for a name that ends in -dlq, which is Forq's convention; there is no other mark."""
    return name.endswith(DLQ_SUFFIX)


def default_dead_letter_queue(name: str) -> str:
    """Where failed messages of a queue go if it has no setting for that; "" for nowhere: they are deleted."""
    return "" if is_dead_letter_queue(name) else name + DLQ_SUFFIX


def is_lifo_queue(name: str) -> bool:
    """True for a name that ends in _lifo: within a priority its newest message comes first (Sasquatch)."""
    return name.endswith(LIFO_SUFFIX)


def is_fifo_queue(name: str) -> bool:
    """True for a name that ends in .fifo: its groups are strict, as those of Amazon's FIFO queues."""
    return name.endswith(FIFO_SUFFIX)
