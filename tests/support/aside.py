"""Reading an engine's file without changing it: leased messages that a read needs are moved back in a copy."""

import tempfile
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.reader import ReadAfter
from forq_trio.storage.sqlite.engine import SqliteEngine
from support.batches import looking

LONG_AGO_MS = 0
"""When nothing of the copy is due: a batch would end leases, too."""


class ReaderAside:
    """A reader of all that an engine has; `missed` counts the reads that needed a copy.

    Until the engine changes something, reads of one kind share a copy: of what another kind has moved back, none sees.
    """

    def __init__(self, engine: SqliteEngine, settings: EngineSettings) -> None:
        self._engine, self._settings = engine, settings
        self._reader = engine.open_reader()
        self._copies: dict[str, SqliteEngine] = {}
        self._copied_after = 0  # changes
        self._open_copies = ExitStack()
        self.missed = 0

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def read(*arguments: Any) -> Any:
            try:
                return getattr(self._reader, name)(*arguments)
            except ReadAfter:
                self.missed += 1
                return self._read_copy(name, arguments)

        return read

    def _read_copy(self, name: str, arguments: tuple[Any, ...]) -> Any:
        return looking(self._copy_for(name), lambda reader: getattr(reader, name)(*arguments), LONG_AGO_MS)

    def _copy_for(self, name: str) -> SqliteEngine:
        changes = self._engine.connection.database.total_changes()
        if changes != self._copied_after:
            self._close_copies()
            self._copied_after = changes
        if name not in self._copies:
            directory = self._open_copies.enter_context(tempfile.TemporaryDirectory())
            path = str(Path(directory) / "copy.db")
            self._engine.copy_to(path, lambda *_: None)
            copy = SqliteEngine(path, self._settings, "normal")
            self._copies[name] = self._open_copies.enter_context(closing(copy))
        return self._copies[name]

    def _close_copies(self) -> None:
        self._copies.clear()
        self._open_copies.close()

    def close(self) -> None:
        self._close_copies()
        self._reader.close()
