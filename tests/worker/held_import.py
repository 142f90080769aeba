"""A handler whose process imports this module for as long as a test wants it to.

It reads the named pipe that the test has put in the environment, if there is one, and raises what it finds there.
"""

import multiprocessing
import os
from pathlib import Path

PIPE = "HELD_IMPORT_PIPE"

if multiprocessing.parent_process() is not None and PIPE in os.environ:
    told = Path(os.environ[PIPE]).read_text()
    if told:
        raise ImportError(told)


def number(content: str) -> str:
    """That of its process, written to a file."""
    Path(content).write_text(str(os.getpid()))
    return content
