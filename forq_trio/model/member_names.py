"""The names of members: in JSON, and in Python. It imports little, because errors need it."""

import re

_OTHERWISE = {"max": "max_messages"}  # of a receive: no member has another name in Python, but for its form
_CAMEL = re.compile(r"(?<![\w-])[a-z]++(?:[A-Z][a-z0-9]*+)++(?![\w-])")


def json_name(name: str) -> str:
    """The name of a member in JSON: leaseMs for lease_ms."""
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


def python_name(name: str) -> str:
    """The name in Python of a member with this name in JSON."""
    return "".join(f"_{each.lower()}" if each.isupper() else each for each in name)


def python_names(path: str) -> dict[str, str]:
    """The names in a path into a body that are others in Python, each with that one."""
    own = _OTHERWISE.get(path)
    return {path: own} if own else {name: python_name(name) for name in _CAMEL.findall(path)}


def python_path(path: str) -> str:
    """A path into a body with the names of Python: lines[1].lease_ms for lines[1].leaseMs."""
    return _OTHERWISE.get(path) or _CAMEL.sub(lambda found: python_name(found[0]), path)
