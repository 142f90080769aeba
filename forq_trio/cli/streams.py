"""Makes sure that a standard stream that is closed, full or broken does not change how a command ends."""

import os
import sys

_STANDARD_DESCRIPTORS = 3


def open_missing_streams() -> None:
    """Open the null device for each standard stream that the process was started without.

    Otherwise the next file or connection that is opened would get the stream's descriptor, and with it the output.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) < _STANDARD_DESCRIPTORS:
        pass
    os.close(descriptor)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  # open until the process ends


def drop_unwritten() -> None:
    """Drop what could not be written to stdout and stderr, because Python would end with exit code 120 for it."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            with open(os.devnull, "wb") as nowhere:
                os.dup2(nowhere.fileno(), stream.fileno())
