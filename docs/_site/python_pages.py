"""Pages on Python: the short text of each name is replaced by all that autodoc knows of it."""

import re

SECTION = re.compile(r"^## (\w+)\n.*?<!-- (\w+) ([\w.]+) -->\n.*?(?=^##|\Z)", re.MULTILINE | re.DOTALL)
OPTIONS = {
    "class": ("members", "inherited-members: Struct, tuple, dict, str, int, Enum, Exception, object"),
    "exception": ("members",),
    "function": (),
    "data": (),
}


def with_autodoc(text: str) -> str:
    return SECTION.sub(lambda found: _directive(*found.groups()), text)


def _directive(name: str, kind: str, path: str) -> str:
    options = "".join(f"   :{option}{'' if ':' in option else ':'}\n" for option in OPTIONS[kind])
    return f"## {name}\n\n```{{eval-rst}}\n.. auto{kind}:: {path}\n{options}```\n\n"
