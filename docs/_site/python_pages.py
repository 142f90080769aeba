"""Pages on Python: the short text of each name is replaced by all that autodoc knows of it.

That of an alias stays: autodoc looks for it where the name is imported from, and not where it is assigned.
"""

import re
from textwrap import indent

from docs._site.docstrings import as_rst

SECTION = re.compile(r"^## (\w+)\n.*?<!-- (\w+) ([\w.]+) -->\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
OPTIONS = {
    "class": ("members", "inherited-members: Struct, tuple, dict, str, int, Enum, Exception, object"),
    "exception": ("members",),
    "function": (),
    "data": (),
}


def with_autodoc(text: str) -> str:
    return SECTION.sub(lambda found: _directive(*found.groups()), text)


def _directive(name: str, kind: str, path: str, text: str) -> str:
    options = "".join(f"   :{option}{'' if ':' in option else ':'}\n" for option in OPTIONS[kind])
    content = f"\n{indent(as_rst(text.strip()), '   ')}\n" if kind == "data" else ""
    return f"## {name}\n\n```{{eval-rst}}\n.. auto{kind}:: {path}\n{options}{content}```\n\n"
