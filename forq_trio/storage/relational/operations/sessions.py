"""Sessions of the admin UI: few enough to be all in memory, so that a request is checked without a query."""

from collections.abc import Sequence

from msgspec.structs import astuple, replace

from forq_trio.model.commands import EndSessions, NoteSessionUse, SaveSession
from forq_trio.storage.relational.operations.table import operation_on_each
from forq_trio.storage.relational.transaction import Transaction
from forq_trio.storage.rules import sessions_to_end


@operation_on_each(SaveSession)
def save(tx: Transaction, command: SaveSession) -> None:
    _end(tx, sessions_to_end(tx.sessions.values(), tx.now_ms))
    tx.query("save_session", *astuple(command.session))
    tx.sessions[command.session.digest] = command.session


@operation_on_each(EndSessions)
def end(tx: Transaction, command: EndSessions) -> int:
    return _end(tx, list(tx.sessions) if command.digests is None else command.digests)


def _end(tx: Transaction, digests: Sequence[str]) -> int:
    """Remove these sessions; returns how many of them there were."""
    known = [digest for digest in dict.fromkeys(digests) if digest in tx.sessions]
    for digest in known:
        tx.query("end_session", digest)
        del tx.sessions[digest]
    return len(known)


@operation_on_each(NoteSessionUse)
def note_use(tx: Transaction, command: NoteSessionUse) -> None:
    for digest, used_at in command.used.items():
        session = tx.sessions.get(digest)
        if session is not None and session.last_used_at < used_at:
            tx.query("note_session_use", used_at, digest)
            tx.sessions[digest] = replace(session, last_used_at=used_at)
