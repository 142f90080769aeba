"""Counts the work of SQLite in steps of its virtual machine, which are the same on every machine."""

import apsw


class Steps:
    """Counts the steps of the statements of a connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.count = 0
        connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, self._add)

    def _add(self, event: dict) -> None:
        self.count += event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"]
