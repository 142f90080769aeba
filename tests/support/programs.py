"""Programs of documents, run as a reader would run them."""

import subprocess
import sys
from pathlib import Path

from support.real_server import environment

ROOT = Path(__file__).parents[2]


def run_program(source: str, folder: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run a program in a folder, with warnings as errors; returns what it wrote and its exit code."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", source],
        cwd=folder,
        env=environment(PYTHONPATH=str(ROOT), **variables),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
