"""When access tokens and sessions were last used: noted in memory, so that requests do not write.

A job stores the uses every TOKEN_USE_SAVE_SECONDS, and the system stores the last ones when it stops.
"""

from collections.abc import Callable, Mapping

from forq_trio.model.commands import NoteSessionUse, NoteTokenUse
from forq_trio.writer_actor import WriterActor


class Uses:
    """The uses that are not stored yet. A thing is known by the digest of its secret.

    note: the command that stores them. names: by which name each thing is stored, of all things that are there.
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
        """Epoch ms by name; forgets the uses of what has gone, so that a new thing of the name has none."""
        names = self._names()
        self.at = {digest: at for digest, at in self.at.items() if digest in names}
        return {names[digest]: at for digest, at in self.at.items()}

    async def save(self) -> int:
        """Store the uses, and return of how many things; sends no command for none."""
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
