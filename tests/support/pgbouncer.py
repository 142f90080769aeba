"""PgBouncer in front of the tests' PostgreSQL, where Debian's package `pgbouncer` is installed."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from support.needs import lacks
from support.processes import WAIT_SECONDS_MAX, killed_after

PORT = 6432
# Few connections of the server, so that clients often get another one.
CONFIGURATION = """
[databases]
* = host={server} user=postgres
[pgbouncer]
unix_socket_dir = {directory}
listen_addr =
listen_port = {port}
auth_type = any
pool_mode = {mode}
default_pool_size = {size}
max_client_conn = 100
server_round_robin = 1
log_connections = 0
log_disconnections = 0
log_stats = 0
"""


@contextmanager
def running_pool(server: Path, user: str | None, mode: str, size: int = 4) -> Iterator[Path]:
    """PgBouncer, run by `user`, in front of the server that listens in `server`; yields its own socket's directory.

    mode: pool_mode. size: connections for each database.
    """
    program = shutil.which("pgbouncer", path=os.environ["PATH"] + ":/usr/sbin")
    if program is None:
        lacks("PgBouncer", "pgbouncer (on Debian: apt install pgbouncer)")
    with tempfile.TemporaryDirectory(prefix="forq-pool-") as name:
        directory = Path(name)
        file = directory / "pgbouncer.ini"
        file.write_text(
            CONFIGURATION.format(server=server, directory=directory, port=PORT, mode=mode, size=size),
            encoding="utf-8",
        )
        directory.chmod(0o755)
        if user is not None:
            shutil.chown(directory, user)
        process = subprocess.Popen([program, file], user=user, stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None
        try:
            with killed_after(process):
                for line in process.stderr:
                    if "process up" in line:
                        break
            yield directory
        finally:
            process.terminate()
            process.communicate(timeout=WAIT_SECONDS_MAX)


def through(pool: Path, url: str) -> str:
    """The URL of a database through a pool."""
    return f"{url.partition('?')[0]}?host={quote(str(pool), safe='')}&port={PORT}"
