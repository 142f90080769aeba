"""Secrets in files of their own: `FORQ_AUTH_SECRET_FILE=/run/secrets/forq` instead of `FORQ_AUTH_SECRET=…`.

Containers, Kubernetes and systemd hand secrets over as files, which no list of variables shows. This module imports
no pydantic, because commands that talk to a server read their secret here, too.
"""

import os
import stat
from collections.abc import Mapping

ENDING = "_FILE"
_LENGTH_MAX = 64 * 1024
"""In characters; more than any secret or URL has."""


class SecretFileError(Exception):
    """The file of a secret cannot be used; the message follows the variable's name and shows no secret."""


def file_variable(variable: str) -> str:
    """The variable that names the file with the value of this one."""
    return f"{variable}{ENDING}"


def find_secret(variable: str, environ: Mapping[str, str]) -> tuple[str, str] | None:
    """The value of a variable and where it comes from: the variable, or the one that names its file.

    None if neither is set; an empty variable counts as not set. Raises SecretFileError.
    """
    value, path = environ.get(variable), environ.get(file_variable(variable))
    if not path:
        return (value, variable) if value else None
    if value:
        raise SecretFileError(f"is set beside {variable}; allowed: one of the two")
    return read_secret_file(path), file_variable(variable)


def read_secret_file(path: str) -> str:
    """The text of a file without the line end at its end. Raises SecretFileError."""
    try:
        is_file = stat.S_ISREG(os.stat(path).st_mode)
    except OSError as problem:
        raise _unreadable(path, problem) from None
    except ValueError:  # a NUL character
        is_file = False
    if not is_file:  # reading from a pipe could last for ever
        raise SecretFileError(f"{path!r} is not a file; allowed: a readable file")
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(_LENGTH_MAX + 1)
    except OSError as problem:
        raise _unreadable(path, problem) from None
    except ValueError:  # not UTF-8
        raise SecretFileError("names no file of text; allowed: a file with the secret in UTF-8") from None
    if len(text) > _LENGTH_MAX:
        raise SecretFileError(
            f"names a file of more than {_LENGTH_MAX} characters; allowed: one with the secret alone"
        )
    return text.removesuffix("\n").removesuffix("\r")


def _unreadable(path: str, problem: OSError) -> SecretFileError:
    reason = problem.strerror or type(problem).__name__
    return SecretFileError(f"{path!r} cannot be read ({reason}); allowed: a readable file")
