"""forq serve --memory (S10): nothing is kept, and the files of the configured database are not touched."""

import os
import signal
from pathlib import Path

import pytest

from .server import running

pytestmark = pytest.mark.process


def places(process: int) -> set[Path]:
    """The directories of databases that a process has open."""
    descriptors = Path(f"/proc/{process}/fd")
    targets = {Path(os.readlink(each)) for each in descriptors.iterdir() if each.is_symlink()}
    return {target.parent for target in targets if target.name == "forq.db"}


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="looks at open files as Linux shows them")
@pytest.mark.parametrize(
    "option", [("--memory",), pytest.param(("--memory", "true"), marks=pytest.mark.tier2)]
)
def test_nothing_is_kept(tmp_path: Path, option: tuple[str, ...]):
    database = tmp_path / "forq.db"
    with running("--db", str(database), *option, XDG_DATA_HOME=str(tmp_path)) as server:
        assert (server.started["durability"], server.started["database"]) == (
            "none",
            "in memory, nothing is kept",
        )
        server.ok("send", {"queue_name": "q", "message_body": "m"})
        (place,) = places(server.process.pid)
        assert server.stop() == 0
        assert not place.exists()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.tier2
@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="looks at open files as Linux shows them")
def test_what_a_killed_server_left_the_next_one_removes():
    with running("--memory") as killed:
        (place,) = places(killed.process.pid)
        killed.process.send_signal(signal.SIGKILL)
        killed.process.wait(120)
    with running("--memory") as server:  # the next one on this machine: it may be one of another test
        assert not place.exists()
        assert server.client.get("/queues").json() == []
