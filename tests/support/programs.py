"""Programs of documents, run as a reader would run them: on what is here, or on a wheel that was installed."""

import os
import subprocess
import sys
from pathlib import Path

from support.real_server import environment

ROOT = Path(__file__).parents[2]
INSTALLED = os.environ.get("FORQ_TEST_INSTALLED")
"""The folder of the environments with the wheel, `client`, `embed` and `server`, if one is tried."""


def python_of(extra: str) -> str:
    """The Python with this extra: of the environment that has the wheel and no more, else the one that runs us."""
    return f"{INSTALLED}/{extra}/bin/python" if INSTALLED else sys.executable


def path_to_package() -> dict[str, str]:
    """The variable by which a program finds the package: none, where it is installed."""
    return {} if INSTALLED else {"PYTHONPATH": str(ROOT)}


def run_program(
    source: str, folder: Path, extra: str = "embed", **variables: str
) -> "subprocess.CompletedProcess[str]":
    """Run a program in a folder, with warnings as errors; returns what it wrote and its exit code."""
    return subprocess.run(
        [python_of(extra), "-W", "error", "-c", source],
        cwd=folder,
        env=environment(**path_to_package(), **variables),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
