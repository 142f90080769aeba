"""The meaning of the endings of queue names."""

DLQ_SUFFIX = "-dlq"
LIFO_SUFFIX = "_lifo"


def is_dead_letter_queue(name: str) -> bool:
    """True for a name that ends in -dlq, which is Forq's convention; there is no other mark."""
    return name.endswith(DLQ_SUFFIX)


def is_lifo_queue(name: str) -> bool:
    """True for a name that ends in _lifo: within a priority its newest message comes first (Sasquatch)."""
    return name.endswith(LIFO_SUFFIX)
