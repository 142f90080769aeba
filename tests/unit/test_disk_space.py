"""What sends may write until the disk is looked at again: tables, and a disk that is filled in every order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forq_trio.jobs.disk_space import LOG_SHARE, bytes_for_sends
from forq_trio.storage.write_ahead_log import LogSpace

KEEP = 64


def log(*, used: int = 0, file: int = 0, unmoved: int = 0, free_pages: int = 0) -> LogSpace:
    return LogSpace(used_bytes=used, file_bytes=file, unmoved_bytes=unmoved, free_page_bytes=free_pages)


@pytest.mark.parametrize(
    ("free", "space", "space_bytes"),
    [
        # A new file: what is written grows the log, and then the database.
        (KEEP, log(), 0),
        (KEEP + 100, log(), 50),
        (KEEP - 1, log(), 0),
        # The log starts over in its file: the database alone grows.
        (KEEP + 100, log(file=100), 100),
        (KEEP + 100, log(used=100, file=100, unmoved=100), 0),
        # An empty queue in a file that was full: free pages, and a log that starts over.
        (KEEP, log(file=60, free_pages=200), 108),
        (KEEP - 1, log(file=60, free_pages=200), 107),
        (0, log(file=60, free_pages=200), 60),
        (0, log(file=300, free_pages=200), 200),
        # After a restart there is no log yet: it may have three quarters of the first reserve.
        (KEEP - 2, log(free_pages=200), KEEP - 2 - KEEP // LOG_SHARE),
        # A log that a long read holds: free pages do not help once its file is full.
        (0, log(used=60, file=60, unmoved=60, free_pages=200), 0),
        # What was committed may have taken the free pages already.
        (0, log(used=60, file=300, unmoved=150, free_pages=200), 50),
    ],
)
def test_what_the_disk_and_the_files_leave(free, space, space_bytes) -> None:
    assert bytes_for_sends(free, KEEP, space, has_reserve=True) == space_bytes


def test_without_the_reserve_file_sends_leave_the_space_to_make_it() -> None:
    inside = log(file=300, free_pages=200)
    assert bytes_for_sends(KEEP, KEEP, inside, has_reserve=False) <= 0
    assert bytes_for_sends(2 * KEEP, KEEP, inside, has_reserve=False) > 0
    assert bytes_for_sends(KEEP, KEEP, inside, has_reserve=True) > 0


def test_with_no_reserve_configured_all_of_the_disk_is_for_sends() -> None:
    assert bytes_for_sends(100, 0, log(), has_reserve=False) == 50
    assert bytes_for_sends(0, 0, log(file=100, free_pages=80), has_reserve=False) == 80


@given(
    free=st.integers(0, 400),
    used=st.integers(0, 100),
    rest=st.integers(0, 100),
    unmoved=st.integers(0, 100),
    free_pages=st.integers(0, 300),
)
def test_writing_all_of_it_leaves_what_is_kept(free, used, rest, unmoved, free_pages) -> None:
    space = log(used=used, file=used + rest, unmoved=min(used, unmoved), free_pages=free_pages)
    space_bytes = bytes_for_sends(free, KEEP, space, has_reserve=True)
    if space_bytes <= 0:
        return
    log_grows = max(0, used + space_bytes - space.file_bytes)
    file_grows = max(0, space.unmoved_bytes + space_bytes - free_pages)
    left = free - log_grows - file_grows
    if log_grows + file_grows > 0:
        assert left >= (KEEP if file_grows else KEEP // LOG_SHARE)
