"""When access tokens and sessions were last used: noted in memory, so that requests do not write.

A job stores the uses every TOKEN_USE_SAVE_SECONDS, and the system stores the last ones when it stops.
"""

from collections.abc import Callable, Mapping

from forq_trio.model.commands import NoteSessionUse, NoteTokenUse
from forq_trio.writer_actor import WriterActor


class Uses:
    """The uses of tokens, or of sessions, that are not stored yet, by the digest of their secret.

    note: the command that stores them. names: the name under which the use of each digest is stored, for all that
    exist.
    """

    def __init__(
        self,
        writer: WriterActor,
        note: type[NoteTokenUse] | type[NoteSessionUse],
        names: Callable[[], Mapping[str, str]],
    ) -> None:
        self._writer = writer
        self._note = note
        self._names = names
        self.at: dict[str, int] = {}
        """Epoch ms by digest."""

    def _unsaved(self) -> dict[str, int]:
        """Epoch ms by name; forgets the uses of removed ones, so that a new token of the same name has none."""
        names = self._names()
        self.at = {digest: at for digest, at in self.at.items() if digest in names}
        return {names[digest]: at for digest, at in self.at.items()}

    async def save(self) -> int:
        """Store the uses, and return how many; sends no command for none."""
        uses = self._unsaved()
        if uses:
            await self._writer.execute(self._note(uses))
            names = self._names()  # uses that were noted meanwhile stay
            self.at = {digest: at for digest, at in self.at.items() if at != uses.get(names.get(digest, ""))}
        return len(uses)

    def post(self) -> None:
        """`save` without waiting, for the moment before the writer stops."""
        uses = self._unsaved()
        if uses:
            self._writer.post(self._note(uses))
