"""Commands that take one message by its id and nothing else. Tests draw and prepare them by this form, unnamed."""

from forq_trio.model.commands import COMMANDS

BY_ID = tuple(kind for kind in COMMANDS if kind.__struct_fields__ == ("queue", "message_id"))
