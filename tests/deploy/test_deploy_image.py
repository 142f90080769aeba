"""The image: built, then run as it is meant to, on a read-only root, as its user, without a network."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from support.real_server import SECRET

from .images import Container, Image, build

MB = 1_000_000
BYTES_MAX = 150 * MB
COMPILERS = ("cc", "gcc", "g++", "clang", "ld", "make", "as")
NOT_COMPILED = """
import os, sys
import forq_trio.app, forq_trio.cli.commands, forq_trio.cli.health
import forq_trio.storage.postgres.open, forq_trio.ui.rendering
files = [getattr(module, "__cached__", None) for module in sys.modules.values()]
print([file for file in files if file and not os.path.exists(file)], sum(map(bool, files)) > 300)
"""
"""What each start would compile again. The number is for a question that found nothing."""
TRUSTED = """
import os, ssl
folder = ssl.get_default_verify_paths().capath
print(sum(os.path.exists(os.path.join(folder, name)) for name in os.listdir(folder)) > 50)
"""
LOCAL_TIME = "import time; print(time.strftime('%H:%M', time.localtime(0)))"


def is_as_small_as_it_says(image: Image, container: Container) -> None:
    assert image.all_bytes < BYTES_MAX
    assert container.exec("ls", "/opt/forq/bin/pip").returncode != 0
    for each in COMPILERS:
        assert container.exec("sh", "-c", f"command -v {each}").stdout == "", each


def runs_as_nobody_who_may_do_anything(image: Image, container: Container) -> None:
    status = dict(
        line.split(":\t", 1)
        for line in container.exec("cat", "/proc/1/status").stdout.splitlines()
        if ":\t" in line
    )
    assert status["Uid"].split() == ["10001"] * 4
    assert status["Gid"].split() == ["10001"] * 4
    assert {status[name] for name in ("CapPrm", "CapEff", "CapBnd", "CapInh")} == {"0" * 16}
    assert status["NoNewPrivs"] == "1"
    assert image.config.labels["org.opencontainers.image.version"] == "1.2.3"


def can_write_nowhere_but_to_its_volume(container: Container) -> None:
    for place in ("/", "/opt/forq", "/opt/forq/lib", "/etc", "/var", "/run", "/home", "/usr/bin"):
        tried = container.exec("sh", "-c", f"echo x > {place}/tried")
        assert tried.returncode != 0, place
    for place in ("/tmp", "/var/lib/forq"):
        assert container.exec("sh", "-c", f"echo x > {place}/tried && rm {place}/tried").returncode == 0, (
            place
        )


def has_all_that_is_asked_for_later(container: Container) -> None:
    """Files that nothing links to: they are found by name, where something needs them."""
    assert container.exec("python3", "-c", NOT_COMPILED).stdout == "[] True\n"
    assert container.exec("python3", "-c", TRUSTED).stdout == "True\n"
    local = container.exec("sh", "-c", f'TZ=Asia/Kolkata python3 -c "{LOCAL_TIME}"')
    assert local.stdout == "05:30\n"
    assert container.exec("sleep", "0").returncode == 0
    assert container.exec("tar", "--version").returncode == 0


@pytest.mark.tier2
@pytest.mark.process
def test_the_image(root: Path, tmp_path: Path) -> None:
    secret, volume = tmp_path / "secret", tmp_path / "volume"
    secret.write_text(f"{SECRET}\n", encoding="utf-8")
    secret.chmod(0o444)
    volume.mkdir()
    with TemporaryDirectory(dir=tmp_path) as place:  # its files would stay until the third run after this one
        try_it(build(root, Path(place)), tmp_path, volume, secret)


def try_it(image: Image, tmp_path: Path, volume: Path, secret: Path) -> None:
    with image.started(_place(tmp_path, "first"), volume, secret) as container:
        is_as_small_as_it_says(image, container)
        runs_as_nobody_who_may_do_anything(image, container)
        can_write_nowhere_but_to_its_volume(container)
        assert container.exec("forq", "send", "orders", "one sofa").returncode == 0
        health = container.exec(*image.config.health)
        assert (health.returncode, health.stdout) == (0, "http://localhost:8080 works.\n")
        backup = container.exec("forq", "backup", "/var/lib/forq/copy.db")
        assert backup.returncode == 0, backup.stderr
        has_all_that_is_asked_for_later(container)
        assert container.stop() == 0
    assert json.loads(container.log().splitlines()[-1])["event"] == "server.stopped"
    assert {path.name for path in volume.iterdir()} == {"forq.db", "forq.db.lock", "copy.db"}
    with image.started(_place(tmp_path, "second"), volume, secret) as container:
        received = container.exec("forq", "receive", "orders", "--ack")
        assert "one sofa" in received.stdout
        assert container.stop() == 0


def _place(folder: Path, name: str) -> Path:
    place = folder / name
    place.mkdir()
    return place
