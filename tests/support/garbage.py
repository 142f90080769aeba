"""Which objects are there that nothing but the garbage collector would remove."""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def without_collections(*kinds: type) -> Iterator[Callable[[], list[str]]]:
    """Nothing is collected while the body runs; it gets a function that names the objects of these kinds made in it.

    What is there before is left out for good, and not collected first: a worker that has run thousands of tests takes
    half a second for that.
    """
    gc.disable()
    gc.freeze()
    try:
        yield lambda: [type(thing).__name__ for thing in gc.get_objects() if type(thing) in kinds]
    finally:
        gc.enable()
