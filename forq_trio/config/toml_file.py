"""The TOML file of settings as it is written. In a module of its own: `forq health` reads it without pydantic."""

import re
import tomllib
from pathlib import Path
from typing import Any


def read_toml(path: Path) -> dict[str, Any]:
    """The sections of the file. Raises ValueError, which says what is wrong with it."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as problem:
        reason = problem.strerror or type(problem).__name__
        words = f"cannot be read ({reason}); allowed: the path of a readable TOML file"
    except UnicodeDecodeError:
        words = "is not UTF-8; allowed: a TOML file in UTF-8"
    except tomllib.TOMLDecodeError as problem:
        words = f"is not valid TOML: {_plain(problem)}"
    except (ValueError, RecursionError):  # a number of thousands of digits, or as many brackets
        words = "cannot be read (too long a number, or nested too deeply)"
    raise ValueError(f"{path}: {words}")


def _plain(problem: tomllib.TOMLDecodeError) -> str:
    """tomllib's message, in plain words for a key or section that is given twice."""
    text = str(problem)
    if text.startswith("Cannot overwrite a value"):
        return text.replace("Cannot overwrite a value", "a key is given twice", 1)
    return re.sub(r"Cannot declare \('(.*?)',\) twice", r"the section [\1] is given twice", text)
