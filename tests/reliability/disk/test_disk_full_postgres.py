"""PostgreSQL on a disk that is really full: callers are told so, and once there is space all goes on by itself.

The tables are in a tablespace on a small file system, which somebody else fills. Needs the right to mount one.
"""

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import psycopg
import pytest

from support.postgres import SYSTEM_USER, Postgres
from support.processes import WAIT_SECONDS_MAX
from support.real_server import SECRET, real_server
from support.small_disk import mounted

from .test_disk_full import CONTENT, DISK_MIB, MESSAGES, fill

pytestmark = pytest.mark.process


@pytest.fixture
def disk(postgres: Postgres) -> Iterator[Path]:
    """Where the tablespace `small` is."""
    with mounted(postgres.directory / "disk", DISK_MIB) as disk:
        tables = disk / "tables"
        tables.mkdir()
        if SYSTEM_USER is not None:
            shutil.chown(tables, SYSTEM_USER)
        with psycopg.connect(postgres.url(), autocommit=True) as connection:
            connection.execute(f"CREATE TABLESPACE small LOCATION '{tables}'")
        yield disk
        with psycopg.connect(postgres.url(), autocommit=True) as connection:
            connection.execute("DROP TABLESPACE small")


def test_changes_are_refused_by_name_and_all_goes_on_by_itself(postgres, disk, database):
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        name = database.partition("@/")[2].partition("?")[0]
        connection.execute(f"ALTER DATABASE {name} SET TABLESPACE small")
    with (
        real_server(database) as server,
        httpx.Client(base_url=server.url, headers={"X-API-Key": SECRET}, timeout=60, verify=False) as client,
    ):

        def send() -> httpx.Response:
            return client.post(MESSAGES, json={"content": CONTENT})

        assert send().status_code == 204
        held = client.get(MESSAGES).json()
        filler = fill(disk)
        stored = 1
        while (answer := send()).status_code == 204:  # into what its files have left
            stored += 1
        assert (answer.status_code, answer.json()["code"]) == (503, "forq.storage_full")
        assert client.get("/healthcheck").is_success
        os.unlink(filler)
        ends_at = time.monotonic() + WAIT_SECONDS_MAX
        while (again := send()).status_code == 503 and time.monotonic() < ends_at:
            assert again.json() == {"code": "forq.storage_full"}
        assert again.status_code == 204
        acked = client.post(f"{MESSAGES}/ack", json={"receipts": [held["receipt"]]})
        assert [each["ok"] for each in acked.json()["results"]] == [True]
        assert client.get("/api/v1/queues/orders").json()["ready"] == stored
