"""Examples of bodies and answers in the OpenAPI document, by the names of operations. Those of NDJSON are one line.

Each body can be sent as it is, perhaps with other ids and receipts. An answer is that of a success; if it is that of
one status only, this stands behind the name. Each topic is a module.
"""

from importlib import import_module
from pkgutil import iter_modules
from typing import Any

BODIES: dict[str, Any] = {}
ANSWERS: dict[str, Any] = {}

for _each in iter_modules(__path__, f"{__name__}."):
    _topic = import_module(_each.name)
    BODIES |= _topic.BODIES
    ANSWERS |= _topic.ANSWERS
