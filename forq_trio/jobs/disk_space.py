"""How much sends may write before the next check of the disk, and its inverse: pure functions.

A send first writes pages to the log; a checkpoint copies them into the database file later. So the disk must have space

- for the growth of the log file. The log first writes over its file, from the start once all of it is in the database;
- for the growth of the database file, whose free pages are used first. How many of the log's pages will make it grow is
  not known without a query, so all of them count, including those that are not in the database yet.

Sends leave `keep_bytes` of the free space, the first reserve. If the free pages of the file are enough for all sends,
the disk only needs space for the log, which starts over: then sends leave a quarter of the first reserve. They never
use the reserve file, the second reserve, and if it is missing they leave the space to make it.

Leases of consumers move messages. That does not make the file longer, except that some leases copy messages. Leases
leave a small part of the first reserve, so that a full disk can be drained. A read of leased messages may have to move
them back, which makes the file longer: sends leave free space for all leased messages, and such a read leaves half of
the first reserve.
"""

from msgspec.structs import replace

from forq_trio.model import limits
from forq_trio.model.limits import MIB
from forq_trio.storage.write_ahead_log import LogSpace

LOG_SHARE = 4  # sends into free pages leave this part of the first reserve
LEASES_SHARE = 16  # leases leave this part of the first reserve
MOVED_BACK_SHARE = 2  # messages that are moved back leave this part of the first reserve
LEASED_SHARE = 4  # the rows of messages take up to this part more space than their lines in a lease
# What a step that moves messages back may take: as much of the log as of the file.
MOVED_BACK_STEP_BYTES = 2 * limits.CONSUMER_MOVED_BACK_BYTES_MAX * (LEASED_SHARE + 1) // LEASED_SHARE
LEASED_LOG_BYTES = 16 * MIB  # how much the log may grow while they are moved back and a checkpoint runs


def bytes_for_sends(free_bytes: int, keep_bytes: int, log: LogSpace, *, has_reserve: bool) -> int:
    """How many bytes of log sends may write; 0 or less: none. free_bytes: of the disk, without the reserve file."""
    in_log = log.file_bytes - log.used_bytes  # may be written without growing the log
    in_file = log.free_page_bytes - log.unmoved_bytes  # and without growing the database
    spare = free_bytes if has_reserve else free_bytes - keep_bytes
    inside = -1
    if has_reserve or keep_bytes == 0:
        inside = min(in_file, in_log + max(0, spare - keep_bytes // LOG_SHARE))
    if spare < keep_bytes:
        return inside
    return max(inside, _bytes_growing(spare - keep_bytes, *sorted((in_log, in_file))))


def bytes_for_leases(free_bytes: int, keep_bytes: int, log: LogSpace, *, has_reserve: bool) -> int:
    """How many bytes of log leases may write; 0 or less: none.

    The log's own space counts only while the files may grow by a step.
    """
    growth = _growth(free_bytes, keep_bytes, keep_bytes // LEASES_SHARE, log, has_reserve=has_reserve)
    return growth if growth < limits.CONSUMER_STEP_BYTES_MAX else growth + log.file_bytes - log.used_bytes


def bytes_to_move_back(free_bytes: int, keep_bytes: int, log: LogSpace, *, has_reserve: bool) -> int:
    """By how many bytes files may grow for messages that are moved back; 0 or less: not at all."""
    return _growth(free_bytes, keep_bytes, keep_bytes // MOVED_BACK_SHARE, log, has_reserve=has_reserve)


def _growth(free_bytes: int, keep_bytes: int, leave_bytes: int, log: LogSpace, *, has_reserve: bool) -> int:
    """By how many bytes files may grow if they leave `leave_bytes` of the first reserve."""
    spare = free_bytes if has_reserve else free_bytes - keep_bytes
    in_file = log.free_page_bytes - log.unmoved_bytes
    return spare - leave_bytes + min(0, in_file)


def less_leased(log: LogSpace, leased_bytes: int) -> LogSpace:
    """The space for sends: without what it may take to move leased messages, `leased_bytes` long, back."""
    needed = leased_bytes + leased_bytes // LEASED_SHARE + min(leased_bytes, LEASED_LOG_BYTES)
    return replace(log, free_page_bytes=log.free_page_bytes - needed)


def free_bytes_for(sends_bytes: int, keep_bytes: int, log: LogSpace, *, has_reserve: bool) -> int:
    """How many bytes have to be free on the disk, without the reserve file, for sends to write `sends_bytes`.

    Less is enough where the free pages of the database file hold all of them.
    """
    in_log = log.file_bytes - log.used_bytes
    in_file = log.free_page_bytes - log.unmoved_bytes
    growth = max(0, sends_bytes - in_log) + max(0, sends_bytes - in_file)
    return (keep_bytes if has_reserve else 2 * keep_bytes) + growth


def lacking_free_pages(sends_bytes: int, free_bytes: int, keep_bytes: int, log: LogSpace) -> int:
    """How many more bytes of free pages let sends write `sends_bytes`; 0 where the disk has no space for their log."""
    in_log = log.file_bytes - log.used_bytes
    if in_log + max(0, free_bytes - keep_bytes // LOG_SHARE) < sends_bytes:
        return 0
    return max(0, sends_bytes - (log.free_page_bytes - log.unmoved_bytes))


def _bytes_growing(disk_bytes: int, first: int, second: int) -> int:
    """How many bytes fit if one file grows beyond `first` bytes, both beyond `second`, and together by `disk_bytes`."""
    if first + disk_bytes <= second:
        return first + disk_bytes
    return (disk_bytes + first + second) // 2
