"""Commands that need one message's id and nothing else. Tests draw and prepare them by this form, unnamed."""

from forq_trio.model.commands import COMMANDS

_OPTIONS = {"reason"}
"""Members that may be left out, and change only what others are told."""
BY_ID = tuple(
    kind
    for kind in COMMANDS
    if tuple(each for each in kind.__struct_fields__ if each not in _OPTIONS) == ("queue", "message_id")
)
