"""Receives by attributes: walks the claim index past messages that do not match, and continues there next time.

Each pair of a queue and conditions has a `Scan` (scans.py): the place up to which nothing matches.
"""

from collections.abc import Iterator, Sequence

from forq_trio.model import limits
from forq_trio.model.messages.where import Where, takes
from forq_trio.storage.allowance import Allowance, Step
from forq_trio.storage.relational.parts.scans import Scan, ScanPlace
from forq_trio.storage.relational.row import BYTES, ReadyRow, read_attributes
from forq_trio.storage.relational.transaction import Transaction

_FIRST_PRIORITY = 2**62


def matching(
    tx: Transaction, queue: str, where: Where, count: int, bytes_max: int, step: Allowance
) -> list[ReadyRow]:
    """Up to `count` ready messages that match, in claim order, up to about `bytes_max`.

    step: how much one batch may read for these conditions. If nothing is returned, that may be used up: the next batch
    continues.
    """
    if step.used_up:
        return []
    messages, size = step.messages, step.bytes
    scan = tx.scans.of(queue, where)
    if scan.dirty and not scan.cut:
        scan = Scan()
    while True:
        found, scan = _walk(tx, queue, where, scan, count, step)
        again = not found and not scan.cut and scan.dirty
        if again:
            scan = Scan(cut=step.used_up)
        if not again or step.used_up:
            break
    tx.scans.put(queue, where, scan)
    tx.allowances.of(Step.SCAN).charge(1 + messages - step.messages, size - step.bytes)
    rows: list[ReadyRow] = []
    for row in rows_drawn(tx, found):
        if bytes_max <= 0:
            break
        rows.append(row)
        bytes_max -= row[BYTES]
    return rows


def rows_drawn(tx: Transaction, sequences: Sequence[int]) -> Iterator[ReadyRow]:
    """The ready messages with these sequence numbers, in this order; over a network only up to the bytes of a step."""
    if tx.connection.is_distant:
        for rows in tx.query_each("select_drawn", [(seq,) for seq in sequences]):
            yield from rows
    else:
        for seq in sequences:
            yield from tx.query("select_drawn", seq)


def _walk(
    tx: Transaction, queue: str, where: Where, scan: Scan, count: int, step: Allowance
) -> tuple[list[int], Scan]:
    """The matching sequence numbers from the scan's place on, and the new scan: up to just before the first match."""
    aside = set(tx.set_aside.sequences())
    found: list[int] = []
    place = scan.place
    at: ScanPlace | None = place
    while len(found) < count:
        if step.used_up:
            return found, Scan(place, not found, scan.dirty)
        rows = _next_rows(tx, queue, at, min(step.messages, limits.CLAIM_SCAN_PAGE))
        if not rows:
            break
        for seq, priority, position, attributes in rows:
            step.charge(1, len(attributes or ""))
            at = (priority, position, seq)
            if seq not in aside and _matches(where, attributes):
                found.append(seq)
            elif not found:
                place = at
            if len(found) == count or step.used_up:
                break
    return found, Scan(place, False, scan.dirty)


def _next_rows(
    tx: Transaction, queue: str, at: ScanPlace | None, count: int
) -> list[tuple[int, int, int, str | None]]:
    if at is None:
        return tx.query("select_to_match", queue, _FIRST_PRIORITY, count)
    rows = tx.query("select_to_match_at", queue, *at, count)
    if len(rows) < count:
        rows += tx.query("select_to_match", queue, at[0], count - len(rows))
    return rows


def _matches(where: Where, attributes: str | None) -> bool:
    """Whether attributes match. Damaged ones do, because such a message fails later, when it is delivered."""
    try:
        return takes(where, read_attributes(attributes))
    except (ValueError, TypeError):
        return True
