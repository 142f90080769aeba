"""Ships the changes that a batch made to the parts of the engine's memory, so that other processes can take them over.

Every batch stores these changes along with its own work. The next batch of another process first adopts them, in order,
as if it had run those batches itself. So the parts are the same in all processes, including what no table contains (the
rounds of groups, freed groups, queues that the next batch wakes, how far claims by attributes have looked).

A batch ships its time and the changes of each part, by the part's name. Processes of different versions exchange them,
so what a part ships may only grow by members at the end that have a default. A part with an unknown name belongs to a
later version and can be ignored.
"""

from collections.abc import Sequence, Set
from functools import cache
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import Raw, Struct

from forq_trio.model.access.types import Digest
from forq_trio.storage.relational.parts.heads import Head, Heads
from forq_trio.storage.relational.parts.parts import Parts
from forq_trio.storage.relational.transaction import Transaction

StoredBatch = tuple[int | None, str, bytes | None]
"""Version, maker, and changes, if those were asked for. Without a version it says that applications sent some."""


class _Packed(Struct, frozen=True, array_like=True):
    now_ms: int
    parts: dict[str, Raw]  # what each part shipped


def _encoded(value: Any) -> Any:
    if isinstance(value, Digest):
        return value.hex
    if isinstance(value, MappingProxyType):
        return dict(value)
    raise TypeError(type(value))


def _decoded(kind: type, value: Any) -> Any:
    if kind is Digest:
        return Digest(value)
    raise TypeError(kind)


_encode = msgspec.msgpack.Encoder(enc_hook=_encoded).encode
_decode = msgspec.msgpack.Decoder(_Packed).decode


@cache
def _decoder(shipped: Any) -> msgspec.msgpack.Decoder[Any]:
    """The decoder of what a part ships."""
    return msgspec.msgpack.Decoder(shipped, dec_hook=_decoded)


class Shipped(Struct, frozen=True):
    """The changes of a batch of another process."""

    now_ms: int  # its time, epoch ms
    parts: dict[str, Any]  # what each part shipped

    def take_over(self, parts: Parts) -> None:
        """Apply these changes to the parts; the caller adopts them with `Transaction.adopt`."""
        for name, part in parts.by_name().items():
            if name in self.parts:
                part.take_over(self.parts[name])

    @property
    def logged(self) -> Set[str]:
        """The queues that have new events."""
        return set(self.parts["events"][1]) if "events" in self.parts else frozenset()


def pack(tx: Transaction) -> bytes:
    """The changes of a batch that has run, encoded."""
    changes = {}
    for name, part in tx.by_name().items():
        shipped = part.ship()
        if shipped is not None:
            changes[name] = shipped
    return _encode((tx.now_ms, changes))


_KINDS = {name: kind for name, kind in Parts.kinds().items() if kind is not None}
"""The type that each part ships, by the name of the part."""


def unpack(changes: bytes) -> Shipped:
    """Decode the changes of a batch. Raises msgspec.MsgspecError if another version wrote them in another form."""
    packed = _decode(changes)
    parts = {
        name: _decoder(_KINDS[name]).decode(each) for name, each in packed.parts.items() if name in _KINDS
    }
    return Shipped(packed.now_ms, parts)


def heads_after(batches: Sequence[StoredBatch]) -> dict[str, Head]:
    """The heads as these batches left them: those that were shipped whole, with all later changes."""
    heads = Heads()
    for number, _, changes in batches:
        if number is None:
            break
        if changes is None:
            continue
        try:
            shipped = unpack(changes)
        except msgspec.MsgspecError:
            heads = Heads()
            continue
        if "heads" in shipped.parts:
            heads.take_over(shipped.parts["heads"])
            heads.adopt()
    return heads.committed


def latest_position(batches: Sequence[StoredBatch]) -> int:
    """The latest of the times of these batches, and of the positions of what was withdrawn in them; 0 for none."""
    latest = 0
    for _, _, changes in batches:
        if changes is None:
            continue
        try:
            shipped = unpack(changes)
        except msgspec.MsgspecError:
            continue
        withdrawn = shipped.parts.get("withdrawn", ())
        latest = max(latest, shipped.now_ms, *(each.position for each in withdrawn))
    return latest


def take_left(batches: Sequence[StoredBatch], last: int, tx: Transaction) -> None:
    """Take over what batch `last` left behind that no table contains.

    That is the queues that the next batch wakes, the queue with which claims begin, and the last entry of a stage. If
    its changes cannot be read, all queues with ready messages are woken.
    """
    for number, _, changes in batches:
        if number != last or changes is None:
            continue
        try:
            shipped = unpack(changes)
        except msgspec.MsgspecError:
            tx.wakes.next = {queue for queue, counts in tx.counts.committed.items() if counts.ready}
        else:
            if "wakes" in shipped.parts:
                tx.wakes.take_over(shipped.parts["wakes"])
            if "staging" in shipped.parts:
                tx.staging.raise_last_entry(shipped.parts["staging"].last_entry)
    tx.wakes.adopt()
    tx.staging.adopt()
