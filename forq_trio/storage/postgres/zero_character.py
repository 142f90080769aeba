"""Commands with the character U+0000, which PostgreSQL has in no text: refused before they run.

Found out by a statement, it would have the whole batch run again, command by command.
"""

from typing import Any

from forq_trio.model.commands import Ack, Claim, Command, Release
from forq_trio.storage.zero_character import has_zero

_STORES_NO_TEXT = frozenset({Ack, Claim, Release})


def cannot_be_stored(command: Command[Any]) -> bool:
    """Whether a text of it has that character."""
    return type(command) not in _STORES_NO_TEXT and has_zero(command)
