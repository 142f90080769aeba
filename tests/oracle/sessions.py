"""The reference engine: commands on sessions of the admin UI."""

import msgspec

from forq_trio.model.commands import EndSessions, NoteSessionUse, SaveSession
from forq_trio.storage.rules import sessions_to_end
from oracle.operations import operation
from oracle.transaction import Transaction


@operation(SaveSession)
def save_session(tx: Transaction, command: SaveSession) -> None:
    for digest in sessions_to_end(tx.state.sessions.values(), tx.now_ms):
        del tx.state.sessions[digest]
    tx.state.sessions[command.session.digest] = command.session


@operation(EndSessions)
def end_sessions(tx: Transaction, command: EndSessions) -> int:
    digests = set(tx.state.sessions if command.digests is None else command.digests)
    ended = digests & tx.state.sessions.keys()
    for digest in ended:
        del tx.state.sessions[digest]
    return len(ended)


@operation(NoteSessionUse)
def note_session_use(tx: Transaction, command: NoteSessionUse) -> None:
    for digest, used_at in command.used.items():
        session = tx.state.sessions.get(digest)
        if session is not None and used_at > session.last_used_at:
            tx.state.sessions[digest] = msgspec.structs.replace(session, last_used_at=used_at)
