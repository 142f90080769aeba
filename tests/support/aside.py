"""Reading an engine's file without changing it: leased messages that a read needs are moved back in a copy."""

import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from forq_trio.storage.engine import EngineSettings
from forq_trio.storage.reader import ReadAfter
from forq_trio.storage.sqlite.engine import SqliteEngine
from support.batches import looking

LONG_AGO_MS = 0
"""When nothing of the copy is due: a batch would end leases, too."""


class ReaderAside:
    """A reader of all that an engine has; `missed` counts the reads that needed a copy."""

    def __init__(self, engine: SqliteEngine, settings: EngineSettings) -> None:
        self._engine, self._settings = engine, settings
        self._reader = engine.open_reader()
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
        with tempfile.TemporaryDirectory() as directory:
            path = str(Path(directory) / "copy.db")
            self._engine.copy_to(path, lambda *_: None)
            with closing(SqliteEngine(path, self._settings, "normal")) as copy:
                return looking(copy, lambda reader: getattr(reader, name)(*arguments), LONG_AGO_MS)

    def close(self) -> None:
        self._reader.close()
