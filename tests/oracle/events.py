"""The reference engine: lifecycle events, read and removed."""

import msgspec

from forq_trio.model import limits
from forq_trio.model.commands import Removed, TrimEvents
from forq_trio.model.logs.events import MessageEvent
from forq_trio.model.logs.types import LogLines
from forq_trio.storage.logs import believable_until
from oracle.operations import operation
from oracle.state import State
from oracle.transaction import Transaction


@operation(TrimEvents)
def trim(tx: Transaction, command: TrimEvents) -> Removed:
    """Remove old events. Those of this batch are written only at its end, so they neither count nor are removed."""
    written = [each for each in tx.state.events if each.event.id <= tx.last_event_before]
    new = tx.state.events[len(written) :]
    end = new[0].total if new else tx.state.events_end
    removed = 0
    believable = believable_until(command.before_ms, tx.now_ms)
    for event, total in written[:-1]:
        if command.before_ms <= event.at <= believable and end - total <= command.bytes_max:
            break
        removed += 1
    tx.state.events = written[removed:] + new
    return Removed(removed, more=False)


def read_page(state: State, after: int, until: int | None, limit: int, queue: str | None) -> LogLines:
    _, first, last, _, _ = state.event_log
    start = max(after, first - 1)
    stop = min(last, last if until is None else until, start + limits.EVENTS_SCAN_MAX)
    lines: list[bytes] = []
    for event, _ in state.events:
        if not start < event.id <= stop or queue not in (None, event.queue):
            continue
        line = _line(event)
        if lines and sum(map(len, lines)) + len(line) > limits.EVENT_LINES_BYTES_MAX:
            break
        lines.append(line)
        start = event.id
        if len(lines) == limit:
            break
    else:
        start = max(stop, after)
    return LogLines(b"".join(lines), start, first, last)


def of_message(state: State, queue: str, message_id: str) -> bytes:
    found = [event for event, _ in state.events if event.message_id == message_id]
    if not any(queue in (event.queue, event.target) for event in found):
        return b""
    return b"".join(map(_line, found[-limits.MESSAGE_EVENTS_MAX :]))


def _line(event: MessageEvent) -> bytes:
    return msgspec.json.encode(event) + b"\n"
