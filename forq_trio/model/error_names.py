"""What the messages of errors call a member: its name in Python for callers there, in the API's answers that in JSON.

The queue writes messages with the names of Python. The API puts in those of JSON, and a client those of Python again.
"""

import re

from forq_trio.model.member_names import json_name, python_name, python_names, python_path

_WORD = re.compile(r"\w+")
_NESTED_PYTHON = re.compile(r"\A(\w+: )([a-z]+(?:_[a-z]+)+)")
_NESTED_JSON = re.compile(r"\A(\w+: )([a-z]+(?:[A-Z][a-z]+)+)")
"""What a message about a setting says first after the setting's own name: "back_off: initial_ms must be"."""


def in_json(message: str, path: str, *, nested: bool) -> str:
    """The message about a path into a body, with its name in JSON. nested: of a setting, which may have members."""
    member = path.rpartition(".")[2]
    message = message.replace(python_path(member), member)
    return _NESTED_PYTHON.sub(lambda found: found[1] + json_name(found[2]), message) if nested else message


def in_python(message: str, path: str, *, nested: bool) -> str:
    """The message of a server about a path into a body, or a parameter, with its names in Python. nested: as above."""
    names = python_names(path)
    message = _WORD.sub(lambda word: names.get(word[0], word[0]), message)
    return _NESTED_JSON.sub(lambda found: found[1] + python_name(found[2]), message) if nested else message
