"""The Worker that `forq work module:app` names: found, imported, or refused with one sentence."""

import importlib
import importlib.util
import os
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from forq_trio.cli.exits import CliFailure, Exit

if TYPE_CHECKING:
    from forq_trio.worker import Worker


class AppName(NamedTuple):
    """A module, and the name of a Worker in it."""

    module: str
    name: str


def parse_app(target: str) -> AppName:
    """Cut `module:app`. Raises CliFailure."""
    module, colon, name = target.partition(":")
    if not (colon and name.isidentifier() and all(part.isidentifier() for part in module.split("."))):
        raise CliFailure(
            f"{target!r} is not of the form module:app; for a queue, --exec or --post says what to run",
            Exit.USAGE,
        )
    return AppName(module, name)


def load_app(app: AppName) -> "Worker":
    """Import the module, also from the working directory, and return its Worker. Raises CliFailure."""
    from forq_trio.worker import Worker

    _search_here()
    try:
        module = importlib.import_module(app.module)
    except ModuleNotFoundError as missing:
        if missing.name is None or not f"{app.module}.".startswith(f"{missing.name}."):
            raise CliFailure(_place(missing), Exit.USAGE) from missing
        raise CliFailure(f"there is no module {missing.name!r} here", Exit.USAGE) from missing
    except Exception as problem:  # whatever a module raises while it is imported
        raise CliFailure(_place(problem), Exit.USAGE) from problem
    found = getattr(module, app.name, None)
    if found is None:
        raise CliFailure(f"the module {app.module!r} has no {app.name!r}", Exit.USAGE)
    if not isinstance(found, Worker):
        raise CliFailure(
            f"{app.module}:{app.name} is no Worker but of the type {type(found).__name__}", Exit.USAGE
        )
    return found


def directory_of(app: AppName) -> tuple[Path, bool]:
    """The directory of the module's files, and whether those below it belong to it. Imports nothing.

    Raises CliFailure.
    """
    _search_here()
    top = app.module.partition(".")[0]
    try:
        spec = importlib.util.find_spec(top)
    except ValueError:
        spec = None
    if spec is None or (spec.origin is None and not spec.submodule_search_locations):
        raise CliFailure(f"there is no module {top!r} here", Exit.USAGE)
    if spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations))), True
    return Path(spec.origin or "").parent, False


def _search_here() -> None:
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)


def _place(problem: Exception) -> str:
    """Where an import went wrong, in the module's own files, and how."""
    words = f"{type(problem).__name__}: {problem.msg if isinstance(problem, SyntaxError) else problem}"
    if isinstance(problem, SyntaxError) and problem.filename is not None:
        return f"{problem.filename}:{problem.lineno}: {words}"
    frames = [
        frame
        for frame in traceback.extract_tb(problem.__traceback__)
        if "importlib" not in frame.filename and frame.filename != __file__
    ]
    return f"{frames[-1].filename}:{frames[-1].lineno}: {words}" if frames else words
