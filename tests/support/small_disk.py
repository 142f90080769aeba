"""A small file system of its own, so that it can be really full. Mounting one takes the right to."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def mounted(place: Path, mib: int) -> Iterator[Path]:
    """Mount it at `place` while the body runs; where that is not allowed the test says so and is left out."""
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={mib}m", "forq-test", str(place)]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        pytest.skip(
            f"NOT TESTED, the real full disk: no right to mount a small one ({result.stderr.strip()})"
        )
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)
