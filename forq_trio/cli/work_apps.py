"""The Worker that `forq work` is given as module:app or first.py: found, imported, or refused with one sentence."""

import importlib
import importlib.util
import os
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from forq_trio.cli.exits import CliFailure, Exit

if TYPE_CHECKING:
    from forq_trio.worker import Worker


class AppName(NamedTuple):
    """A module, and the name of a Worker in it."""

    target: str  # how the command line names it
    module: str
    name: str  # empty for the only Worker of a file
    root: str  # the directory from which the module is imported


def parse_app(target: str) -> AppName:
    """Read `module:app`, or the path of a file: `first.py` or `first.py:app`. Raises CliFailure."""
    place, colon, name = target.partition(":")
    named = not colon or name.isidentifier()
    if named and place.endswith(".py"):
        return _app_of_file(target, Path(place).absolute(), name)
    if not (colon and named and all(part.isidentifier() for part in place.split("."))):
        is_file = not colon and Path(f"{target}.py").is_file()
        advice = (
            f"`forq work {target}.py` runs the file"
            if is_file
            else "for a queue, --exec or --post says what to run"
        )
        raise CliFailure(f"{target!r} is not of the form module:app; {advice}", Exit.USAGE)
    return AppName(target, place, name, os.getcwd())


def _app_of_file(target: str, path: Path, name: str) -> AppName:
    """The module that a file is: in a package, if there is an __init__.py beside it."""
    if not path.is_file():
        raise CliFailure(f"there is no file {target.partition(':')[0]!r} here", Exit.USAGE)
    if "." in path.stem:
        raise CliFailure(f"{path.name} cannot be imported, because its name has a dot", Exit.USAGE)
    parts, root = [path.stem], path.parent
    while (root / "__init__.py").is_file() and root.name:
        parts.insert(0, root.name)
        root = root.parent
    return AppName(target, ".".join(parts), name, str(root))


def load_app(app: AppName) -> "Worker":
    """Import the module, also from the working directory, and return its Worker. Raises CliFailure."""
    from forq_trio.worker import Worker

    _search(app.root)
    try:
        module = importlib.import_module(app.module)
        found = getattr(module, app.name, None)  # which may be made now, by the module's __getattr__
    except ModuleNotFoundError as missing:
        if missing.name is None or not f"{app.module}.".startswith(f"{missing.name}."):
            raise CliFailure(_place(missing), Exit.USAGE) from missing
        raise CliFailure(f"there is no module {missing.name!r} here", Exit.USAGE) from missing
    except Exception as problem:  # whatever a module raises while it is imported
        raise CliFailure(_place(problem), Exit.USAGE) from problem
    workers = {name: value for name, value in vars(module).items() if isinstance(value, Worker)}
    if not app.name:
        return _only_one(app, module, workers)
    if found is None:
        there = f"; it has {', '.join(workers)}" if workers else ""
        raise CliFailure(f"the module {app.module!r} has no {app.name!r}{there}", Exit.USAGE)
    if not isinstance(found, Worker):
        raise CliFailure(
            f"{app.module}:{app.name} is no Worker but of the type {type(found).__name__}", Exit.USAGE
        )
    return found


def _only_one(app: AppName, module: ModuleType, workers: "dict[str, Worker]") -> "Worker":
    """The Worker of a file. Raises CliFailure unless there is exactly one, perhaps with several names."""
    file = getattr(module, "__file__", None)
    if file is None or not Path(file).samefile(app.target):
        raise CliFailure(
            f"{app.target} has the name of another module ({file or 'which is built in'}): rename it",
            Exit.USAGE,
        )
    if not workers:
        raise CliFailure(f"{app.target} has no Worker: write `app = Worker()` in it", Exit.USAGE)
    if len({id(worker) for worker in workers.values()}) > 1:
        names = ", ".join(f"{app.target}:{name}" for name in workers)
        raise CliFailure(f"{app.target} has {len(workers)} Workers: name one, of {names}", Exit.USAGE)
    return next(iter(workers.values()))


def directory_of(app: AppName) -> tuple[Path, bool]:
    """The directory of the module's files, and whether those below it belong to it. Imports nothing.

    Raises CliFailure.
    """
    _search(app.root)
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


def _search(directory: str) -> None:
    if directory not in sys.path:
        sys.path.insert(0, directory)


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
