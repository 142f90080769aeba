"""Notes in memory when access tokens and sessions were last used, so that requests do not write.

A job stores the uses every TOKEN_USE_SAVE_SECONDS, and the system stores the last ones when it stops.
"""

from collections.abc import Callable, Mapping

from forq_trio.model.commands import NoteSessionUse, NoteTokenUse
from forq_trio.writer_actor import WriterActor


class Uses:
    """The uses of tokens, or of sessions, that are not stored yet, by the digest of their secret.

    note: makes the command that stores them. names: for all that exist, the name under which the use of a digest is
    stored.
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
        """The latest use of each digest (epoch ms)."""

    def _unsaved(self) -> dict[str, int]:
        """The uses (epoch ms) by name. Drops those of removed tokens, so that a new one of the same name has no use."""
        names = self._names()
        self.at = {digest: at for digest, at in self.at.items() if digest in names}
        return {names[digest]: at for digest, at in self.at.items()}

    async def save(self) -> int:
        """Store the uses; returns how many. Sends no command if there are none."""
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
